// Running reductions along one dimension: a window that reaches from each element to the first, or to the last.
//
// Along the dimension that lies closest in memory a block takes each line, a piece at a time: threads reduce a few
// neighbours each, the block reduces what they found, and every thread begins where those before it end. Along any
// other, neighbouring lines lie side by side and a thread takes each.
#include "codegen/elemental/element.h"
#include "codegen/elemental/reduced.h"
#include "codegen/gpu/cells.h"
#include "codegen/gpu/kernels.h"
#include "compiler/hlo/unrounded_sums.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kMostThreads = 256, kPerThread = 4;

class Scan {
 public:
  Scan(Body& body, const Instruction* root, int64_t dim)
      : body_(body), ir_(body.ir), root_(root), shape_(root->shape()), dim_(dim), elements_(ir_, body.operands) {
    n_ = shape_.dim(dim);
    backward_ = (*root_->attrs().window)[static_cast<size_t>(dim)].pad_low == 0;
  }

  absl::Status Run() {
    if (shape_.ElementCount() == 0) return absl::OkStatus();
    order_ = MemoryOrder(shape_);
    while (order_.size() > 1 && shape_.dim(order_.back()) == 1) order_.pop_back();
    const bool closest = order_.back() == dim_;
    lines_ = shape_.dims();
    lines_[static_cast<size_t>(dim_)] = 1;
    order_ = MemoryOrder(shape_);
    return closest ? ByBlock() : ByThread();
  }

 private:
  // Element `k` of the line at `line`, counted from where the windows begin.
  Index At(const std::vector<llvm::Value*>& line, llvm::Value* k) {
    Index x{line};
    x.dims[static_cast<size_t>(dim_)] = backward_ ? ir_.b.CreateSub(ir_.I64(n_ - 1), k) : k;
    return x;
  }
  absl::StatusOr<Val> Combine(const Val& before, const Val& v) {
    ASSIGN_OR_RETURN(std::vector<Val> r, kiln::Combine(elements_, root_, {before, v}));
    return r[0];
  }
  void Store(const Index& x, Val v) {
    if (SumsUnrounded(root_)) v.re = ir_.Round(shape_.type(), v.re);
    ir_.Store(shape_.type(), v, body_.results[0], elements_.Offset(shape_, x));
  }
  Cells Own(int64_t count) {
    return Cells(ir_, shape_.type(), ir_.Alloca(ir_.RegType(shape_.type()), count * Cells::parts(shape_.type()), 16));
  }

  absl::Status ByThread() {
    return ForEach(body_, shape_.ElementCount() / n_, [&](llvm::Value* place) -> absl::Status {
      const std::vector<llvm::Value*> line = Delinearize(ir_, place, lines_, order_);
      ASSIGN_OR_RETURN(const Val init, elements_.Emit(root_->operand(1), Index{}));
      const Cells sum = Own(1);
      sum.Put(ir_.I64(0), init);
      absl::Status status;
      ir_.Loop(ir_.I64(0), ir_.I64(n_), 1, [&](llvm::Value* k) {
        const Index x = At(line, k);
        status = [&]() -> absl::Status {
          ASSIGN_OR_RETURN(const Val v, elements_.Emit(root_->operand(0), x));
          ASSIGN_OR_RETURN(const Val r, Combine(sum.Get(ir_.I64(0)), v));
          sum.Put(ir_.I64(0), r);
          Store(x, r);
          return absl::OkStatus();
        }();
      });
      return status;
    });
  }

