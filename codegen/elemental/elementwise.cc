// Elementwise operations on values in registers.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "codegen/elemental/element.h"
#include "codegen/elemental/excess.h"
#include "codegen/elemental/never_positive.h"
#include "codegen/llvm/inverse_roots.h"
#include "codegen/llvm/quotients.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln {
namespace {

using llvm::Intrinsic::ID;
namespace Intr = llvm::Intrinsic;

// What the kernel library calls an operation on complex numbers; nullptr if it has none.
const char* ComplexStem(Opcode op) {
  if (op == Opcode::Divide) return "div";
  if (op == Opcode::Sign) return "sign";
  if (InfoOf(op).operand_types == OperandTypes::Floats) return nullptr;
#define UNARY(opcode, stem, ...) \
  if (op == Opcode::opcode) return #stem;
#define BINARY UNARY
#define ROOT UNARY
#include "compiler/hlo/functions.def"
  return nullptr;
}

bool HasExcess(const Ir& ir, PrimitiveType t) {
  return ir.keeps_excess && (t == PrimitiveType::BF16 || t == PrimitiveType::F16);
}

class Op {
 public:
  Op(Ir& ir, const Instruction* i, std::vector<Val> operands)
      : ir(ir), b(ir.b), i(i), x(std::move(operands)), t(i->operand(0)->shape().type()) {}

  absl::StatusOr<Val> Run() {
    if (HasExcess(ir, t) && TakesRounded(i))
      for (size_t k = 0; k < x.size(); ++k)
        if (MayHoldExcess(i->operand(static_cast<int64_t>(k)))) x[k].re = ir.Round(t, x[k].re);
    switch (i->opcode()) {
      case Opcode::Copy:
        return x[0];
      case Opcode::Convert:
        return ir.Convert(x[0], t, i->shape().type());
      case Opcode::Select: {
        Val r{b.CreateSelect(x[0].re, x[1].re, x[2].re)};
        if (x[1].im) r.im = b.CreateSelect(x[0].re, x[1].im, x[2].im);
        return r;
      }
      case Opcode::Complex:
        return Val{x[0].re, x[1].re};
      case Opcode::Compare:
        return Compare();
      case Opcode::Clamp: {
        const PrimitiveType v = i->shape().type();
        if (IsFloat(v)) return Val{FMin(FMax(x[1].re, x[0].re), x[2].re)};
        const bool s = IsSigned(v);
        llvm::Value* m = b.CreateBinaryIntrinsic(s ? Intr::smax : Intr::umax, x[1].re, x[0].re);
        return Val{b.CreateBinaryIntrinsic(s ? Intr::smin : Intr::umin, m, x[2].re)};
      }
      default:
        break;
    }
    if (IsComplex(t)) return Complex();
    if (IsFloat(t)) {
      auto r = Float();
      if (!r.ok()) return r.status();
      switch (i->opcode()) {  // exact results need no rounding
        case Opcode::Negate:
        case Opcode::Abs:
        case Opcode::Maximum:
        case Opcode::Minimum:
        case Opcode::Sign:
        case Opcode::IsFinite:
          return r;
        default:
          break;
      }
      if (!HasExcess(ir, t) || i->Is(Opcode::ReducePrecision)) r->re = ir.Round(t, r->re);
      return r;
    }
    return Integer();
  }

