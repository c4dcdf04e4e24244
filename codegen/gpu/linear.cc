// Factorisations and triangular systems in kernels of kiln's own.
#include "codegen/elemental/library.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

// A matrix at `base`, element (row, column) at row * `n` + column, or turned.
struct Matrix {
  Ir& ir;
  PrimitiveType type;
  llvm::Value *array, *base;
  int64_t n;
  bool turned;

  llvm::Value* At(llvm::Value* row, llvm::Value* column) const {
    return ir.Add(base, turned ? ir.Add(ir.Mul(column, n), row) : ir.Add(ir.Mul(row, n), column));
  }
  llvm::Value* Get(llvm::Value* row, llvm::Value* column) const { return ir.Load(type, array, At(row, column)).re; }
  void Put(llvm::Value* v, llvm::Value* row, llvm::Value* column) const {
    ir.Store(type, Val{v}, array, At(row, column));
  }
};

absl::Status CheckReal(const Instruction* i) {
  const PrimitiveType t = i->shape().type();
  if (t == PrimitiveType::F32 || t == PrimitiveType::F64) return absl::OkStatus();
  return ErrorAt(i, absl::StrCat(TextOf(t), " has no kernel"), absl::StatusCode::kUnimplemented);
}

}  // namespace

// A block for each matrix: the columns of the factor one after the other, the rest of the matrix updated by each.
absl::Status EmitCholesky(Body& body) {
  RETURN_IF_ERROR(CheckReal(body.i));
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Shape& s = body.i->shape();
  const int64_t n = s.dims().back();
  if (s.ElementCount() == 0) return absl::OkStatus();
  const PrimitiveType t = s.type();
  constexpr int64_t kMostThreads = 256;
  body.blocks = s.ElementCount() / (n * n);
  body.threads = std::min<int64_t>(kMostThreads, (n * n + kWarp - 1) / kWarp * kWarp);
  llvm::Value *thread = body.grid.Thread(), *base = ir.Mul(body.grid.Block(), n * n);
  // The factor is lower; an upper one is its transpose.
  const bool turned = !body.i->attrs().lower.value_or(false);
  const Matrix a{ir, t, body.operands[0], base, n, turned}, l{ir, t, body.results[0], base, n, turned};
  ir.Loop(thread, ir.I64(n * n), body.threads, [&](llvm::Value* e) {
    llvm::Value *row = b.CreateUDiv(e, ir.I64(n)), *column = b.CreateURem(e, ir.I64(n));
    llvm::Value* zero = ir.Constant(t, Element{}).re;
    l.Put(ir.Select(b.CreateICmpULE(column, row), a.Get(row, column), zero), row, column);
  });
  body.grid.Barrier();
  ir.Loop(ir.I64(0), ir.I64(n), 1, [&](llvm::Value* k) {
    llvm::Value* pivot = l.Get(k, k);
    llvm::Value* nan = llvm::ConstantFP::getNaN(pivot->getType());
    // What is not positive, or no number, spoils all that follows.
    llvm::Value* good = b.CreateFCmpOGT(pivot, llvm::ConstantFP::get(pivot->getType(), 0));
    llvm::Value* root = ir.Select(good, b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, pivot), nan);
    body.grid.Barrier();
    ir.If(b.CreateICmpEQ(thread, ir.I64(0)), [&] { l.Put(root, k, k); });
    llvm::Value* below = ir.Add(k, ir.I64(1));
    ir.Loop(ir.Add(below, thread), ir.I64(n), body.threads,
            [&](llvm::Value* row) { l.Put(b.CreateFDiv(l.Get(row, k), root), row, k); });
    body.grid.Barrier();
    llvm::Value* rest = b.CreateSub(ir.I64(n), below);
    ir.Loop(thread, b.CreateMul(rest, rest), body.threads, [&](llvm::Value* e) {
      llvm::Value *row = ir.Add(below, b.CreateUDiv(e, rest)), *column = ir.Add(below, b.CreateURem(e, rest));
      ir.If(b.CreateICmpULE(column, row), [&] {
        l.Put(b.CreateFSub(l.Get(row, column), b.CreateFMul(l.Get(row, k), l.Get(column, k))), row, column);
      });
    });
    body.grid.Barrier();
  });
  return absl::OkStatus();
}

