#include "compiler/hlo/parser.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/infer.h"
#include "compiler/hlo/scanner.h"

namespace kiln {

absl::StatusOr<Shape> InferOmittedShape(const Instruction& instruction);

namespace {

constexpr int64_t kMaxNesting = 200;  // of tuples, and of operands written inside operand lists
constexpr int64_t kMaxElements = int64_t{1} << 48;
constexpr int64_t kMaxInstructions = int64_t{1} << 24;
constexpr int64_t kMaxCallDepth = 2048;
constexpr int64_t kMaxDevices = 4096;

class HloParser {
 public:
  // With `look`, constants printed as `{...}` are read too: they hold stand-ins, and their custom_call_literal says
  // "{...}", by which the printer knows them.
  HloParser(absl::string_view text, const std::string& file, bool look) : s_(text, file), look_(look) {}

  absl::StatusOr<std::unique_ptr<Module>> ParseModule();
  absl::StatusOr<Shape> ParseShape(int depth = 0);
  bool AtEnd() { return s_.AtEnd(); }
  absl::Status Error(absl::string_view m) { return s_.Error(m); }

 private:
  // A computation named before its text is known to be read.
  struct Pending {
    size_t pos;
    std::string name;
    Instruction* instruction;
    std::optional<Computation*>* one;
    std::optional<std::vector<Computation*>>* many;
  };

  absl::Status ParseHeader();
  absl::Status ParseHeaderValue(absl::string_view key, size_t at);
  absl::Status ParseLocationTables();
  absl::Status ParseDonors();
  absl::Status ParseEntryLayout();
  absl::Status ParseComputation();
  absl::Status ParseBody(Computation* c);
  absl::Status ParseInstruction(Computation* c, Instruction** root, Instruction** last);
  // `opcode(operands)`, for an instruction of its own or written inside an operand list.
  absl::StatusOr<Instruction*> ParseCall(Computation* c, const std::string& name, std::optional<Shape> shape,
                                         absl::string_view* wrapped, int depth);
  absl::Status CheckNewInstruction(size_t at);
  bool LooksLikeCall();
  // `op` is the opcode that the attributes belong to: of what is wrapped for an asynchronous start.
  absl::Status ParseAttribute(Instruction* i, Opcode op, std::vector<std::string>* control_preds);
  absl::StatusOr<Literal> ParseLiteral(const Shape& shape);
  absl::Status ParseLiteralInto(Literal* l, int64_t dim, int64_t* next);
  absl::StatusOr<Literal> ElidedLiteral(const Shape& shape);
  absl::Status ParseScalar(Literal* l, int64_t n);
  absl::StatusOr<double> ParseReal(PrimitiveType t);
  absl::StatusOr<std::string> Name();
  bool LooksLikeShape();
  Computation* Complete(absl::string_view name) const;
  absl::Status WrapAsync(Instruction* i, absl::string_view wrapped);
  void MoveAttributesOfWrapped();
  void FillDefaults();
  // The shapes of instructions that leave theirs out, once everything they call is known.
  absl::Status InferOmittedShapes();
  absl::StatusOr<ShapeIndex> ParseShapeIndex();
  absl::Status ParseAliases();
  absl::StatusOr<Ints> ParseInts();

  absl::Status Value(std::optional<attr::Ints>* v, Instruction*);
  absl::Status Value(std::optional<attr::Int>* v, Instruction*);
  absl::Status Value(std::optional<attr::Num>* v, Instruction*);
  absl::Status Value(std::optional<attr::Bool>* v, Instruction*);
  absl::Status Value(std::optional<attr::Raw>* v, Instruction*);
  absl::Status Value(std::optional<attr::Str>* v, Instruction*);
  absl::Status Value(std::optional<attr::Comp>* v, Instruction*);
  absl::Status Value(std::optional<attr::Comps>* v, Instruction*);
  absl::Status Value(std::optional<attr::Slices>* v, Instruction*);
  absl::Status Value(std::optional<attr::Padding>* v, Instruction*);
  absl::Status Value(std::optional<attr::Win>* v, Instruction*);
  absl::Status Value(std::optional<attr::ConvDims>* v, Instruction*);
  absl::Status Value(std::optional<Shape>* v, Instruction*);

