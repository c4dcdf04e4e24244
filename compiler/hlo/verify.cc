// Rules on single instructions; verify_rules.h says where the others are, and infer.h which shape follows.
//
// Source: XLA's verifier. Its rules that are not here, and why:
//   - execution threads of asynchronous computations, and that these hold one operation: calls run in program order;
//   - one fusion for each fused computation, no dead code in it: passes share and clean these up themselves;
//   - mixed precision without a flag: programs that XLA takes only with it are taken, and keep the types they state;
//   - origins, names against metadata, order of broadcast dimensions: carried, never read;
//   - memory spaces of layouts, shardings of loops against their bodies: they decide nothing here.
#include "compiler/hlo/verify.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "compiler/hlo/annotation.h"
#include "compiler/hlo/infer.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/sharding.h"
#include "compiler/hlo/verify_rules.h"

namespace kiln {
namespace verify {

namespace {

// Operations that hand values on, or update them in place: no other precision comes of them.
bool KeepsPrecision(Opcode op) {
  if (InfoOf(op).traits & InPlace) return true;
  switch (op) {
    case Opcode::AddDependency:
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Bitcast:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::CopyDone:
    case Opcode::CopyStart:
    case Opcode::Domain:
    case Opcode::DynamicReshape:
    case Opcode::Fusion:
    case Opcode::GetTupleElement:
    case Opcode::Infeed:
    case Opcode::OptimizationBarrier:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Reshape:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Tuple:
    case Opcode::While:
      return true;
    default:
      return false;
  }
}

// Layouts are another group's; unbounded extents fit any.
bool Same(const Shape& a, const Shape& b, bool exact_type) {
  if (a.IsTuple() != b.IsTuple() || a.tuple().size() != b.tuple().size()) return false;
  for (size_t k = 0; k < a.tuple().size(); ++k)
    if (!Same(a.tuple()[k], b.tuple()[k], exact_type)) return false;
  if (a.IsTuple()) return true;
  if (a.rank() != b.rank()) return false;
  if (a.type() != b.type() && (exact_type || !IsFloat(a.type()) || !IsFloat(b.type()))) return false;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (a.dim(d) != b.dim(d) && a.dim(d) >= 0 && b.dim(d) >= 0) return false;
  return true;
}

absl::Status CheckSize(const Instruction* i, int64_t most) {
  bool fits = true;
  ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& leaf) {
    int64_t n = 1;
    for (int64_t d : leaf.dims()) {
      fits = fits && (d <= 0 || n <= most / d);
      n = fits ? n * std::max<int64_t>(d, 1) : 1;
    }
  });
  if (fits) return absl::OkStatus();
  return ErrorAt(i, absl::StrCat("has more than ", most, " elements"), absl::StatusCode::kResourceExhausted);
}

}  // namespace

