// Fusions whose results are computed element by element.
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

}  // namespace

absl::StatusOr<int64_t> EmitLoops(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  if (root->Is(Opcode::Tuple)) return SeveralResults(fusion, root);
  const Shape& s = root->shape();
  if (const Instruction* turned = TransposeAcross(fusion.f, root)) return EmitTranspose(fusion, root, turned);
  if (PadsBetween(root)) return EmitPadBetween(fusion, root);
  if (const Instruction* window = WindowAmong(root)) return EmitAroundWindow(fusion, root, window);
  const Ints order = UsefulFirst(s.dims(), LoopOrder(s));
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