  Scanner s_;
  const bool look_;
  std::unique_ptr<Module> m_;
  int64_t instructions_ = 0;
  bool elided_ = false;  // the constant just read was
  absl::flat_hash_set<std::string> header_keys_;
  absl::flat_hash_map<std::string, Computation*> computations_;
  absl::flat_hash_map<std::string, Instruction*> values_;
  std::vector<Pending> pending_;
  // The computation that ended last: the entry, where none is marked.
  Computation* last_ = nullptr;
  // `op-start` sugar: the start and the op it wraps, which takes over the attributes once they are resolved.
  std::vector<std::pair<Instruction*, Instruction*>> wrapped_;
  // Instructions without a shape of their own.
  absl::flat_hash_set<const Instruction*> shapeless_;
};

absl::StatusOr<std::string> HloParser::Name() {
  if (s_.Peek() == '%') s_.set_pos(s_.pos() + 1);
  if (s_.PeekRaw() == '"') return s_.Quoted();
  const absl::string_view w = s_.Word("_.-:$@/");
  if (w.empty()) return s_.Error("expected a name");
  return std::string(w);
}

absl::StatusOr<Ints> HloParser::ParseInts() {
  RETURN_IF_ERROR(s_.Expect("{"));
  Ints v;
  while (!s_.Eat("}")) {
    if (!v.empty()) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(int64_t x, s_.Integer());
    v.push_back(x);
  }
  return v;
}

absl::StatusOr<Shape> HloParser::ParseShape(int depth) {
  if (depth > kMaxNesting) return s_.Error(absl::StrCat("tuples nest deeper than ", kMaxNesting, ""));
  if (s_.Eat("(")) {
    std::vector<Shape> elements;
    while (!s_.Eat(")")) {
      if (!elements.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Shape e, ParseShape(depth + 1));
      elements.push_back(std::move(e));
    }
    return Shape::Tuple(std::move(elements));
  }
  const absl::string_view word = s_.PeekWord("_");
  if (word == "b" && s_.PeekRaw(1) == '(') {  // a reference to the memory of an array
    s_.Word("_");
    RETURN_IF_ERROR(s_.Expect("("));
    ASSIGN_OR_RETURN(Shape array, ParseShape(depth + 1));
    if (!array.IsArray()) return s_.Error("a buffer holds one array");
    RETURN_IF_ERROR(s_.Expect(")"));
    Shape buffer = Shape::Tuple({std::move(array)});
    buffer.set_type(PrimitiveType::Buffer);
    return buffer;
  }
  auto type = TypeFromText(word);
  if (!type) return s_.Error(absl::StrCat("'", word, "' is not an element type"));
  s_.Word("_");
  RETURN_IF_ERROR(s_.Expect("["));
  Ints dims;
  std::vector<bool> dynamic;
  while (!s_.Eat("]")) {
    if (!dims.empty()) RETURN_IF_ERROR(s_.Expect(","));
    if (s_.Eat("?")) {
      dims.push_back(-1);
      dynamic.push_back(true);
      continue;
    }
    dynamic.push_back(s_.Eat("<="));
    const size_t at = (s_.Peek(), s_.pos());
    ASSIGN_OR_RETURN(int64_t d, s_.Integer());
    if (d < 0) return s_.ErrorAtPos(at, absl::StrCat("negative extent ", d));
    dims.push_back(d);
  }
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d > 0 && n > kMaxElements / d) return s_.Error(absl::StrCat("more than ", kMaxElements, " elements"));
    n *= std::max<int64_t>(d, 0);
  }
  Shape shape = Shape::Array(*type, std::move(dims));
  for (size_t i = 0; i < dynamic.size(); ++i) shape.set_dynamic(static_cast<int64_t>(i), dynamic[i]);
  const size_t behind = s_.pos();
  if (s_.PeekRaw() != '{' && s_.Peek() == '{') {  // apart from its shape a layout is digits
    const size_t close = s_.text().find('}', s_.pos());
    const absl::string_view inside = s_.text().substr(s_.pos() + 1, close - s_.pos() - 1);
    if (close == absl::string_view::npos || inside.empty() ||
        inside.find_first_not_of("0123456789, ") != absl::string_view::npos)
      s_.set_pos(behind);
  } else {
    s_.set_pos(behind);
  }
  if (s_.PeekRaw() == '{') {
    // A layout, unless a computation's body opens here.
    const size_t save = s_.pos();
    s_.set_pos(save + 1);
    const char next = s_.Peek();
    if (!absl::ascii_isdigit(next) && next != '}' && next != ':') {
      s_.set_pos(save);
      return shape;
    }
    Layout l;
    while (s_.Peek() != '}' && s_.Peek() != ':') {
      if (!l.minor_to_major.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(int64_t d, s_.Integer());
      l.minor_to_major.push_back(d);
    }
    if (s_.Eat(":")) {
      ASSIGN_OR_RETURN(l.extras, s_.Balanced("}"));
    }
    RETURN_IF_ERROR(s_.Expect("}"));
    std::vector<bool> seen(shape.rank(), false);
    bool ok = static_cast<int64_t>(l.minor_to_major.size()) == shape.rank();
    for (int64_t d : l.minor_to_major) {
      ok = ok && d >= 0 && d < shape.rank() && !seen[d];
      if (ok) seen[d] = true;
    }
    if (!ok)
      return s_.ErrorAtPos(save,
                           absl::StrCat("layout ", l.ToString(), " is no order of ", shape.rank(), " dimensions"));
    shape.set_layout(std::move(l));
  }
  return shape;
}

bool HloParser::LooksLikeShape() {
  const char c = s_.Peek();
  if (c == '(') return true;
  const absl::string_view w = s_.PeekWord("_.-:$@");
  if (w == "b" && s_.PeekRaw(1) == '(') return true;
  return TypeFromText(w).has_value() && s_.PeekRaw(w.size()) == '[';
}

absl::StatusOr<double> HloParser::ParseReal(PrimitiveType t) {
  s_.Peek();
  const size_t start = s_.pos();
  bool negative = false;
  if (s_.PeekRaw() == '-' || s_.PeekRaw() == '+') {
    negative = s_.PeekRaw() == '-';
    s_.set_pos(start + 1);
  }
  absl::string_view w = s_.text().substr(s_.pos(), 8);
  if (absl::StartsWithIgnoreCase(w, "nan")) {
    s_.set_pos(s_.pos() + 3);
    double v = std::nan("");
    if (s_.PeekRaw() == '(') {
      s_.set_pos(s_.pos() + 1);
      const absl::string_view hex = s_.Word("");
      uint64_t payload = 0;
      if (!absl::SimpleHexAtoi(hex, &payload)) return s_.Error("expected a hexadecimal NaN payload");
      RETURN_IF_ERROR(s_.Expect(")"));
      const TypeInfo& f = InfoOf(t);
      if (f.cls == TypeClass::Float && f.flavour == FloatFlavour::Ieee && payload < (1ull << f.mantissa_bits) &&
          payload) {
        const uint64_t exp = ((1ull << f.exponent_bits) - 1) << f.mantissa_bits;
        v = DecodeFloat(t, exp | payload);
        if (t == PrimitiveType::F32) {  // widening would set the quiet bit of a signalling NaN
          uint64_t b = 0x7ff0000000000000ull | (payload << 29);
          std::memcpy(&v, &b, 8);
        }
      }
    }
    return std::copysign(v, negative ? -1.0 : 1.0);
  }
  if (absl::StartsWithIgnoreCase(w, "inf")) {
    s_.set_pos(s_.pos() + (absl::StartsWithIgnoreCase(w, "infinity") ? 8 : 3));
    return negative ? -INFINITY : INFINITY;
  }
  char buf[128];
  size_t n = 0;
  while (n + 1 < sizeof buf &&
         (absl::ascii_isalnum(s_.PeekRaw(n)) || s_.PeekRaw(n) == '.' ||
          ((s_.PeekRaw(n) == '-' || s_.PeekRaw(n) == '+') && n > 0 && std::strchr("eEpP", buf[n - 1])))) {
    buf[n] = s_.PeekRaw(n);
    ++n;
  }
  buf[n] = 0;
  char* end = buf;
  const double v = std::strtod(buf, &end);
  if (n == 0 || end != buf + n) {
    s_.set_pos(start);
    return s_.Error("expected a number");
  }
  s_.set_pos(s_.pos() + n);
  return negative ? -v : v;
}

absl::Status HloParser::ParseScalar(Literal* l, int64_t n) {
  const PrimitiveType t = l->type();
  Element e;
  s_.Peek();
  if (t == PrimitiveType::Pred) {
    if (s_.Eat("true")) {
      e.i = 1;
    } else if (s_.Eat("false")) {
      e.i = 0;
    } else {
      ASSIGN_OR_RETURN(e.i, s_.Integer());
    }
  } else if (IsComplex(t)) {
    if (s_.Eat("(")) {
      ASSIGN_OR_RETURN(e.re, ParseReal(ComponentType(t)));
      RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(e.im, ParseReal(ComponentType(t)));
      RETURN_IF_ERROR(s_.Expect(")"));
    } else {
      ASSIGN_OR_RETURN(e.re, ParseReal(ComponentType(t)));
    }
  } else if (IsFloat(t)) {
    ASSIGN_OR_RETURN(e.re, ParseReal(t));
    if (t == PrimitiveType::F32 && std::isnan(e.re)) {
      uint64_t wide;
      std::memcpy(&wide, &e.re, 8);
      const uint32_t bits =
          static_cast<uint32_t>(wide >> 63) << 31 | 0x7f800000u | static_cast<uint32_t>((wide >> 29) & 0x7fffff);
      std::memcpy(l->mutable_data() + 4 * n, &bits, 4);
      return absl::OkStatus();
    }
  } else {
    const size_t at = s_.pos();
    if (s_.Eat("true")) {
      e.i = 1;
    } else if (s_.Eat("false")) {
      e.i = 0;
    } else {
      ASSIGN_OR_RETURN(e.i, s_.Integer());
    }
    const int bits = InfoOf(t).bits;
    if (bits < 64 && WrapInt(t, e.i) != e.i && !(IsUnsigned(t) ? false : e.i == WrapInt(t, e.i)))
      return s_.ErrorAtPos(at, absl::StrCat(e.i, " does not fit ", TextOf(t)));
  }
  l->Set(n, e);
  return absl::OkStatus();
}

absl::Status HloParser::ParseLiteralInto(Literal* l, int64_t dim, int64_t* next) {
  if (dim == l->shape().rank()) return ParseScalar(l, (*next)++);
  s_.Peek();
  const size_t at = s_.pos();
  RETURN_IF_ERROR(s_.Expect("{"));
  for (int64_t i = 0; i < l->shape().dim(dim); ++i) {
    if (i) s_.Eat(",");  // as XLA's reader does, which lets it be left out
    RETURN_IF_ERROR(ParseLiteralInto(l, dim + 1, next));
  }
  if (s_.Peek() != '}')
    return s_.ErrorAtPos(
        at, absl::StrCat("dimension ", dim, " of the constant does not hold ", l->shape().dim(dim), " elements"));
  return s_.Expect("}");
}

// Zeros and ones and small numbers, few of them equal, in the place of elements that are not known.
Literal StandIn(const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Literal> parts;
    for (const Shape& s : shape.tuple()) parts.push_back(StandIn(s));
    return Literal::Tuple(std::move(parts));
  }
  Literal l(shape);
  uint8_t* p = l.mutable_data();
  const bool small = InfoOf(shape.type()).bits < 8;
  for (int64_t k = 0; k < l.byte_size(); ++k)
    p[k] = static_cast<uint8_t>(small ? k & 1 : k % 4 == 3 ? 0x3d : k >> (k % 4 * 8 + 2));
  return l;
}

