// Fusions around windows: running reductions, reductions of several arrays, select-and-scatter.
#include "absl/strings/str_cat.h"
#include "codegen/cpu/fusion.h"

namespace kiln::cpu {

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
  const int64_t width = strip ? s.dim(minor) : 1;
  constexpr int64_t kWidestRow = 16384;  // accumulators of a row lie on the stack: 128 KiB of f64
  if (width > kWidestRow)
    return ErrorAt(
        root, absl::StrCat("a running reduction over rows of ", width, " is not supported (at most ", kWidestRow, ")"),
        absl::StatusCode::kUnimplemented);
  const Slots acc(ir, s.type(), width);
  std::vector<llvm::Value*> at(s.rank(), ir.I64(0));
  absl::Status status;
  auto visit = [&](llvm::Value* j) {
    if (!status.ok()) return;
    if (strip) at[minor] = j;
    const Index x{at};
    auto v = elements.Emit(root->operand(0), x);
    if (!v.ok()) {
      status = v.status();
      return;
    }
    // Every position is a result, so each step rounds as the type does.
    auto r = elements.Apply(**root->attrs().to_apply, {acc.Get(j), *v});
    if (!r.ok()) {
      status = r.status();
      return;
    }
    acc.Put(j, (*r)[0]);
    ir.Store(s.type(), (*r)[0], body.results[0], elements.Offset(s, x));
  };
  auto line = [&] {
    ir.Loop(ir.I64(0), ir.I64(width), 1, [&](llvm::Value* j) { acc.Put(j, init); });
    ir.Loop(ir.I64(0), ir.I64(s.dim(dim)), 1, [&](llvm::Value* k) {
      at[dim] = backward ? ir.b.CreateSub(ir.I64(s.dim(dim) - 1), k) : k;
      ir.Loop(ir.I64(0), ir.I64(width), 1, visit, strip);
    });
  };
  std::function<void(size_t)> level = [&](size_t k) {
    if (k == outer.size()) return line();
    ir.Loop(k ? ir.I64(0) : body.begin, k ? ir.I64(s.dim(outer[k])) : body.end, 1, [&](llvm::Value* i) {
      at[outer[k]] = i;
      level(k + 1);
    });
  };
  level(0);
  RETURN_IF_ERROR(status);
  return outer.empty() ? 1 : s.dim(outer[0]);
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

absl::StatusOr<int64_t> EmitSelectAndScatter(FusionBody& fusion, const Instruction* root) {
  Ir& ir = fusion.ir;
  Body& body = fusion.body;
  ElementEmitter& elements = fusion.elements;
  const Shape &s = root->shape(), &u = root->operand(1)->shape();
  const attr::Win w = root->attrs().window.value_or(attr::Win(s.rank()));
  llvm::IRBuilder<>& b = ir.b;
  ASSIGN_OR_RETURN(Val init, elements.Emit(root->operand(2), Index{}));
  ir.Loop(
      ir.I64(0), ir.I64(s.ElementCount()), 1, [&](llvm::Value* k) { ir.Store(s.type(), init, body.results[0], k); },
      true);
  const Slots best(ir, s.type(), 1);
  llvm::Value* best_at = ir.Alloca(b.getInt64Ty(), 1, 8);
  RETURN_IF_ERROR(Nest(
      fusion, u.dims(), LoopOrder(u),
      [&](std::vector<llvm::Value*> o) -> absl::Status {
        absl::Status status;
        b.CreateStore(ir.I64(-1), best_at);
        std::vector<llvm::Value*> at(s.rank());
        std::function<void(int64_t, llvm::Value*)> nest = [&](int64_t d, llvm::Value* inside) {
          if (d == s.rank()) {
            ir.If(inside, [&] {
              auto v = elements.Emit(root->operand(0), Index{at});
              if (!v.ok()) {
                status = v.status();
                return;
              }
              llvm::Value* empty = b.CreateICmpSLT(b.CreateLoad(b.getInt64Ty(), best_at), ir.I64(0));
              auto keep = elements.Apply(**root->attrs().select, {best.Get(ir.I64(0)), *v});
              if (!keep.ok()) {
                status = keep.status();
                return;
              }
              ir.If(b.CreateOr(empty, b.CreateNot((*keep)[0].re)), [&] {
                best.Put(ir.I64(0), *v);
                b.CreateStore(elements.Offset(s, Index{at}), best_at);
              });
            });
            return;
          }
          auto step = [&](llvm::Value* k) {
            llvm::Value* p = b.CreateSub(b.CreateAdd(ir.Mul(o[d], w[d].stride), k), ir.I64(w[d].pad_low));
            at[d] = p;
            llvm::Value* ok =
                w[d].pad_low || w[d].pad_high ? b.CreateAnd(inside, b.CreateICmpULT(p, ir.I64(s.dim(d)))) : inside;
            nest(d + 1, ok);
          };
          ir.Loop(ir.I64(0), ir.I64(w[d].size), 1, step);
        };
        best.Put(ir.I64(0), init);
        nest(0, b.getTrue());
        RETURN_IF_ERROR(status);
        llvm::Value* where = b.CreateLoad(b.getInt64Ty(), best_at);
        ir.If(b.CreateICmpSGE(where, ir.I64(0)), [&] {
          auto v = elements.Emit(root->operand(1), Index{o});
          if (!v.ok()) {
            status = v.status();
            return;
          }
          auto r = elements.Apply(**root->attrs().scatter, {ir.Load(s.type(), body.results[0], where), *v});
          if (!r.ok())
            status = r.status();
          else
            ir.Store(s.type(), (*r)[0], body.results[0], where);
        });
        return status;
      },
      false, false));
  return 1;
}

}  // namespace kiln::cpu
