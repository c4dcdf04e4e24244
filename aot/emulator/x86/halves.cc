// AVX512-FP16: arithmetic, comparisons and moves. Elements are computed in double: sums and products of two f16 are
// exact there, and quotients and roots round to f16 as the exact ones do.
#include <cmath>
#include <cstring>

#include "aot/emulator/x86/evex_operands.h"
#include "aot/emulator/x86/extensions.h"
#include "aot/emulator/x86/half.h"

namespace kiln::x86 {
namespace {

constexpr int kHalf = 2;  // bytes

bool IsScalar(const Decoded& d) { return d.prefix == Prefix::kF3; }

// All elements of the vector, or a scalar below the rest of `above`.
void Put(const Decoded& d, const EvexOperands& operands, bool scalar, const Vector& above,
         const std::function<uint64_t(int k)>& element) {
  if (scalar)
    operands.PutScalar(kHalf, above, element);
  else
    operands.Put(d.vector_bytes / kHalf, kHalf, element);
}

// V{SQRT,ADD,MUL,SUB,MIN,DIV,MAX}{PH,SH}.
bool Arithmetic(const Decoded& d, const EvexOperands& operands) {
  enum { kSqrt = 0x51, kAdd = 0x58, kMul = 0x59, kSub = 0x5c, kMin = 0x5d, kDiv = 0x5e, kMax = 0x5f };
  if (d.map != kMap5 || d.w || (d.prefix != Prefix::kNone && !IsScalar(d))) return false;
  const auto compute = [&](int k) -> uint64_t {
    const uint64_t second = operands.Second(k, kHalf);
    const uint64_t source = operands.Source(k, kHalf, IsScalar(d) ? kHalf : d.vector_bytes);
    const double a = FromHalf(second), b = FromHalf(source);
    switch (d.opcode) {
      case kSqrt:
        return ToHalf(std::sqrt(b));
      case kAdd:
        return ToHalf(a + b);
      case kMul:
        return ToHalf(a * b);
      case kSub:
        return ToHalf(a - b);
      case kDiv:
        return ToHalf(a / b);
      case kMin:
        return a < b ? second : source;
      default:
        return a > b ? second : source;
    }
  };
  for (const int known : {kSqrt, kAdd, kMul, kSub, kMin, kDiv, kMax}) {
    if (d.opcode != known) continue;
    Put(d, operands, IsScalar(d), operands.second(), compute);
    return true;
  }
  return false;
}

// VF[N]M{ADD,SUB}{132,213,231}{PH,SH}: from 98, a8 and b8 on, packed and scalar in turn.
bool MultiplyAdds(const Decoded& d, const EvexOperands& operands) {
  const int order = d.opcode >> 4, which = d.opcode & 15;
  if (d.map != kMap6 || d.prefix != Prefix::k66 || d.w || order < 9 || order > 11 || which < 8) return false;
  const bool scalar = which & 1, negated = which >= 12, subtracts = which & 2;
  const auto compute = [&](int k) {
    const double x = FromHalf(operands.Old(k, kHalf)), y = FromHalf(operands.Second(k, kHalf));
    const double z = FromHalf(operands.Source(k, kHalf, scalar ? kHalf : d.vector_bytes));
    const double a = order == 11 ? y : x, b = order == 10 ? y : z, c = order == 9 ? y : order == 10 ? z : x;
    return ToHalf(MultiplyAdd(negated ? -a : a, b, subtracts ? -c : c));
  };
  Put(d, operands, scalar, operands.old(), compute);
  return true;
}

// How two numbers compare, as bits of the sets below.
enum { kGreater = 1, kLess = 2, kEqual = 4, kUnordered = 8 };

int Relation(double a, double b) { return a > b ? kGreater : a < b ? kLess : a == b ? kEqual : kUnordered; }

// VCMP{PH,SH}: the low bits of the predicate say which relations are true, the highest which trap.
bool Compare(const Decoded& d, const EvexOperands& operands, VectorRegisters* registers) {
  constexpr int kCompare = 0xc2, kTrue[16] = {4, 2, 6, 8, 11, 13, 9, 7, 12, 10, 14, 0, 3, 5, 1, 15};
  if (d.map != k0F3A || d.opcode != kCompare || d.w || (d.prefix != Prefix::kNone && !IsScalar(d))) return false;
  uint64_t out = 0;
  for (int k = 0; k < (IsScalar(d) ? 1 : d.vector_bytes / kHalf); ++k) {
    if (!operands.Enabled(k)) continue;
    const double b = FromHalf(operands.Source(k, kHalf, IsScalar(d) ? kHalf : d.vector_bytes));
    const bool holds = Relation(FromHalf(operands.Second(k, kHalf)), b) & kTrue[d.immediate & 15];
    out |= static_cast<uint64_t>(holds) << k;
  }
  registers->WriteMask(d.reg & 7, out);
  return true;
}

// V[U]COMISH.
bool CompareToFlags(const Decoded& d, const EvexOperands& operands, ucontext_t* context) {
  constexpr int kUnorderedQuiet = 0x2e, kOrdered = 0x2f;
  constexpr greg_t kCarry = 1, kParity = 4, kZero = 64, kCleared = 0x8d5;
  if (d.map != kMap5 || d.prefix != Prefix::kNone || d.w || d.opcode < kUnorderedQuiet || d.opcode > kOrdered)
    return false;
  greg_t& flags = context->uc_mcontext.gregs[REG_EFL];
  flags &= ~kCleared;
  switch (Relation(FromHalf(operands.Old(0, kHalf)), FromHalf(operands.Source(0, kHalf, kHalf)))) {
    case kLess:
      flags |= kCarry;
      break;
    case kEqual:
      flags |= kZero;
      break;
    case kUnordered:
      flags |= kCarry | kParity | kZero;
      break;
    default:
      break;
  }
  return true;
}

// VRNDSCALE{PH,SH}: to a multiple of a power of two.
bool Round(const Decoded& d, const EvexOperands& operands) {
  constexpr int kPacked = 0x08, kScalar = 0x0a, kOfMxcsr = 4;
  if (d.map != k0F3A || d.prefix != Prefix::kNone || d.w || (d.opcode != kPacked && d.opcode != kScalar)) return false;
  const int mode = d.immediate & kOfMxcsr ? 0 : d.immediate & 3, places = d.immediate >> 4;
  const bool scalar = d.opcode == kScalar;
  const auto compute = [&](int k) {
    const double x = std::ldexp(FromHalf(operands.Source(k, kHalf, scalar ? kHalf : d.vector_bytes)), places);
    const double whole = mode == 0   ? std::nearbyint(x)
                         : mode == 1 ? std::floor(x)
                         : mode == 2 ? std::ceil(x)
                                     : std::trunc(x);
    return ToHalf(std::ldexp(whole, -places));
  };
  Put(d, operands, scalar, operands.second(), compute);
  return true;
}

// VMOVW, between memory or a general register and a vector register, and VMOVSH, of memory or of two registers.
bool Move(const Decoded& d, const EvexOperands& operands, ucontext_t* context) {
  const bool general = d.prefix == Prefix::k66, scalar = IsScalar(d) && !d.w;
  const bool loads = (general && d.opcode == 0x6e) || (scalar && d.opcode == 0x10);
  const bool stores = (general && d.opcode == 0x7e) || (scalar && d.opcode == 0x11);
  if (d.map != kMap5 || (!loads && !stores)) return false;
  if (scalar && !d.memory) {
    if (stores) Refuse(d.at, "that is another form of a move between registers");
    operands.PutScalar(kHalf, operands.second(), [&](int) { return operands.Source(0, kHalf, kHalf); });
    return true;
  }
  greg_t* of_thread = d.memory ? nullptr : GeneralRegister(context, d.rm & 15);
  const auto value = static_cast<uint16_t>(operands.Old(0, kHalf));
  if (loads)
    operands.Put(1, kHalf,
                 [&](int) { return of_thread ? static_cast<uint64_t>(*of_thread) : operands.Source(0, kHalf, kHalf); });
  else if (of_thread)
    *of_thread = value;
  else if (operands.Enabled(0))
    std::memcpy(d.Address(kHalf), &value, sizeof value);
  return true;
}

}  // namespace

bool ExecuteHalves(const Decoded& d, ucontext_t* context, VectorRegisters* registers) {
  if (d.encoding != Encoding::kEvex) return false;
  const EvexOperands operands(d, registers);
  return Move(d, operands, context) || ConvertHalves(d, operands, context) || Arithmetic(d, operands) ||
         MultiplyAdds(d, operands) || Compare(d, operands, registers) || CompareToFlags(d, operands, context) ||
         Round(d, operands);
}

}  // namespace kiln::x86
