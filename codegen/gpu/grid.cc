#include "codegen/gpu/grid.h"

#include "absl/strings/str_cat.h"

namespace kiln::gpu {

llvm::Value* Grid::Thread() {
  return ir_.b.CreateZExt(ir_.CallLibrary("kiln_gpu_thread", ir_.b.getInt32Ty(), {}), ir_.b.getInt64Ty(), "", true);
}

llvm::Value* Grid::Block() {
  if (block_) return block_;
  return ir_.b.CreateZExt(ir_.CallLibrary("kiln_gpu_block", ir_.b.getInt32Ty(), {}), ir_.b.getInt64Ty(), "", true);
}

void Grid::Barrier() {
  auto* call = llvm::cast<llvm::CallInst>(ir_.CallLibrary("kiln_gpu_barrier", ir_.b.getVoidTy(), {}));
  // Must not move to where fewer threads arrive.
  call->setConvergent();
  call->getCalledFunction()->setConvergent();
}

void Grid::Signal(llvm::Value* counter) { ir_.CallLibrary("kiln_gpu_signal", ir_.b.getVoidTy(), {counter}); }

void Grid::AwaitSignals(llvm::Value* counter, int64_t count) {
  ir_.CallLibrary("kiln_gpu_await", ir_.b.getVoidTy(), {counter, ir_.b.getInt32(static_cast<uint32_t>(count))});
}

llvm::Value* Grid::ShuffleBits(llvm::Value* v, int64_t mask) {
  auto* call = llvm::cast<llvm::CallInst>(
      ir_.CallLibrary("kiln_gpu_shuffle_xor", ir_.b.getInt32Ty(), {v, ir_.b.getInt32(static_cast<uint32_t>(mask))}));
  call->setConvergent();
  call->getCalledFunction()->setConvergent();
  return call;
}

Val Grid::ShuffleXor(const Val& v, int64_t mask) {
  llvm::IRBuilder<>& b = ir_.b;
  auto part = [&](llvm::Value* x) -> llvm::Value* {
    llvm::Type* type = x->getType();
    const unsigned bits = type->getScalarSizeInBits();
    llvm::Value* raw = b.CreateBitCast(x, b.getIntNTy(bits));
    if (bits <= 32) {
      raw = ShuffleBits(b.CreateZExt(raw, b.getInt32Ty()), mask);
      return b.CreateBitCast(b.CreateTrunc(raw, b.getIntNTy(bits)), type);
    }
    llvm::Value* low = ShuffleBits(b.CreateTrunc(raw, b.getInt32Ty()), mask);
    llvm::Value* high = ShuffleBits(b.CreateTrunc(b.CreateLShr(raw, 32), b.getInt32Ty()), mask);
    raw = b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
    return b.CreateBitCast(raw, type);
  };
  return {part(v.re), v.im ? part(v.im) : nullptr};
}

std::array<llvm::Value*, 4> Grid::Mma(PrimitiveType t, const std::array<llvm::Value*, 4>& a,
                                      const std::array<llvm::Value*, 2>& b, const std::array<llvm::Value*, 4>& sum) {
  llvm::Type* each = sum[0]->getType();
  std::vector<llvm::Value*> arguments(a.begin(), a.end());
  arguments.insert(arguments.end(), b.begin(), b.end());
  arguments.insert(arguments.end(), sum.begin(), sum.end());
  auto* call = llvm::cast<llvm::CallInst>(ir_.CallLibrary(absl::StrCat("kiln_gpu_mma_", InfoOf(t).text),
                                                          llvm::StructType::get(each, each, each, each), arguments));
  call->setConvergent();
  call->getCalledFunction()->setConvergent();
  std::array<llvm::Value*, 4> out;
  for (unsigned k = 0; k < 4; ++k) out[k] = ir_.b.CreateExtractValue(call, k);
  return out;
}

llvm::Value* Grid::RoundToTf32(llvm::Value* bits) {
  llvm::CallInst* call = llvm::cast<llvm::CallInst>(ir_.CallLibrary("kiln_gpu_round_tf32", bits->getType(), {bits}));
  call->setDoesNotAccessMemory();
  return call;
}

llvm::Value* Grid::Shared(llvm::Type* type, int64_t count) {
  auto* array = llvm::ArrayType::get(type, static_cast<uint64_t>(count));
  auto* g = new llvm::GlobalVariable(ir_.module, array, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::UndefValue::get(array), ir_.current()->getName() + ".shared", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  g->setAlignment(llvm::Align(16));
  const int64_t bytes = count * static_cast<int64_t>((type->getScalarSizeInBits() + 7) / 8);
  shared_bytes_ += (bytes + 15) / 16 * 16;
  return ir_.b.CreateAddrSpaceCast(g, ir_.b.getPtrTy());
}

}  // namespace kiln::gpu