 private:
  absl::Status Bad() {
    return ErrorAt(i, absl::StrCat("has no meaning on ", TextOf(t)), absl::StatusCode::kUnimplemented);
  }
  llvm::Value* F(double v) { return llvm::ConstantFP::get(x[0].re->getType(), v); }
  llvm::Value* Un(ID id, llvm::Value* v) { return b.CreateUnaryIntrinsic(id, v); }
  llvm::Value* FMax(llvm::Value* p, llvm::Value* q) {
    if (Narrow()) return Extreme(p, q, true);
    return InVectors(p, q) ? BothWays(p, q, true) : b.CreateBinaryIntrinsic(Intr::maximum, p, q);
  }
  llvm::Value* FMin(llvm::Value* p, llvm::Value* q) {
    if (Narrow()) return Extreme(p, q, false);
    return InVectors(p, q) ? BothWays(p, q, false) : b.CreateBinaryIntrinsic(Intr::minimum, p, q);
  }
  // What x86 gives of two zeros, or of a NaN, is the second operand. Both orders together have the NaN and the right
  // zero, without masks or, of scalars, branches: a chain of extremes waits for 4 instructions instead of 16 cycles.
  // LLVM does well with a constant, and GPUs have the operation.
  bool InVectors(llvm::Value* p, llvm::Value* q) const {
    return ir.level.HasVectors() && !llvm::isa<llvm::Constant>(p) && !llvm::isa<llvm::Constant>(q);
  }
  llvm::Value* BothWays(llvm::Value* p, llvm::Value* q, bool larger) {
    llvm::Type* bits = b.getIntNTy(static_cast<unsigned>(p->getType()->getPrimitiveSizeInBits()));
    const auto better = [&](llvm::Value* first, llvm::Value* second) {
      llvm::Value* c = larger ? b.CreateFCmpOGT(first, second) : b.CreateFCmpOLT(first, second);
      return b.CreateBitCast(b.CreateSelect(c, first, second), bits);
    };
    llvm::Value *u = better(p, q), *v = better(q, p), *r = b.CreateOr(u, v);
    if (larger) {  // the sign only where both have it
      llvm::Value* sign =
          llvm::ConstantInt::get(u->getType(), llvm::APInt::getSignMask(u->getType()->getIntegerBitWidth()));
      r = b.CreateAnd(r, b.CreateNot(b.CreateAnd(b.CreateXor(u, v), sign)));
    }
    return b.CreateBitCast(r, p->getType());
  }
  bool Narrow() const { return i->shape().type() == PrimitiveType::F16; }
  // LLVM 19 shrinks minimum(fpext, fpext) to half, where x86 loses the NaN; spelled out, it stays in f32.
  llvm::Value* Extreme(llvm::Value* p, llvm::Value* q, bool max) {
    llvm::Type* bits = b.getInt32Ty();
    llvm::Value *u = b.CreateBitCast(p, bits), *v = b.CreateBitCast(q, bits);
    llvm::Value* tie = b.CreateBitCast(max ? b.CreateAnd(u, v) : b.CreateOr(u, v), p->getType());
    llvm::Value* r = b.CreateSelect(max ? b.CreateFCmpOGT(p, q) : b.CreateFCmpOLT(p, q), p, q);
    r = b.CreateSelect(b.CreateFCmpOEQ(p, q), tie, r);
    return b.CreateSelect(b.CreateFCmpUNO(p, q), llvm::ConstantFP::getNaN(p->getType()), r);
  }

  // A value that is held with more digits than its rounded largest may be a little larger than that.
  bool MayPassItsExtreme(const Instruction* difference) const {
    return HasExcess(ir, t) && difference->Is(Opcode::Subtract) && MayHoldExcess(difference->operand(0));
  }

  // cpu-root-estimates
  bool MayEstimate() const {
    return i->attrs().backend_config && absl::StrContains(i->attrs().backend_config->text, "\"root\":\"estimate\"");
  }

  // Through the kernel library, but where the C library is faster: without fused multiply-add, products with their
  // rounding errors take too long.
  llvm::Value* Math(const char* stem, llvm::ArrayRef<llvm::Value*> args) {
    static const char* const kOfPairs[] = {"sin", "cos", "tan", "pow", "erf"};
    if (!args[0]->getType()->isDoubleTy()) {
      const bool below =
          i->Is(Opcode::Exponential) && NeverPositive(i->operand(0)) && !MayPassItsExtreme(i->operand(0));
      return ir.CallMath(below ? "exp_below" : stem, PrimitiveType::F32, args);
    }
    const bool slow = !ir.level.fma && std::any_of(std::begin(kOfPairs), std::end(kOfPairs),
                                                   [&](const char* f) { return !strcmp(f, stem); });
    if (!slow) return ir.CallMath(stem, PrimitiveType::F64, args);
    llvm::Value* r = ir.CallLibrary(stem, b.getDoubleTy(), args);
    llvm::cast<llvm::CallInst>(r)->setDoesNotAccessMemory();
    return r;
  }

