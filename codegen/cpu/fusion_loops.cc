// Fusions whose results are computed element by element.

#include <algorithm>

#include "codegen/cpu/matmul.h"
#include "codegen/cpu/past_caches.h"

namespace kiln::cpu {
namespace {

// How many of the innermost dimensions are rows so short that a loop along them is no vector, or matrices so small:
// what differs along them cannot be merged away. 0: none. Matrices are turned in registers where there are 32.
size_t ShortDims(const CpuLevel& level, const Shape& s) {
  constexpr int64_t kMostOfRow = 4, kMostOfMatrix = 16, kLeastRows = 16, kManyRegisters = 32, kNarrow = 4;
  const bool matrices =
      level.vector_registers == kManyRegisters && ByteWidth(s.type()) >= kNarrow && !IsComplex(s.type());
  const Ints order = UsefulLoops(s);
  int64_t elements = 1;
  for (size_t n = 1; n < order.size(); ++n) {
    elements *= s.dim(order[order.size() - n]);
    const bool fits = n == 1 ? elements <= kMostOfRow : matrices && elements <= kMostOfMatrix;
    if (!fits) return 0;
    if (s.dim(order[order.size() - n - 1]) >= kLeastRows) return n;
  }
  return 0;
}

// Whether `root` does nothing but turn lines of narrow elements in memory into rows of a few: several lines are put
// together in registers faster than square blocks of so few elements are turned.
bool TurnsToShortRows(const Instruction* root) {
  constexpr int64_t kMost = 8, kWidest = 2, kLeastRows = 16;  // bytes; fewer than the least are for blocks
  if (!root->Is(Opcode::Transpose) || !root->operand(0)->Is(Opcode::Parameter)) return false;
  const Shape &s = root->shape(), &from = root->operand(0)->shape();
  const int64_t width = ByteWidth(s.type());
  const Ints order = UsefulLoops(s);
  if (width > kWidest || order.size() < 2 || !s.HasDefaultLayout() || !from.HasDefaultLayout()) return false;
  const int64_t around = order[order.size() - 2], few = s.dim(order.back());
  return few >= 3 + width && few <= kMost && s.dim(around) >= kLeastRows &&
         (*root->attrs().dimensions)[static_cast<size_t>(around)] == MinorDim(from);
}

// Vectors along the dimension around `short_dims` dimensions of few elements, with all of these side by side in one
// body. They are computed before any is stored: a result may lie where an operand lay, and stores that are neighbours
// are turned in registers (codegen/llvm/short_rows.h).
absl::StatusOr<int64_t> ShortRows(FusionBody& fusion, const std::vector<const Instruction*>& results, size_t short_dims,
                                  const Cuts& cuts) {
  Ir& ir = fusion.ir;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = results[0]->shape();
  Ints order = UsefulLoops(s), row;
  const int64_t units = Units(s.dims(), order);
  row.assign(order.end() - static_cast<ptrdiff_t>(short_dims), order.end());
  order.resize(order.size() - short_dims);
  int64_t elements_of_row = 1;
  for (int64_t d : row) elements_of_row *= s.dim(d);
  RETURN_IF_ERROR(NestBetween(fusion, s.dims(), order, cuts, [&](std::vector<llvm::Value*> at) -> absl::Status {
    std::vector<std::pair<Val, llvm::Value*>> values;
    for (int64_t k = 0; k < elements_of_row; ++k) {
      int64_t rest = k;
      for (auto d = row.rbegin(); d != row.rend(); ++d) {
        at[static_cast<size_t>(*d)] = ir.I64(rest % s.dim(*d));
        rest /= s.dim(*d);
      }
      const Index x = IndexIn(s, at);
      for (const Instruction* r : results) {
        ASSIGN_OR_RETURN(Val v, elements.Emit(r, x));
        values.emplace_back(v, elements.Offset(r->shape(), x));
      }
    }
    for (size_t k = 0; k < values.size(); ++k) {
      const size_t result = k % results.size();
      ir.Store(results[result]->shape().type(), values[k].first, fusion.body.results[result], values[k].second);
    }
    return absl::OkStatus();
  }));
  return units;
}

// Whether one thread does all of it, whose loop then knows where it ends: what is left behind whole vectors is masked.
bool IsOneUnit(const Shape& s) {
  constexpr int64_t kMost = 512;
  return UsefulLoops(s).size() == 1 && s.ElementCount() <= kMost;
}

// Whether a loop of `f` computes so little that it waits for memory.
bool WaitsForMemory(const Computation& f, const Shape& result) {
  constexpr int64_t kMostFunctions = 1;
  int64_t functions = 0;
  for (const auto& i : f.instructions())
    functions +=
        i->HasTrait(Transcendental) && i->shape().IsArray() && i->shape().ElementCount() == result.ElementCount();
  return functions <= kMostFunctions;
}

// The loops of `root`, outermost first. A large transpose of whole lines goes along its operand: what is read in the
// order of memory is there before it is needed, and a few places to write to at a time cost no more than one.
Ints OrderOf(const Instruction* root, const Shape& s) {
  constexpr int64_t kLargeArray = 1 << 20, kMostPlaces = 16;
  Ints order = UsefulFirst(s.dims(), LoopOrder(s));
  if (!root->Is(Opcode::Transpose) || !root->operand(0)->Is(Opcode::Parameter) || s.ByteSize() < kLargeArray)
    return order;
  const Shape& from = root->operand(0)->shape();
  const Ints& p = *root->attrs().dimensions;
  const int64_t minor = MinorDim(s);
  if (!s.HasDefaultLayout() || !from.HasDefaultLayout() || p[static_cast<size_t>(minor)] != MinorDim(from) ||
      s.dim(minor) * ByteWidth(s.type()) < kCacheLine)
    return order;
  Ints along = UsefulLoops(s);
  std::sort(along.begin(), along.end(),
            [&](int64_t a, int64_t b) { return p[static_cast<size_t>(a)] < p[static_cast<size_t>(b)]; });
  if (along.size() < 3 || s.dim(along[along.size() - 2]) > kMostPlaces) return order;
  std::copy(along.begin(), along.end(), order.begin());
  return order;
}

// Results that are stored past the caches, in pieces of rows. Units: rows of the first dimension, or the pieces of the
// only one.
absl::StatusOr<int64_t> PastCachesByPieces(FusionBody& fusion, const std::vector<const Instruction*>& results,
                                           PastCaches& caches) {
  Ir& ir = fusion.ir;
  const Shape& s = results[0]->shape();
  Ints outer = UsefulLoops(s);
  const int64_t minor = outer.back();
  const Pieces pieces = Pieces::Of(s.dim(minor), PastCaches::kPiece);
  outer.pop_back();
  absl::Status status;
  caches.Emit([&](bool past) {
    const auto piece = [&](std::vector<llvm::Value*> at, llvm::Value* first, int64_t count) {
      at[minor] = first;
      llvm::Value* begin = fusion.elements.Offset(s, IndexIn(s, at));
      const auto element = [&](llvm::Value* k) {
        at[minor] = ir.Add(first, k);
        status.Update(EmitElements(fusion, results, at));
      };
      past ? caches.Piece(begin, count, element) : ir.VectorLoop(count, element, true);
    };
    if (outer.empty()) {
      const std::vector<llvm::Value*> at(s.dims().size(), ir.I64(0));
      return ir.Loop(fusion.body.begin, fusion.body.end, 1, [&](llvm::Value* k) {
        VisitPiece(ir, pieces, k, [&](llvm::Value* first, int64_t count) { piece(at, first, count); });
      });
    }
    const auto row = [&](const std::vector<llvm::Value*>& at) {
      const int64_t whole = s.dim(minor) - pieces.tail;
      ir.Loop(ir.I64(0), ir.I64(whole), pieces.size, [&](llvm::Value* first) { piece(at, first, pieces.size); });
      if (pieces.tail) piece(at, ir.I64(whole), pieces.tail);
      return absl::OkStatus();
    };
    status.Update(Nest(fusion, s.dims(), outer, row, false));
  });
  RETURN_IF_ERROR(status);
  return outer.empty() ? pieces.count : s.dim(outer[0]);
}

}  // namespace

absl::StatusOr<int64_t> EmitLoops(FusionBody& fusion, const Instruction* root) {
  const std::vector<const Instruction*> results = ResultsOf(root);
  const Shape& s = results[0]->shape();
  const Cuts cuts = CutsOf(fusion.f, results);
  const auto elements = [&](const std::vector<llvm::Value*>& at) { return EmitElements(fusion, results, at); };
  const size_t short_dims = ShortDims(fusion.ir.level, s);
  if (!cuts.empty() && !short_dims && !PadsBetween(root)) {
    RETURN_IF_ERROR(NestBetween(fusion, s.dims(), UsefulLoops(s), cuts, elements));
    return Units(s.dims(), UsefulLoops(s));
  }
  if (short_dims > 1 && (root->Is(Opcode::Tuple) || !(PadsBetween(root) || WindowAmong(root))))
    return ShortRows(fusion, results, short_dims, cuts);
  if (!root->Is(Opcode::Tuple)) {
    if (const Instruction* turned = TransposeAcross(fusion.f, root); turned && !TurnsToShortRows(root))
      return EmitTranspose(fusion, root, turned);
    if (PadsBetween(root)) return EmitPadBetween(fusion, root);
    if (const Instruction* window = WindowAmong(root)) return EmitAroundWindow(fusion, root, window);
  }
  if (short_dims == 1 || TurnsToShortRows(root)) return ShortRows(fusion, results, 1, cuts);
  if (const Ints loops = UsefulLoops(s); !loops.empty() && WaitsForMemory(fusion.f, s))
    if (PastCaches caches(fusion, results, s.dim(loops.back())); caches.Apply())
      return PastCachesByPieces(fusion, results, caches);
  const Ints order = OrderOf(root, s);
  const bool one = IsOneUnit(s);
  RETURN_IF_ERROR(Nest(fusion, s.dims(), order, elements, true, !one));
  return one ? 1 : Units(s.dims(), order);
}

}  // namespace kiln::cpu