absl::Status CheckShape(const Instruction* i) {
  RETURN_IF_ERROR(CheckSize(i, i->parent()->module()->limits.elements));
  auto inferred = InferShape(*i);
  if (!inferred.ok()) return ErrorAt(i, inferred.status().message(), inferred.status().code());
  if (!Same(*inferred, i->shape(), KeepsPrecision(i->opcode())))
    return ErrorAt(i, absl::StrCat("shape is ", i->shape().ToString(false),
                                   ", but its operands and attributes make it ", inferred->ToString(false)));
  if (i->Is(Opcode::Bitcast)) {
    const int64_t from = BitsInMemory(i->operand(0)->shape().type()), to = BitsInMemory(i->shape().type());
    if (from != to && std::min(from, to) < 8)
      return ErrorAt(i,
                     absl::StrCat("reinterprets ", TextOf(i->operand(0)->shape().type()), " as ",
                                  TextOf(i->shape().type()), "; elements smaller than a byte are not packed here"),
                     absl::StatusCode::kUnimplemented);
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<ShapeIndex> ReadIndex(Scanner& s) {
  RETURN_IF_ERROR(s.Expect("{"));
  ShapeIndex out;
  while (!s.Eat("}")) {
    if (!out.empty()) RETURN_IF_ERROR(s.Expect(","));
    ASSIGN_OR_RETURN(const int64_t k, s.Integer());
    out.push_back(k);
  }
  return out;
}

// {{0}: (1, {}), ...}: parts of the result that lie where parts of operands lie.
absl::Status CheckOutputAliases(const Instruction* i) {
  const std::string& text = i->attrs().output_to_operand_aliasing->text;
  const auto bad = [&](absl::string_view why) {
    return ErrorAt(i, absl::StrCat("output_to_operand_aliasing ", text, " ", why));
  };
  constexpr absl::string_view kForm = "is not of the form {{0}: (1, {})}";
  Scanner s(text, "");
  if (!s.Eat("{")) return bad(kForm);
  for (bool first = true; !s.Eat("}"); first = false) {
    if (!first && !s.Eat(",")) return bad(kForm);
    const auto out = ReadIndex(s);
    if (!out.ok() || !s.Eat(":") || !s.Eat("(")) return bad(kForm);
    const auto operand = s.Integer();
    if (!operand.ok() || !s.Eat(",")) return bad(kForm);
    const auto in = ReadIndex(s);
    if (!in.ok() || !s.Eat(")")) return bad(kForm);
    if (*operand < 0 || *operand >= i->operand_count())
      return bad(absl::StrCat("names operand ", *operand, " of ", i->operand_count()));
    const Shape* from = PartAt(i->operand(*operand)->shape(), *in);
    const Shape* to = PartAt(i->shape(), *out);
    if (!from || !to) return bad("names a part that does not exist");
    // A buffer stands for the array that it holds.
    const Shape& a = from->type() == PrimitiveType::Buffer ? from->tuple()[0] : *from;
    const Shape& b = to->type() == PrimitiveType::Buffer ? to->tuple()[0] : *to;
    if (!a.Compatible(b)) return bad(absl::StrCat("joins ", from->ToString(false), " and ", to->ToString(false)));
  }
  return absl::OkStatus();
}

absl::Status CheckComposite(const Instruction* i) {
  const std::string attributes = i->attrs().frontend_attributes ? i->attrs().frontend_attributes->text : "";
  const auto name = FrontendAttribute(attributes, "composite.name");
  if (!name || name->empty()) return ErrorAt(i, "a composite needs the frontend attribute composite.name");
  const auto version = FrontendAttribute(attributes, "composite.version");
  int64_t n;
  if (version && (!absl::SimpleAtoi(*version, &n) || n < 0))
    return ErrorAt(i, absl::StrCat("composite.version '", *version, "' is no number"));
  return absl::OkStatus();
}

// {f32[2]{0}, ...}: a shape with a layout for each operand.
absl::Status CheckLayoutConstraints(const Instruction* i) {
  const std::string& text = i->attrs().operand_layout_constraints->text;
  int64_t shapes = text.find_first_not_of("{} ") == std::string::npos ? 0 : 1, depth = 0;
  for (char c : text) {
    depth += c == '{' || c == '(' || c == '[';
    depth -= c == '}' || c == ')' || c == ']';
    shapes += c == ',' && depth == 1;
  }
  if (shapes == i->operand_count()) return absl::OkStatus();
  return ErrorAt(
      i, absl::StrCat("operand_layout_constraints lists ", shapes, " shapes for ", i->operand_count(), " operands"));
}

// A note on a value gives the value back.
absl::Status CheckAnnotation(const Instruction* i) {
  if (i->operand_count() != 1) return ErrorAt(i, absl::StrCat("takes one operand, not ", i->operand_count()));
  if (Same(i->operand(0)->shape(), i->shape(), /*exact_type=*/true)) return absl::OkStatus();
  return ErrorAt(i, absl::StrCat("gives its operand back, which is ", i->operand(0)->shape().ToString(false)));
}

}  // namespace

absl::Status CheckOperation(const Instruction* i) {
  const Attributes& a = i->attrs();
  if (a.output_to_operand_aliasing) RETURN_IF_ERROR(CheckOutputAliases(i));
  switch (i->opcode()) {
    case Opcode::Call:
      return a.is_composite.value_or(false) ? CheckComposite(i) : absl::OkStatus();
    case Opcode::CustomCall:
      if (a.custom_call_target->text.empty()) return ErrorAt(i, "custom_call_target is empty");
      if (IsAnnotation(*i)) RETURN_IF_ERROR(CheckAnnotation(i));
      return a.operand_layout_constraints ? CheckLayoutConstraints(i) : absl::OkStatus();
    case Opcode::Constant:
      if (i->literal().shape().Compatible(i->shape())) return absl::OkStatus();
      return ErrorAt(i, absl::StrCat("holds ", i->literal().shape().ToString(false), ", its shape is ",
                                     i->shape().ToString(false)));
    case Opcode::Fft:
      for (int64_t n : *a.fft_length)
        if (const int64_t most = i->parent()->module()->limits.fft_length; n > most)
          return ErrorAt(i, absl::StrCat("fft_length ", n, " is more than ", most),
                         absl::StatusCode::kResourceExhausted);
      return absl::OkStatus();
    case Opcode::Parameter: {
      const auto& parameters = i->parent()->parameters();
      const int64_t n = *a.parameter_number;
      if (n < static_cast<int64_t>(parameters.size()) && parameters[static_cast<size_t>(n)] == i)
        return absl::OkStatus();
      return ErrorAt(i, absl::StrCat("is not parameter ", n, " of ", i->parent()->name()));
    }
    default:
      return absl::OkStatus();
  }
}

namespace {

struct Pair {
  Opcode start;
  Opcode done;
};
constexpr Pair kPairs[] = {
    {Opcode::AllReduceStart, Opcode::AllReduceDone},
    {Opcode::AllGatherStart, Opcode::AllGatherDone},
    {Opcode::CollectivePermuteStart, Opcode::CollectivePermuteDone},
    {Opcode::CopyStart, Opcode::CopyDone},
};

bool IsStarted(const Instruction* i) { return i->Is(Opcode::AsyncStart) || i->Is(Opcode::AsyncUpdate); }

}  // namespace

absl::Status CheckAsync(const Instruction* i) {
  const std::vector<Instruction*>& users = i->users();
  const auto one_user = [&]() -> absl::Status {
    return users.size() > 1 ? ErrorAt(i, "has more than one user") : absl::OkStatus();
  };
  if (IsStarted(i)) {
    RETURN_IF_ERROR(one_user());
    if (users.size() == 1 && !users[0]->Is(Opcode::AsyncUpdate) && !users[0]->Is(Opcode::AsyncDone))
      return ErrorAt(i, absl::StrCat("is used by ", TextOf(users[0]->opcode()), ", not by async-update or async-done"));
  }
  if (i->Is(Opcode::AsyncUpdate) || i->Is(Opcode::AsyncDone)) {
    const Instruction* from = i->operand(0);
    if (!IsStarted(from)) return ErrorAt(i, "operand is no async-start or async-update");
    if (i->attrs().calls && from->attrs().calls && *i->attrs().calls != *from->attrs().calls)
      return ErrorAt(i, "wraps another computation than its operand");
  }
  for (const Pair& p : kPairs) {
    if (i->Is(p.start)) {
      RETURN_IF_ERROR(one_user());
      if (users.size() == 1 && !users[0]->Is(p.done))
        return ErrorAt(i, absl::StrCat("is used by ", TextOf(users[0]->opcode()), ", not by ", TextOf(p.done)));
    }
    if (i->Is(p.done) && !i->operand(0)->Is(p.start))
      return ErrorAt(i, absl::StrCat("operand is no ", TextOf(p.start)));
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const Instruction* i) {
  if (!i->IsElementwise() || i->Is(Opcode::Copy) || !i->shape().layout()) return absl::OkStatus();
  for (const Instruction* o : i->operands()) {
    if (o->shape().rank() != i->shape().rank() || !o->shape().layout()) continue;
    if (o->shape().layout()->minor_to_major != i->shape().layout()->minor_to_major)
      return ErrorAt(i, absl::StrCat("layout is ", i->shape().layout()->ToString(), ", operand ", o->name(), " has ",
                                     o->shape().layout()->ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const Module& m) {
  if (!m.is_scheduled) return absl::OkStatus();
  for (const auto& c : m.computations()) {
    absl::flat_hash_set<const Instruction*> before;
    for (const auto& i : c->instructions()) {
      for (const auto* list : {&i->operands(), &i->control_predecessors()})
        for (const Instruction* o : *list)
          if (!before.contains(o))
            return ErrorAt(i.get(), absl::StrCat("is scheduled before ", o->name(), ", which it waits for"));
      before.insert(i.get());
    }
  }
  return absl::OkStatus();
}

}  // namespace verify

absl::Status VerifyModule(const Module& m, const VerifyOptions& options) {
  RETURN_IF_ERROR(verify::CheckStructure(m));
  // Called computations are read by the rules of their callers: each has its attributes before any shape is looked at.
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) RETURN_IF_ERROR(verify::CheckAttributes(*i));
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) {
      RETURN_IF_ERROR(verify::CheckShape(i.get()));
      RETURN_IF_ERROR(verify::CheckOperation(i.get()));
      RETURN_IF_ERROR(verify::CheckAsync(i.get()));
      RETURN_IF_ERROR(verify::CheckCollective(i.get(), false));
      if (options.layout_sensitive) RETURN_IF_ERROR(verify::CheckLayout(i.get()));
    }
  }
  RETURN_IF_ERROR(verify::CheckChannels(m));
  return verify::CheckHeader(m);
}

absl::Status VerifyAsWritten(const Module& m) {
  RETURN_IF_ERROR(VerifyModule(m));
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      RETURN_IF_ERROR(verify::CheckCollective(i.get(), true));
      RETURN_IF_ERROR(verify::CheckSharding(i.get()));
    }
  return verify::CheckSchedule(m);
}

}  // namespace kiln