// Stands at "{...}".
absl::StatusOr<Literal> HloParser::ElidedLiteral(const Shape& shape) {
  if (!look_)
    return s_.Error(
        "the elements of this constant were elided when the program was printed; print it with all of them");
  if (shape.ByteSize() > (int64_t{1} << 32)) return s_.Error("an elided constant of more than 4 GiB");
  RETURN_IF_ERROR(s_.Balanced(",)").status());
  elided_ = true;
  return StandIn(shape);
}

absl::StatusOr<Literal> HloParser::ParseLiteral(const Shape& shape) {
  if (shape.IsTuple()) {
    if (s_.Peek() == '{') return ElidedLiteral(shape);
    RETURN_IF_ERROR(s_.Expect("("));
    std::vector<Literal> parts;
    for (size_t i = 0; i < shape.tuple().size(); ++i) {
      if (i) s_.Eat(",");
      // Elements may repeat their shape.
      if (LooksLikeShape()) RETURN_IF_ERROR(ParseShape().status());
      ASSIGN_OR_RETURN(Literal e, ParseLiteral(shape.tuple()[i]));
      parts.push_back(std::move(e));
    }
    RETURN_IF_ERROR(s_.Expect(")"));
    return Literal::Tuple(std::move(parts));
  }
  if (!shape.IsArray()) return s_.Error("a constant needs an array or tuple shape");
  for (int64_t d : shape.dims())
    if (d < 0) return s_.Error("a constant needs extents that are known");
  if (s_.Peek() == '{') {
    const size_t save = s_.pos();
    while (s_.Eat("{")) {
    }
    const bool elided = s_.Eat("...");
    s_.set_pos(save);
    if (elided && shape.ElementCount() > 0) return ElidedLiteral(shape);
  }
  if (shape.rank() > 0 && s_.Peek() != '{' && shape.ElementCount() > 0) {  // one value for every element
    if (shape.ByteSize() > Literal::kMaxSplatBytes)
      return s_.Error("a splat constant of more than 64 MiB; broadcast a scalar");
    Literal one(Shape::Scalar(shape.type()));
    RETURN_IF_ERROR(ParseScalar(&one, 0));
    return Literal::Splat(shape, one);
  }
  // An array that the text cannot hold is refused before memory is asked for.
  const size_t left = s_.text().size() - s_.pos();
  if (shape.ElementCount() > static_cast<int64_t>(left) && shape.ElementCount() > (1 << 20) && s_.Peek() == '{')
    return s_.Error("the text ends before the constant does");
  Literal l(shape);
  if (shape.ElementCount() == 0) {
    RETURN_IF_ERROR(s_.Balanced(")").status());
    return l;
  }
  int64_t next = 0;
  RETURN_IF_ERROR(ParseLiteralInto(&l, 0, &next));
  return l;
}

