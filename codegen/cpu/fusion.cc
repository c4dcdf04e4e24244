// Kernels of fusions: the root decides the loops, the element emitter computes what they visit.
#include <algorithm>

#include "codegen/cpu/collapse.h"
#include "codegen/cpu/kernels.h"
#include "codegen/elemental/element.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class FusionShell {
 public:
  FusionShell(Body& body, const Computation& f) : body_(body), ir_(body.ir), f_(f), elements_(body.ir, body.operands) {}

  absl::StatusOr<int64_t> Run() {
    const Instruction* root = f_.root();
    switch (root->opcode()) {
      case Opcode::Reduce:
        return Reduce(root);
      case Opcode::DynamicUpdateSlice:
        return Update(root);
      case Opcode::Scatter:
        return Scatter(root);
      case Opcode::SelectAndScatter:
        return SelectAndScatter(root);
      case Opcode::Concatenate:
        return Concatenate(root);
      case Opcode::ReduceWindow:
        if (root->operand_count() > 2) return VariadicWindow(root);
        if (RunningDim(root) >= 0) return Scan(root, RunningDim(root));
        [[fallthrough]];
      default:
        return Loops(root);
    }
  }

 private:
  Index Linear(const Shape& shape, std::vector<llvm::Value*> dims) {
    Index x{std::move(dims)};
    if (shape.rank() == 1) x.linear = x.dims[0];
    return x;
  }

  // Loops over `dims` in `order` (outermost first); the first is limited to the kernel's units.
  absl::Status Nest(const Ints& dims, const Ints& order,
                    const std::function<absl::Status(std::vector<llvm::Value*>)>& body, bool parallel,
                    bool units = true) {
    absl::Status status;
    std::vector<llvm::Value*> at(dims.size(), ir_.I64(0));
    std::function<void(size_t)> level = [&](size_t k) {
      if (!status.ok()) return;
      if (k == order.size()) {
        status = body(at);
        return;
      }
      const int64_t d = order[k];
      const bool first = k == 0 && units;
      llvm::Value *from = first ? body_.begin : ir_.I64(0), *to = first ? body_.end : ir_.I64(dims[d]);
      ir_.Loop(
          from, to, 1,
          [&](llvm::Value* i) {
            at[d] = i;
            level(k + 1);
          },
          parallel && k + 1 == order.size());
    };
    level(0);
    return status;
  }

  static Ints LoopOrder(const Shape& s) {
    Layout l = s.LayoutOrDefault();
    return Ints(l.minor_to_major.rbegin(), l.minor_to_major.rend());
  }
  // Extents that the first loop of an order runs over.
  static int64_t Units(const Ints& dims, const Ints& order) { return order.empty() ? 1 : dims[order[0]]; }

  // A whole-element loop with extent-1 dimensions at the front moved inwards, so that the first loop has work to split.
  static Ints UsefulFirst(const Ints& dims, Ints order) {
    std::stable_partition(order.begin(), order.end(), [&](int64_t d) { return dims[d] != 1; });
    return order;
  }

  absl::StatusOr<int64_t> Loops(const Instruction* root) {
    if (root->Is(Opcode::Tuple)) return SeveralResults(root);
    const Shape& s = root->shape();
    Ints order = LoopOrder(s);
    // Transposes: blocks of both orders keep cache lines whole.
    if (auto blocked = TransposedOperand(root); blocked >= 0 && s.ElementCount() >= 4096)
      return BlockedLoops(root, blocked);
    order = UsefulFirst(s.dims(), order);
    RETURN_IF_ERROR(Nest(
        s.dims(), order,
        [&](std::vector<llvm::Value*> at) -> absl::Status {
          const Index x = Linear(s, at);
          ASSIGN_OR_RETURN(Val v, elements_.Emit(root, x));
          ir_.Store(s.type(), v, body_.results[0], elements_.Offset(s, x));
          return absl::OkStatus();
        },
        true));
    return Units(s.dims(), order);
  }

  // One loop for results of one shape. All are computed before any is stored: a result may lie where an operand lay.
  absl::StatusOr<int64_t> SeveralResults(const Instruction* tuple) {
    const Shape& s = tuple->operand(0)->shape();
    const Ints order = UsefulFirst(s.dims(), LoopOrder(s));
    RETURN_IF_ERROR(Nest(
        s.dims(), order,
        [&](std::vector<llvm::Value*> at) -> absl::Status {
          const Index x = Linear(s, at);
          std::vector<Val> values;
          for (const Instruction* o : tuple->operands()) {
            ASSIGN_OR_RETURN(Val v, elements_.Emit(o, x));
            values.push_back(v);
          }
          for (size_t k = 0; k < values.size(); ++k) {
            const Shape& leaf = tuple->operand(static_cast<int64_t>(k))->shape();
            ir_.Store(leaf.type(), values[k], body_.results[k], elements_.Offset(leaf, x));
          }
          return absl::OkStatus();
        },
        true));
    return Units(s.dims(), order);
  }

  // The output dimension that walks the operand's minor dimension in a fused transpose, or -1.
  int64_t TransposedOperand(const Instruction* root) {
    if (!root->shape().HasDefaultLayout() || root->shape().rank() < 2) return -1;
    for (const auto& i : f_.instructions()) {
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

  absl::StatusOr<int64_t> BlockedLoops(const Instruction* root, int64_t other) {
    const Shape& s = root->shape();
    int64_t minor = s.rank() - 1;
    while (minor > 0 && s.dim(minor) == 1) --minor;
    constexpr int64_t kBlock = 16;
    // Units: the blocks of `other` where it is the only outer dimension, else the first outer dimension.
    Ints outer;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (d != other && d != minor && s.dim(d) != 1) outer.push_back(d);
    const int64_t other_blocks = (s.dim(other) + kBlock - 1) / kBlock;
    std::vector<llvm::Value*> at(s.rank(), ir_.I64(0));
    absl::Status status;
    auto block = [&](llvm::Value* ob) {
      llvm::Value* o0 = ir_.Mul(ob, kBlock);
      llvm::Value* o1 =
          ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(o0, ir_.I64(kBlock)), ir_.I64(s.dim(other)));
      ir_.Loop(ir_.I64(0), ir_.I64(s.dim(minor)), kBlock, [&](llvm::Value* m0) {
        llvm::Value* m1 =
            ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(m0, ir_.I64(kBlock)), ir_.I64(s.dim(minor)));
        ir_.Loop(o0, o1, 1, [&](llvm::Value* o) {
          at[other] = o;
          ir_.Loop(
              m0, m1, 1,
              [&](llvm::Value* m) {
                at[minor] = m;
                if (!status.ok()) return;
                const Index x = Linear(s, at);
                auto v = elements_.Emit(root, x);
                if (!v.ok())
                  status = v.status();
                else
                  ir_.Store(s.type(), *v, body_.results[0], elements_.Offset(s, x));
              },
              true);
        });
      });
    };
    std::function<void(size_t)> level = [&](size_t k) {
      if (k == outer.size()) {
        if (outer.empty())
          ir_.Loop(body_.begin, body_.end, 1, block);
        else
          ir_.Loop(ir_.I64(0), ir_.I64(other_blocks), 1, block);
        return;
      }
      ir_.Loop(k == 0 ? body_.begin : ir_.I64(0), k == 0 ? body_.end : ir_.I64(s.dim(outer[k])), 1,
               [&](llvm::Value* i) {
                 at[outer[k]] = i;
                 level(k + 1);
               });
    };
    level(0);
    RETURN_IF_ERROR(status);
    return outer.empty() ? other_blocks : s.dim(outer[0]);
  }

  // ---- Reductions ----

  // The type an accumulator has: narrow floats are summed in f32, which is how they are held anyway.
  struct Slot {
    PrimitiveType type;
    llvm::Value* base;
    int64_t count;
  };
  Slot MakeSlot(PrimitiveType t, int64_t count) {
    return {t, ir_.Alloca(ir_.RegType(t), count * (IsComplex(t) ? 2 : 1)), count};
  }
  Val Get(const Slot& s, llvm::Value* k) {
    llvm::Type* ty = ir_.RegType(s.type);
    if (!IsComplex(s.type)) return {ir_.b.CreateLoad(ty, ir_.b.CreateInBoundsGEP(ty, s.base, k))};
    llvm::Value* e = ir_.Mul(k, 2);
    return {ir_.b.CreateLoad(ty, ir_.b.CreateInBoundsGEP(ty, s.base, e)),
            ir_.b.CreateLoad(ty, ir_.b.CreateInBoundsGEP(ty, s.base, ir_.Add(e, ir_.I64(1))))};
  }
  void Put(const Slot& s, llvm::Value* k, const Val& v) {
    llvm::Type* ty = ir_.RegType(s.type);
    llvm::Value* e = IsComplex(s.type) ? ir_.Mul(k, 2) : k;
    ir_.b.CreateStore(v.re, ir_.b.CreateInBoundsGEP(ty, s.base, e));
    if (v.im) ir_.b.CreateStore(v.im, ir_.b.CreateInBoundsGEP(ty, s.base, ir_.Add(e, ir_.I64(1))));
  }

  static std::vector<Shape> Leaves(const Shape& s) { return s.IsTuple() ? s.tuple() : std::vector<Shape>{s}; }

  absl::Status Combine(const Instruction* root, const std::vector<Slot>& acc, llvm::Value* at, const Index& x) {
    const size_t n = acc.size();
    std::vector<Val> args;
    for (const Slot& s : acc) args.push_back(Get(s, at));
    for (size_t k = 0; k < n; ++k) {
      ASSIGN_OR_RETURN(Val v, elements_.Emit(root->operand(static_cast<int64_t>(k)), x));
      args.push_back(v);
    }
    AllowReassociation(ir_, n == 1);
    auto r = CombineWide(**root->attrs().to_apply, args);
    AllowReassociation(ir_, false);
    if (!r.ok()) return r.status();
    for (size_t k = 0; k < n; ++k) Put(acc[k], at, (*r)[k]);
    return absl::OkStatus();
  }

  // A plain sum in a narrow float is accumulated unrounded in f32; anything else keeps its own rounding.
  absl::StatusOr<std::vector<Val>> CombineWide(const Computation& f, const std::vector<Val>& args) {
    const Instruction* r = f.root();
    const PrimitiveType t = r->shape().IsArray() ? r->shape().type() : PrimitiveType::F32;
    if (args.size() == 2 && IsFloat(t) && InfoOf(t).bits < 32 && r->operand_count() == 2 &&
        r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) && r->Is(Opcode::Add))
      return std::vector<Val>{Val{ir_.b.CreateFAdd(args[0].re, args[1].re)}};
    return elements_.Apply(f, args);
  }

  absl::StatusOr<int64_t> Reduce(const Instruction* root) {
    const Shape& in = root->operand(0)->shape();
    const std::vector<Shape> outs = Leaves(root->shape());
    const size_t n = outs.size();
    const Ints& rd = *root->attrs().dimensions;
    Ints kept, reduced;
    for (int64_t d = 0; d < in.rank(); ++d)
      (std::find(rd.begin(), rd.end(), d) != rd.end() ? reduced : kept).push_back(d);
    std::vector<Val> init;
    auto load_init = [&]() -> absl::Status {
      init.clear();
      for (size_t k = 0; k < n; ++k) {
        ASSIGN_OR_RETURN(Val v, elements_.Emit(root->operand(static_cast<int64_t>(n + k)), Index{}));
        init.push_back(v);
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(load_init());
    auto out_index = [&](const std::vector<llvm::Value*>& at) {
      Index o;
      for (int64_t d : kept) o.dims.push_back(at[d]);
      if (kept.size() == 1) o.linear = o.dims[0];
      return o;
    };
    auto store = [&](const std::vector<Slot>& acc, llvm::Value* at, const Index& o) {
      for (size_t k = 0; k < n; ++k) {
        Val v = Get(acc[k], at);
        ir_.Store(outs[k].type(), v, body_.results[k], elements_.Offset(outs[k], o));
      }
    };
    std::vector<llvm::Value*> at(in.rank(), ir_.I64(0));
    absl::Status status;
    // Minor dimension that is not 1.
    int64_t minor = in.rank() - 1;
    while (minor > 0 && in.dim(minor) == 1) --minor;
    const bool minor_kept = std::find(kept.begin(), kept.end(), minor) != kept.end() && in.dim(minor) >= 4;
    std::function<void(const Ints&, size_t, const std::function<void()>&)> nest =
        [&](const Ints& order, size_t k, const std::function<void()>& inner) {
          if (k == order.size()) return inner();
          ir_.Loop(ir_.I64(0), ir_.I64(in.dim(order[k])), 1, [&](llvm::Value* i) {
            at[order[k]] = i;
            nest(order, k + 1, inner);
          });
        };
    if (!minor_kept) {
      std::vector<Slot> acc;
      for (const Shape& o : outs) acc.push_back(MakeSlot(o.type(), 1));
      const Ints order = UsefulFirst(in.dims(), kept);
      auto one = [&] {
        for (size_t k = 0; k < n; ++k) Put(acc[k], ir_.I64(0), init[k]);
        nest(reduced, 0, [&] {
          if (status.ok()) status = Combine(root, acc, ir_.I64(0), Linear(in, at));
        });
        store(acc, ir_.I64(0), out_index(at));
      };
      if (order.empty()) {
        one();
        RETURN_IF_ERROR(status);
        return 1;
      }
      ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
        at[order[0]] = i;
        nest(Ints(order.begin() + 1, order.end()), 0, one);
      });
      RETURN_IF_ERROR(status);
      return in.dim(order[0]);
    }
    // Columns: a strip of accumulators along the minor dimension.
    const int64_t width = in.dim(minor);
    const int64_t strip = std::min<int64_t>(width, 256);
    const int64_t strips = (width + strip - 1) / strip;
    std::vector<Slot> acc;
    for (const Shape& o : outs) acc.push_back(MakeSlot(o.type(), strip));
    Ints outer;
    for (int64_t d : kept)
      if (d != minor && in.dim(d) != 1) outer.push_back(d);
    auto columns = [&](llvm::Value* s) {
      llvm::Value* from = ir_.Mul(s, strip);
      llvm::Value* count = width % strip == 0 ? ir_.I64(strip)
                                              : ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.I64(strip),
                                                                            ir_.b.CreateSub(ir_.I64(width), from));
      ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* j) {
        for (size_t k = 0; k < n; ++k) Put(acc[k], j, init[k]);
      });
      nest(reduced, 0, [&] {
        ir_.Loop(
            ir_.I64(0), count, 1,
            [&](llvm::Value* j) {
              at[minor] = ir_.Add(from, j);
              if (status.ok()) status = Combine(root, acc, j, Linear(in, at));
            },
            true);
      });
      ir_.Loop(
          ir_.I64(0), count, 1,
          [&](llvm::Value* j) {
            at[minor] = ir_.Add(from, j);
            store(acc, j, out_index(at));
          },
          true);
    };
    if (outer.empty()) {
      ir_.Loop(body_.begin, body_.end, 1, columns);
    } else {
      ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
        at[outer[0]] = i;
        nest(Ints(outer.begin() + 1, outer.end()), 0, [&] { ir_.Loop(ir_.I64(0), ir_.I64(strips), 1, columns); });
      });
    }
    RETURN_IF_ERROR(status);
    return outer.empty() ? strips : in.dim(outer[0]);
  }

  // ---- Windows ----

  absl::StatusOr<int64_t> Scan(const Instruction* root, int64_t dim) {
    const Shape& s = root->shape();
    const bool backward = (*root->attrs().window)[dim].pad_low == 0;
    ASSIGN_OR_RETURN(Val init, elements_.Emit(root->operand(1), Index{}));
    int64_t minor = s.rank() - 1;
    while (minor > 0 && s.dim(minor) == 1) --minor;
    Ints outer;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (d != dim && s.dim(d) != 1 && (d != minor || dim == minor)) outer.push_back(d);
    const bool strip = dim != minor;
    const int64_t width = strip ? s.dim(minor) : 1;
    if (width > 16384)
      return ErrorAt(root,
                     absl::StrCat("a running reduction over rows of ", width, " is not supported (at most 16384)"),
                     absl::StatusCode::kUnimplemented);
    Slot acc = MakeSlot(s.type(), width);
    std::vector<llvm::Value*> at(s.rank(), ir_.I64(0));
    absl::Status status;
    auto visit = [&](llvm::Value* j) {
      if (!status.ok()) return;
      if (strip) at[minor] = j;
      const Index x{at};
      auto v = elements_.Emit(root->operand(0), x);
      if (!v.ok()) {
        status = v.status();
        return;
      }
      // Every position is a result, so each step rounds as the type does.
      auto r = elements_.Apply(**root->attrs().to_apply, {Get(acc, j), *v});
      if (!r.ok()) {
        status = r.status();
        return;
      }
      Put(acc, j, (*r)[0]);
      ir_.Store(s.type(), (*r)[0], body_.results[0], elements_.Offset(s, x));
    };
    auto line = [&] {
      ir_.Loop(ir_.I64(0), ir_.I64(width), 1, [&](llvm::Value* j) { Put(acc, j, init); });
      ir_.Loop(ir_.I64(0), ir_.I64(s.dim(dim)), 1, [&](llvm::Value* k) {
        at[dim] = backward ? ir_.b.CreateSub(ir_.I64(s.dim(dim) - 1), k) : k;
        ir_.Loop(ir_.I64(0), ir_.I64(width), 1, visit, strip);
      });
    };
    std::function<void(size_t)> level = [&](size_t k) {
      if (k == outer.size()) return line();
      ir_.Loop(k ? ir_.I64(0) : body_.begin, k ? ir_.I64(s.dim(outer[k])) : body_.end, 1, [&](llvm::Value* i) {
        at[outer[k]] = i;
        level(k + 1);
      });
    };
    level(0);
    RETURN_IF_ERROR(status);
    return outer.empty() ? 1 : s.dim(outer[0]);
  }

  absl::StatusOr<int64_t> VariadicWindow(const Instruction* root) {
    const std::vector<Shape> outs = Leaves(root->shape());
    const Ints order = UsefulFirst(outs[0].dims(), LoopOrder(outs[0]));
    RETURN_IF_ERROR(Nest(
        outs[0].dims(), order,
        [&](std::vector<llvm::Value*> at) -> absl::Status {
          ASSIGN_OR_RETURN(std::vector<Val> values, elements_.EmitWindow(root, Index{at}));
          for (size_t k = 0; k < outs.size(); ++k)
            ir_.Store(outs[k].type(), values[k], body_.results[k], elements_.Offset(outs[k], Index{at}));
          return absl::OkStatus();
        },
        false));
    return Units(outs[0].dims(), order);
  }

  absl::StatusOr<int64_t> SelectAndScatter(const Instruction* root) {
    const Shape &s = root->shape(), &u = root->operand(1)->shape();
    const attr::Win w = root->attrs().window.value_or(attr::Win(s.rank()));
    llvm::IRBuilder<>& b = ir_.b;
    ASSIGN_OR_RETURN(Val init, elements_.Emit(root->operand(2), Index{}));
    ir_.Loop(
        ir_.I64(0), ir_.I64(s.ElementCount()), 1,
        [&](llvm::Value* k) { ir_.Store(s.type(), init, body_.results[0], k); }, true);
    Slot best = MakeSlot(s.type(), 1);
    llvm::Value* best_at = ir_.Alloca(b.getInt64Ty(), 1, 8);
    RETURN_IF_ERROR(Nest(
        u.dims(), LoopOrder(u),
        [&](std::vector<llvm::Value*> o) -> absl::Status {
          absl::Status status;
          b.CreateStore(ir_.I64(-1), best_at);
          std::vector<llvm::Value*> at(s.rank());
          std::function<void(int64_t, llvm::Value*)> nest = [&](int64_t d, llvm::Value* inside) {
            if (d == s.rank()) {
              ir_.If(inside, [&] {
                auto v = elements_.Emit(root->operand(0), Index{at});
                if (!v.ok()) {
                  status = v.status();
                  return;
                }
                llvm::Value* empty = b.CreateICmpSLT(b.CreateLoad(b.getInt64Ty(), best_at), ir_.I64(0));
                auto keep = elements_.Apply(**root->attrs().select, {Get(best, ir_.I64(0)), *v});
                if (!keep.ok()) {
                  status = keep.status();
                  return;
                }
                ir_.If(b.CreateOr(empty, b.CreateNot((*keep)[0].re)), [&] {
                  Put(best, ir_.I64(0), *v);
                  b.CreateStore(elements_.Offset(s, Index{at}), best_at);
                });
              });
              return;
            }
            auto step = [&](llvm::Value* k) {
              llvm::Value* p = b.CreateSub(b.CreateAdd(ir_.Mul(o[d], w[d].stride), k), ir_.I64(w[d].pad_low));
              at[d] = p;
              llvm::Value* ok =
                  w[d].pad_low || w[d].pad_high ? b.CreateAnd(inside, b.CreateICmpULT(p, ir_.I64(s.dim(d)))) : inside;
              nest(d + 1, ok);
            };
            ir_.Loop(ir_.I64(0), ir_.I64(w[d].size), 1, step);
          };
          Put(best, ir_.I64(0), init);
          nest(0, b.getTrue());
          RETURN_IF_ERROR(status);
          llvm::Value* where = b.CreateLoad(b.getInt64Ty(), best_at);
          ir_.If(b.CreateICmpSGE(where, ir_.I64(0)), [&] {
            auto v = elements_.Emit(root->operand(1), Index{o});
            if (!v.ok()) {
              status = v.status();
              return;
            }
            auto r = elements_.Apply(**root->attrs().scatter, {ir_.Load(s.type(), body_.results[0], where), *v});
            if (!r.ok())
              status = r.status();
            else
              ir_.Store(s.type(), (*r)[0], body_.results[0], where);
          });
          return status;
        },
        false, false));
    return 1;
  }

  // ---- Updates in place ----

  absl::StatusOr<int64_t> Update(const Instruction* root) {
    const Shape &s = root->shape(), &u = root->operand(1)->shape();
    std::vector<llvm::Value*> start;
    for (int64_t d = 0; d < s.rank(); ++d) {
      ASSIGN_OR_RETURN(llvm::Value * v, elements_.ClampedStart(root->operand(2 + d), Index{}, s.dim(d), u.dim(d)));
      start.push_back(v);
    }
    const Ints order = UsefulFirst(u.dims(), LoopOrder(s));
    RETURN_IF_ERROR(Nest(
        u.dims(), order,
        [&](std::vector<llvm::Value*> at) -> absl::Status {
          ASSIGN_OR_RETURN(Val v, elements_.Emit(root->operand(1), Linear(u, at)));
          Index to{at};
          for (int64_t d = 0; d < s.rank(); ++d) to.dims[d] = ir_.Add(at[d], start[d]);
          ir_.Store(s.type(), v, body_.results[0], elements_.Offset(s, to));
          return absl::OkStatus();
        },
        true));
    return Units(u.dims(), order);
  }

  absl::StatusOr<int64_t> Scatter(const Instruction* root) {
    const std::vector<Shape> outs = Leaves(root->shape());
    const ScatterPlan plan(root);
    if (!plan.fits) return 1;
    const size_t n = plan.arrays;
    const Shape& u = plan.updates;
    std::vector<llvm::Value*> at(u.rank(), ir_.I64(0));
    absl::Status status;
    std::function<void(size_t)> windows, batches;
    ScatterPlan::Start start;
    auto element = [&] {
      if (!status.ok()) return;
      Index x{start.dims};
      for (size_t q = 0; q < plan.to.size(); ++q)
        x.dims[plan.to[q]] = ir_.Add(x.dims[plan.to[q]], at[plan.window_dims[q]]);
      llvm::Value* off = elements_.Offset(plan.target, x);
      std::vector<Val> args;
      for (size_t q = 0; q < n; ++q) args.push_back(ir_.Load(outs[q].type(), body_.results[q], off));
      for (size_t q = 0; q < n; ++q) {
        auto v = elements_.Emit(root->operand(static_cast<int64_t>(n + 1 + q)), Index{at});
        if (!v.ok()) {
          status = v.status();
          return;
        }
        args.push_back(*v);
      }
      auto r = elements_.Apply(**root->attrs().to_apply, args);
      if (!r.ok()) {
        status = r.status();
        return;
      }
      for (size_t q = 0; q < n; ++q) ir_.Store(outs[q].type(), (*r)[q], body_.results[q], off);
    };
    windows = [&](size_t q) {
      if (q == plan.window_dims.size()) return element();
      ir_.Loop(
          ir_.I64(0), ir_.I64(u.dim(plan.window_dims[q])), 1,
          [&](llvm::Value* i) {
            at[plan.window_dims[q]] = i;
            windows(q + 1);
          },
          q + 1 == plan.window_dims.size());
    };
    batches = [&](size_t q) {
      if (q < plan.batch_dims.size()) {
        ir_.Loop(ir_.I64(0), ir_.I64(u.dim(plan.batch_dims[q])), 1, [&](llvm::Value* i) {
          at[plan.batch_dims[q]] = i;
          batches(q + 1);
        });
        return;
      }
      std::vector<llvm::Value*> batch;
      for (int64_t d : plan.batch_dims) batch.push_back(at[d]);
      auto found = plan.StartOf(elements_, batch);
      if (!found.ok()) {
        status = found.status();
        return;
      }
      start = *found;
      ir_.If(start.inside, [&] { windows(0); });
    };
    batches(0);
    RETURN_IF_ERROR(status);
    return 1;
  }

  absl::StatusOr<int64_t> Concatenate(const Instruction* root) {
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
    // More copies than that in a row, unrolled, would keep LLVM's scheduler busy for seconds.
    constexpr int64_t kMostInline = 64;
    for (const Instruction* o : root->operands()) {
      // Whole rows of an array that is there already: bytes move as they lie.
      const Instruction* stored = o;
      while ((stored->Is(Opcode::Bitcast) || stored->Is(Opcode::Reshape)) && stored->shape().HasDefaultLayout() &&
             stored->operand(0)->shape().type() == o->shape().type())
        stored = stored->operand(0);
      const bool rows = stored->Is(Opcode::Parameter) && s.HasDefaultLayout() && o->shape().HasDefaultLayout() &&
                        stored->shape().HasDefaultLayout() && o->shape().ElementCount() > 0;
      RETURN_IF_ERROR(Nest(
          o->shape().dims(), rows ? outer : order,
          [&](std::vector<llvm::Value*> at) -> absl::Status {
            if (rows) {
              CopyRow(o->shape(), body_.operands[*stored->attrs().parameter_number], at, d, base, s,
                      root->operand_count() <= kMostInline);
              return absl::OkStatus();
            }
            ASSIGN_OR_RETURN(Val v, elements_.Emit(o, Linear(o->shape(), at)));
            Index to{at};
            to.dims[d] = ir_.Add(at[d], ir_.I64(base));
            ir_.Store(s.type(), v, body_.results[0], elements_.Offset(s, to));
            return absl::OkStatus();
          },
          true, unit >= 0));
      base += o->shape().dim(d);
    }
    return unit >= 0 ? s.dim(unit) : 1;
  }

  // The elements of `array` from dimension `d` inwards, at `at` of the dimensions before, to where `d` is `base`;
  // in line, or by a call of memcpy.
  void CopyRow(const Shape& from, llvm::Value* array, const std::vector<llvm::Value*>& at, int64_t d, int64_t base,
               const Shape& to, bool in_line) {
    const int64_t width = from.ByteSize() / from.ElementCount();
    int64_t row = 1;
    for (int64_t k = d; k < from.rank(); ++k) row *= from.dim(k);
    Index target{at};
    target.dims[d] = ir_.I64(base);
    llvm::Type* byte = ir_.b.getInt8Ty();
    auto place = [&](llvm::Value* array, const Shape& shape, const Index& index) {
      return ir_.b.CreateInBoundsGEP(byte, array, ir_.Mul(elements_.Offset(shape, index), width));
    };
    llvm::Value *out = place(body_.results[0], to, target), *in = place(array, from, Index{at});
    if (in_line) {
      const llvm::MaybeAlign align(static_cast<uint64_t>(std::min<int64_t>(width, 8)));
      ir_.b.CreateMemCpy(out, align, in, align, static_cast<uint64_t>(row * width));
      return;
    }
    llvm::Type* ptr = ir_.b.getPtrTy();
    const auto memcpy = ir_.module.getOrInsertFunction(
        "memcpy", llvm::FunctionType::get(ptr, {ptr, ptr, ir_.b.getInt64Ty()}, false));
    ir_.b.CreateCall(memcpy, {out, in, ir_.I64(row * width)})->addFnAttr(llvm::Attribute::NoBuiltin);
  }

  Body& body_;
  Ir& ir_;
  const Computation& f_;
  ElementEmitter elements_;
};

}  // namespace

absl::StatusOr<int64_t> EmitFusion(Body& body) {
  const Computation& f = **body.i->attrs().calls;
  if (auto collapsed = Collapse(f)) return FusionShell(body, *collapsed->entry()).Run();
  return FusionShell(body, f).Run();
}

}  // namespace kiln::cpu
