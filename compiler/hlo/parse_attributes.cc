#include "absl/strings/ascii.h"
#include "compiler/hlo/hlo_parser.h"

namespace kiln {

absl::Status HloParser::Value(std::optional<attr::Ints>* v, Instruction*) {
  ASSIGN_OR_RETURN(*v, ParseInts());
  return absl::OkStatus();
}
absl::Status HloParser::Value(std::optional<attr::Int>* v, Instruction*) {
  const bool negative = s_.Peek() == '-';
  const size_t at = s_.pos();
  ASSIGN_OR_RETURN(*v, s_.Integer());
  if (**v < 0 && !negative) return s_.ErrorAtPos(at, "expected an integer below 2^63");
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
template <AttributeWord E>
absl::Status HloParser::Value(std::optional<E>* v, Instruction*) {
  s_.Peek();
  const size_t at = s_.pos();
  ASSIGN_OR_RETURN(const std::string text, s_.Balanced(",\n"));
  const auto word = WordFromText<E>(text);
  if (!word.ok()) return s_.ErrorAtPos(at, word.status().message());
  *v = *word;
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
  Attributes& a = i->mutable_attrs();
  if (key == "to" && op == Opcode::Domain) return s_.Balanced(",\n").status();
  if (key == "scan_dimension") return s_.ErrorAtPos(at, "unknown attribute 'scan_dimension'");
  if (key == "dimensions" && op == Opcode::Scan) {  // one of them
    if (a.scan_dimension) return s_.ErrorAtPos(at, "attribute 'dimensions' is given twice");
    ASSIGN_OR_RETURN(const Ints list, ParseInts());
    if (list.size() != 1) return s_.ErrorAtPos(at, "a scan goes along one dimension");
    a.scan_dimension = list[0];
    return absl::OkStatus();
  }
  if (key == "convolution_kind" && op == Opcode::Convolution) {
    const absl::string_view kind = s_.Word("_");
    if (kind == "dgrad") {  // its filter is written as the forward convolution has it, the other way round
      if (!filters_turned_.insert(i).second) return s_.ErrorAtPos(at, "attribute 'convolution_kind' is given twice");
      return absl::OkStatus();
    }
    // Says which library routine to call: the window and the dimensions say all of what is computed.
    if (kind == "fprop" || kind == "wgrad" || kind == "unset") return absl::OkStatus();
    return s_.ErrorAtPos(at, absl::StrCat("convolution_kind '", kind, "' is not fprop, dgrad, wgrad or unset"));
  }
  if (key == "slice_sizes" && (op == Opcode::CollectivePermute || op == Opcode::CollectivePermuteStart))
    return s_.ErrorAtPos(at,
                         "collective-permute of slices is not supported: take a dynamic-slice before it and a "
                         "dynamic-update-slice behind it");
#define ATTR(field, kind, text)                                                                  \
  if (text[0] && key == text) {                                                                  \
    if (a.field) return s_.ErrorAtPos(at, absl::StrCat("attribute '", key, "' is given twice")); \
    return Value(&a.field, i);                                                                   \
  }
#include "compiler/hlo/attributes.def"
  return s_.ErrorAtPos(at, absl::StrCat("unknown attribute '", key, "'"));
}

absl::StatusOr<ShapeIndex> HloParser::ParseShapeIndex() { return ParseInts(); }

}  // namespace kiln
