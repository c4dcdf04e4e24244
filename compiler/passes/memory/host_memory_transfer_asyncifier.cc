// What moves values between the host's memory and the device's becomes a start and a done, which no fusion takes in and
// between which a schedule can put work: copies, slices taken from the host's memory and updates put into it.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool LiesOnHost(const Shape& s) { return s.IsArray() && s.LiesInSlowMemory(); }

bool Transfers(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Copy:
      return i->shape().IsArray() && LiesOnHost(i->operand(0)->shape()) != LiesOnHost(i->shape());
    case Opcode::DynamicSlice:
      return LiesOnHost(i->operand(0)->shape()) && !LiesOnHost(i->shape());
    case Opcode::DynamicUpdateSlice:
      return LiesOnHost(i->operand(0)->shape()) && !LiesOnHost(i->operand(1)->shape()) && LiesOnHost(i->shape());
    default:
      return false;
  }
}

Instruction* AsCopyStart(Instruction* i) {
  Computation* c = i->parent();
  const Shape state = Shape::Tuple({i->shape(), i->operand(0)->shape(), Shape::Scalar(PrimitiveType::U32)});
  return c->Add(Opcode::CopyDone, i->shape(), {c->Add(Opcode::CopyStart, state, {i->operand(0)})});
}

Instruction* AsAsync(Instruction* i) {
  Computation *c = i->parent(), *wrapped = c->module()->AddComputation("async_transfer");
  std::vector<Instruction*> parameters;
  std::vector<Shape> operands;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    parameters.push_back(wrapped->AddParameter(k, i->operand(k)->shape(), "param"));
    operands.push_back(i->operand(k)->shape());
  }
  wrapped->set_root(wrapped->AddClone(i, i->shape(), parameters));
  const Shape state = Shape::Tuple({Shape::Tuple(operands), i->shape(), Shape::Scalar(PrimitiveType::U32)});
  Instruction* start = c->Add(Opcode::AsyncStart, state, i->operands());
  start->mutable_attrs().calls = wrapped;
  start->set_loc(i->loc());
  return c->Add(Opcode::AsyncDone, i->shape(), {start});
}

}  // namespace

absl::StatusOr<bool> HostMemoryTransferAsyncifier(Module& m, PassContext& ctx) {
  absl::flat_hash_set<const Computation*> asynchronous;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::AsyncStart))
        for (const Computation* called : i->called()) asynchronous.insert(called);
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return Transfers(i) && !asynchronous.contains(i->parent()); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> { return i->Is(Opcode::Copy) ? AsCopyStart(i) : AsAsync(i); });
}

}  // namespace kiln
