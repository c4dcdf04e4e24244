#include "compiler/import/quantized.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/import/mlir.h"

namespace kiln {
namespace {

// The scale and zero point of each position along the axis, as a tensor of the value's extents.
absl::StatusOr<Expr> Parameters(Computation* c, const std::vector<double>& values, PrimitiveType t, const Shape& s,
                                int64_t axis) {
  const bool scalar = axis < 0;
  if (!scalar && (axis >= s.rank() || s.dim(axis) != static_cast<int64_t>(values.size())))
    return InvalidArgument("the quantized type has ", values.size(), " scales along dimension ", axis, " of ",
                           s.ToString(false));
  Literal l(scalar ? Shape::Scalar(t) : Shape::Array(t, {static_cast<int64_t>(values.size())}));
  for (int64_t k = 0; k < l.size(); ++k) {
    Element e;
    e.re = values[k];
    e.i = static_cast<int64_t>(values[k]);
    l.Set(k, e);
  }
  return BroadcastTo(c->AddConstant(std::move(l)), s.dims(), scalar ? Ints{} : Ints{axis});
}

std::vector<double> ZeroPoints(const QuantizedType& q) { return {q.zero_points.begin(), q.zero_points.end()}; }

bool AnyZeroPoint(const QuantizedType& q) {
  return std::any_of(q.zero_points.begin(), q.zero_points.end(), [](int64_t z) { return z != 0; });
}

}  // namespace

absl::StatusOr<QuantizedType> ParseQuantizedType(absl::string_view text) {
  QuantizedType q;
  absl::string_view t = text;
  if (!absl::ConsumePrefix(&t, "!quant.uniform<") || !absl::ConsumeSuffix(&t, ">"))
    return Unimplemented("quantized type '", text, "' is not uniform");
  const size_t comma = t.find(',');
  if (comma == absl::string_view::npos) return InvalidArgument("'", text, "' has no scale");
  absl::string_view head = t.substr(0, comma), params = absl::StripAsciiWhitespace(t.substr(comma + 1));
  // head: storage [<low:high>] : expressed [: axis]
  std::string storage;
  while (!head.empty() && absl::ascii_isalnum(head[0])) {
    storage += head[0];
    head.remove_prefix(1);
  }
  if (storage.size() > 1 && storage[0] == 'u' && absl::ascii_isdigit(storage[1])) storage = "ui" + storage.substr(1);
  const auto type = mlir::ElementType(storage);
  constexpr int kMostBits = 32;
  if (!type || !IsIntegral(*type) || InfoOf(*type).bits > kMostBits)
    return InvalidArgument("'", text, "': storage type '", storage, "'");
  q.storage = *type;
  const int bits = InfoOf(q.storage).bits;
  q.low = IsSigned(q.storage) ? -(int64_t{1} << (bits - 1)) : 0;
  q.high = (int64_t{1} << (IsSigned(q.storage) ? bits - 1 : bits)) - 1;
  if (absl::ConsumePrefix(&head, "<")) {
    const size_t end = head.find('>');
    const std::vector<absl::string_view> range = absl::StrSplit(head.substr(0, end), ':');
    if (end == absl::string_view::npos || range.size() != 2 || !absl::SimpleAtoi(range[0], &q.low) ||
        !absl::SimpleAtoi(range[1], &q.high))
      return InvalidArgument("'", text, "': storage range");
    head.remove_prefix(end + 1);
  }
  if (!absl::ConsumePrefix(&head, ":")) return InvalidArgument("'", text, "' has no expressed type");
  const std::vector<absl::string_view> rest = absl::StrSplit(head, absl::MaxSplits(':', 1));
  const auto expressed = mlir::ElementType(absl::StripAsciiWhitespace(rest[0]));
  if (!expressed || !IsFloat(*expressed)) return InvalidArgument("'", text, "': expressed type '", rest[0], "'");
  q.expressed = *expressed;
  if (rest.size() > 1) {
    if (absl::StartsWith(rest[1], "{")) return Unimplemented("'", text, "': scales per block are not supported");
    if (!absl::SimpleAtoi(rest[1], &q.axis) || q.axis < 0) return InvalidArgument("'", text, "': axis '", rest[1], "'");
  }
  const bool list = absl::ConsumePrefix(&params, "{");
  if (list != (q.axis >= 0)) return InvalidArgument("'", text, "': an axis and a list of scales go together");
  absl::ConsumeSuffix(&params, "}");
  for (absl::string_view p : absl::StrSplit(params, ',')) {
    const std::vector<absl::string_view> pair = absl::StrSplit(absl::StripAsciiWhitespace(p), ':');
    double scale;
    int64_t zero = 0;
    if (pair.size() > 2 || !absl::SimpleAtod(pair[0], &scale) || !(scale > 0) ||
        (pair.size() == 2 && !absl::SimpleAtoi(pair[1], &zero)))
      return InvalidArgument("'", text, "': scale '", p, "'");
    q.scales.push_back(scale);
    q.zero_points.push_back(zero);
  }
  return q;
}

absl::StatusOr<Expr> Dequantize(Expr stored, const QuantizedType& q) {
  Computation* c = stored.computation();
  const Shape s = stored.shape();
  Expr x = stored;
  if (AnyZeroPoint(q)) {
    // The difference of two storage values has one bit more.
    const PrimitiveType wide = InfoOf(q.storage).bits < 32 ? PrimitiveType::S32 : PrimitiveType::S64;
    ASSIGN_OR_RETURN(Expr zero, Parameters(c, ZeroPoints(q), wide, s, q.axis));
    x = ConvertTo(wide, x) - zero;
  }
  ASSIGN_OR_RETURN(Expr scale, Parameters(c, q.scales, q.expressed, s, q.axis));
  return ConvertTo(q.expressed, x) * scale;
}

absl::StatusOr<Expr> Quantize(Expr real, const QuantizedType& q) {
  Computation* c = real.computation();
  const Shape s = real.shape();
  ASSIGN_OR_RETURN(Expr scale, Parameters(c, q.scales, q.expressed, s, q.axis));
  Expr x = Unary(Opcode::RoundNearestEven, ConvertTo(q.expressed, real) / scale);
  if (AnyZeroPoint(q)) {
    ASSIGN_OR_RETURN(Expr zero, Parameters(c, ZeroPoints(q), q.expressed, s, q.axis));
    x = x + zero;
  }
  // Conversions saturate, so only a range narrower than the storage type, or a type without such, needs the bounds.
  Expr low = x.Like(static_cast<double>(q.low)), high = x.Like(static_cast<double>(q.high));
  x = Binary(Opcode::Minimum, Binary(Opcode::Maximum, x, low), high);
  return ConvertTo(q.storage, x);
}

bool MovesStorage(absl::string_view op) {
  static constexpr std::array<absl::string_view, 31> kMovers = {"bitcast_convert",
                                                                "broadcast",
                                                                "broadcast_in_dim",
                                                                "case",
                                                                "concatenate",
                                                                "constant",
                                                                "custom_call",
                                                                "dynamic_broadcast_in_dim",
                                                                "dynamic_gather",
                                                                "dynamic_reshape",
                                                                "dynamic_slice",
                                                                "dynamic_update_slice",
                                                                "gather",
                                                                "get_tuple_element",
                                                                "if",
                                                                "map",
                                                                "optimization_barrier",
                                                                "pad",
                                                                "reduce",
                                                                "reduce_window",
                                                                "reshape",
                                                                "reverse",
                                                                "scatter",
                                                                "select",
                                                                "select_and_scatter",
                                                                "slice",
                                                                "sort",
                                                                "transpose",
                                                                "tuple",
                                                                "while",
                                                                "all_gather"};
  return std::find(kMovers.begin(), kMovers.end(), op) != kMovers.end();
}

}  // namespace kiln
