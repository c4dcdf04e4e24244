// Fourier transforms: a block for a few lines, which lie in shared memory while they are transformed. Lines that are
// too long for it, or of lengths with large prime factors, are a thread's each, by the kernel library.
//
// Stockham's form, which needs no reordering: with s the product of the radices so far, butterfly j of radix r reads
// elements j + k n / r, multiplies them by roots and writes them to (j / s) s r + j mod s + k s of another array. Lines
// of real numbers go in pairs, one as the imaginary part of the other.
#include "codegen/elemental/fft.h"

#include <algorithm>
#include <cmath>

#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"
#include "compiler/hlo/transforms.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kMostWorkBytes = 64 << 20;  // of a transform's workers together
constexpr int64_t kFewThreads = 128, kMostThreads = 256;

struct BlockForm {
  int64_t lines = 0;  // that a block transforms (of real ones: pairs); 0: there is no room for one
  int64_t all = 0;    // lines or pairs of the axis
  int64_t threads = 0;
};

BlockForm FormOf(const Instruction* i, const FftAxis& axis) {
  BlockForm f;
  f.all = axis.kind == 0 ? axis.lines : (axis.lines + 1) / 2;
  const int64_t most = LinesInBlock(axis.n, ComponentType(i->shape().type()));
  const int64_t of_line = std::max<int64_t>(1, axis.n / 4);
  // Neighbours in memory belong to other lines where an axis is not the last: a sector of memory stays together.
  constexpr int64_t kSector = 4;
  f.lines = std::max(kFewThreads / of_line, axis.inner > 1 ? kSector : 1);
  f.lines = std::min({f.lines, f.all, most});
  f.threads = std::min((f.lines * of_line + kWarp - 1) / kWarp * kWarp, kMostThreads);
  return f;
}

struct Complex {
  llvm::Value *re, *im;
};

// One axis, and where the elements of its lines come from and go to, by their places in row-major arrays.
struct AxisWork {
  const Instruction* fft;
  const FftAxis& axis;
  std::function<absl::StatusOr<Val>(llvm::Value* place)> load;
  std::function<absl::Status(const Val& v, llvm::Value* place)> store;
};

// The kernel of one axis, by blocks.
class BlockTransform {
 public:
  BlockTransform(Body& body, const AxisWork& work, const BlockForm& form)
      : body_(body),
        ir_(body.ir),
        b_(body.ir.b),
        work_(work),
        axis_(work.axis),
        form_(form),
        type_(ComponentType(work.fft->shape().type())),
        inverse_(*work.fft->attrs().fft_type == FftType::IFFT || *work.fft->attrs().fft_type == FftType::IRFFT) {}

  absl::Status Run() {
    body_.blocks = (form_.all + form_.lines - 1) / form_.lines;
    body_.threads = form_.threads;
    thread_ = body_.grid.Thread();
    first_ = ir_.Mul(body_.grid.Block(), form_.lines);
    for (auto& place : places_)
      for (llvm::Value*& part : place) part = body_.grid.Shared(ir_.MemType(type_), form_.lines * axis_.n);
    roots_ = FftRoots(ir_, axis_.n, type_);
    Load();
    body_.grid.Barrier();
    int64_t done = 1;
    for (const int64_t radix : RadicesOf(axis_.n)) {
      Pass(radix, done);
      body_.grid.Barrier();
      std::swap(places_[0], places_[1]);
      done *= radix;
    }
    Store();
    return status_;
  }

 private:
  // visit(line of the block, element) for `elements` of each line; neighbouring threads are neighbours in memory.
  void ForElements(int64_t elements, const std::function<void(llvm::Value*, llvm::Value*)>& visit) {
    ir_.Loop(thread_, ir_.I64(form_.lines * elements), form_.threads, [&](llvm::Value* e) {
      if (axis_.inner == 1)
        visit(b_.CreateUDiv(e, ir_.I64(elements)), b_.CreateURem(e, ir_.I64(elements)));
      else
        visit(b_.CreateURem(e, ir_.I64(form_.lines)), b_.CreateUDiv(e, ir_.I64(form_.lines)));
    });
  }

