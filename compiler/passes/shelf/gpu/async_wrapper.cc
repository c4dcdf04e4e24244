// Library calls become asynchronous: a start and a done around the call, between which other work may run.
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> AsyncWrapper(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return IsLibraryCall(i) && i->parent()->name().rfind("async_", 0) != 0; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        Computation* wrapped = c->module()->AddComputation("async_computation");
        std::vector<Instruction*> parameters;
        std::vector<Shape> operands;
        for (int64_t k = 0; k < i->operand_count(); ++k) {
          parameters.push_back(wrapped->AddParameter(k, i->operand(k)->shape(), "param"));
          operands.push_back(i->operand(k)->shape());
        }
        wrapped->set_root(wrapped->AddClone(i, i->shape(), parameters));
        const Shape context = Shape::Scalar(PrimitiveType::S32);
        Instruction* start =
            c->Add(Opcode::AsyncStart, Shape::Tuple({Shape::Tuple(operands), i->shape(), context}), i->operands());
        start->mutable_attrs().calls = wrapped;
        start->set_loc(i->loc());
        Instruction* done = c->Add(Opcode::AsyncDone, i->shape(), {start});
        return done;
      });
}

}  // namespace kiln
