#include "codegen/elemental/library.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "codegen/elemental/callbacks.h"
#include "codegen/elemental/element.h"
#include "codegen/elemental/fft.h"
#include "compiler/hlo/lapack.h"
#include "compiler/hlo/random_bits.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln {
namespace {

// What the workers of all axes share.
int64_t FftWorkBytes(const Instruction* i) {
  int64_t bytes = 0;
  for (const FftAxis& a : FftAxes(i))
    bytes = std::max(bytes, PlanFftLines(a, ComponentType(i->shape().type())).work_bytes);
  return bytes;
}

class Library {
 public:
  Library(Body& body, int64_t stack_bytes)
      : body_(body), ir_(body.ir), b_(body.ir.b), i_(body.i), stack_bytes_(stack_bytes) {}

  absl::StatusOr<int64_t> Run() {
    switch (i_->opcode()) {
      case Opcode::Sort:
        return EmitSortRows(body_, stack_bytes_);
      case Opcode::TopK:
        return EmitTopKRows(body_, stack_bytes_);
      case Opcode::Fft:
        return Fft();
      case Opcode::Cholesky:
      case Opcode::TriangularSolve:
        return Solve();
      case Opcode::RngBitGenerator:
        return Rng();
      case Opcode::CustomCall:
        return Lapack(*LapackOf(i_));
      default:
        return ErrorAt(i_, "has no kernel", absl::StatusCode::kUnimplemented);
    }
  }

 private:
  llvm::Value* Scratch(int64_t bytes) {
    return bytes <= stack_bytes_ ? static_cast<llvm::Value*>(ir_.Alloca(b_.getInt8Ty(), std::max<int64_t>(bytes, 64)))
                                 : body_.scratch;
  }
  llvm::Value* At(llvm::Value* p, int64_t bytes) { return b_.CreateInBoundsGEP(b_.getInt8Ty(), p, ir_.I64(bytes)); }

  absl::StatusOr<int64_t> Fft() {
    llvm::Value* scratch = Scratch(LibraryScratch(i_));
    if (i_->shape().ElementCount() == 0) return 1;
    llvm::Value* const places[] = {body_.operands[0], At(scratch, FftWorkBytes(i_)), body_.results[0]};
    const std::vector<FftAxis> axes = FftAxes(i_);
    const auto lines = [&](const FftAxis& a, llvm::Value* first, llvm::Value* last) {
      EmitFftLines(ir_, i_, a, PlanFftLines(a, ComponentType(i_->shape().type())), places[a.from], places[a.to],
                   scratch, first, last);
    };
    const int64_t batch = FftBatch(), each = FftTogether(axes, batch);
    if (each >= batch || LibraryScratch(i_) > stack_bytes_) {
      for (const FftAxis& a : axes) lines(a, ir_.I64(0), ir_.I64(a.lines));
      return 1;
    }
    // With several axes a unit stays in the caches from one to the next.
    const int64_t step = axes.size() == 1 ? batch : 1;
    ir_.Loop(body_.begin, body_.end, step, [&](llvm::Value* unit) {
      llvm::Value* first = ir_.Mul(unit, each);
      llvm::Value* end = step == 1 ? ir_.Add(unit, ir_.I64(1)) : body_.end;
      llvm::Value* last = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Mul(end, each), ir_.I64(batch));
      for (const FftAxis& a : axes) lines(a, ir_.Mul(first, a.lines / batch), ir_.Mul(last, a.lines / batch));
    });
    return (batch + each - 1) / each;
  }

  // Transforms that do not depend on each other.
  int64_t FftBatch() const {
    int64_t batch = 1;
    const auto axes = static_cast<int64_t>(i_->attrs().fft_length->size());
    for (int64_t d = 0; d + axes < i_->shape().rank(); ++d) batch *= i_->shape().dim(d);
    return batch;
  }

  // How many of them are a unit: lines that fill vectors, two real ones in each lane.
  static int64_t FftTogether(const std::vector<FftAxis>& axes, int64_t batch) {
    constexpr int64_t kLanes = 16;
    int64_t together = 1;
    for (const FftAxis& a : axes) {
      const int64_t lines = a.kind ? 2 * kLanes : kLanes;
      together = std::max(together, (lines * batch + a.lines - 1) / a.lines);
    }
    return together + together % 2;
  }