absl::Status HloParser::Value(std::optional<attr::Ints>* v, Instruction*) {
  ASSIGN_OR_RETURN(*v, ParseInts());
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Int>* v, Instruction*) {
  ASSIGN_OR_RETURN(*v, s_.Integer());
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Num>* v, Instruction*) {
  ASSIGN_OR_RETURN(*v, ParseReal(PrimitiveType::F64));
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Bool>* v, Instruction*) {
  if (s_.Eat("true") || s_.Eat("1"))
    *v = true;
  else if (s_.Eat("false") || s_.Eat("0"))
    *v = false;
  else
    return s_.Error("expected true or false");
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Raw>* v, Instruction*) {
  ASSIGN_OR_RETURN(std::string t, s_.Balanced(",\n"));
  if (t.empty()) return s_.Error("expected a value");
  *v = attr::Raw(std::move(t));
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Str>* v, Instruction*) {
  ASSIGN_OR_RETURN(std::string t, s_.Quoted());
  *v = attr::Str(std::move(t));
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Comp>* v, Instruction* i) {
  s_.Peek();
  const size_t at = s_.pos();
  if (s_.Eat("{")) {  // the computation written in place
    auto outer = std::move(values_);
    Computation* c = m_->AddComputation("inline");
    RETURN_IF_ERROR(ParseBody(c));
    values_ = std::move(outer);
    *v = c;
    return s_.Expect("}");
  }
  ASSIGN_OR_RETURN(std::string name, Name());
  *v = Complete(name);
  if (!**v) pending_.push_back({at, std::move(name), i, v, nullptr});
  return absl::OkStatus();
}

// The computation, if its text came already.
Computation* HloParser::Complete(absl::string_view name) const {
  auto it = computations_.find(name);
  return it != computations_.end() && it->second->root() ? it->second : nullptr;
}

