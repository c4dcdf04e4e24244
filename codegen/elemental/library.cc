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
  static constexpr int64_t kVectorBytes = 64;  // of the vectors of codegen/kernels

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

  // What the routines of linalg_side_by_side.inc get: the first matrix, how many, and work memory. A unit is as many
  // matrices as a vector has lanes.
  struct SideBySide {
    llvm::Value *first, *count, *work;
    int64_t units;
  };

  static int64_t LanesOf(PrimitiveType t) { return kVectorBytes / ByteWidth(t); }

  // `vectors` of work memory fit on the stack, and in second caches, and the batch fills a quarter of the lanes.
  bool AreSideBySide(PrimitiveType t, int64_t vectors, int64_t batches) const {
    return !IsComplex(t) && vectors * kVectorBytes <= stack_bytes_ / 4 * 3 && batches >= LanesOf(t) / 4;
  }

  SideBySide Beside(PrimitiveType t, int64_t vectors, int64_t batches) {
    const int64_t lanes = LanesOf(t);
    llvm::Value *first = ir_.Mul(body_.begin, lanes),
                *end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Mul(body_.end, lanes), ir_.I64(batches));
    llvm::AllocaInst* work = ir_.Alloca(b_.getInt8Ty(), vectors * kVectorBytes);
    return {first, b_.CreateSub(end, first), work, (batches + lanes - 1) / lanes};
  }

  llvm::Value* AtMatrix(llvm::Value* p, llvm::Value* number, const Shape& s, int64_t batches) {
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), p, ir_.Mul(number, s.ByteSize() / batches));
  }

  // A matrix of the batch is a unit, if it needs scratch where that of each lies on its stack.
  absl::StatusOr<int64_t> Solve() {
    const PrimitiveType t = i_->shape().type(), part = ComponentType(t);
    if (part != PrimitiveType::F32 && part != PrimitiveType::F64)
      return ErrorAt(i_, absl::StrCat(TextOf(t), " has no kernel"), absl::StatusCode::kUnimplemented);
    const Shape& a = i_->operand(0)->shape();
    const int64_t n = a.dims().back(), batches = n ? a.ElementCount() / (n * n) : 0, bytes = LibraryScratch(i_);
    auto flag = [&](bool v) { return b_.getInt32(v); };
    if (batches == 0) return 1;
    const bool units = bytes <= stack_bytes_;
    llvm::Value* count = units ? b_.CreateSub(body_.end, body_.begin) : ir_.I64(batches);
    const auto from_first = [&](llvm::Value* p, const Shape& s) {
      return units ? AtMatrix(p, body_.begin, s, batches) : p;
    };
    const Attributes& at = i_->attrs();
    const Shape& x = i_->shape();
    const TransposeA how = at.transpose_a.value_or(TransposeA::NO_TRANSPOSE);
    std::vector<llvm::Value*> form = {flag(at.lower.value_or(false))};
    if (i_->Is(Opcode::TriangularSolve))
      form = {ir_.I64(x.dim(x.rank() - 2)),           ir_.I64(x.dims().back()),
              flag(at.left_side.value_or(false)),     form[0],
              flag(at.unit_diagonal.value_or(false)), flag(how != TransposeA::NO_TRANSPOSE)};
    else
      form.insert(form.begin(), ir_.I64(n));
    const auto call = [&](absl::string_view routine, std::vector<llvm::Value*> args, llvm::Value* work) {
      absl::c_copy(form, std::back_inserter(args));
      if (IsComplex(t) && i_->Is(Opcode::TriangularSolve)) args.push_back(flag(how == TransposeA::ADJOINT));
      if (work) args.push_back(work);
      ir_.CallLibrary(
          absl::StrCat("kiln_linalg_", i_->Is(Opcode::Cholesky) ? "cholesky" : "triangular_solve", routine, Suffix(t)),
          b_.getVoidTy(), args);
    };
    const int64_t vectors = n * n + (i_->Is(Opcode::TriangularSolve) ? x.ElementCount() / batches : 0);
    if (AreSideBySide(t, vectors, batches)) {
      const SideBySide side = Beside(t, vectors, batches);
      std::vector<llvm::Value*> args = {AtMatrix(body_.operands[0], side.first, a, batches)};
      if (body_.operands.size() > 1) args.push_back(AtMatrix(body_.operands[1], side.first, x, batches));
      args.insert(args.end(), {AtMatrix(body_.results[0], side.first, x, batches), side.count});
      call("_side_by_side", std::move(args), side.work);
      return side.units;
    }
    llvm::Value *matrices = from_first(body_.operands[0], a), *results = from_first(body_.results[0], x);
    if (i_->Is(Opcode::TriangularSolve))
      b_.CreateMemCpy(results, llvm::Align(1), from_first(body_.operands[1], x), llvm::Align(1),
                      ir_.Mul(count, x.ByteSize() / batches));
    call("", {matrices, results, count}, IsComplex(t) ? Scratch(bytes) : nullptr);
    return units ? batches : int64_t{1};
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
      return units ? AtMatrix(p, body_.begin, s, c.batch) : p;
    };
    std::vector<llvm::Value*> x, y;
    for (size_t k = 0; k < body_.operands.size(); ++k)
      x.push_back(from_first(body_.operands[k], i_->operand(static_cast<int64_t>(k))->shape()));
    for (size_t k = 0; k < body_.results.size(); ++k)
      y.push_back(from_first(body_.results[k], i_->shape().IsTuple() ? i_->shape().tuple()[k] : i_->shape()));
    llvm::Value *m = ir_.I64(c.rows), *n = ir_.I64(c.cols), *work = Scratch(bytes);
    llvm::Value* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
    llvm::Value *wide = ir_.I64(ComponentType(t) == PrimitiveType::F64), *parts = ir_.I64(Parts(t));
    const auto extent = [&](const Shape& s, int64_t from_last) { return ir_.I64(s.dim(s.rank() - from_last)); };
    const auto call = [&](absl::string_view routine, llvm::ArrayRef<llvm::Value*> args) {
      ir_.CallLibrary(absl::StrCat("kiln_linalg_", routine), b_.getVoidTy(), args);
      return units ? c.batch : int64_t{1};
    };
    const auto typed = [&](absl::string_view routine, llvm::ArrayRef<llvm::Value*> args) {
      return call(absl::StrCat(routine, Suffix(t)), args);
    };
    if (c.routine == LapackRoutine::kGetrf && c.rows == c.cols && AreSideBySide(t, c.cols * c.cols, c.batch)) {
      const SideBySide side = Beside(t, c.cols * c.cols, c.batch);
      const auto at = [&](llvm::Value* p, const Shape& s) { return AtMatrix(p, side.first, s, c.batch); };
      const std::vector<Shape>& results = i_->shape().tuple();
      ir_.CallLibrary(
          absl::StrCat("kiln_linalg_getrf_side_by_side", Suffix(t)), b_.getVoidTy(),
          {at(body_.operands[0], results[0]), at(body_.results[0], results[0]), at(body_.results[1], results[1]),
           at(body_.results[2], results[2]), ir_.I64(c.cols), side.count, side.work});
      return side.units;
    }
    switch (c.routine) {
      case LapackRoutine::kGetrf:
        return typed("getrf", {x[0], y[0], y[1], y[2], m, n, count, work});
      case LapackRoutine::kGeqrf:
        return typed("geqrf", {x[0], y[0], y[1], m, n, count, work});
      case LapackRoutine::kOrgqr:
        return typed("orgqr", {x[0], x[1], y[0], m, n, extent(i_->operand(1)->shape(), 1), count, work});
      case LapackRoutine::kOrmqr:
        return typed("ormqr", {x[0], x[1], x[2], y[0], m, n, extent(i_->operand(1)->shape(), 1),
                               extent(i_->shape(), c.left ? 1 : 2), count, ir_.I64(c.left), ir_.I64(c.adjoint), work});
      case LapackRoutine::kGeqp3:
        return call("geqp3", {x[0], x[1], y[0], y[1], y[2], m, n, count, wide, parts, work});
      case LapackRoutine::kSyevd: {
        llvm::Value* info = y.size() > 2 ? y[2] : none;
        return call(IsComplex(t) ? "heevd" : "syevd",
                    {x[0], y[0], y[1], info, n, count, wide, ir_.I64(c.lower), ir_.I64(c.vectors && IsRead(0)), work});
      }
      case LapackRoutine::kGesdd:
        return call(
            IsComplex(t) ? "complex_gesdd" : "gesdd",
            {x[0], y[0], y[1], y[2], y[3], y[4], m, n, extent(i_->shape().tuple()[2], 1),
             extent(i_->shape().tuple()[3], 2), count, wide, ir_.I64(c.vectors && (IsRead(2) || IsRead(3))), work});
      case LapackRoutine::kGehrd:
        return call("gehrd", {x[0], y[0], y[1], y[2], n, ir_.I64(c.low), ir_.I64(c.high), count, wide, parts, work});
      case LapackRoutine::kSytrd:
        return call("sytrd", {x[0], y[0], y[1], y[2], y[3], y[4], n, count, wide, parts, ir_.I64(c.lower), work});
      case LapackRoutine::kGeev: {
        // Complex eigenvalues are one result.
        if (IsComplex(t)) y.insert(y.begin() + 1, none);
        return call("geev", {x[0], y[0], y[1], y[2], y[3], y[4], n, count, wide, parts, ir_.I64(c.left_vectors),
                             ir_.I64(c.vectors), work});
      }
      case LapackRoutine::kGees: {
        if (IsComplex(t)) y.insert(y.begin() + 3, none);
        return call("gees",
                    {x[0], y[0], y[1], y[2], y[3], y[4], y[5], n, count, wide, parts, ir_.I64(c.vectors), work});
      }
      case LapackRoutine::kGtsv:
        return typed("gtsv", {x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3], y[4], m, n, count});
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

  // Of a routine's name, for each type one.
  static std::string Suffix(PrimitiveType t) { return absl::StrCat(IsComplex(t) ? "_c" : "_f", 8 * ByteWidth(t)); }
  // How many numbers an element is.
  static int64_t Parts(PrimitiveType t) { return IsComplex(t) ? 2 : 1; }

  // As linalg_complex_solve.inc says it. Of real matrices nothing is copied.
  static int64_t SolveScratch(const Instruction* i) {
    const PrimitiveType t = i->shape().type();
    const int64_t n = i->operand(0)->shape().dims().back(),
                  batches = n ? i->operand(0)->shape().ElementCount() / (n * n) : 0;
    if (!IsComplex(t) || batches == 0) return 0;
    const int64_t lanes = LanesOf(ComponentType(t)),
                  more = i->Is(Opcode::Cholesky) ? 2 * lanes * n : i->shape().ElementCount() / batches + lanes * n;
    return ByteWidth(ComponentType(t)) * 2 * (n * n + more);
  }

  static constexpr int64_t kBlock = 32;

  // padded, TURNS and JOIN_WORK of linalg_*.inc.
  static int64_t Padded(int64_t n) {
    const int64_t whole = (n + 7) / 8 * 8;
    return whole % 64 ? whole : whole + 8;
  }
  static int64_t Turns(int64_t n) {
    constexpr int64_t kSweeps = 4;
    return (2 * kSweeps + 3) * (n + 2 * kSweeps + 2);
  }
  static int64_t JoinWork(int64_t n, int64_t count, int64_t parts) {
    return parts * kBlock * (n + 2 * count + 2 * kBlock);
  }

  // As linalg*.inc say it at each routine.
  static int64_t LapackScratch(const Instruction* i, const LapackCall& c) {
    constexpr int64_t kWide = 8, kRoom = 32;
    const int64_t m = c.rows, n = c.cols, l = std::max(m, n), k = std::min(m, n);
    const PrimitiveType t = i->operand(0)->shape().type();
    const int64_t parts = Parts(t), width = ByteWidth(ComponentType(t));
    // Of few columns of real matrices no blocks are made.
    const int64_t few = parts == 1 && n <= 44 && m * n <= 65536 ? 2 * m * n : 0;
    const auto reflectors = [&](int64_t columns) {
      return parts > 1 ? 2 * m * columns + kBlock * 2 * (m + kRoom + columns + kBlock)
                       : kBlock * (m + columns + kBlock);
    };
    switch (c.routine) {
      case LapackRoutine::kGetrf:
        return width * (parts > 1 ? 2 * m * n + 2 * kBlock * (m + kRoom) : kBlock * m);
      case LapackRoutine::kGeqrf:
      case LapackRoutine::kOrgqr:
        return width * std::max(few, reflectors(n));
      case LapackRoutine::kOrmqr: {
        const int64_t columns = i->shape().dim(i->shape().rank() - (c.left ? 1 : 2));
        return width * (reflectors(columns) + (parts > 1 || c.left ? 0 : m * columns));
      }
      case LapackRoutine::kGeqp3:
        return kWide * (parts * m * n + 2 * n);
      case LapackRoutine::kSyevd:
        return kWide * (parts * (2 * n + 4) * Padded(n) + 4 * n + Turns(n) + JoinWork(n, n, parts));
      case LapackRoutine::kGesdd: {
        const Shape &u = i->shape().tuple()[2], &vt = i->shape().tuple()[3];
        const int64_t vectors = std::max(u.dims().back(), vt.dim(vt.rank() - 2));
        return kWide * (parts * ((k + 3 + vectors) * Padded(l) + 2 * (k + 1) * Padded(k)) + 6 * k + 2 * Turns(k) +
                        JoinWork(l, vectors, parts));
      }
      case LapackRoutine::kGehrd:
        return kWide * (parts * (n * n + n) + 3 * n);
      case LapackRoutine::kSytrd:
        return kWide * (parts * (n + 4) * Padded(n) + 4 * n);
      case LapackRoutine::kGeev:
        return kWide * (3 * parts * n * n + parts * n + 10 * n + JoinWork(n, n, parts));
      case LapackRoutine::kGees:
        return kWide * (2 * parts * n * n + parts * n + 5 * n + JoinWork(n, n, parts));
      case LapackRoutine::kGtsv:
        return 0;
    }
    return 0;
  }

 public:
  static int64_t LibraryScratch(const Instruction* i) {
    if (const auto c = LapackOf(i)) return LapackScratch(i, *c);
    if (i->Is(Opcode::Cholesky) || i->Is(Opcode::TriangularSolve)) return SolveScratch(i);
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
