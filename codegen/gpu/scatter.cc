// Scatter: a thread for each element of the updates, which meet in the target by atomic operations.
#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

// An addition that memory can do by itself.
bool PlainSum(const Instruction* scatter) {
  const Instruction* r = (*scatter->attrs().to_apply)->root();
  const PrimitiveType t = scatter->operand(0)->shape().type();
  const bool word = t == PrimitiveType::F32 || t == PrimitiveType::F64 || t == PrimitiveType::S32 ||
                    t == PrimitiveType::U32 || t == PrimitiveType::S64 || t == PrimitiveType::U64;
  return word && r->Is(Opcode::Add) && r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) &&
         r->operand(0) != r->operand(1);
}

}  // namespace

absl::Status EmitScatter(Body& body, const Instruction* root) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const ScatterPlan plan(root);
  if (!plan.fits) return absl::OkStatus();
  ElementEmitter elements(ir, body.operands);
  const bool unique = root->attrs().unique_indices.value_or(false);
  const PrimitiveType t = plan.target.type();
  const int64_t bytes = ByteWidth(t);
  if (!unique && (plan.arrays > 1 || bytes > 8))
    return ErrorAt(root,
                   "several arrays, or elements of more than 64 bits, cannot be updated atomically on a GPU; the pass "
                   "gpu-scatter-expander is needed",
                   absl::StatusCode::kUnimplemented);
  Ints order;
  for (int64_t d : plan.batch_dims) order.push_back(d);
  for (int64_t d : plan.window_dims) order.push_back(d);
  return ForEach(body, plan.updates.ElementCount(), [&](llvm::Value* place) -> absl::Status {
    const std::vector<llvm::Value*> at = Delinearize(ir, place, plan.updates.dims(), order);
    std::vector<llvm::Value*> batch;
    for (int64_t d : plan.batch_dims) batch.push_back(at[d]);
    ASSIGN_OR_RETURN(ScatterPlan::Start start, plan.StartOf(elements, batch));
    absl::Status status;
    const auto update = [&]() -> absl::Status {
      Index x{start.dims};
      for (size_t q = 0; q < plan.to.size(); ++q)
        x.dims[plan.to[q]] = ir.Add(x.dims[plan.to[q]], at[plan.window_dims[q]]);
      llvm::Value* offset = elements.Offset(plan.target, x);
      const int64_t n = static_cast<int64_t>(plan.arrays);
      std::vector<Val> updates;
      for (int64_t k = 0; k < n; ++k) {
        ASSIGN_OR_RETURN(Val v, elements.Emit(root->operand(n + 1 + k), Index{at}));
        updates.push_back(v);
      }
      if (unique) {
        std::vector<Val> all;
        for (int64_t k = 0; k < n; ++k)
          all.push_back(ir.Load(root->operand(k)->shape().type(), body.results[k], offset));
        all.insert(all.end(), updates.begin(), updates.end());
        ASSIGN_OR_RETURN(std::vector<Val> r, elements.Apply(**root->attrs().to_apply, all));
        for (int64_t k = 0; k < n; ++k) ir.Store(root->operand(k)->shape().type(), r[k], body.results[k], offset);
        return absl::OkStatus();
      }
      constexpr auto kOrder = llvm::AtomicOrdering::Monotonic;
      if (PlainSum(root)) {
        llvm::Value* at_target = b.CreateInBoundsGEP(ir.MemType(t), body.results[0], offset);
        b.CreateAtomicRMW(IsFloat(t) ? llvm::AtomicRMWInst::FAdd : llvm::AtomicRMWInst::Add, at_target, updates[0].re,
                          llvm::MaybeAlign(static_cast<uint64_t>(bytes)), kOrder);
        return absl::OkStatus();
      }
      // Anything else: compute from what is there, and store if it still is.
      llvm::Type* bits = b.getIntNTy(static_cast<unsigned>(8 * bytes));
      const llvm::Align align(static_cast<uint64_t>(bytes));
      llvm::Value* at_target = b.CreateInBoundsGEP(bits, body.results[0], offset);
      llvm::Value *seen = ir.Alloca(bits, 1, 16), *wanted = ir.Alloca(bits, 1, 16);
      auto* load = b.CreateAlignedLoad(bits, at_target, align);
      load->setAtomic(kOrder);
      b.CreateStore(load, seen);
      auto* again = llvm::BasicBlock::Create(ir.ctx, "again", ir.current());
      auto* done = llvm::BasicBlock::Create(ir.ctx, "updated", ir.current());
      b.CreateBr(again);
      b.SetInsertPoint(again);
      ASSIGN_OR_RETURN(std::vector<Val> r,
                       elements.Apply(**root->attrs().to_apply, {ir.Load(t, seen, ir.I64(0)), updates[0]}));
      ir.Store(t, r[0], wanted, ir.I64(0));
      llvm::Value* pair =
          b.CreateAtomicCmpXchg(at_target, b.CreateLoad(bits, seen), b.CreateLoad(bits, wanted), align, kOrder, kOrder);
      b.CreateStore(b.CreateExtractValue(pair, 0), seen);
      b.CreateCondBr(b.CreateExtractValue(pair, 1), done, again);
      b.SetInsertPoint(done);
      return absl::OkStatus();
    };
    ir.If(start.inside, [&] { status = update(); });
    return status;
  });
}

}  // namespace kiln::gpu