absl::Status HloParser::Value(std::optional<attr::Comps>* v, Instruction* i) {
  *v = attr::Comps();
  if (s_.Peek() != '{') {  // a single name stands for a list of one
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(std::string name, Name());
    pending_.push_back({at, std::move(name), i, nullptr, v});
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(s_.Expect("{"));
  bool first = true;
  while (!s_.Eat("}")) {
    if (!first) RETURN_IF_ERROR(s_.Expect(","));
    first = false;
    s_.Peek();
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(std::string name, Name());
    pending_.push_back({at, std::move(name), i, nullptr, v});
  }
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Slices>* v, Instruction*) {
  RETURN_IF_ERROR(s_.Expect("{"));
  *v = attr::Slices();
  while (!s_.Eat("}")) {
    if (!(*v)->empty()) RETURN_IF_ERROR(s_.Expect(","));
    SliceDim d;
    RETURN_IF_ERROR(s_.Expect("["));
    ASSIGN_OR_RETURN(d.start, s_.Integer());
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(d.limit, s_.Integer());
    if (s_.Eat(":")) {
      ASSIGN_OR_RETURN(d.stride, s_.Integer());
    }
    RETURN_IF_ERROR(s_.Expect("]"));
    (*v)->push_back(d);
  }
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Padding>* v, Instruction*) {
  *v = attr::Padding();
  if (s_.Peek() != '-' && !absl::ascii_isdigit(s_.Peek())) return absl::OkStatus();  // rank 0
  do {
    PadDim d;
    ASSIGN_OR_RETURN(d.low, s_.Integer());
    RETURN_IF_ERROR(s_.Expect("_"));
    ASSIGN_OR_RETURN(d.high, s_.Integer());
    if (s_.PeekRaw() == '_') {  // the next line may begin with one
      s_.set_pos(s_.pos() + 1);
      ASSIGN_OR_RETURN(d.interior, s_.Integer());
    }
    (*v)->push_back(d);
  } while (s_.PeekRaw() == 'x' && (s_.set_pos(s_.pos() + 1), true));
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Win>* v, Instruction*) {
  RETURN_IF_ERROR(s_.Expect("{"));
  *v = attr::Win();
  while (!s_.Eat("}")) {
    s_.Peek();
    const size_t at = s_.pos();
    const absl::string_view key = s_.Word("_");
    if (key.empty()) return s_.Error("expected a window field");
    RETURN_IF_ERROR(s_.Expect("="));
    size_t d = 0;
    do {
      if ((*v)->size() <= d) (*v)->resize(d + 1);
      WindowDim& w = (**v)[d++];
      ASSIGN_OR_RETURN(int64_t x, s_.Integer());
      if (key == "size")
        w.size = x;
      else if (key == "stride")
        w.stride = x;
      else if (key == "lhs_dilate")
        w.lhs_dilate = x;
      else if (key == "rhs_dilate")
        w.rhs_dilate = x;
      else if (key == "rhs_reversal")
        w.reversed = x != 0;
      else if (key == "pad") {
        w.pad_low = x;
        RETURN_IF_ERROR(s_.Expect("_"));
        ASSIGN_OR_RETURN(w.pad_high, s_.Integer());
      } else {
        return s_.ErrorAtPos(at, absl::StrCat("unknown window field '", key, "'"));
      }
    } while (s_.PeekRaw() == 'x' && (s_.set_pos(s_.pos() + 1), true));
  }
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::ConvDims>* v, Instruction*) {
  s_.Peek();
  const size_t at = s_.pos();
  ASSIGN_OR_RETURN(std::string t, s_.Balanced(", \n"));
  *v = ParseConvDims(t);
  if (!*v) return s_.ErrorAtPos(at, absl::StrCat("'", t, "' is not of the form b01f_01io->b01f"));
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<Shape>* v, Instruction*) {
  ASSIGN_OR_RETURN(*v, ParseShape());
  return absl::OkStatus();
}

absl::Status HloParser::ParseAttribute(Instruction* i, Opcode op, std::vector<std::string>* control_preds) {
  s_.Peek();
  const size_t at = s_.pos();
  const absl::string_view key = s_.Word("_-");
  if (key.empty()) return s_.Error("expected an attribute");
  RETURN_IF_ERROR(s_.Expect("="));
  if (key == "control-predecessors") {
    RETURN_IF_ERROR(s_.Expect("{"));
    while (!s_.Eat("}")) {
      if (!control_preds->empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(std::string n, Name());
      control_preds->push_back(std::move(n));
    }
    return absl::OkStatus();
  }
  Attributes& a = i->attrs();
  if (key == "to" && op == Opcode::Domain) return s_.Balanced(",\n").status();
  if (key == "scan_dimension") return s_.ErrorAtPos(at, "unknown attribute 'scan_dimension'");
  if (key == "dimensions" && op == Opcode::Scan) {  // one of them
    if (a.scan_dimension) return s_.ErrorAtPos(at, "attribute 'dimensions' is given twice");
    ASSIGN_OR_RETURN(const Ints list, ParseInts());
    if (list.size() != 1) return s_.ErrorAtPos(at, "a scan goes along one dimension");
    a.scan_dimension = list[0];
    return absl::OkStatus();
  }
  if (key == "convolution_kind" && op == Opcode::Convolution) {  // what a convolution is without it
    const absl::string_view kind = s_.Word("_");
    if (kind == "fprop" || kind == "unset") return absl::OkStatus();
    return s_.ErrorAtPos(at, absl::StrCat("convolution_kind ", kind, " is not supported, only fprop"));
  }
#define ATTR(field, kind, text)                                                                  \
  if (text[0] && key == text) {                                                                  \
    if (a.field) return s_.ErrorAtPos(at, absl::StrCat("attribute '", key, "' is given twice")); \
    return Value(&a.field, i);                                                                   \
  }
#include "compiler/hlo/attributes.def"
  return s_.ErrorAtPos(at, absl::StrCat("unknown attribute '", key, "'"));
}

absl::StatusOr<ShapeIndex> HloParser::ParseShapeIndex() { return ParseInts(); }

absl::Status HloParser::ParseAliases() {
  RETURN_IF_ERROR(s_.Expect("{"));
  while (!s_.Eat("}")) {
    if (!m_->aliases.empty()) RETURN_IF_ERROR(s_.Expect(","));
    AliasEntry e;
    ASSIGN_OR_RETURN(e.output, ParseShapeIndex());
    RETURN_IF_ERROR(s_.Expect(":"));
    if (s_.Eat("(")) {
      ASSIGN_OR_RETURN(e.parameter, s_.Integer());
      RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(e.parameter_index, ParseShapeIndex());
      if (s_.Eat(",")) {
        const absl::string_view kind = s_.Word("-_");
        if (kind == "must-alias")
          e.must = true;
        else if (kind != "may-alias")
          return s_.Error(absl::StrCat("unknown alias kind '", kind, "'"));
      }
      RETURN_IF_ERROR(s_.Expect(")"));
    } else {
      ASSIGN_OR_RETURN(e.parameter, s_.Integer());
    }
    m_->aliases.push_back(std::move(e));
  }
  return absl::OkStatus();
}

absl::Status HloParser::ParseDonors() {
  RETURN_IF_ERROR(s_.Expect("{"));
  while (!s_.Eat("}")) {
    if (!m_->buffer_donors.empty()) RETURN_IF_ERROR(s_.Expect(","));
    RETURN_IF_ERROR(s_.Expect("("));
    ASSIGN_OR_RETURN(int64_t p, s_.Integer());
    RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(ShapeIndex index, ParseShapeIndex());
    RETURN_IF_ERROR(s_.Expect(")"));
    m_->buffer_donors.push_back({p, std::move(index)});
  }
  return absl::OkStatus();
}

absl::Status HloParser::ParseEntryLayout() {
  EntryLayout l;
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(s_.Expect("("));
  while (!s_.Eat(")")) {
    if (!l.parameters.empty()) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(Shape p, ParseShape());
    l.parameters.push_back(std::move(p));
  }
  RETURN_IF_ERROR(s_.Expect("->"));
  ASSIGN_OR_RETURN(l.result, ParseShape());
  RETURN_IF_ERROR(s_.Expect("}"));
  m_->entry_layout = std::move(l);
  return absl::OkStatus();
}

absl::Status HloParser::ParseHeaderValue(absl::string_view key, size_t at) {
  if (!header_keys_.insert(std::string(key)).second)
    return s_.ErrorAtPos(at, absl::StrCat("'", key, "' is given twice"));
  if (key == "is_scheduled") {
    std::optional<bool> b;
    RETURN_IF_ERROR(Value(&b, nullptr));
    m_->is_scheduled = *b;
    return absl::OkStatus();
  }
  if (key == "replica_count" || key == "num_partitions") {
    s_.Peek();
    const size_t count_at = s_.pos();
    ASSIGN_OR_RETURN(const int64_t n, s_.Integer());
    if (n < 1 || n > kMaxDevices)
      return s_.ErrorAtPos(count_at, absl::StrCat(key, " is ", n, ", not 1 to ", kMaxDevices, ""));
    (key == "replica_count" ? m_->replica_count : m_->partition_count) = n;
    return absl::OkStatus();
  }
  if (key == "input_output_alias") return ParseAliases();
  if (key == "buffer_donor") return ParseDonors();
  if (key == "entry_computation_layout") return ParseEntryLayout();
  if (key != "frontend_attributes" && key != "alias_passthrough_params" && key != "origin_recovery_table" &&
      key != "allow_spmd_sharding_propagation_to_output" && key != "allow_spmd_sharding_propagation_to_parameters")
    return s_.ErrorAtPos(at, absl::StrCat("unknown attribute '", key, "' of the module"));
  ASSIGN_OR_RETURN(std::string v, s_.Balanced(",\n"));
  m_->extra_header.push_back({std::string(key), std::move(v)});
  return absl::OkStatus();
}

// Kept as written.
absl::Status HloParser::ParseLocationTables() {
  for (;;) {
    const absl::string_view w = s_.PeekWord("_");
    if (w != "FileNames" && w != "FunctionNames" && w != "FileLocations" && w != "StackFrames") return absl::OkStatus();
    absl::StrAppend(&m_->preamble, w, "\n");
    s_.Word("_");
    while (absl::ascii_isdigit(s_.Peek())) {
      ASSIGN_OR_RETURN(std::string row, s_.Balanced("\n"));
      absl::StrAppend(&m_->preamble, row, "\n");
    }
    m_->preamble += "\n";
  }
}

absl::Status HloParser::ParseHeader() {
  std::string name = "module";
  if (s_.Eat("HloModule")) {
    ASSIGN_OR_RETURN(name, Name());
  } else if (s_.AtEnd()) {
    return s_.Error("the text holds no module");
  }
  m_ = std::make_unique<Module>(std::move(name));
  m_->file = s_.file();
  while (s_.Eat(",")) {
    s_.Peek();
    const size_t at = s_.pos();
    const absl::string_view key = s_.Word("_-");
    RETURN_IF_ERROR(s_.Expect("="));
    RETURN_IF_ERROR(ParseHeaderValue(key, at));
  }
  return ParseLocationTables();
}

absl::Status HloParser::WrapAsync(Instruction* i, absl::string_view wrapped) {
  auto op = OpcodeFromText(wrapped);
  if (shapeless_.contains(i) || !i->shape().IsTuple() || i->shape().tuple().size() < 2 ||
      !i->shape().tuple()[0].IsTuple() ||
      i->shape().tuple()[0].tuple().size() != static_cast<size_t>(i->operand_count()))
    return ErrorAt(i, "an asynchronous start needs the shape ((operands), results, context)");
  Computation* body = m_->AddComputation(absl::StrCat("async_computation.", wrapped));
  std::vector<Instruction*> params;
  for (const Shape& s : i->shape().tuple()[0].tuple())
    params.push_back(body->AddParameter(static_cast<int64_t>(params.size()), s, absl::StrCat("param_", params.size())));
  Instruction* inner = body->Add(*op, i->shape().tuple()[1], params, wrapped);
  inner->set_loc(i->loc());
  body->set_root(inner);
  wrapped_.push_back({i, inner});
  return absl::OkStatus();
}

void HloParser::MoveAttributesOfWrapped() {
  for (auto [start, inner] : wrapped_) {
    Attributes outer;
    outer.async_execution_thread = start->attrs().async_execution_thread;
    outer.metadata = start->attrs().metadata;
    outer.frontend_attributes = start->attrs().frontend_attributes;
    outer.calls = inner->parent();
    inner->attrs() = std::move(start->attrs());
    inner->attrs().async_execution_thread.reset();
    start->attrs() = std::move(outer);
    // What runs on a thread of its own says so, with everything it calls.
    if (!start->attrs().async_execution_thread) continue;
    const std::string& thread = start->attrs().async_execution_thread->text;
    inner->parent()->set_execution_thread(thread);
    for (Computation* c : inner->called())
      if (c->execution_thread().empty()) c->set_execution_thread(thread);
  }
}

// A scalar that is broadcast needs no list of where its dimensions go.
void HloParser::FillDefaults() {
  for (const auto& c : m_->computations())
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::Broadcast) && !i->attrs().dimensions && i->operand(0)->shape().IsScalar())
        i->attrs().dimensions = Ints{};
}

