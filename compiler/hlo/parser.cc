#include "absl/strings/strip.h"
#include "compiler/hlo/hlo_parser.h"
#include "compiler/hlo/infer.h"

namespace kiln {

absl::StatusOr<std::string> HloParser::Name() {
  if (s_.Peek() == '%') s_.set_pos(s_.pos() + 1);
  if (s_.PeekRaw() == '"') {
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(std::string quoted, s_.Quoted());
    if (quoted.empty()) return s_.ErrorAtPos(at, "a name is empty");
    return quoted;
  }
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

bool HloParser::LooksLikeShape() {
  const char c = s_.Peek();
  if (c == '(') return true;
  const absl::string_view w = s_.PeekWord("_.-:$@");
  if (w == "b" && s_.PeekRaw(1) == '(') return true;
  return TypeFromText(w).has_value() && s_.PeekRaw(w.size()) == '[';
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
    inner->mutable_attrs() = std::move(start->attrs());
    inner->mutable_attrs().async_execution_thread.reset();
    start->mutable_attrs() = std::move(outer);
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
        i->mutable_attrs().dimensions = Ints{};
}

absl::Status HloParser::InferOmittedShapes() {
  if (shapeless_.empty()) return absl::OkStatus();
  absl::flat_hash_set<const Computation*> seen;
  // Callees first: what a call returns is known once its computation's root is.
  auto visit = [&](auto&& self, Computation* c, int64_t depth) -> absl::Status {
    if (!seen.insert(c).second) return absl::OkStatus();
    if (depth > limits_.call_depth) return s_.Error(absl::StrCat("calls nest deeper than ", limits_.call_depth));
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
  if (++instructions_ <= limits_.instructions) return absl::OkStatus();
  return s_.ErrorAtPos(at, absl::StrCat("more than ", limits_.instructions, " instructions"));
}

bool HloParser::LooksLikeCall() {
  const absl::string_view w = s_.PeekWord("_-");
  return OpcodeFromText(w).has_value() && s_.PeekRaw(w.size()) == '(';
}

absl::StatusOr<Instruction*> HloParser::ParseCall(Computation* c, const std::string& name, std::optional<Shape> shape,
                                                  absl::string_view* wrapped, int depth) {
  if (depth > limits_.nesting) return s_.Error(absl::StrCat("operands nest deeper than ", limits_.nesting));
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
    // A send's operands alone say what it is; XLA's parser does not look at the shape that stands there either.
    if (!shape || *op == Opcode::Send) shapeless_.insert(i);
    if (*op == Opcode::Constant) {
      i->set_literal(std::move(literal));
      if (elided_) i->mutable_attrs().custom_call_literal = "{...}";
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
  if (filters_turned_.contains(i) && i->attrs().window)
    for (WindowDim& w : *i->mutable_attrs().window) w.reversed = !w.reversed;
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

absl::StatusOr<std::unique_ptr<Module>> ParseHlo(absl::string_view text, const std::string& file,
                                                 const Limits& limits) {
  return HloParser(text, file, limits, false).ParseModule();
}

absl::StatusOr<std::unique_ptr<Module>> ParseHloToLookAt(absl::string_view text, const std::string& file,
                                                         const Limits& limits) {
  return HloParser(text, file, limits, true).ParseModule();
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  HloParser p(text, "<shape>", {}, false);
  ASSIGN_OR_RETURN(Shape s, p.ParseShape());
  if (!p.AtEnd()) return p.Error("text behind the shape");
  return s;
}

}  // namespace kiln