  absl::StatusOr<int64_t> Solve() {
    const PrimitiveType t = i_->shape().type();
    if (t != PrimitiveType::F32 && t != PrimitiveType::F64)
      return ErrorAt(i_, absl::StrCat(TextOf(t), " has no kernel"), absl::StatusCode::kUnimplemented);
    const std::string suffix = t == PrimitiveType::F64 ? "_f64" : "_f32";
    const Shape& a = i_->operand(0)->shape();
    const int64_t n = a.dims().back(), batches = n ? a.ElementCount() / (n * n) : 0;
    auto flag = [&](bool v) { return b_.getInt32(v); };
    if (batches == 0) return 1;
    // The matrices of the call's units.
    llvm::Value* count = b_.CreateSub(body_.end, body_.begin);
    const auto from_first = [&](llvm::Value* p, const Shape& s) {
      return b_.CreateInBoundsGEP(b_.getInt8Ty(), p, ir_.Mul(body_.begin, s.ByteSize() / batches));
    };
    const Attributes& at = i_->attrs();
    const Shape& x = i_->shape();
    llvm::Value *matrices = from_first(body_.operands[0], a), *results = from_first(body_.results[0], x);
    if (i_->Is(Opcode::Cholesky)) {
      ir_.CallLibrary("kiln_linalg_cholesky" + suffix, b_.getVoidTy(),
                      {matrices, results, count, ir_.I64(n), flag(at.lower.value_or(false))});
      return batches;
    }
    const bool trans = at.transpose_a.value_or(TransposeA::NO_TRANSPOSE) != TransposeA::NO_TRANSPOSE;
    b_.CreateMemCpy(results, llvm::Align(1), from_first(body_.operands[1], x), llvm::Align(1),
                    ir_.Mul(count, x.ByteSize() / batches));
    ir_.CallLibrary("kiln_linalg_triangular_solve" + suffix, b_.getVoidTy(),
                    {matrices, results, count, ir_.I64(x.dim(x.rank() - 2)), ir_.I64(x.dims().back()),
                     flag(at.left_side.value_or(false)), flag(at.lower.value_or(false)),
                     flag(at.unit_diagonal.value_or(false)), flag(trans)});
    return batches;
  }

  absl::StatusOr<int64_t> Rng() {
    const Shape& s = i_->shape().tuple()[1];
    const Shape& state = i_->operand(0)->shape();
    const int64_t bytes = ByteWidth(s.type()), words = state.ByteSize() / 8;
    if (i_->attrs().algorithm && *i_->attrs().algorithm == "rng_three_fry") {
      if (words < 2) return ErrorAt(i_, "threefry needs a state of at least 128 bits");
      if (words > 2)  // what it does not use passes on
        b_.CreateMemCpy(At(body_.results[0], 16), llvm::Align(8), At(body_.operands[0], 16), llvm::Align(8),
                        static_cast<uint64_t>(8 * (words - 2)));
      Ints dims = s.dims();
      if (dims.empty()) dims = {1};
      const int64_t d = ThreefryDimension(dims);
      int64_t outer = 1, inner = 1;
      for (int64_t k = 0; k < static_cast<int64_t>(dims.size()); ++k) {
        if (k < d) outer *= dims[k];
        if (k > d) inner *= dims[k];
      }
      ir_.CallLibrary("kiln_threefry", b_.getVoidTy(),
                      {body_.operands[0], body_.results[0], body_.results[1], ir_.I64(outer), ir_.I64(dims[d]),
                       ir_.I64(inner), ir_.I64(bytes)});
      return 1;
    }
    if (words != 2 && words != 3) return ErrorAt(i_, "philox needs a state of 128 or 192 bits");
    ir_.CallLibrary("kiln_philox", b_.getVoidTy(),
                    {body_.operands[0], body_.results[0], ir_.I64(words), body_.results[1], ir_.I64(s.ElementCount()),
                     ir_.I64(bytes)});
    return 1;
  }