absl::Status HloParser::InferOmittedShapes() {
  if (shapeless_.empty()) return absl::OkStatus();
  absl::flat_hash_set<const Computation*> seen;
  // Callees first: what a call returns is known once its computation's root is.
  auto visit = [&](auto&& self, Computation* c, int64_t depth) -> absl::Status {
    if (!seen.insert(c).second) return absl::OkStatus();
    if (depth > kMaxCallDepth) return s_.Error(absl::StrCat("calls nest deeper than ", kMaxCallDepth, ""));
    for (const auto& i : c->instructions())
      for (Computation* callee : i->called()) RETURN_IF_ERROR(self(self, callee, depth + 1));
    for (const auto& i : c->instructions()) {
      if (!shapeless_.contains(i.get())) continue;
      auto inferred = InferOmittedShape(*i);
      if (!inferred.ok()) return ErrorAt(i.get(), inferred.status().message());
      i->mutable_shape() = *std::move(inferred);
    }
    return absl::OkStatus();
  };
  std::vector<Computation*> all;
  for (const auto& c : m_->computations()) all.push_back(c.get());
  for (Computation* c : all) RETURN_IF_ERROR(visit(visit, c, 0));
  return absl::OkStatus();
}

absl::Status HloParser::CheckNewInstruction(size_t at) {
  if (++instructions_ <= kMaxInstructions) return absl::OkStatus();
  return s_.ErrorAtPos(at, absl::StrCat("more than ", kMaxInstructions, " instructions"));
}

