// Fusions that write a part of their result: updates in place, scatters, concatenations.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "llvm/IR/InlineAsm.h"

namespace kiln::cpu {
namespace {

// The elements of `array` from dimension `d` inwards, at `at` of the dimensions before, to where `d` is `base`;
// in line, or by a call of memcpy.
void CopyRow(FusionBody& fusion, const Shape& from, llvm::Value* array, const std::vector<llvm::Value*>& at, int64_t d,
             int64_t base, const Shape& to, bool in_line) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const int64_t width = from.ByteSize() / from.ElementCount();
  int64_t row = 1;
  for (int64_t k = d; k < from.rank(); ++k) row *= from.dim(k);
  Index target{at};
  target.dims[d] = ir.I64(base);
  llvm::Type* byte = ir.b.getInt8Ty();
  auto place = [&](llvm::Value* array, const Shape& shape, const Index& index) {
    return ir.b.CreateInBoundsGEP(byte, array, ir.Mul(elements.Offset(shape, index), width));
  };
  llvm::Value *out = place(body.results[0], to, target), *in = place(array, from, Index{at});
  if (in_line) {
    const llvm::MaybeAlign align(static_cast<uint64_t>(std::min<int64_t>(width, 8)));
    ir.b.CreateMemCpy(out, align, in, align, static_cast<uint64_t>(row * width));
    return;
  }
  llvm::Type* ptr = ir.b.getPtrTy();
  const auto memcpy =
      ir.module.getOrInsertFunction("memcpy", llvm::FunctionType::get(ptr, {ptr, ptr, ir.b.getInt64Ty()}, false));
  ir.b.CreateCall(memcpy, {out, in, ir.I64(row * width)})->addFnAttr(llvm::Attribute::NoBuiltin);
}

}  // namespace

absl::StatusOr<int64_t> EmitUpdate(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape &s = root->shape(), &u = root->operand(1)->shape();
  std::vector<llvm::Value*> start;
  for (int64_t d = 0; d < s.rank(); ++d) {
    ASSIGN_OR_RETURN(llvm::Value * v, elements.ClampedStart(root->operand(2 + d), Index{}, s.dim(d), u.dim(d)));
    start.push_back(v);
  }
  const Ints order = UsefulFirst(u.dims(), LoopOrder(s));
  RETURN_IF_ERROR(Nest(
      fusion, u.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        ASSIGN_OR_RETURN(Val v, elements.Emit(root->operand(1), IndexIn(u, at)));
        Index to{at};
        for (int64_t d = 0; d < s.rank(); ++d) to.dims[d] = ir.Add(at[d], start[d]);
        ir.Store(s.type(), v, body.results[0], elements.Offset(s, to));
        return absl::OkStatus();
      },
      true));
  return Units(u.dims(), order);
}

absl::StatusOr<int64_t> EmitScatter(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const std::vector<Shape> outs = Leaves(root->shape());
  const ScatterPlan plan(root);
  if (!plan.fits) return 1;
  const size_t n = plan.arrays;
  const Shape& u = plan.updates;
  std::vector<llvm::Value*> at(u.rank(), ir.I64(0));
  absl::Status status;
  std::function<void(size_t)> windows, batches;
  ScatterPlan::Start start;
  auto element = [&] {
    if (!status.ok()) return;
    Index x{start.dims};
    for (size_t q = 0; q < plan.to.size(); ++q)
      x.dims[plan.to[q]] = ir.Add(x.dims[plan.to[q]], at[plan.window_dims[q]]);
    llvm::Value* off = elements.Offset(plan.target, x);
    std::vector<Val> args;
    for (size_t q = 0; q < n; ++q) args.push_back(ir.Load(outs[q].type(), body.results[q], off));
    for (size_t q = 0; q < n; ++q) {
      auto v = elements.Emit(root->operand(static_cast<int64_t>(n + 1 + q)), Index{at});
      if (!v.ok()) {
        status = v.status();
        return;
      }
      args.push_back(*v);
    }
    auto r = elements.Apply(**root->attrs().to_apply, args);
    if (!r.ok()) {
      status = r.status();
      return;
    }
    for (size_t q = 0; q < n; ++q) ir.Store(outs[q].type(), (*r)[q], body.results[q], off);
  };
  windows = [&](size_t q) {
    if (q == plan.window_dims.size()) return element();
    const int64_t extent = u.dim(plan.window_dims[q]);
    const auto inner = [&](llvm::Value* i) {
      at[plan.window_dims[q]] = i;
      windows(q + 1);
    };
    if (q + 1 == plan.window_dims.size()) return ir.VectorLoop(extent, inner, true);
    ir.Loop(ir.I64(0), ir.I64(extent), 1, inner);
  };
  batches = [&](size_t q) {
    if (q < plan.batch_dims.size()) {
      ir.Loop(ir.I64(0), ir.I64(u.dim(plan.batch_dims[q])), 1, [&](llvm::Value* i) {
        at[plan.batch_dims[q]] = i;
        batches(q + 1);
      });
      return;
    }
    std::vector<llvm::Value*> batch;
    for (int64_t d : plan.batch_dims) batch.push_back(at[d]);
    auto found = plan.StartOf(elements, batch);
    if (!found.ok()) {
      status = found.status();
      return;
    }
    start = *found;
    ir.If(start.inside, [&] { windows(0); });
  };
  batches(0);
  RETURN_IF_ERROR(status);
  return 1;
}

// True, which LLVM does not know.
llvm::Value* OpaqueTrue(Ir& ir) {
  llvm::Type* type = ir.b.getInt32Ty();
  llvm::InlineAsm* same = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=r,0", true);
  return ir.b.CreateICmpNE(ir.b.CreateCall(same, {ir.b.getInt32(1)}), ir.b.getInt32(0));
}

