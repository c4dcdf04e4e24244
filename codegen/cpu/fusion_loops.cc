// Fusions whose results are computed element by element.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "llvm/IR/Intrinsics.h"

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

// The output dimension that walks the operand's minor dimension in a fused transpose, or -1.
int64_t TransposedOperand(const Computation& f, const Instruction* root) {
  if (!root->shape().HasDefaultLayout() || root->shape().rank() < 2) return -1;
  for (const auto& i : f.instructions()) {
    if (!i->Is(Opcode::Transpose) || i->shape().dims() != root->shape().dims()) continue;
    const Ints& p = *i->attrs().dimensions;
    const int64_t minor = static_cast<int64_t>(p.size()) - 1;
    // Extents of 1 do not count as minor.
    for (int64_t d = minor; d >= 0; --d) {
      if (i->operand(0)->shape().dim(d) == 1) continue;
      const int64_t out = std::find(p.begin(), p.end(), d) - p.begin();
      int64_t last = minor;
      while (last > 0 && i->shape().dim(last) == 1) --last;
      return out == last ? -1 : out;
    }
  }
  return -1;
}

absl::StatusOr<int64_t> BlockedLoops(FusionBody& fusion, const Instruction* root, int64_t other) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = root->shape();
  const int64_t minor = MinorDim(s);
  constexpr int64_t kBlock = 16;  // elements: a cache line of f32 both ways
  // Units: the blocks of `other` where it is the only outer dimension, else the first outer dimension.
  Ints outer;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (d != other && d != minor && s.dim(d) != 1) outer.push_back(d);
  const int64_t other_blocks = (s.dim(other) + kBlock - 1) / kBlock;
  std::vector<llvm::Value*> at(s.rank(), ir.I64(0));
  absl::Status status;
  auto block = [&](llvm::Value* ob) {
    llvm::Value* o0 = ir.Mul(ob, kBlock);
    llvm::Value* o1 =
        ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.Add(o0, ir.I64(kBlock)), ir.I64(s.dim(other)));
    ir.Loop(ir.I64(0), ir.I64(s.dim(minor)), kBlock, [&](llvm::Value* m0) {
      llvm::Value* m1 =
          ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.Add(m0, ir.I64(kBlock)), ir.I64(s.dim(minor)));
      ir.Loop(o0, o1, 1, [&](llvm::Value* o) {
        at[other] = o;
        ir.Loop(
            m0, m1, 1,
            [&](llvm::Value* m) {
              at[minor] = m;
              if (!status.ok()) return;
              const Index x = IndexIn(s, at);
              auto v = elements.Emit(root, x);
              if (!v.ok())
                status = v.status();
              else
                ir.Store(s.type(), *v, body.results[0], elements.Offset(s, x));
            },
            true);
      });
    });
  };
  std::function<void(size_t)> level = [&](size_t k) {
    if (k == outer.size()) {
      if (outer.empty())
        ir.Loop(body.begin, body.end, 1, block);
      else
        ir.Loop(ir.I64(0), ir.I64(other_blocks), 1, block);
      return;
    }
    ir.Loop(k == 0 ? body.begin : ir.I64(0), k == 0 ? body.end : ir.I64(s.dim(outer[k])), 1, [&](llvm::Value* i) {
      at[outer[k]] = i;
      level(k + 1);
    });
  };
  level(0);
  RETURN_IF_ERROR(status);
  return outer.empty() ? other_blocks : s.dim(outer[0]);
}

}  // namespace

absl::StatusOr<int64_t> EmitLoops(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  if (root->Is(Opcode::Tuple)) return SeveralResults(fusion, root);
  const Shape& s = root->shape();
  // Transposes: blocks of both orders keep cache lines whole. Smaller arrays stay in the first cache anyway.
  constexpr int64_t kWorthBlocks = 4096;
  if (auto blocked = TransposedOperand(fusion.f, root); blocked >= 0 && s.ElementCount() >= kWorthBlocks)
    return BlockedLoops(fusion, root, blocked);
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
