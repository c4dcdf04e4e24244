// Fusions whose results are computed element by element.
#include <algorithm>

#include "codegen/cpu/fusion.h"

namespace kiln::cpu {
namespace {

// One loop for results of one shape. All are computed before any is stored: a result may lie where an operand lay.
absl::StatusOr<int64_t> SeveralResults(FusionBody& fusion, const Instruction* tuple) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = tuple->operand(0)->shape();
  const Ints order = UsefulFirst(s.dims(), LoopOrder(s));
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

// The window whose places along `minor` are the root's, where some of them reach over the ends of the array and others
// do not; null if there is none. What surrounds it is elementwise, so that it is read at the root's places alone.
const Instruction* PaddedWindow(const Instruction* root, int64_t minor) {
  const Instruction* found = nullptr;
  std::vector<const Instruction*> open = {root};
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    if (i->Is(Opcode::ReduceWindow)) {
      if (found && found != i) return nullptr;
      found = i;
    } else if (i->IsElementwise()) {
      open.insert(open.end(), i->operands().begin(), i->operands().end());
    } else if (const Instruction* leaf = i->Is(Opcode::Broadcast) ? i->operand(0) : i;
               !leaf->Is(Opcode::Parameter) && !leaf->Is(Opcode::Constant)) {
      return nullptr;
    }
  }
  if (!found || !found->shape().IsArray()) return nullptr;
  const WindowDim& w = (*found->attrs().window)[static_cast<size_t>(minor)];
  return (w.pad_low || w.pad_high) && w.lhs_dilate == 1 ? found : nullptr;
}

// Positions [from, to) of `dim` whose windows lie inside the array.
std::pair<int64_t, int64_t> InsideOf(const Instruction* window, int64_t dim) {
  const WindowDim& w = (*window->attrs().window)[static_cast<size_t>(dim)];
  const int64_t extent = window->operand(0)->shape().dim(dim), count = window->shape().dim(dim);
  const int64_t from = w.pad_low <= 0 ? 0 : (w.pad_low + w.stride - 1) / w.stride;
  const int64_t last = extent + w.pad_low - w.DilatedSize();  // that a window may begin at, padding counted
  const int64_t to = last < 0 ? 0 : last / w.stride + 1;
  return {std::min(from, count), std::max(std::min(from, count), std::min(to, count))};
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
  Ints order = UsefulFirst(s.dims(), LoopOrder(s));
  const auto element = [&](const std::vector<llvm::Value*>& at) -> absl::Status {
    const Index x = IndexIn(s, at);
    ASSIGN_OR_RETURN(Val v, elements.Emit(root, x));
    ir.Store(s.type(), v, body.results[0], elements.Offset(s, x));
    return absl::OkStatus();
  };
  const int64_t minor = order.empty() ? 0 : order.back();
  const Instruction* window = order.size() > 1 ? PaddedWindow(root, minor) : nullptr;
  if (!window) {
    RETURN_IF_ERROR(Nest(fusion, s.dims(), order, element, true));
    return Units(s.dims(), order);
  }
  // Windows that reach over the ends apart from those inside, which become vectors.
  const auto [from, to] = InsideOf(window, minor);
  order.pop_back();
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        absl::Status status;
        const auto range = [&](int64_t first, int64_t end, bool inside) {
          elements.WindowsInside(inside ? window : nullptr, minor);
          ir.Loop(
              ir.I64(first), ir.I64(end), 1,
              [&](llvm::Value* k) {
                at[static_cast<size_t>(minor)] = k;
                status.Update(element(at));
              },
              inside);
        };
        range(0, from, false);
        range(from, to, true);
        range(to, s.dim(minor), false);
        return status;
      },
      false));
  return Units(s.dims(), order);
}

}  // namespace kiln::cpu