  // Of line `line` of the axis, which has `extent` elements: where element `k` lies.
  llvm::Value* Place(llvm::Value* line, llvm::Value* k, int64_t extent) {
    llvm::Value *outer = b_.CreateUDiv(line, ir_.I64(axis_.inner)), *inner = b_.CreateURem(line, ir_.I64(axis_.inner));
    return ir_.Add(ir_.Mul(ir_.Add(ir_.Mul(outer, extent), k), axis_.inner), inner);
  }

  llvm::Value* Least(llvm::Value* x, int64_t y) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, ir_.I64(y));
  }
  Val LoadAt(llvm::Value* place) {
    absl::StatusOr<Val> v = work_.load(place);
    if (v.ok()) return *v;
    status_ = v.status();
    return {Number(0), Number(0)};
  }
  void StoreAt(const Val& v, llvm::Value* place) {
    if (const absl::Status s = work_.store(v, place); !s.ok()) status_ = s;
  }
  llvm::Value* Number(double x) { return llvm::ConstantFP::get(ir_.RegType(type_), x); }

  Complex Get(llvm::Value* at) {
    llvm::Type* t = ir_.MemType(type_);
    return {b_.CreateLoad(t, b_.CreateInBoundsGEP(t, places_[0][0], at)),
            b_.CreateLoad(t, b_.CreateInBoundsGEP(t, places_[0][1], at))};
  }
  void Put(int64_t place, const Complex& v, llvm::Value* at) {
    llvm::Type* t = ir_.MemType(type_);
    b_.CreateStore(v.re, b_.CreateInBoundsGEP(t, places_[place][0], at));
    b_.CreateStore(v.im, b_.CreateInBoundsGEP(t, places_[place][1], at));
  }

  // The two lines of pair `pair`, and whether there is a second; else it is the first again.
  struct Pair {
    llvm::Value *first, *second, *whole;
  };
  Pair PairAt(llvm::Value* pair) {
    llvm::Value *first = ir_.Mul(pair, 2), *next = ir_.Add(first, ir_.I64(1));
    return {first, Least(next, axis_.lines - 1), b_.CreateICmpULT(next, ir_.I64(axis_.lines))};
  }

  void Load() {
    const int64_t n = axis_.n, half = n / 2 + 1;
    ForElements(n, [&](llvm::Value* q, llvm::Value* k) {
      llvm::Value *line = Least(ir_.Add(first_, q), form_.all - 1), *at = ir_.Add(ir_.Mul(q, n), k);
      llvm::Value* zero = Number(0);
      if (axis_.kind == 0) {
        const Val v = LoadAt(Place(line, k, n));
        return Put(0, {v.re, v.im}, at);
      }
      const Pair p = PairAt(line);
      if (axis_.kind == 1) {
        llvm::Value* second = LoadAt(Place(p.second, k, n)).re;
        return Put(0, {LoadAt(Place(p.first, k, n)).re, b_.CreateSelect(p.whole, second, zero)}, at);
      }
      // The second half mirrors the first, and its ends are real.
      llvm::Value *mirror = b_.CreateSub(ir_.I64(n), k), *upper = b_.CreateICmpUGT(k, mirror);
      llvm::Value* edge = b_.CreateOr(b_.CreateICmpEQ(k, ir_.I64(0)), b_.CreateICmpEQ(k, mirror));
      llvm::Value* from = b_.CreateSelect(upper, mirror, k);
      const Val x = LoadAt(Place(p.first, from, half));
      const Val y = LoadAt(Place(p.second, from, half));
      const auto imaginary = [&](llvm::Value* im) {
        return b_.CreateSelect(edge, zero, b_.CreateSelect(upper, b_.CreateFNeg(im), im));
      };
      llvm::Value *yr = b_.CreateSelect(p.whole, y.re, zero), *yi = b_.CreateSelect(p.whole, imaginary(y.im), zero);
      Put(0, {b_.CreateFSub(x.re, yi), b_.CreateFAdd(imaginary(x.im), yr)}, at);
    });
  }

  // Radix `r` after radices whose product is `done`.
  void Pass(int64_t r, int64_t done) {
    const int64_t n = axis_.n, butterflies = n / r;
    ir_.Loop(thread_, ir_.I64(form_.lines * butterflies), form_.threads, [&](llvm::Value* e) {
      llvm::Value *q = b_.CreateUDiv(e, ir_.I64(butterflies)), *j = b_.CreateURem(e, ir_.I64(butterflies));
      llvm::Value *base = ir_.Mul(q, n), *low = b_.CreateURem(j, ir_.I64(done));
      std::vector<Complex> v;
      for (int64_t k = 0; k < r; ++k) {
        v.push_back(Get(ir_.Add(base, ir_.Add(j, ir_.I64(k * butterflies)))));
        if (k > 0 && done > 1) v.back() = Times(v.back(), Root(ir_.Mul(low, k * (butterflies / done))));
      }
      v = Small(v);
      llvm::Value* to = ir_.Add(base, ir_.Add(ir_.Mul(b_.CreateUDiv(j, ir_.I64(done)), done * r), low));
      for (int64_t k = 0; k < r; ++k) Put(1, v[static_cast<size_t>(k)], ir_.Add(to, ir_.I64(k * done)));
    });
  }

  // exp(-2 pi i k / n), conjugated for the inverse.
  Complex Root(llvm::Value* k) {
    llvm::Type* t = ir_.RegType(type_);
    llvm::Value* at = ir_.Mul(k, 2);
    Complex w{b_.CreateLoad(t, b_.CreateInBoundsGEP(t, roots_, at)),
              b_.CreateLoad(t, b_.CreateInBoundsGEP(t, roots_, ir_.Add(at, ir_.I64(1))))};
    if (inverse_) w.im = b_.CreateFNeg(w.im);
    return w;
  }

  Complex Times(const Complex& x, const Complex& y) {
    return {b_.CreateFSub(b_.CreateFMul(x.re, y.re), b_.CreateFMul(x.im, y.im)),
            b_.CreateFAdd(b_.CreateFMul(x.re, y.im), b_.CreateFMul(x.im, y.re))};
  }
  Complex Plus(const Complex& x, const Complex& y) { return {b_.CreateFAdd(x.re, y.re), b_.CreateFAdd(x.im, y.im)}; }
  Complex Minus(const Complex& x, const Complex& y) { return {b_.CreateFSub(x.re, y.re), b_.CreateFSub(x.im, y.im)}; }
  // -i x, or i x for the inverse.
  Complex Turned(const Complex& x) {
    return inverse_ ? Complex{b_.CreateFNeg(x.im), x.re} : Complex{x.im, b_.CreateFNeg(x.re)};
  }

  // The transform of a few values.
  std::vector<Complex> Small(const std::vector<Complex>& v) {
    if (v.size() == 2) return {Plus(v[0], v[1]), Minus(v[0], v[1])};
    if (v.size() == 4) {
      const Complex a = Plus(v[0], v[2]), c = Minus(v[0], v[2]), d = Plus(v[1], v[3]), e = Turned(Minus(v[1], v[3]));
      return {Plus(a, d), Plus(c, e), Minus(a, d), Minus(c, e)};
    }
    // An odd length: results k and r - k share the cosines of sums and the sines of differences.
    const size_t r = v.size();
    std::vector<Complex> out(r, v[0]), sum, difference;
    for (size_t q = 1; q <= r / 2; ++q) {
      sum.push_back(Plus(v[q], v[r - q]));
      difference.push_back(Minus(v[q], v[r - q]));
      out[0] = Plus(out[0], sum.back());
    }
    for (size_t k = 1; k <= r / 2; ++k) {
      Complex even = v[0], odd{};
      for (size_t q = 1; q <= r / 2; ++q) {
        const double angle = 2 * std::acos(-1.0) * static_cast<double>(k * q % r) / static_cast<double>(r);
        even = Plus(even, Scaled(sum[q - 1], std::cos(angle)));
        const Complex part = Scaled(difference[q - 1], std::sin(angle));
        odd = odd.re ? Plus(odd, part) : part;
      }
      odd = Turned(odd);
      out[k] = Plus(even, odd);
      out[r - k] = Minus(even, odd);
    }
    return out;
  }
  Complex Scaled(const Complex& x, double by) {
    return {b_.CreateFMul(x.re, Number(by)), b_.CreateFMul(x.im, Number(by))};
  }

  void Store() {
    const int64_t n = axis_.n, written = axis_.kind == 1 ? n / 2 + 1 : n;
    ForElements(written, [&](llvm::Value* q, llvm::Value* k) {
      llvm::Value *line = ir_.Add(first_, q), *base = ir_.Mul(q, n);
      const auto store = [&] { StoreElement(line, base, k, written); };
      if (form_.all % form_.lines == 0)
        store();
      else
        ir_.If(b_.CreateICmpULT(line, ir_.I64(form_.all)), store);
    });
  }

  void StoreElement(llvm::Value* line, llvm::Value* base, llvm::Value* k, int64_t written) {
    const int64_t n = axis_.n;
    Complex z = Get(ir_.Add(base, k));
    if (inverse_) z = Scaled(z, 1.0 / static_cast<double>(n));
    if (axis_.kind == 0) return StoreAt({z.re, z.im}, Place(line, k, n));
    const Pair p = PairAt(line);
    if (axis_.kind == 2) {
      StoreAt({z.re}, Place(p.first, k, n));
      ir_.If(p.whole, [&] { StoreAt({z.im}, Place(p.second, k, n)); });
      return;
    }
    llvm::Value* mirror = b_.CreateSelect(b_.CreateICmpEQ(k, ir_.I64(0)), k, b_.CreateSub(ir_.I64(n), k));
    const Complex w = Get(ir_.Add(base, mirror)), conjugate{w.re, b_.CreateFNeg(w.im)};
    const Complex x = Scaled(Plus(z, conjugate), 0.5), y = Scaled(Minus(z, conjugate), 0.5);
    StoreAt({x.re, x.im}, Place(p.first, k, written));
    ir_.If(p.whole, [&] { StoreAt({y.im, b_.CreateFNeg(y.re)}, Place(p.second, k, written)); });
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const AxisWork& work_;
  const FftAxis& axis_;
  const BlockForm& form_;
  llvm::Value *thread_ = nullptr, *first_ = nullptr, *roots_ = nullptr;
  llvm::Value* places_[2][2] = {};  // real and imaginary parts of all lines, read and written
  const PrimitiveType type_;
  const bool inverse_;
  absl::Status status_;
};

