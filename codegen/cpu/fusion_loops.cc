// Fusions whose results are computed element by element.
#include <algorithm>

#include "codegen/cpu/fusion.h"

namespace kiln::cpu {
namespace {

// Whether rows are so short that a loop along them is no vector: what differs along them cannot be merged away.
bool HasShortRows(const Shape& s, const Ints& order) {
  constexpr int64_t kMost = 4, kLeastRows = 16;
  const auto ones = std::find_if(order.begin(), order.end(), [&](int64_t d) { return s.dim(d) == 1; });
  if (ones - order.begin() < 2) return false;
  return s.dim(*(ones - 1)) <= kMost && s.dim(*(ones - 2)) >= kLeastRows;
}

// Vectors along the dimension around short rows, with a row's elements side by side in one body. All are computed
// before any is stored: a result may lie where an operand lay.
absl::StatusOr<int64_t> ShortRows(FusionBody& fusion, const std::vector<const Instruction*>& results, Ints order) {
  Ir& ir = fusion.ir;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = results[0]->shape();
  while (s.dim(order.back()) == 1) order.pop_back();
  const int64_t units = Units(s.dims(), order), row = order.back();
  order.pop_back();
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        std::vector<std::pair<Val, llvm::Value*>> values;
        for (int64_t k = 0; k < s.dim(row); ++k) {
          at[static_cast<size_t>(row)] = ir.I64(k);
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
      },
      true));
  return units;
}

// One loop for results of one shape. All are computed before any is stored: a result may lie where an operand lay.
absl::StatusOr<int64_t> SeveralResults(FusionBody& fusion, const Instruction* tuple) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = tuple->operand(0)->shape();
  const Ints order = UsefulFirst(s.dims(), LoopOrder(s));
  if (HasShortRows(s, order)) return ShortRows(fusion, {tuple->operands().begin(), tuple->operands().end()}, order);
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        const Index x = IndexIn(s, at);
        std::vector<Val> values;
        for (const Instruction* o : tuple->operands()) {
          ASSIGN_OR_RETURN(Val v, elements.Emit(o, x));
          values.push_back(v);
        }
        for (size_t k = 0; k < values.size(); ++k) {
          const Shape& leaf = tuple->operand(static_cast<int64_t>(k))->shape();
          ir.Store(leaf.type(), values[k], body.results[k], elements.Offset(leaf, x));
        }
        return absl::OkStatus();
      },
      true));
  return Units(s.dims(), order);
}

}  // namespace

absl::StatusOr<int64_t> EmitLoops(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  if (const Ints cuts = MinorCuts(root); !cuts.empty()) return EmitBetweenJoins(fusion, root, cuts);
  if (root->Is(Opcode::Tuple)) return SeveralResults(fusion, root);
  const Shape& s = root->shape();
  if (const Instruction* turned = TransposeAcross(fusion.f, root)) return EmitTranspose(fusion, root, turned);
  if (PadsBetween(root)) return EmitPadBetween(fusion, root);
  if (const Instruction* window = WindowAmong(root)) return EmitAroundWindow(fusion, root, window);
  const Ints order = UsefulFirst(s.dims(), LoopOrder(s));
  if (HasShortRows(s, order)) return ShortRows(fusion, {root}, order);
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        const Index x = IndexIn(s, at);
        ASSIGN_OR_RETURN(Val v, elements.Emit(root, x));
        ir.Store(s.type(), v, body.results[0], elements.Offset(s, x));
        return absl::OkStatus();
      },
      true));
  return Units(s.dims(), order);
}

}  // namespace kiln::cpu