bool HloParser::LooksLikeCall() {
  const absl::string_view w = s_.PeekWord("_-");
  return OpcodeFromText(w).has_value() && s_.PeekRaw(w.size()) == '(';
}

absl::StatusOr<Instruction*> HloParser::ParseCall(Computation* c, const std::string& name, std::optional<Shape> shape,
                                                  absl::string_view* wrapped, int depth) {
  if (depth > kMaxNesting) return s_.Error(absl::StrCat("operands nest deeper than ", kMaxNesting, ""));
  s_.Peek();
  const size_t op_at = s_.pos();
  const absl::string_view op_text = s_.Word("_-");
  auto op = OpcodeFromText(op_text);
  if (!op) {
    for (auto [suffix, async] : {std::pair<absl::string_view, Opcode>{"-start", Opcode::AsyncStart},
                                 {"-update", Opcode::AsyncUpdate},
                                 {"-done", Opcode::AsyncDone}}) {
      absl::string_view base = op_text;
      if (absl::ConsumeSuffix(&base, suffix) && OpcodeFromText(base)) {
        op = async;
        *wrapped = base;
      }
    }
  }
  if (!op) return s_.ErrorAtPos(op_at, absl::StrCat("unknown opcode '", op_text, "'"));
  RETURN_IF_ERROR(s_.Expect("("));
  std::vector<Instruction*> operands;
  Literal literal;
  int64_t parameter_number = -1;
  if (*op == Opcode::Parameter) {
    ASSIGN_OR_RETURN(parameter_number, s_.Integer());
    if (parameter_number < 0 || parameter_number > (1 << 20))
      return s_.ErrorAtPos(op_at, "parameter number out of range");
    RETURN_IF_ERROR(s_.Expect(")"));
  } else if (*op == Opcode::Constant) {
    if (!shape) return s_.ErrorAtPos(op_at, "a constant needs a shape");
    elided_ = false;
    ASSIGN_OR_RETURN(literal, ParseLiteral(*shape));
    RETURN_IF_ERROR(s_.Expect(")"));
  } else {
    while (!s_.Eat(")")) {
      if (!operands.empty()) RETURN_IF_ERROR(s_.Expect(","));
      std::optional<Shape> operand_shape;
      if (LooksLikeShape()) {
        ASSIGN_OR_RETURN(operand_shape, ParseShape());
      }
      s_.Peek();
      if (LooksLikeCall()) {
        absl::string_view no_sugar;
        const size_t inner_at = s_.pos();
        ASSIGN_OR_RETURN(Instruction * inner, ParseCall(c, "", operand_shape, &no_sugar, depth + 1));
        if (!no_sugar.empty()) return s_.ErrorAtPos(inner_at, "an asynchronous operation is no operand");
        operands.push_back(inner);
        continue;
      }
      const size_t oat = s_.pos();
      ASSIGN_OR_RETURN(std::string o, Name());
      auto it = values_.find(o);
      if (it == values_.end()) return s_.ErrorAtPos(oat, absl::StrCat("operand '", o, "' is not defined above"));
      if (operand_shape && !shapeless_.contains(it->second) && !operand_shape->Compatible(it->second->shape()))
        return s_.ErrorAtPos(oat, absl::StrCat("operand '", o, "' is ", it->second->shape().ToString(false), ", not ",
                                               operand_shape->ToString(false)));
      operands.push_back(it->second);
    }
  }
  const OpcodeInfo& info = InfoOf(*op);
  if (info.arity >= 0 && static_cast<int>(operands.size()) != info.arity)
    return s_.ErrorAtPos(op_at, absl::StrCat(op_text, " takes ", info.arity, " operands, not ", operands.size()));
  RETURN_IF_ERROR(CheckNewInstruction(op_at));
  Instruction* i;
  if (*op == Opcode::Parameter) {
    if (!shape) return s_.ErrorAtPos(op_at, "a parameter needs a shape");
    if (parameter_number < static_cast<int64_t>(c->parameters().size()) && c->parameters()[parameter_number])
      return s_.ErrorAtPos(op_at, absl::StrCat("parameter ", parameter_number, " is defined twice"));
    i = c->AddParameter(parameter_number, *shape, name.empty() ? "parameter" : name);
  } else {
    i = c->Add(*op, shape.value_or(Shape::Tuple({})), std::move(operands), name);
    if (!shape) shapeless_.insert(i);
    if (*op == Opcode::Constant) {
      i->set_literal(std::move(literal));
      if (elided_) i->attrs().custom_call_literal = "{...}";
    }
  }
  i->set_loc(s_.Loc(op_at));
  return i;
}