struct Workers {
  int64_t lines = 1;  // of each
  int64_t count = 0;
};

// What a thread of any axis works in.
int64_t ThreadBytes(const Instruction* i) {
  int64_t bytes = 0;
  for (const FftAxis& a : FftAxes(i))
    bytes = std::max(bytes, PlanFftThread(a, ComponentType(i->shape().type())).work_bytes);
  return bytes;
}

// Threads that transform whole lines.
Workers WorkersFor(const Instruction* i, const FftAxis& axis) {
  if (FormOf(i, axis).lines > 0) return {};
  const int64_t most = std::max<int64_t>(1, kMostWorkBytes / ThreadBytes(i));
  int64_t lines = std::max<int64_t>(1, (axis.lines + most - 1) / most);
  if (axis.kind != 0) lines = (lines + 1) / 2 * 2;  // real lines travel in pairs
  return {lines, (axis.lines + lines - 1) / lines};
}

int64_t WorkBytes(const Instruction* i) {
  int64_t count = 0;
  for (const FftAxis& a : FftAxes(i)) count = std::max(count, WorkersFor(i, a).count);
  return count * ThreadBytes(i);
}

// What the spectrum between axes takes where it cannot lie in the result, because loops behind the transform give that
// another type. Real results are written by the last axis alone.
int64_t BetweenBytes(const Instruction* i, const Instruction* fft) {
  const bool same = ByteWidth(i->shape().type()) == ByteWidth(fft->shape().type());
  const bool once = FftAxes(fft).size() == 1 || *fft->attrs().fft_type == FftType::IRFFT;
  return same || once ? 0 : fft->shape().ByteSize();
}