  absl::Status ByBlock() {
    llvm::IRBuilder<>& b = ir_.b;
    const PrimitiveType t = shape_.type();
    body_.blocks = shape_.ElementCount() / n_;
    body_.threads = body_.team ? body_.team : kWarp;
    while (!body_.team && body_.threads < kMostThreads && body_.threads * kPerThread < n_) body_.threads *= 2;
    const int64_t piece = body_.threads * kPerThread;
    llvm::Value* thread = body_.grid.Thread();
    const std::vector<llvm::Value*> line = Delinearize(ir_, body_.grid.Block(), lines_, order_);
    ASSIGN_OR_RETURN(const Val init, elements_.Emit(root_->operand(1), Index{}));
    const Cells found(ir_, t, body_.grid.Shared(ir_.RegType(t), body_.threads * Cells::parts(t)));
    const Cells carry = Own(1), mine = Own(kPerThread), sum = Own(1), other = Own(1);
    carry.Put(ir_.I64(0), init);
    absl::Status status;
    ir_.Loop(ir_.I64(0), ir_.I64(n_), piece, [&](llvm::Value* start) {
      status = [&]() -> absl::Status {
        llvm::Value* first = ir_.Add(start, ir_.Mul(thread, kPerThread));
        const auto inside = [&](int64_t e, const std::function<absl::Status(const Index&)>& visit) {
          absl::Status inner;
          llvm::Value* k = ir_.Add(first, ir_.I64(e));
          if (n_ % piece == 0)
            inner = visit(At(line, k));
          else
            ir_.If(b.CreateICmpULT(k, ir_.I64(n_)), [&] { inner = visit(At(line, k)); });
          return inner;
        };
        // What lies past the line's end is never asked for by an element of it.
        for (int64_t e = 0; e < kPerThread; ++e) {
          mine.Put(ir_.I64(e), init);
          RETURN_IF_ERROR(inside(e, [&](const Index& x) -> absl::Status {
            ASSIGN_OR_RETURN(Val v, elements_.Emit(root_->operand(0), x));
            if (e > 0) {
              ASSIGN_OR_RETURN(v, Combine(mine.Get(ir_.I64(e - 1)), v));
            }
            mine.Put(ir_.I64(e), v);
            return absl::OkStatus();
          }));
        }
        sum.Put(ir_.I64(0), mine.Get(ir_.I64(kPerThread - 1)));
        found.Put(thread, sum.Get(ir_.I64(0)));
        body_.grid.Barrier();
        for (int64_t distance = 1; distance < body_.threads; distance *= 2) {
          llvm::Value* reaches = b.CreateICmpUGE(thread, ir_.I64(distance));
          absl::Status inner;
          ir_.If(reaches, [&] { other.Put(ir_.I64(0), found.Get(b.CreateSub(thread, ir_.I64(distance)))); });
          body_.grid.Barrier();
          ir_.If(reaches, [&] {
            auto r = Combine(other.Get(ir_.I64(0)), sum.Get(ir_.I64(0)));
            if (!r.ok()) {
              inner = r.status();
              return;
            }
            sum.Put(ir_.I64(0), *r);
            found.Put(thread, *r);
          });
          RETURN_IF_ERROR(inner);
          body_.grid.Barrier();
        }
        // Everything before this thread's elements, and then before the next piece.
        other.Put(ir_.I64(0), carry.Get(ir_.I64(0)));
        absl::Status inner;
        ir_.If(b.CreateICmpUGT(thread, ir_.I64(0)), [&] {
          auto r = Combine(carry.Get(ir_.I64(0)), found.Get(b.CreateSub(thread, ir_.I64(1))));
          if (r.ok())
            other.Put(ir_.I64(0), *r);
          else
            inner = r.status();
        });
        RETURN_IF_ERROR(inner);
        for (int64_t e = 0; e < kPerThread; ++e)
          RETURN_IF_ERROR(inside(e, [&](const Index& x) -> absl::Status {
            ASSIGN_OR_RETURN(const Val r, Combine(other.Get(ir_.I64(0)), mine.Get(ir_.I64(e))));
            Store(x, r);
            return absl::OkStatus();
          }));
        ASSIGN_OR_RETURN(const Val all, Combine(carry.Get(ir_.I64(0)), found.Get(ir_.I64(body_.threads - 1))));
        carry.Put(ir_.I64(0), all);
        body_.grid.Barrier();
        return absl::OkStatus();
      }();
    });
    return status;
  }

  Body& body_;
  Ir& ir_;
  const Instruction* root_;
  const Shape& shape_;
  const int64_t dim_;
  ElementEmitter elements_;
  int64_t n_ = 0;
  bool backward_ = false;
  Ints order_, lines_;  // the array's extents, with 1 along the line
};

}  // namespace

absl::Status EmitScan(Body& body, const Instruction* root) { return Scan(body, root, RunningDim(root)).Run(); }

}  // namespace kiln::gpu