// Blocks of a few right-hand sides: an unknown after the other is taken out of all that follow it. The array of results
// holds what is left of the right-hand sides; the diagonal divides at the end.
absl::Status EmitTriangularSolve(Body& body) {
  RETURN_IF_ERROR(CheckReal(body.i));
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Attributes& at = body.i->attrs();
  const Shape& s = body.i->shape();
  const PrimitiveType t = s.type();
  const bool left = at.left_side.value_or(false), unit = at.unit_diagonal.value_or(false);
  const bool turned = at.transpose_a.value_or(TransposeA::NO_TRANSPOSE) != TransposeA::NO_TRANSPOSE;
  const int64_t rows = s.dim(s.rank() - 2), columns = s.dims().back(), n = left ? rows : columns,
                sides = left ? columns : rows;
  if (s.ElementCount() == 0) return absl::OkStatus();
  // Unknowns in the order in which they can be solved.
  const bool ascending = (at.lower.value_or(false) != turned) == left;
  const auto unknown = [&](llvm::Value* step) { return ascending ? step : b.CreateSub(ir.I64(n - 1), step); };
  constexpr int64_t kSides = 8, kEach = 32;  // of a block; threads of each
  const int64_t chunks = (sides + kSides - 1) / kSides;
  body.threads = kSides * kEach;
  body.blocks = s.ElementCount() / (rows * columns) * chunks;
  // Neighbouring threads have neighbouring elements.
  llvm::Value *thread = body.grid.Thread(), *block = body.grid.Block();
  llvm::Value *matrix = b.CreateUDiv(block, ir.I64(chunks)), *chunk = b.CreateURem(block, ir.I64(chunks));
  const auto own = [&](bool outer, int64_t inner) {
    return outer ? b.CreateUDiv(thread, ir.I64(inner)) : b.CreateURem(thread, ir.I64(inner));
  };
  llvm::Value *lane = own(left, left ? kSides : kEach), *of_chunk = own(!left, left ? kSides : kEach);
  llvm::Value *side = ir.Add(ir.Mul(chunk, kSides), of_chunk), *exists = b.CreateICmpULT(side, ir.I64(sides));
  side = b.CreateSelect(exists, side, ir.I64(sides - 1));
  const Matrix a{ir, t, body.operands[0], ir.Mul(matrix, n * n), n, turned};
  llvm::Value* first = ir.Add(ir.Mul(matrix, rows * columns), ir.Mul(side, left ? 1 : columns));
  const auto where = [&](llvm::Value* k) { return ir.Add(first, ir.Mul(k, left ? columns : 1)); };
  const auto rest = [&](llvm::Value* k) { return ir.Load(t, body.results[0], where(k)).re; };
  const auto solved = [&](llvm::Value* k) { return unit ? rest(k) : b.CreateFDiv(rest(k), a.Get(k, k)); };
  const auto put = [&](llvm::Value* v, llvm::Value* k) { ir.Store(t, Val{v}, body.results[0], where(k)); };
  // The thread's unknowns from step `from` on.
  const auto each = [&](llvm::Value* from, const std::function<void(llvm::Value*)>& visit) {
    ir.If(exists, [&] { ir.Loop(ir.Add(from, lane), ir.I64(n), kEach, visit); });
  };
  each(ir.I64(0), [&](llvm::Value* k) { put(ir.Load(t, body.operands[1], where(k)).re, k); });
  body.grid.Barrier();
  ir.Loop(ir.I64(0), ir.I64(n), 1, [&](llvm::Value* step) {
    llvm::Value *k = unknown(step), *x = solved(k);
    each(ir.Add(step, ir.I64(1)), [&](llvm::Value* later) {
      llvm::Value* q = unknown(later);
      put(b.CreateFSub(rest(q), b.CreateFMul(left ? a.Get(q, k) : a.Get(k, q), x)), q);
    });
    body.grid.Barrier();
  });
  if (!unit) each(ir.I64(0), [&](llvm::Value* k) { put(solved(k), k); });
  return absl::OkStatus();
}

}  // namespace kiln::gpu