class Transform {
 public:
  Transform(Body& body, const Instruction* fft)
      : body_(body), ir_(body.ir), i_(body.i), fft_(fft), elements_(body.ir, body.operands) {}

  absl::Status Run(const FftAxis& axis, bool last) {
    const BlockForm form = FormOf(fft_, axis);
    if (form.lines == 0) return RunByThreads(axis);
    const AxisWork work{fft_, axis, [&](llvm::Value* place) { return Load(axis, place); },
                        [&](const Val& v, llvm::Value* place) { return Store(axis, last, v, place); }};
    return BlockTransform(body_, work, form).Run();
  }

 private:
  llvm::Value* Scratch(llvm::Value* bytes) { return ir_.b.CreateInBoundsGEP(ir_.b.getInt8Ty(), body_.scratch, bytes); }

  llvm::Value* At(FftAxis::Place place) {
    switch (place) {
      case FftAxis::kOperand:
        return body_.operands[0];
      case FftAxis::kHalf:
        return Scratch(ir_.I64(WorkBytes(fft_)));
      case FftAxis::kResult:
        return BetweenBytes(i_, fft_) ? body_.scratch : body_.results[0];
    }
  }

  // The array's type: the operand's in its place and between the axes of a real result, else the transform's.
  PrimitiveType TypeAt(FftAxis::Place place) const {
    return (place == FftAxis::kResult ? fft_ : fft_->operand(0))->shape().type();
  }