  absl::StatusOr<Val> Compare() {
    const Direction d = *i->attrs().direction;
    const bool total = i->attrs().compare_type == CompareType::TOTALORDER;
    using P = llvm::CmpInst;
    // In the order of Direction: floats, signed and unsigned integers.
    static constexpr std::array<P::Predicate, 3> kPredicates[] = {
        {P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
        {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
        {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE}};
    const auto& p = kPredicates[static_cast<size_t>(d)];
    if (IsComplex(t)) {
      llvm::Value *re = b.CreateFCmp(p[0], x[0].re, x[1].re), *im = b.CreateFCmp(p[0], x[0].im, x[1].im);
      if (d == Direction::EQ) return Val{b.CreateAnd(re, im)};
      if (d == Direction::NE) return Val{b.CreateOr(re, im)};
      return Bad();
    }
    if (IsFloat(t) && !total) return Val{b.CreateFCmp(p[0], x[0].re, x[1].re)};
    if (IsFloat(t)) {
      // Sign-magnitude bits as a signed integer that orders like the numbers.
      auto key = [&](llvm::Value* v) {
        const unsigned n = v->getType()->isDoubleTy() ? 64 : 32;
        llvm::Value* bits = b.CreateBitCast(v, b.getIntNTy(n));
        llvm::Value* flip = b.CreateLShr(b.CreateAShr(bits, n - 1), 1);
        return b.CreateXor(bits, flip);
      };
      return Val{b.CreateICmp(p[1], key(x[0].re), key(x[1].re))};
    }
    return Val{b.CreateICmp(IsSigned(t) ? p[1] : p[2], x[0].re, x[1].re)};
  }

  // Quotients by way of floats, where vectors gain by them; AVX-512 alone converts whole numbers of 64 bits.
  bool DividesAsFloats(llvm::Value* divisor) const {
    const int widest = ir.level.vector_bytes == 64 ? 64 : 32;
    return ir.level.HasVectors() && i->shape().rank() > 0 &&
           static_cast<int>(divisor->getType()->getIntegerBitWidth()) <= widest && !llvm::isa<llvm::Constant>(divisor);
  }

  absl::StatusOr<Val> Integer() {
    llvm::Value *p = x[0].re, *q = x.size() > 1 ? x[1].re : nullptr;
    llvm::Type* ty = p->getType();
    const unsigned bits = ty->getIntegerBitWidth();
    const bool s = IsSigned(t), pred = t == PrimitiveType::Pred;
    auto C = [&](int64_t v) -> llvm::Value* { return llvm::ConstantInt::get(ty, static_cast<uint64_t>(v), true); };
    switch (i->opcode()) {
      case Opcode::Add:
        return Val{pred ? b.CreateOr(p, q) : b.CreateAdd(p, q)};
      case Opcode::Subtract:
        return Val{pred ? b.CreateXor(p, q) : b.CreateSub(p, q)};
      case Opcode::Multiply:
        return Val{pred ? b.CreateAnd(p, q) : b.CreateMul(p, q)};
      case Opcode::Mulhi: {
        llvm::Type* wide = b.getIntNTy(2 * bits);
        llvm::Value* m = b.CreateMul(b.CreateIntCast(p, wide, s), b.CreateIntCast(q, wide, s));
        return Val{b.CreateTrunc(b.CreateLShr(m, bits), ty)};
      }
      case Opcode::Divide:
      case Opcode::Remainder: {
        const bool div = i->Is(Opcode::Divide);
        llvm::Value* zero = b.CreateICmpEQ(q, C(0));
        llvm::Value* minus = s ? b.CreateICmpEQ(q, C(-1)) : b.getFalse();
        llvm::Value* safe = b.CreateSelect(b.CreateOr(zero, minus), C(1), q);
        llvm::Value* r = DividesAsFloats(q) ? QuotientByFloats(b, p, safe, s)
                         : div              ? (s ? b.CreateSDiv(p, safe) : b.CreateUDiv(p, safe))
                                            : (s ? b.CreateSRem(p, safe) : b.CreateURem(p, safe));
        if (!div && DividesAsFloats(q)) r = b.CreateSub(p, b.CreateMul(r, safe));
        if (s) r = b.CreateSelect(minus, div ? b.CreateNeg(p) : C(0), r);
        return Val{b.CreateSelect(zero, div ? C(-1) : p, r)};
      }
      case Opcode::Maximum:
        return Val{b.CreateBinaryIntrinsic(s ? Intr::smax : Intr::umax, p, q)};
      case Opcode::Minimum:
        return Val{b.CreateBinaryIntrinsic(s ? Intr::smin : Intr::umin, p, q)};
      case Opcode::And:
        return Val{b.CreateAnd(p, q)};
      case Opcode::Or:
        return Val{b.CreateOr(p, q)};
      case Opcode::Xor:
        return Val{b.CreateXor(p, q)};
      case Opcode::Not:
        return Val{b.CreateNot(p)};
      case Opcode::Negate:
        return Val{b.CreateNeg(p)};
      case Opcode::Abs:
        return Val{s ? b.CreateIntrinsic(Intr::abs, {ty}, {p, b.getFalse()}) : p};
      case Opcode::Sign:
        if (!s) return Val{b.CreateZExt(b.CreateICmpNE(p, C(0)), ty)};
        return Val{b.CreateOr(b.CreateAShr(p, bits - 1), b.CreateZExt(b.CreateICmpSGT(p, C(0)), ty))};
      case Opcode::ShiftLeft:
      case Opcode::ShiftRightLogical:
      case Opcode::ShiftRightArithmetic: {
        // Amounts of the width and above are defined: zeros, or the sign.
        llvm::Value* over = b.CreateICmpUGE(q, C(bits));
        llvm::Value* amount = b.CreateSelect(over, C(0), q);
        if (i->Is(Opcode::ShiftRightArithmetic)) return Val{b.CreateAShr(p, b.CreateSelect(over, C(bits - 1), q))};
        return Val{
            b.CreateSelect(over, C(0), i->Is(Opcode::ShiftLeft) ? b.CreateShl(p, amount) : b.CreateLShr(p, amount))};
      }
      case Opcode::Popcnt:
        return Val{Un(Intr::ctpop, p)};
      case Opcode::CountLeadingZeros:
        return Val{b.CreateIntrinsic(Intr::ctlz, {ty}, {p, b.getFalse()})};
      case Opcode::Power: {
        // Square and multiply over every bit: the count of steps is the width, so loops stay regular.
        llvm::Value *r = C(1), *base = p;
        for (unsigned k = 0; k < bits; ++k) {
          r = b.CreateSelect(b.CreateTrunc(b.CreateLShr(q, k), b.getInt1Ty()), b.CreateMul(r, base), r);
          base = b.CreateMul(base, base);
        }
        if (!s) return Val{r};
        llvm::Value* odd = b.CreateTrunc(q, b.getInt1Ty());
        llvm::Value* neg =
            b.CreateSelect(b.CreateICmpEQ(p, C(1)), C(1),
                           b.CreateSelect(b.CreateICmpEQ(p, C(-1)), b.CreateSelect(odd, C(-1), C(1)), C(0)));
        return Val{b.CreateSelect(b.CreateICmpSLT(q, C(0)), neg, r)};
      }
      default:
        return Bad();
    }
  }

  absl::StatusOr<Val> Float() {
    llvm::Value *p = x[0].re, *q = x.size() > 1 ? x[1].re : nullptr;
    switch (i->opcode()) {
#define UNARY(opcode, stem, ...) \
  case Opcode::opcode:           \
    return Val{Math(#stem, {p})};
#define BINARY(opcode, stem, ...) \
  case Opcode::opcode:            \
    return Val{Math(#stem, {p, q})};
#define ROOT(...)
#include "compiler/hlo/functions.def"
      case Opcode::Add:
        return Val{b.CreateFAdd(p, q)};
      case Opcode::Subtract:
        return Val{b.CreateFSub(p, q)};
      case Opcode::Multiply:
        return Val{b.CreateFMul(p, q)};
      case Opcode::Divide:
        if (ir.level.vector_bytes == 64 && MayEstimate()) return Val{EstimatedQuotient(b, p, q)};
        return Val{b.CreateFDiv(p, q)};
      case Opcode::Remainder:
        return Val{Math("rem", {p, q})};
      case Opcode::Maximum:
        return Val{FMax(p, q)};
      case Opcode::Minimum:
        return Val{FMin(p, q)};
      case Opcode::Negate:
        return Val{b.CreateFNeg(p)};
      case Opcode::Abs:
        return Val{Un(Intr::fabs, p)};
      case Opcode::Sign: {
        llvm::Value* one = b.CreateBinaryIntrinsic(Intr::copysign, F(1), p);
        llvm::Value* same = b.CreateOr(b.CreateFCmpUNO(p, p), b.CreateFCmpOEQ(p, F(0)));
        return Val{b.CreateSelect(same, p, one)};
      }
      case Opcode::Ceil:
        return Val{Un(Intr::ceil, p)};
      case Opcode::Floor:
        return Val{Un(Intr::floor, p)};
      case Opcode::RoundNearestAfz: {
        // trunc(|x|) + (fraction >= 1/2), with the sign of x: exact for every magnitude.
        llvm::Value* a = Un(Intr::fabs, p);
        llvm::Value* w = Un(Intr::trunc, a);
        llvm::Value* up = b.CreateFCmpOGE(b.CreateFSub(a, w), F(0.5));
        llvm::Value* r = b.CreateSelect(up, b.CreateFAdd(w, F(1)), w);
        return Val{b.CreateBinaryIntrinsic(Intr::copysign, r, p)};
      }
      case Opcode::RoundNearestEven:
        return Val{Un(Intr::rint, p)};
      case Opcode::Sqrt:
        return Val{Un(Intr::sqrt, p)};
      case Opcode::Rsqrt:
        if (p->getType()->isFloatTy() && ir.level.vector_bytes == 64) return Val{EstimatedInverseRoot(b, p)};
        return Val{b.CreateFDiv(F(1), Un(Intr::sqrt, p))};
      case Opcode::Real:
        return Val{p};
      case Opcode::Imag:
        return Val{F(0)};
      case Opcode::IsFinite:
        return Val{b.CreateFCmpONE(Un(Intr::fabs, p), llvm::ConstantFP::getInfinity(p->getType()))};
      case Opcode::ReducePrecision:
        return ReducePrecision(p);
      default:
        return Bad();
    }
  }

  static constexpr int kLeastHalfExponent = -14;

  // f16 below its least normal number, in f32: to a multiple of the same unit. The sum with a number whose last place
  // is that unit rounds so.
  llvm::Value* RoundSubnormalHalf(llvm::Value* p, int64_t mantissa_bits) {
    const double unit = std::ldexp(1.0, kLeastHalfExponent - static_cast<int>(mantissa_bits));
    llvm::Value* large = b.CreateBinaryIntrinsic(Intr::copysign, F(std::ldexp(unit, 23)), p);
    return b.CreateBinaryIntrinsic(Intr::copysign, b.CreateFSub(b.CreateFAdd(p, large), large), p);
  }

  absl::StatusOr<Val> ReducePrecision(llvm::Value* p) {
    // Narrower types are reduced as f16 is.
    const bool half = t == PrimitiveType::F16 || InfoOf(t).bits <= 8;
    const bool f64 = p->getType()->isDoubleTy();
    const unsigned width = f64 ? 64 : 32;
    const int64_t src_m = f64 ? 52 : 23, src_e = f64 ? 11 : 8;
    const int64_t e = *i->attrs().exponent_bits, own_e = half ? 5 : src_e, own_m = half ? 10 : src_m;
    const int64_t m = std::min<int64_t>(*i->attrs().mantissa_bits, own_m);
    llvm::Type* ty = b.getIntNTy(width);
    auto C = [&](uint64_t v) -> llvm::Value* { return llvm::ConstantInt::get(ty, v); };
    llvm::Value* bits = b.CreateBitCast(p, ty);
    llvm::Value* sign = b.CreateAnd(bits, C(1ull << (width - 1)));
    llvm::Value* r = bits;
    if (m < own_m) {
      const uint64_t drop = static_cast<uint64_t>(src_m - m);
      llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, drop), C(1));
      r = b.CreateAdd(bits, b.CreateAdd(odd, C((1ull << (drop - 1)) - 1)));
      r = b.CreateAnd(r, C(~((1ull << drop) - 1)));
    }
    if (half && m < own_m && e >= own_e) {
      llvm::Value* subnormal = b.CreateFCmpOLT(Un(Intr::fabs, p), F(std::ldexp(1.0, kLeastHalfExponent)));
      r = b.CreateSelect(subnormal, b.CreateBitCast(RoundSubnormalHalf(p, m), ty), r);
    }
    // XLA keeps to a range that is narrower than the type's own.
    if (e < own_e) {
      const uint64_t bias = (1ull << (src_e - 1)) - 1, small = (1ull << (e - 1)) - 1;
      llvm::Value* mag = b.CreateAnd(r, C((1ull << (width - 1)) - 1));
      const uint64_t inf = ((1ull << src_e) - 1) << src_m;
      llvm::Value* over = b.CreateICmpUGE(mag, C((bias + small + 1) << src_m));
      llvm::Value* under = b.CreateICmpULT(mag, C((bias - small + 1) << src_m));
      r = b.CreateSelect(over, b.CreateOr(sign, C(inf)), r);
      r = b.CreateSelect(under, sign, r);
    }
    llvm::Value* out = b.CreateBitCast(r, p->getType());
    // NaN stays, unless no bit is left to tell it from infinity by.
    llvm::Value* nan = p;
    if (m == 0) nan = b.CreateBinaryIntrinsic(Intr::copysign, llvm::ConstantFP::getInfinity(p->getType()), p);
    return Val{b.CreateSelect(b.CreateFCmpUNO(p, p), nan, out)};
  }

  // Complex arithmetic. Anything beyond products works in double through real functions.
  absl::StatusOr<Val> Complex() {
    const Val p = x[0], q = x.size() > 1 ? x[1] : Val{};
    switch (i->opcode()) {
      case Opcode::Add:
        return Val{b.CreateFAdd(p.re, q.re), b.CreateFAdd(p.im, q.im)};
      case Opcode::Subtract:
        return Val{b.CreateFSub(p.re, q.re), b.CreateFSub(p.im, q.im)};
      case Opcode::Multiply:
        return Mul(p, q);
      case Opcode::Maximum:
      case Opcode::Minimum: {
        // By the real part, then the imaginary one; a NaN passes on.
        llvm::Value* less =
            b.CreateSelect(b.CreateFCmpUNE(p.re, q.re), b.CreateFCmpOLT(p.re, q.re), b.CreateFCmpOLT(p.im, q.im));
        llvm::Value* second = i->Is(Opcode::Maximum) ? less : b.CreateNot(less);
        auto nan = [&](const Val& v) { return b.CreateFCmpUNO(v.re, v.im); };
        second = b.CreateAnd(b.CreateOr(second, nan(q)), b.CreateNot(nan(p)));
        return Val{b.CreateSelect(second, q.re, p.re), b.CreateSelect(second, q.im, p.im)};
      }
      case Opcode::Negate:
        return Val{b.CreateFNeg(p.re), b.CreateFNeg(p.im)};
      case Opcode::Real:
        return Val{p.re};
      case Opcode::Imag:
        return Val{p.im};
      case Opcode::IsFinite: {
        llvm::Value* inf = llvm::ConstantFP::getInfinity(p.re->getType());
        return Val{b.CreateAnd(b.CreateFCmpONE(Un(Intr::fabs, p.re), inf), b.CreateFCmpONE(Un(Intr::fabs, p.im), inf))};
      }
      default:
        break;
    }
    // The complex functions of the kernel library take and give doubles.
    auto wide = [&](llvm::Value* v) { return b.CreateFPCast(v, b.getDoubleTy()); };
    auto narrow = [&](llvm::Value* v) { return b.CreateFPCast(v, p.re->getType()); };
    const std::string suffix = absl::StrCat("_", TextOf(t));
    if (i->Is(Opcode::Abs))
      return Val{narrow(ir.CallLibrary("kiln_cabs" + suffix, b.getDoubleTy(), {wide(p.re), wide(p.im)}))};
    const char* stem = ComplexStem(i->opcode());
    if (!stem) return Bad();
    std::vector<llvm::Value*> args = {wide(p.re), wide(p.im)};
    if (q.re) {
      args.push_back(wide(q.re));
      args.push_back(wide(q.im));
    }
    llvm::Type* parts = llvm::StructType::get(b.getDoubleTy(), b.getDoubleTy());
    llvm::Value* r = ir.CallLibrary(absl::StrCat("kiln_c", stem, suffix), parts, args);
    return Val{narrow(b.CreateExtractValue(r, 0)), narrow(b.CreateExtractValue(r, 1))};
  }

  Val Mul(const Val& p, const Val& q) {
    return {b.CreateFSub(b.CreateFMul(p.re, q.re), b.CreateFMul(p.im, q.im)),
            b.CreateFAdd(b.CreateFMul(p.re, q.im), b.CreateFMul(p.im, q.re))};
  }

  Ir& ir;
  llvm::IRBuilder<>& b;
  const Instruction* i;
  std::vector<Val> x;
  const PrimitiveType t;
};

}  // namespace

absl::StatusOr<Val> EmitElementwise(Ir& ir, const Instruction* i, const std::vector<Val>& x) {
  auto r = Op(ir, i, x).Run();
  const PrimitiveType t = i->shape().type();
  if (r.ok() && HasExcess(ir, t) && FeedsChoice(i)) r->re = ir.Round(t, r->re);
  return r;
}

void AllowReassociation(Ir& ir, bool allow) {
  llvm::FastMathFlags f;
  f.setAllowReassoc(allow);
  ir.b.setFastMathFlags(f);
}

}  // namespace kiln
