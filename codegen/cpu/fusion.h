// Fusions on the CPU: the root decides the loops, the element emitter computes what they visit.
//
// An emitter serves the roots of one family and returns the kernel's units; EmitFusion picks it. What they share is
// here: loops over a shape, limited to the units of this call, and slots for what is accumulated.
#pragma once

#include <functional>
#include <vector>

#include "codegen/cpu/kernels.h"
#include "codegen/elemental/element.h"

namespace kiln::cpu {

// A kernel in the making: the computation `f`, and its elements over the kernel's operands.
struct FusionBody {
  FusionBody(Body& body, const Computation& f) : body(body), ir(body.ir), f(f), elements(body.ir, body.operands) {}
  Body& body;
  Ir& ir;
  const Computation& f;
  ElementEmitter elements;
  // Where elements of results go for now, at `aside_at`: past_caches.h. Null, or none: to the results.
  std::vector<llvm::Value*> aside;
  llvm::Value* aside_at = nullptr;

  // Stores `v` at `x` of result `k`, an array of `s`.
  void StoreResult(size_t k, const Shape& s, const Val& v, const Index& x);
};

// The product of each result of `f` and what is made of its elements.
absl::StatusOr<int64_t> EmitProducts(Body& body, const Computation& f, const std::vector<const Instruction*>& products);
// Two products and the rows between them.
absl::StatusOr<int64_t> EmitStrips(Body& body, const Computation& f);
absl::StatusOr<int64_t> EmitLoops(FusionBody& fusion, const Instruction* root);
// Where along each dimension of the loops over `results` the joined arrays meet that they read; none of a dimension
// where they meet often, no dimensions where they meet nowhere.
using Cuts = std::vector<Ints>;
Cuts CutsOf(const Computation& f, const std::vector<const Instruction*>& results);
// As Nest, with a loop of its own for each piece between cuts. Its loops are parallel.
absl::Status NestBetween(FusionBody& fusion, const Ints& dims, const Ints& order, const Cuts& cuts,
                         const std::function<absl::Status(std::vector<llvm::Value*>)>& visit, bool units = true);
// A transpose inside the loop of `root` that walks its operand across lines of memory, where the array is large enough
// to leave the first cache; else null.
const Instruction* TransposeAcross(const Computation& f, const Instruction* root);
absl::StatusOr<int64_t> EmitTranspose(FusionBody& fusion, const Instruction* root, const Instruction* transpose);
absl::StatusOr<int64_t> EmitRows(FusionBody& fusion);
// How many rows that `reduce` reduces lie side by side; 1: each lies in one piece.
int64_t ColumnsSideBySide(const Instruction* reduce);
absl::StatusOr<int64_t> EmitColumns(FusionBody& fusion);
// An update in place of rows that are made of old rows nearby.
absl::StatusOr<int64_t> EmitRowsInPlace(FusionBody& fusion);
// A reduction, or a tuple of several that reduce the same dimensions of the same elements.
absl::StatusOr<int64_t> EmitReduce(FusionBody& fusion, const Instruction* root);
struct Around;  // reduce_form.h
// A reduction of the form `form`.
absl::StatusOr<int64_t> EmitReduceAround(FusionBody& fusion, const Instruction* reduce, const Around& form);
// The one window that `root` computes elementwise from, if it reduces one array; else null.
const Instruction* WindowAmong(const Instruction* root);
absl::StatusOr<int64_t> EmitAroundWindow(FusionBody& fusion, const Instruction* root, const Instruction* window);
// Whether `root` pads between the elements of rows.
bool PadsBetween(const Instruction* root);
absl::StatusOr<int64_t> EmitPadBetween(FusionBody& fusion, const Instruction* root);
absl::StatusOr<int64_t> EmitVariadicWindow(FusionBody& fusion, const Instruction* root);
absl::StatusOr<int64_t> EmitSelectAndScatter(FusionBody& fusion, const Instruction* root);
// A running reduction along `dim`.
absl::StatusOr<int64_t> EmitScan(FusionBody& fusion, const Instruction* root, int64_t dim);
// One along the minor dimension `dim`, from `init` on, of lines along `line_dim`.
struct ScanOfLines {
  int64_t dim, line_dim;
  bool backward;
  Val init;
};
// How many lines go together; 0: they do not.
int64_t LinesTogether(const CpuLevel& level, const Shape& s, int64_t line_dim, int64_t dim);
// So many from `first`, at `at` of the other dimensions.
absl::Status EmitScanOfLines(FusionBody& fusion, const Instruction* root, const ScanOfLines& scan, llvm::Value* first,
                             std::vector<llvm::Value*> at);
absl::StatusOr<int64_t> EmitUpdate(FusionBody& fusion, const Instruction* root);
absl::StatusOr<int64_t> EmitScatter(FusionBody& fusion, const Instruction* root);
absl::StatusOr<int64_t> EmitConcatenate(FusionBody& fusion, const Instruction* root);

// The index `dims` in `shape`.
Index IndexIn(const Shape& shape, std::vector<llvm::Value*> dims);
// Dimensions as memory has them, outermost first.
Ints LoopOrder(const Shape& s);
// Extents that the first loop of an order runs over.
int64_t Units(const Ints& dims, const Ints& order);
// A whole-element loop with extent-1 dimensions at the front moved inwards, so that the first loop has work to split.
Ints UsefulFirst(const Ints& dims, Ints order);
// The dimensions of `s` that loop, outermost first: those of extent 1 are left out.
Ints UsefulLoops(const Shape& s);
// A fusion's results: the elements of its root where that is a tuple.
std::vector<const Instruction*> ResultsOf(const Instruction* root);
// Computes the element of every result at one place of their shape, then stores them: a result may lie where an operand
// lay.
absl::Status EmitElements(FusionBody& fusion, const std::vector<const Instruction*>& results,
                          const std::vector<llvm::Value*>& at);
// The arrays of a result.
std::vector<Shape> Leaves(const Shape& s);

// Loops over `dims` in `order` (outermost first); the first is limited to the kernel's units if `units`.
absl::Status Nest(FusionBody& fusion, const Ints& dims, const Ints& order,
                  const std::function<absl::Status(std::vector<llvm::Value*>)>& visit, bool parallel,
                  bool units = true);

// Memory of accumulators. Narrow floats are summed in f32, which is how they are held anyway.
class Slots {
 public:
  Slots(Ir& ir, PrimitiveType type, int64_t count);
  Val Get(llvm::Value* k) const;
  void Put(llvm::Value* k, const Val& v) const;

 private:
  llvm::Type* PartType() const;
  llvm::Value* PartAt(llvm::Value* part) const;
  Ir& ir_;
  PrimitiveType type_;
  llvm::Value* base_;
};

}  // namespace kiln::cpu
