// Fusions around windows: running reductions, reductions of several arrays.
#include "codegen/cpu/fusion.h"
#include "codegen/elemental/reduced.h"
#include "compiler/hlo/unrounded_sums.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {

namespace {

// `group` for each whole group of `count` from `low` on; where the rest begins.
llvm::Value* InGroups(Ir& ir, llvm::Value* low, llvm::Value* high, int64_t count,
                      const std::function<void(llvm::Value*)>& group) {
  llvm::Value* rest = ir.b.CreateSRem(ir.b.CreateSub(high, low), ir.I64(count));
  llvm::Value* even = ir.b.CreateSub(high, rest);
  ir.Loop(low, even, count, group);
  return even;
}

}  // namespace

absl::StatusOr<int64_t> EmitScan(FusionBody& fusion, const Instruction* root, int64_t dim) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape& s = root->shape();
  const bool backward = (*root->attrs().window)[dim].pad_low == 0;
  ASSIGN_OR_RETURN(Val init, elements.Emit(root->operand(1), Index{}));
  const int64_t minor = MinorDim(s);
  Ints outer;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (d != dim && s.dim(d) != 1 && (d != minor || dim == minor)) outer.push_back(d);
  const bool strip = dim != minor;
  constexpr int64_t kStripWidth = 2048;  // accumulators lie on the stack, in the first cache
  const int64_t row = strip ? s.dim(minor) : 1, width = std::min(row, kStripWidth);
  const int64_t strips = (row + width - 1) / width;
  // Each element of a line waits for the one before: lines go side by side, no more of them than ways of a cache, which
  // lines whose distance is a power of 2 share with their results.
  constexpr int64_t kLines = 4;
  const bool beside = !strip && !outer.empty();
  const Slots acc(ir, s.type(), beside ? kLines : width);
  const int64_t many = beside && ir.on_overrun.empty() ? LinesTogether(ir.level, s, outer.back(), dim) : 0;
  const int64_t unit = outer.size() == 1 ? std::max<int64_t>(1, many) : 1;  // lines of a unit
  llvm::Value* first = ir.I64(0);
  std::vector<llvm::Value*> at(s.rank(), ir.I64(0));
  absl::Status status;
  auto visit = [&](llvm::Value* j) {
    if (!status.ok()) return;
    if (strip) at[minor] = ir.Add(first, j);
    const Index x{at};
    auto v = elements.Emit(root->operand(0), x);
    if (!v.ok()) {
      status = v.status();
      return;
    }
    auto r = Combine(elements, root, {acc.Get(j), *v});
    if (!r.ok()) {
      status = r.status();
      return;
    }
    acc.Put(j, (*r)[0]);
    if (SumsUnrounded(root)) (*r)[0].re = ir.Round(s.type(), (*r)[0].re);
    ir.Store(s.type(), (*r)[0], body.results[0], elements.Offset(s, x));
  };
  auto line = [&](llvm::Value* piece) {
    first = ir.Mul(piece, width);
    llvm::Value* count = ir.I64(width);
    if (row % width)
      count = ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, count, ir.b.CreateSub(ir.I64(row), first));
    ir.Loop(ir.I64(0), count, 1, [&](llvm::Value* j) { acc.Put(j, init); });
    ir.Loop(ir.I64(0), ir.I64(s.dim(dim)), 1, [&](llvm::Value* k) {
      at[dim] = backward ? ir.b.CreateSub(ir.I64(s.dim(dim) - 1), k) : k;
      ir.Loop(ir.I64(0), count, 1, visit, strip);
    });
  };
  const auto lines = [&](size_t row_dim, llvm::Value* first_line, int64_t count) {
    const auto each = [&](const std::function<void(llvm::Value*)>& body) {
      for (int64_t k = 0; k < count; ++k) {
        at[row_dim] = ir.Add(first_line, ir.I64(k));
        body(ir.I64(k));
      }
    };
    each([&](llvm::Value* j) { acc.Put(j, init); });
    ir.Loop(ir.I64(0), ir.I64(s.dim(dim)), 1, [&](llvm::Value* k) {
      at[dim] = backward ? ir.b.CreateSub(ir.I64(s.dim(dim) - 1), k) : k;
      each(visit);
    });
  };
  std::function<void(size_t)> level = [&](size_t k) {
    if (beside && k + 1 == outer.size()) {
      llvm::Value *low = ir.I64(0), *high = ir.I64(s.dim(outer[k]));
      if (k == 0) {
        low = ir.Mul(body.begin, unit);
        high = ir.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.Mul(body.end, unit), high);
      }
      if (many > 0)
        low = InGroups(ir, low, high, many, [&](llvm::Value* i) {
          status.Update(EmitScanOfLines(fusion, root, {dim, static_cast<int64_t>(outer[k]), backward, init}, i, at));
        });
      low = InGroups(ir, low, high, kLines, [&](llvm::Value* i) { lines(outer[k], i, kLines); });
      ir.Loop(low, high, 1, [&](llvm::Value* i) { lines(outer[k], i, 1); });
      return;
    }
    // Strips are units where nothing lies around them.
    if (k == outer.size()) {
      const bool units = outer.empty() && strips > 1;
      return ir.Loop(units ? body.begin : ir.I64(0), units ? body.end : ir.I64(strips), 1, line);
    }
    ir.Loop(k ? ir.I64(0) : body.begin, k ? ir.I64(s.dim(outer[k])) : body.end, 1, [&](llvm::Value* i) {
      at[outer[k]] = i;
      level(k + 1);
    });
  };
  level(0);
  RETURN_IF_ERROR(status);
  return outer.empty() ? strips : (s.dim(outer[0]) + unit - 1) / unit;
}

absl::StatusOr<int64_t> EmitVariadicWindow(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const std::vector<Shape> outs = Leaves(root->shape());
  const Ints order = UsefulFirst(outs[0].dims(), LoopOrder(outs[0]));
  RETURN_IF_ERROR(Nest(
      fusion, outs[0].dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        ASSIGN_OR_RETURN(std::vector<Val> values, elements.EmitWindow(root, Index{at}));
        for (size_t k = 0; k < outs.size(); ++k)
          ir.Store(outs[k].type(), values[k], body.results[k], elements.Offset(outs[k], Index{at}));
        return absl::OkStatus();
      },
      false));
  return Units(outs[0].dims(), order);
}

}  // namespace kiln::cpu
