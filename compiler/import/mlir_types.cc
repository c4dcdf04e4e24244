// Types of MLIR text.
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/import/mlir_parser.h"

namespace kiln::mlir {

absl::StatusOr<Type> Parser::ReadType() {
  if (++depth_ > kMaxDepth) return s_.Error("types nest too deep");
  const absl::Cleanup leave = [&] { --depth_; };
  if (s_.Eat("tensor")) {
    RETURN_IF_ERROR(s_.Expect("<"));
    Ints dims;
    std::vector<bool> dynamic;
    for (;;) {
      s_.Peek();
      if (s_.PeekRaw() == '?') {
        s_.set_pos(s_.pos() + 1);
        dims.push_back(-1);
        dynamic.push_back(true);
        if (s_.PeekRaw() != 'x') return s_.Error("expected 'x' behind an extent");
        s_.set_pos(s_.pos() + 1);
        continue;
      }
      if (!absl::ascii_isdigit(s_.PeekRaw())) break;
      ASSIGN_OR_RETURN(int64_t d, s_.Integer());
      dims.push_back(d);
      dynamic.push_back(false);
      if (s_.PeekRaw() != 'x') return s_.Error("expected 'x' behind an extent");
      s_.set_pos(s_.pos() + 1);
    }
    int64_t n = 1;
    for (int64_t d : dims) {
      if (d > 0 && n > (int64_t{1} << 40) / d) return s_.Error("more elements than kiln handles (2^40)");
      n *= std::max<int64_t>(d, 1);
    }
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(std::string elem, Raw(",>"));
    QuantizedPtr quantized;
    auto type = ElementType(elem);
    if (absl::StartsWith(elem, "!quant.")) {
      auto q = ParseQuantizedType(elem);
      if (!q.ok()) return s_.ErrorAtPos(at, q.status().message());
      type = q->storage;
      quantized = std::make_shared<QuantizedType>(std::move(*q));
    }
    if (!type) return s_.ErrorAtPos(at, absl::StrCat("element type '", elem, "' is not supported"));
    mlir::Type shape = Shape::Array(*type, dims);
    shape.quantized = std::move(quantized);
    for (size_t d = 0; d < dims.size(); ++d) shape.set_dynamic(static_cast<int64_t>(d), dynamic[d]);
    if (s_.Eat(",")) {
      ASSIGN_OR_RETURN(std::string enc, Raw(">"));
      absl::string_view e = enc;
      if (absl::ConsumePrefix(&e, "#stablehlo.bounds<")) {
        absl::ConsumeSuffix(&e, ">");
        size_t d = 0;
        for (absl::string_view b : absl::StrSplit(e, ',')) {
          int64_t bound;
          if (d < dims.size() && absl::SimpleAtoi(absl::StripAsciiWhitespace(b), &bound))
            shape.mutable_dims()[d] = bound;
          ++d;
        }
      }
    }
    RETURN_IF_ERROR(s_.Expect(">"));
    return shape;
  }
  if (s_.Eat("tuple")) {
    RETURN_IF_ERROR(s_.Expect("<"));
    std::vector<Shape> parts;
    while (!s_.Eat(">")) {
      if (!parts.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Type e, ReadType());
      parts.push_back(std::move(e));
    }
    return mlir::Type(Shape::Tuple(std::move(parts)));
  }
  if (s_.Eat("!stablehlo.token") || s_.Eat("!mhlo.token")) return mlir::Type(Shape::Token());
  const size_t at = (s_.Peek(), s_.pos());
  ASSIGN_OR_RETURN(std::string t, Raw(" ,)}{\n"));
  if (auto e = ElementType(t)) return mlir::Type(Shape::Scalar(*e));
  return s_.ErrorAtPos(at, absl::StrCat("type '", t, "' is not supported"));
}

absl::StatusOr<std::vector<Type>> Parser::TypeList() {
  std::vector<Type> out;
  if (s_.Eat("(")) {
    while (!s_.Eat(")")) {
      if (!out.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Type t, ReadType());
      out.push_back(std::move(t));
    }
    return out;
  }
  do {
    ASSIGN_OR_RETURN(Type t, ReadType());
    out.push_back(std::move(t));
  } while (s_.Eat(","));
  return out;
}

absl::Status Parser::ReadFunctionType(std::vector<Type>* arguments, std::vector<Type>* results) {
  ASSIGN_OR_RETURN(*arguments, TypeList());
  RETURN_IF_ERROR(s_.Expect("->"));
  ASSIGN_OR_RETURN(*results, TypeList());
  return s_.AtEnd() ? absl::OkStatus() : s_.Error("expected the end of a function's type");
}

std::optional<PrimitiveType> ElementType(absl::string_view t) {
  using P = PrimitiveType;
  static const auto* map = new absl::flat_hash_map<std::string, P>{{"i1", P::Pred},
                                                                   {"i2", P::S2},
                                                                   {"i4", P::S4},
                                                                   {"i8", P::S8},
                                                                   {"i16", P::S16},
                                                                   {"i32", P::S32},
                                                                   {"i64", P::S64},
                                                                   {"si2", P::S2},
                                                                   {"si4", P::S4},
                                                                   {"si8", P::S8},
                                                                   {"si16", P::S16},
                                                                   {"si32", P::S32},
                                                                   {"si64", P::S64},
                                                                   {"ui2", P::U2},
                                                                   {"ui4", P::U4},
                                                                   {"ui8", P::U8},
                                                                   {"ui16", P::U16},
                                                                   {"ui32", P::U32},
                                                                   {"ui64", P::U64},
                                                                   {"ui1", P::U1},
                                                                   {"si1", P::S1},
                                                                   {"index", P::S64},
                                                                   {"f16", P::F16},
                                                                   {"bf16", P::BF16},
                                                                   {"f32", P::F32},
                                                                   {"f64", P::F64},
                                                                   {"complex<f32>", P::C64},
                                                                   {"complex<f64>", P::C128}};
  if (auto it = map->find(std::string(t)); it != map->end()) return it->second;
  if (t.size() > 3 && t[0] == 'f') return TypeFromText(absl::AsciiStrToLower(t));
  return std::nullopt;
}

absl::StatusOr<Type> ParseType(absl::string_view text) {
  Parser p(text, "<type>");
  return p.ReadType();
}

}  // namespace kiln::mlir