absl::Status HloParser::ParseInstruction(Computation* c, Instruction** root, Instruction** last) {
  s_.Peek();
  const size_t at = s_.pos();
  const bool is_root = s_.Eat("ROOT");
  ASSIGN_OR_RETURN(std::string name, Name());
  RETURN_IF_ERROR(s_.Expect("="));
  std::optional<Shape> shape;
  if (!LooksLikeCall()) {
    ASSIGN_OR_RETURN(shape, ParseShape());
  }
  absl::string_view wrapped;
  if (values_.contains(name)) return s_.ErrorAtPos(at, absl::StrCat("instruction '", name, "' is defined twice"));
  ASSIGN_OR_RETURN(Instruction * i, ParseCall(c, name, shape, &wrapped, 0));
  const Opcode op = i->opcode();
  values_[name] = i;
  const Opcode of = wrapped.empty() || op != Opcode::AsyncStart ? op : *OpcodeFromText(wrapped);
  std::vector<std::string> control;
  while (s_.Eat(",")) RETURN_IF_ERROR(ParseAttribute(i, of, &control));
  for (const std::string& n : control) {
    auto it = values_.find(n);
    if (it == values_.end())
      return s_.ErrorAtPos(at, absl::StrCat("control predecessor '", n, "' is not defined above"));
    it->second->AddControlDependencyTo(i);
  }
  if (!wrapped.empty() && op == Opcode::AsyncStart) RETURN_IF_ERROR(WrapAsync(i, wrapped));
  if (is_root) {
    if (*root) return s_.ErrorAtPos(at, "a second ROOT in one computation");
    *root = i;
  }
  *last = i;
  return absl::OkStatus();
}

absl::Status HloParser::ParseBody(Computation* c) {
  values_.clear();
  Instruction *root = nullptr, *last = nullptr;
  while (s_.Peek() != '}' && !s_.AtEnd()) RETURN_IF_ERROR(ParseInstruction(c, &root, &last));
  if (!last) return s_.Error(absl::StrCat("computation '", c->name(), "' is empty"));
  for (size_t p = 0; p < c->parameters().size(); ++p)
    if (!c->parameters()[p]) return s_.Error(absl::StrCat("computation '", c->name(), "' lacks parameter ", p));
  c->set_root(root ? root : last);
  return absl::OkStatus();
}

absl::Status HloParser::ParseComputation() {
  s_.Peek();
  const size_t at = s_.pos();
  const bool entry = s_.Eat("ENTRY");
  std::string name = "main";
  if (s_.Peek() != '{') {
    ASSIGN_OR_RETURN(name, Name());
  }
  if (s_.Peek() == '(') {  // signature: the parameters repeat it
    RETURN_IF_ERROR(s_.Expect("("));
    RETURN_IF_ERROR(s_.Balanced(")").status());
    RETURN_IF_ERROR(s_.Expect(")"));
    RETURN_IF_ERROR(s_.Expect("->"));
    RETURN_IF_ERROR(ParseShape().status());
  }
  RETURN_IF_ERROR(s_.Expect("{"));
  if (computations_.contains(name)) return s_.ErrorAtPos(at, absl::StrCat("computation '", name, "' is defined twice"));
  Computation* c = m_->AddComputation(name);
  computations_[name] = c;
  RETURN_IF_ERROR(ParseBody(c));
  RETURN_IF_ERROR(s_.Expect("}"));
  while (s_.Eat(",")) {
    s_.Peek();
    const size_t key_at = s_.pos();
    const absl::string_view key = s_.Word("_");
    RETURN_IF_ERROR(s_.Expect("="));
    if (key != "execution_thread")
      return s_.ErrorAtPos(key_at, absl::StrCat("unknown attribute '", key, "' of a computation"));
    ASSIGN_OR_RETURN(std::string t, s_.Quoted());
    c->set_execution_thread(t == "main" ? "" : std::move(t));
  }
  last_ = c;
  if (entry) {
    if (m_->entry()) return s_.ErrorAtPos(at, "a second ENTRY computation");
    m_->set_entry(c);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> HloParser::ParseModule() {
  RETURN_IF_ERROR(ParseHeader());
  bool any = false;
  while (!s_.AtEnd()) {
    // A bare list of instructions is a module of one computation.
    const size_t save = s_.pos();
    bool bare = false;
    if (!any && !s_.Eat("ENTRY")) {
      s_.Eat("ROOT");
      bare = Name().ok() && s_.Peek() == '=';
    }
    s_.set_pos(save);
    if (bare) {
      last_ = m_->AddComputation("main");
      RETURN_IF_ERROR(ParseBody(last_));
    } else {
      RETURN_IF_ERROR(ParseComputation());
    }
    any = true;
  }
  if (!any) return s_.Error("the module has no computation");
  if (!m_->entry()) m_->set_entry(last_);
  for (const Pending& p : pending_) {
    auto it = computations_.find(p.name);
    if (it == computations_.end())
      return s_.ErrorAtPos(p.pos, absl::StrCat("computation '", p.name, "' is not defined"));
    if (p.one) *p.one = it->second;
    if (p.many) (**p.many).push_back(it->second);
  }
  MoveAttributesOfWrapped();
  RETURN_IF_ERROR(InferOmittedShapes());
  FillDefaults();
  return std::move(m_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ParseHlo(absl::string_view text, const std::string& file) {
  return HloParser(text, file, false).ParseModule();
}

// For tools that print modules and run none (LoadModuleToLookAt).
absl::StatusOr<std::unique_ptr<Module>> ParseHloToLookAt(absl::string_view text, const std::string& file) {
  return HloParser(text, file, true).ParseModule();
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  HloParser p(text, "<shape>", false);
  ASSIGN_OR_RETURN(Shape s, p.ParseShape());
  if (!p.AtEnd()) return p.Error("text behind the shape");
  return s;
}

}  // namespace kiln
