#include "codegen/gpu/shares.h"

#include <algorithm>

namespace kiln::gpu {
namespace {

std::vector<llvm::Value*> SharesFrom(Ir& ir, llvm::Value* first, int64_t step, int64_t count) {
  std::vector<llvm::Value*> elements;
  for (int64_t k = 0; k < count; ++k) elements.push_back(ir.Add(first, ir.I64(k * step)));
  return elements;
}

}  // namespace

std::vector<llvm::Value*> FirstShares(Ir& ir, llvm::Value* slot, int64_t step, int64_t length, int64_t together) {
  return SharesFrom(ir, slot, step, std::min(together, length / step));
}

absl::Status EachShare(Ir& ir, llvm::Value* slot, int64_t skip, int64_t step, int64_t length, int64_t together,
                       const std::function<absl::Status(const std::vector<llvm::Value*>&)>& visit) {
  const auto from = [&](llvm::Value* first, int64_t count) { return SharesFrom(ir, first, step, count); };
  // Of as many every thread has one.
  const int64_t all = length / step, groups = (all - skip) / together, rest = (all - skip) % together;
  absl::Status status;
  ir.Loop(ir.I64(0), ir.I64(groups), 1, [&](llvm::Value* g) {
    llvm::Value* first = ir.Add(slot, ir.Mul(ir.Add(ir.Mul(g, together), ir.I64(skip)), step));
    if (status.ok()) status = visit(from(first, together));
  });
  RETURN_IF_ERROR(status);
  if (rest > 0) RETURN_IF_ERROR(visit(from(ir.Add(slot, ir.I64((skip + groups * together) * step)), rest)));
  if (length % step == 0) return absl::OkStatus();
  llvm::Value* last = ir.Add(slot, ir.I64(all * step));
  ir.If(ir.b.CreateICmpULT(last, ir.I64(length)), [&] { status = visit({last}); });
  return status;
}

int64_t SharesTogether(const std::vector<const Instruction*>& computed) {
  constexpr int64_t kFunction = 12;  // instructions, about
  int64_t work = 0;
  for (const Instruction* i : computed)
    if (!i->Is(Opcode::Parameter) && !i->Is(Opcode::Constant)) work += i->HasTrait(Transcendental) ? kFunction : 1;
  constexpr int64_t kMost = 8, kBudget = 160;
  int64_t together = kMost;
  while (together > 1 && together * work > kBudget) together /= 2;
  return together;
}

}  // namespace kiln::gpu