// Whether a concatenation puts few elements side by side, as coordinates of points.
bool Interleaves(const Instruction* root) {
  constexpr int64_t kMost = 8;
  const Shape& s = root->shape();
  const int64_t last = s.rank() - 1;
  return (*root->attrs().dimensions)[0] == last && s.HasDefaultLayout() && s.dim(last) <= kMost &&
         s.ElementCount() > s.dim(last);
}

// One loop that computes the elements of a row; vectors of them are shuffled into place.
absl::StatusOr<int64_t> EmitInterleaved(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  const Shape& s = root->shape();
  const size_t last = static_cast<size_t>(s.rank() - 1);
  Ints order = LoopOrder(s);
  order.pop_back();
  order = UsefulFirst(s.dims(), order);
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        std::vector<Val> values;
        for (const Instruction* o : root->operands())
          for (int64_t k = 0; k < o->shape().dim(static_cast<int64_t>(last)); ++k) {
            at[last] = ir.I64(k);
            ASSIGN_OR_RETURN(Val v, fusion.elements.Emit(o, IndexIn(o->shape(), at)));
            values.push_back(v);
          }
        for (size_t k = 0; k < values.size(); ++k) {
          at[last] = ir.I64(static_cast<int64_t>(k));
          ir.Store(s.type(), values[k], fusion.body.results[0], fusion.elements.Offset(s, Index{at}));
        }
        return absl::OkStatus();
      },
      true));
  return Units(s.dims(), order);
}

// Whether lines of the caches have elements of several operands, and the result is too large to stay there until the
// next one comes.
bool MixesLines(const Instruction* root) {
  constexpr int64_t kMostCuts = 12, kShortRun = 512, kStays = 1 << 18;  // bytes
  const Shape& s = root->shape();
  if (!s.HasDefaultLayout() || s.ByteSize() < kStays || root->operand_count() > kMostCuts) return false;
  const auto d = static_cast<size_t>((*root->attrs().dimensions)[0]);
  return std::any_of(root->operands().begin(), root->operands().end(), [&](const Instruction* o) {
    return o->shape().dim(static_cast<int64_t>(d)) * s.Strides()[d] * ByteWidth(s.type()) < kShortRun;
  });
}

absl::StatusOr<int64_t> EmitConcatenate(FusionBody& fusion, const Instruction* root) {
  if (Interleaves(root)) return EmitInterleaved(fusion, root);
  if (MixesLines(root)) return EmitLoops(fusion, root);
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = root->shape();
  const int64_t d = (*root->attrs().dimensions)[0];
  int64_t base = 0;
  // Units: the first dimension that all operands share.
  int64_t unit = -1;
  for (int64_t k = 0; k < d && unit < 0; ++k)
    if (s.dim(k) > 1) unit = k;
  Ints order;
  if (unit >= 0) order.push_back(unit);
  for (int64_t k = 0; k < s.rank(); ++k)
    if (k != unit) order.push_back(k);
  Ints outer;
  for (int64_t k : order)
    if (k < d) outer.push_back(k);
  // More pieces than that in a row, unrolled, would keep LLVM's scheduler busy for seconds: it takes the square of a
  // block's instructions.
  constexpr int64_t kMostInline = 64;
  // Whole rows of an array that is there already: bytes move as they lie.
  const auto stored = [&](const Instruction* o) -> const Instruction* {
    const Instruction* array = o;
    while ((array->Is(Opcode::Bitcast) || array->Is(Opcode::Reshape)) && array->shape().HasDefaultLayout() &&
           array->operand(0)->shape().type() == o->shape().type())
      array = array->operand(0);
    const bool rows = array->Is(Opcode::Parameter) && s.HasDefaultLayout() && o->shape().HasDefaultLayout() &&
                      array->shape().HasDefaultLayout() && o->shape().ElementCount() > 0;
    return rows ? array : nullptr;
  };
  const auto piece = [&](const Instruction* o, const Instruction* rows) -> absl::Status {
    const auto row = [&](const std::vector<llvm::Value*>& at) -> absl::Status {
      CopyRow(fusion, o->shape(), body.operands[*rows->attrs().parameter_number], at, d, base, s,
              root->operand_count() <= kMostInline);
      return absl::OkStatus();
    };
    const auto element = [&](const std::vector<llvm::Value*>& at) -> absl::Status {
      ASSIGN_OR_RETURN(Val v, elements.Emit(o, IndexIn(o->shape(), at)));
      Index to{at};
      to.dims[d] = ir.Add(at[d], ir.I64(base));
      ir.Store(s.type(), v, body.results[0], elements.Offset(s, to));
      return absl::OkStatus();
    };
    const Ints& dims = o->shape().dims();
    if (const Cuts cuts = CutsOf(fusion.f, {o}); !rows && !cuts.empty())
      RETURN_IF_ERROR(NestBetween(fusion, dims, UsefulFirst(dims, order), cuts, element, unit >= 0));
    else
      RETURN_IF_ERROR(rows ? Nest(fusion, dims, outer, row, true, unit >= 0)
                           : Nest(fusion, dims, order, element, true, unit >= 0));
    base += o->shape().dim(d);
    return absl::OkStatus();
  };
  absl::Status status;
  for (const Instruction* o : root->operands()) {
    const Instruction* rows = stored(o);
    if (rows || root->operand_count() <= kMostInline)
      status = piece(o, rows);
    else  // in a block of its own
      ir.If(OpaqueTrue(ir), [&] { status = piece(o, nullptr); });
    RETURN_IF_ERROR(status);
  }
  return unit >= 0 ? s.dim(unit) : 1;
}

}  // namespace kiln::cpu
