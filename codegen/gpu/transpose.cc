// Transposes through shared memory: both the reads and the writes of a warp lie side by side.
#include <algorithm>

#include "codegen/elemental/element.h"
#include "codegen/elemental/own_place.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kTile = 32, kRows = 8;  // a block of kTile x kRows threads moves a tile of kTile x kTile

struct Turn {
  const Instruction* transpose = nullptr;
  int64_t other = 0, minor = 0;  // output dimensions: the operand's minor one, and the output's own
};

// The first transpose of the loop's shape that moves the minor dimension.
Turn Find(const Instruction* root, const std::vector<const Instruction*>& needed) {
  Turn t;
  if (!root->shape().IsArray() || !root->shape().HasDefaultLayout() || root->shape().rank() < 2) return t;
  const int64_t minor = MinorDim(root->shape());
  for (const Instruction* i : needed) {
    if (!i->Is(Opcode::Transpose) || i->shape().dims() != root->shape().dims()) continue;
    const Ints& p = *i->attrs().dimensions;
    const int64_t other = std::find(p.begin(), p.end(), MinorDim(i->operand(0)->shape())) - p.begin();
    if (other != minor) return {i, other, minor};
  }
  return t;
}

// The transpose that is worth tiles, or none.
Turn TurnOf(const Instruction* root) {
  const std::vector<const Instruction*> needed = NeededFor({root});
  Turn turn = Find(root, needed);
  const Shape& s = root->shape();
  constexpr int64_t kWorthTiles = 4096;
  constexpr size_t kMostInstructions = 40;
  if (turn.transpose && (s.ElementCount() < kWorthTiles || s.dim(turn.other) < 4 || s.dim(turn.minor) < 4 ||
                         needed.size() > kMostInstructions || IsComplex(turn.transpose->shape().type()) ||
                         !ReadsAtOwnPlaceOnly(root, turn.transpose)))
    turn.transpose = nullptr;
  return turn;
}

}  // namespace

bool TurnsTiles(const Instruction* root) { return TurnOf(root).transpose != nullptr; }

absl::StatusOr<bool> EmitTransposedTiles(Body& body, const Instruction* root) {
  const Turn turn = TurnOf(root);
  if (!turn.transpose) return false;
  const Shape& s = root->shape();
  const PrimitiveType t = turn.transpose->shape().type();
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  // Blocks: tiles of the two dimensions, and every position of the others.
  Ints extents, order;
  for (int64_t d = 0; d < s.rank(); ++d) {
    extents.push_back(d == turn.other || d == turn.minor ? (s.dim(d) + kTile - 1) / kTile : s.dim(d));
    order.push_back(d);
  }
  body.threads = kTile * kRows;
  body.blocks = 1;
  for (int64_t e : extents) body.blocks *= e;
  const std::vector<llvm::Value*> tile = Delinearize(ir, body.grid.Block(), extents, order);
  llvm::Value* column = b.CreateURem(body.grid.Thread(), ir.I64(kTile));
  llvm::Value* row = b.CreateUDiv(body.grid.Thread(), ir.I64(kTile));
  // One more column, so that a column of the tile is spread over the banks.
  llvm::Type* held = ir.RegType(t)->isIntegerTy(1) ? b.getInt8Ty() : ir.RegType(t);
  llvm::Value* shared = body.grid.Shared(held, kTile * (kTile + 1));
  ElementEmitter elements(ir, body.operands);
  absl::Status status;
  // `across` walks the lanes, `down` the rows of threads; where both lie in the array, `visit` is called.
  const auto each = [&](int64_t across, int64_t down, const std::function<void(const Index&, llvm::Value*)>& visit) {
    for (int64_t step = 0; step < kTile; step += kRows) {
      Index at{tile};
      llvm::Value* y = ir.Add(row, ir.I64(step));
      at.dims[across] = ir.Add(ir.Mul(tile[across], kTile), column);
      at.dims[down] = ir.Add(ir.Mul(tile[down], kTile), y);
      llvm::Value* inside = b.getTrue();
      for (int64_t d : {across, down})
        if (s.dim(d) % kTile) inside = b.CreateAnd(inside, b.CreateICmpULT(at.dims[d], ir.I64(s.dim(d))));
      ir.If(inside, [&] {
        if (status.ok()) visit(at, y);
      });
    }
  };
  each(turn.other, turn.minor, [&](const Index& at, llvm::Value* y) {
    auto v = elements.Emit(turn.transpose, at);
    if (!v.ok()) {
      status = v.status();
      return;
    }
    llvm::Value* x = v->re->getType() == held ? v->re : b.CreateZExt(v->re, held);
    b.CreateStore(x, b.CreateInBoundsGEP(held, shared, ir.Add(ir.Mul(y, kTile + 1), column)));
  });
  RETURN_IF_ERROR(status);
  body.grid.Barrier();
  each(turn.minor, turn.other, [&](const Index& at, llvm::Value* y) {
    llvm::Value* x = b.CreateLoad(held, b.CreateInBoundsGEP(held, shared, ir.Add(ir.Mul(column, kTile + 1), y)));
    if (held != ir.RegType(t)) x = b.CreateTrunc(x, ir.RegType(t));
    ElementEmitter after(ir, body.operands);
    after.Preset(turn.transpose, Val{x});
    auto v = after.Emit(root, at);
    if (v.ok())
      ir.Store(s.type(), *v, body.results[0], after.Offset(s, at));
    else
      status = v.status();
  });
  RETURN_IF_ERROR(status);
  return true;
}

}  // namespace kiln::gpu
