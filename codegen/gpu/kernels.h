// GPU kernels: LLVM functions of addresses, and how many threads run them.
//
// Every kernel has the signature  void(ptr operand..., ptr result..., ptr scratch).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/gpu/grid.h"
#include "codegen/gpu/tiles.h"
#include "codegen/llvm/ir.h"
#include "compiler/target/gpu_target.h"

namespace kiln::gpu {

struct Launch {
  std::string symbol;
  int64_t blocks = 1, threads = 1;
};

// Attributes of kernels: marks them, and says how many threads a block has.
inline constexpr char kKernel[] = "kiln-gpu-kernel";

// Emits the kernels of `i` under names that begin with `symbol`, and returns the launches that compute it, in order.
// `shared`: operands whose storage is a result's. Fails, naming the instruction, where there is no kernel for it.
absl::StatusOr<std::vector<Launch>> EmitKernel(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                               const Instruction* i, const std::set<int64_t>& shared);

// Arena bytes that the kernels of `i` need while they run.
int64_t ScratchBytes(const Instruction* i);

// A kernel in the making, for emitters by family: they fill in the size of the grid.
struct Body {
  Ir& ir;
  const GpuTarget& target;
  Grid grid;
  const Instruction* i;
  std::vector<llvm::Value*> operands, results;
  llvm::Value* scratch;
  int64_t blocks = 1, threads = 1;
  int64_t team = 0;  // where others share the kernel: how many threads a block has
};

// One call of `visit` for each of `count` places, each in a thread of its own.
absl::Status ForEach(Body& body, int64_t count, const std::function<absl::Status(llvm::Value* place)>& visit);
// The position at `linear` of an array of `dims`, walked in `order` (outermost first).
std::vector<llvm::Value*> Delinearize(Ir& ir, llvm::Value* linear, const Ints& dims, const Ints& order);
// Outermost dimension of memory first.
Ints MemoryOrder(const Shape& s);

absl::Status EmitFusion(Body& body);
absl::Status EmitCopy(Body& body);
absl::Status EmitDot(Body& body);
// A product with what is computed of its operands before and of its result after.
absl::Status EmitProductFusion(Body& body, const Computation& f);
absl::Status EmitConvolution(Body& body);
// One with enough features, as the product of `shape` (ProductOf).
absl::Status EmitConvolutionAsProduct(Body& body, const ProductShape& shape);
absl::Status EmitCholesky(Body& body);
absl::Status EmitTriangularSolve(Body& body);
// The algorithms of the kernel library, by one thread: what no other kernel serves (LAPACK).
absl::Status EmitSerial(Body& body);

// Emitters of fusions by their root. `f` is the fused computation, `outputs` are those of its results that one nest of
// loops computes.
using Outputs = std::vector<const Instruction*>;
Outputs OutputsOf(const Computation& f);
// Whether a reduction is among them.
bool Reduces(const Outputs& outputs);
absl::Status EmitLoop(Body& body, const Outputs& outputs);
absl::Status EmitReduction(Body& body, const Outputs& outputs);
// Several nests in one kernel, each in blocks of its own.
absl::Status EmitSegments(Body& body, const std::vector<Outputs>& segments);
// The results of `f`, grouped by who is computed together.
std::vector<Outputs> SegmentsOf(const Computation& f);
// Rows that are reduced and used again, a block for each.
absl::Status EmitRows(Body& body, const Computation& f);
absl::Status EmitUpdate(Body& body, const Instruction* update);
absl::Status EmitScatter(Body& body, const Instruction* root);
// A running reduction: a reduce-window with a RunningDim.
absl::Status EmitScan(Body& body, const Instruction* root);
// A transpose through tiles of shared memory; false where there is none worth it and nothing was emitted.
absl::StatusOr<bool> EmitTransposedTiles(Body& body, const Instruction* root);
// Whether there is one.
bool TurnsTiles(const Instruction* root);
// What the outputs are computed of.
std::vector<const Instruction*> NeededFor(const Outputs& outputs);

// Sorting, alone or with the loops around it in a fusion, and the arena bytes that it needs. The sort of `i`, null if
// it has none.
const Instruction* SortOf(const Instruction* i);
int64_t MergeScratchBytes(const Instruction* i);
absl::StatusOr<std::vector<Launch>> EmitSort(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                             const Instruction* i, const std::set<int64_t>& shared);
// Selecting the first of rows, likewise.
absl::StatusOr<std::vector<Launch>> EmitTopK(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                             const Instruction* i, const std::set<int64_t>& shared);
int64_t SelectionScratchBytes(const Instruction* i);
// Transforms, an axis after the other, alone or with the loops around them in a fusion. Arena bytes that the kernels
// need. The transform of `i`, null if it has none.
const Instruction* TransformOf(const Instruction* i);
absl::StatusOr<std::vector<Launch>> EmitFft(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                            const Instruction* i, const std::set<int64_t>& shared);
int64_t FftScratchBytes(const Instruction* i);
// The function of a kernel and its arrays; `finish` returns it.
absl::StatusOr<Launch> EmitFunction(Ir& ir, const GpuTarget& target, const std::string& symbol, const Instruction* i,
                                    const std::set<int64_t>& shared, const std::function<absl::Status(Body&)>& emit);

}  // namespace kiln::gpu