  absl::StatusOr<Val> Load(const FftAxis& axis, llvm::Value* place) {
    const Instruction* operand = fft_->operand(0);
    if (axis.from != FftAxis::kOperand || i_ == fft_) return ir_.Load(TypeAt(axis.from), At(axis.from), place);
    const Shape& s = operand->shape();
    return elements_.Emit(operand, Index{Delinearize(ir_, place, s.dims(), MemoryOrder(s)), place});
  }

  absl::Status Store(const FftAxis& axis, bool last, const Val& v, llvm::Value* place) {
    if (!last || i_ == fft_) {
      ir_.Store(TypeAt(axis.to), v, At(axis.to), place);
      return absl::OkStatus();
    }
    const Instruction* root = (*i_->attrs().calls)->root();
    const Shape& s = root->shape();
    elements_.Preset(fft_, v);
    ASSIGN_OR_RETURN(const Val out,
                     elements_.Emit(root, Index{Delinearize(ir_, place, s.dims(), MemoryOrder(s)), place}));
    ir_.Store(s.type(), out, body_.results[0], place);
    return absl::OkStatus();
  }

  absl::Status RunByThreads(const FftAxis& axis) {
    const Workers workers = WorkersFor(fft_, axis);
    return ForEach(body_, workers.count, [&](llvm::Value* worker) {
      llvm::Value* first = ir_.Mul(worker, workers.lines);
      llvm::Value* last = ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir_.Add(first, ir_.I64(workers.lines)),
                                                      ir_.I64(axis.lines));
      EmitFftLines(ir_, fft_, axis, PlanFftThread(axis, ComponentType(fft_->shape().type())), At(axis.from),
                   At(axis.to), Scratch(ir_.Mul(worker, ThreadBytes(fft_))), first, last);
      return absl::OkStatus();
    });
  }

  Body& body_;
  Ir& ir_;
  const Instruction *i_, *fft_;
  ElementEmitter elements_;
};

}  // namespace

const Instruction* TransformOf(const Instruction* i) {
  if (i->Is(Opcode::Fft)) return i;
  if (!i->Is(Opcode::Fusion) || i->attrs().fusion_kind != FusionKind::kCustom) return nullptr;
  for (const auto& x : (*i->attrs().calls)->instructions())
    if (x->Is(Opcode::Fft)) return x.get();
  return nullptr;
}

int64_t FftScratchBytes(const Instruction* i) {
  const Instruction* fft = TransformOf(i);
  return WorkBytes(fft) + FftHalfBytes(fft) + BetweenBytes(i, fft);
}

// A launch for each axis.
absl::StatusOr<std::vector<Launch>> EmitFft(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                            const Instruction* i, const std::set<int64_t>& shared) {
  std::vector<Launch> out;
  if (i->shape().ElementCount() == 0) return out;
  const Instruction* fft = TransformOf(i);
  const std::vector<FftAxis> axes = FftAxes(fft);
  for (const FftAxis& axis : axes) {
    const auto emit = [&](Body& body) { return Transform(body, fft).Run(axis, &axis == &axes.back()); };
    ASSIGN_OR_RETURN(Launch l, EmitFunction(ir, target, absl::StrCat(symbol, "_axis", out.size()), i, shared, emit));
    out.push_back(l);
  }
  return out;
}

}  // namespace kiln::gpu