  // A matrix of the batch is a unit where the scratch of each lies on its stack.
  absl::StatusOr<int64_t> Lapack(const LapackCall& c) {
    const int64_t bytes = LibraryScratch(i_);
    const bool units = bytes <= stack_bytes_ && c.batch > 0;
    const PrimitiveType t = i_->operand(0)->shape().type();
    llvm::Value* count = units ? b_.CreateSub(body_.end, body_.begin) : ir_.I64(c.batch);
    const auto from_first = [&](llvm::Value* p, const Shape& s) {
      return units ? b_.CreateInBoundsGEP(b_.getInt8Ty(), p, ir_.Mul(body_.begin, s.ByteSize() / c.batch)) : p;
    };
    std::vector<llvm::Value*> x, y;
    for (size_t k = 0; k < body_.operands.size(); ++k)
      x.push_back(from_first(body_.operands[k], i_->operand(static_cast<int64_t>(k))->shape()));
    for (size_t k = 0; k < body_.results.size(); ++k)
      y.push_back(from_first(body_.results[k], i_->shape().IsTuple() ? i_->shape().tuple()[k] : i_->shape()));
    llvm::Value *m = ir_.I64(c.rows), *n = ir_.I64(c.cols), *work = Scratch(bytes);
    llvm::Value* wide = ir_.I64(t == PrimitiveType::F64);
    const auto call = [&](absl::string_view routine, bool typed, llvm::ArrayRef<llvm::Value*> args) {
      const absl::string_view suffix = !typed ? "" : t == PrimitiveType::F64 ? "_f64" : "_f32";
      ir_.CallLibrary(absl::StrCat("kiln_linalg_", routine, suffix), b_.getVoidTy(), args);
      return units ? c.batch : int64_t{1};
    };
    switch (c.routine) {
      case LapackRoutine::kGetrf:
        return call("getrf", true, {x[0], y[0], y[1], y[2], m, n, count, work});
      case LapackRoutine::kGeqrf:
        return call("geqrf", true, {x[0], y[0], y[1], m, n, count, work});
      case LapackRoutine::kOrgqr:
        return call("orgqr", true,
                    {x[0], x[1], y[0], m, n, ir_.I64(i_->operand(1)->shape().dims().back()), count, work});
      case LapackRoutine::kSyevd: {
        llvm::Value* info = y.size() > 2 ? y[2] : llvm::ConstantPointerNull::get(b_.getPtrTy());
        return call("syevd", false,
                    {x[0], y[0], y[1], info, n, count, wide, ir_.I64(c.lower), ir_.I64(c.vectors && IsRead(0)), work});
      }
      case LapackRoutine::kGesdd: {
        const Shape &u = i_->shape().tuple()[2], &vt = i_->shape().tuple()[3];
        return call("gesdd", false,
                    {x[0], y[0], y[1], y[2], y[3], y[4], m, n, ir_.I64(u.dims().back()), ir_.I64(vt.dim(vt.rank() - 2)),
                     count, wide, ir_.I64(c.vectors && (IsRead(2) || IsRead(3))), work});
      }
    }
    return 1;
  }

  // Whether anything takes this element of the result.
  bool IsRead(int64_t element) const {
    const auto other = [&](const Instruction* u) {
      return u->Is(Opcode::GetTupleElement) && *u->attrs().tuple_index != element;
    };
    return i_->IsRoot() || !absl::c_all_of(i_->users(), other);
  }

 public:
  static int64_t LibraryScratch(const Instruction* i) {
    if (auto c = LapackOf(i)) {
      constexpr int64_t kBlock = 32, kWide = 8;  // as linalg.c has them
      const int64_t l = std::max(c->rows, c->cols), k = std::min(c->rows, c->cols);
      const int64_t width = ByteWidth(i->operand(0)->shape().type());
      if (c->routine == LapackRoutine::kGetrf) return width * kBlock * c->rows;
      if (c->routine == LapackRoutine::kSyevd) return kWide * (2 * k * k + 4 * k);
      if (c->routine != LapackRoutine::kGesdd) return width * kBlock * (c->rows + c->cols + kBlock);
      const Shape &u = i->shape().tuple()[2], &vt = i->shape().tuple()[3];
      return kWide * (l * k + l * std::max(u.dims().back(), vt.dim(vt.rank() - 2)) + 2 * k * k + 4 * k + l);
    }
    if (i->Is(Opcode::Sort)) return SortScratchBytes(i);
    if (i->Is(Opcode::TopK)) return TopKScratchBytes(i);
    if (i->Is(Opcode::Fft)) return FftWorkBytes(i) + FftHalfBytes(i);
    return 0;
  }

 private:
  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Instruction* i_;
  int64_t stack_bytes_;
};

}  // namespace

absl::StatusOr<int64_t> EmitLibrary(Body& body, int64_t stack_bytes) { return Library(body, stack_bytes).Run(); }

int64_t LibraryScratchBytes(const Instruction* i, int64_t stack_bytes) {
  const int64_t n = Library::LibraryScratch(i);
  return n > stack_bytes ? n : 0;
}

}  // namespace kiln
