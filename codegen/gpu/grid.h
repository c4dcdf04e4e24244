// The threads of a kernel and what they share, as calls of functions that a lowering defines.
//
// A kernel is a function of its arrays' addresses and one number. It asks for its place by kiln_gpu_thread and
// kiln_gpu_block, waits with kiln_gpu_barrier, exchanges values in a warp with kiln_gpu_shuffle_xor and multiplies
// small matrices that a warp holds with kiln_gpu_mma_*. Lowered for
// NVPTX these are single instructions (lower_device.h); lowered for the host they are those of an emulator, so that
// the very same kernel runs on a machine without a GPU (lower_host.h).
#pragma once

#include <array>

#include "codegen/llvm/ir.h"

namespace kiln::gpu {

inline constexpr int64_t kWarp = 32;
inline constexpr unsigned kSharedSpace = 3;  // LLVM's address space of what a block shares

class Grid {
 public:
  // `block`: the block's place, where not all of the grid are for one purpose.
  explicit Grid(Ir& ir, llvm::Value* block = nullptr) : ir_(ir), block_(block) {}

  // Place in the block and of the block, as i64.
  llvm::Value* Thread();
  llvm::Value* Block();
  // Every thread of the block arrives; what was written before is visible after.
  void Barrier();
  // Among blocks of one launch: counts one up at `counter`, an i32, once what the block wrote before its last barrier
  // is visible to those that see the count; and waits until `count` were counted. A block may wait for those alone that
  // began before it, in the order of tickets that blocks took.
  void Signal(llvm::Value* counter);
  void AwaitSignals(llvm::Value* counter, int64_t count);
  // `v` of the lane whose number differs in the bits of `mask`; all lanes of the warp take part.
  Val ShuffleXor(const Val& v, int64_t mask);

  // The warp's product of 16 x k and k x 8, added to 16 x 8: k is 16 for f16 and bf16, 32 for s8, 8 for f32 (words that
  // RoundToTf32 gave); sums are f32 or s32. Lanes hold fragments as mma.sync has them (row.col), four elements of 8
  // bits, two of 16 or one of 32 to a word.
  static constexpr int64_t kMmaRows = 16, kMmaColumns = 8;
  std::array<llvm::Value*, 4> Mma(PrimitiveType t, const std::array<llvm::Value*, 4>& a,
                                  const std::array<llvm::Value*, 2>& b, const std::array<llvm::Value*, 4>& sum);

  // The nearest float of 10 bits of mantissa, halves away from zero, of the one with these bits; an i32.
  llvm::Value* RoundToTf32(llvm::Value* bits);

  // Memory that a block shares: `count` elements, uninitialised. The address is generic.
  llvm::Value* Shared(llvm::Type* type, int64_t count);
  int64_t shared_bytes() const { return shared_bytes_; }

 private:
  llvm::Value* ShuffleBits(llvm::Value* v, int64_t mask);
  Ir& ir_;
  llvm::Value* block_;
  int64_t shared_bytes_ = 0;
};

}  // namespace kiln::gpu
