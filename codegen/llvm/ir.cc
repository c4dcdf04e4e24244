#include "codegen/llvm/ir.h"

#include <cstring>

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"

namespace kiln {

llvm::Type* Ir::RegType(PrimitiveType t) {
  t = ComponentType(t);
  if (t == PrimitiveType::F64) return b.getDoubleTy();
  if (IsFloat(t)) return b.getFloatTy();
  return b.getIntNTy(InfoOf(t).bits);
}

llvm::Type* Ir::MemType(PrimitiveType t) {
  t = ComponentType(t);
  if (t == PrimitiveType::F64) return b.getDoubleTy();
  if (t == PrimitiveType::F32) return b.getFloatTy();
  return b.getIntNTy(static_cast<unsigned>(8 * ByteWidth(t)));
}

Val Ir::Constant(PrimitiveType t, const Element& e) {
  if (IsComplex(t)) {
    auto part = [&](double d) -> llvm::Value* { return llvm::ConstantFP::get(RegType(t), d); };
    return {part(e.re), part(e.im)};
  }
  if (IsFloat(t)) return {llvm::ConstantFP::get(RegType(t), RoundToType(t, e.re))};
  return {llvm::ConstantInt::get(RegType(t), static_cast<uint64_t>(e.i), true)};
}

void Ir::Tag(llvm::Instruction* i) {
  if (access_group) i->setMetadata(llvm::LLVMContext::MD_access_group, access_group);
}

llvm::Value* Ir::CallLibrary(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args) {
  std::vector<llvm::Type*> types;
  for (llvm::Value* v : args) types.push_back(v->getType());
  return b.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), args);
}

llvm::Value* Ir::CallMath(const std::string& stem, PrimitiveType t, llvm::ArrayRef<llvm::Value*> args) {
  const bool f64 = ComponentType(t) == PrimitiveType::F64;
  return CallLibrary("kiln_" + stem + (f64 ? "_f64" : "_f32"), f64 ? b.getDoubleTy() : b.getFloatTy(), args);
}

namespace {
int FlavourCode(PrimitiveType t) {
  switch (InfoOf(t).flavour) {
    case FloatFlavour::Ieee:
      return 1;
    case FloatFlavour::Fn:
      return 2;
    case FloatFlavour::Fnuz:
      return 3;
    default:
      return 4;
  }
}
}  // namespace

// The bits of a float as bf16, rounded to even, NaN kept quiet. Where masks are cheap, a tie is an odd number less:
// three instructions, of which none is a shift, instead of four.
static llvm::Value* Bf16Bits(Ir& ir, llvm::Value* v) {
  constexpr int64_t kMasks = 64;  // bytes of vectors with masks
  if (ir.level.vector_bytes != kMasks) return ir.CallLibrary("kiln_f32_to_bf16", ir.b.getInt16Ty(), {v});
  llvm::IRBuilder<>& b = ir.b;
  llvm::Value* bits = b.CreateBitCast(v, b.getInt32Ty());
  llvm::Value* up = b.CreateAdd(bits, b.getInt32(0x8000));
  llvm::Value* tie = b.CreateICmpEQ(b.CreateAnd(up, 0xffff), b.getInt32(0));
  llvm::Value* even = ir.Select(tie, b.CreateAnd(up, b.getInt32(~0x10000u)), up);
  if (ir.nans_are_short) return b.CreateTrunc(b.CreateLShr(even, 16), b.getInt16Ty());
  llvm::Value* quiet = b.CreateOr(bits, b.getInt32(0x400000));
  return b.CreateTrunc(b.CreateLShr(ir.Select(b.CreateFCmpUNO(v, v), quiet, even), 16), b.getInt16Ty());
}

void Ir::CheckBounds(llvm::Value* base, llvm::Value* element) {
  const auto array = bounds.find(base);
  if (array == bounds.end()) return;
  llvm::Value* count = I64(array->second.elements);
  auto stop = module.getOrInsertFunction(
      on_overrun, llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()}, false));
  auto* callee = llvm::cast<llvm::Function>(stop.getCallee());
  callee->setVisibility(llvm::GlobalValue::HiddenVisibility);
  callee->setDoesNotReturn();
  llvm::Value* what = b.CreateGlobalString(array->second.what, "array");
  If(b.CreateICmpUGE(element, count), [&] { b.CreateCall(stop, {what, element, count}); });
}

Val Ir::Load(PrimitiveType t, llvm::Value* base, llvm::Value* element) {
  CheckBounds(base, element);
  llvm::Type* mem = MemType(t);
  const llvm::Align align(ByteWidth(ComponentType(t)));
  auto load = [&](llvm::Value* p) {
    llvm::LoadInst* l = b.CreateAlignedLoad(mem, p, align);
    Tag(l);
    return l;
  };
  if (IsComplex(t)) {
    llvm::Value* p = b.CreateInBoundsGEP(mem, base, b.CreateShl(element, 1, "", true, true));
    return {load(p), load(b.CreateInBoundsGEP(mem, p, I64(1)))};
  }
  llvm::Value* v = load(b.CreateInBoundsGEP(mem, base, element));
  if (t == PrimitiveType::Pred) return {b.CreateICmpNE(v, b.getInt8(0))};
  if (IsFloat(t)) {
    if (t == PrimitiveType::F32 || t == PrimitiveType::F64) return {v};
    if (t == PrimitiveType::BF16)
      return {b.CreateBitCast(b.CreateShl(b.CreateZExt(v, b.getInt32Ty()), 16), b.getFloatTy())};
    if (t == PrimitiveType::F16 && level.f16c) return {FromHalf(v)};
    llvm::Value* bits = b.CreateZExt(v, b.getInt32Ty());
    if (InfoOf(t).flavour == FloatFlavour::Exponent) return {CallLibrary("kiln_e8m0_to_f32", b.getFloatTy(), {bits})};
    const TypeInfo& f = InfoOf(t);
    return {CallLibrary("kiln_small_to_f32", b.getFloatTy(),
                        {bits, b.getInt32(f.exponent_bits), b.getInt32(f.mantissa_bits), b.getInt32(ExponentBias(t)),
                         b.getInt32(FlavourCode(t))})};
  }
  if (v->getType() != RegType(t)) v = b.CreateTrunc(v, RegType(t));
  return {v};
}

void Ir::Store(PrimitiveType t, const Val& v, llvm::Value* base, llvm::Value* element) {
  CheckBounds(base, element);
  llvm::Type* mem = MemType(t);
  const llvm::Align align(ByteWidth(ComponentType(t)));
  auto store = [&](llvm::Value* x, llvm::Value* p) { Tag(b.CreateAlignedStore(x, p, align)); };
  if (IsComplex(t)) {
    llvm::Value* p = b.CreateInBoundsGEP(mem, base, b.CreateShl(element, 1, "", true, true));
    store(v.re, p);
    store(v.im, b.CreateInBoundsGEP(mem, p, I64(1)));
    return;
  }
  llvm::Value* p = b.CreateInBoundsGEP(mem, base, element);
  llvm::Value* x = v.re;
  if (IsFloat(t) && t != PrimitiveType::F32 && t != PrimitiveType::F64) {
    if (t == PrimitiveType::BF16) {
      using namespace llvm::PatternMatch;
      // What was rounded just now, or read as it is, has its bits already.
      llvm::Value* bits = nullptr;
      const bool rounded = match(x, m_BitCast(m_Shl(m_ZExt(m_Value(bits)), m_SpecificInt(16))));
      x = rounded && bits->getType() == mem ? bits : Bf16Bits(*this, x);
    } else if (t == PrimitiveType::F16 && level.f16c) {
      x = ToHalf(x);
    } else {
      const TypeInfo& f = InfoOf(t);
      x = f.flavour == FloatFlavour::Exponent
              ? CallLibrary("kiln_f32_to_e8m0", b.getInt32Ty(), {x})
              : CallLibrary("kiln_f32_to_small", b.getInt32Ty(),
                            {x, b.getInt32(f.exponent_bits), b.getInt32(f.mantissa_bits), b.getInt32(ExponentBias(t)),
                             b.getInt32(FlavourCode(t))});
      x = b.CreateTrunc(x, mem);
    }
  } else if (x->getType() != mem) {
    x = IsSigned(t) ? b.CreateSExt(x, mem) : b.CreateZExt(x, mem);
  }
  store(x, p);
}

// LLVM would make operations on f16 of those on f32 around the conversions of its own type; a GPU's flush the subnormal
// numbers of f16 where those of f32 are flushed.
llvm::Value* Ir::FromHalf(llvm::Value* bits) {
  halves_ = true;
  if (!level.HasVectors()) return b.CreateIntrinsic(llvm::Intrinsic::convert_from_fp16, {b.getFloatTy()}, {bits});
  return b.CreateFPExt(b.CreateBitCast(bits, b.getHalfTy()), b.getFloatTy());
}

llvm::Value* Ir::ToHalf(llvm::Value* x) {
  halves_ = true;
  if (!level.HasVectors()) return b.CreateIntrinsic(llvm::Intrinsic::convert_to_fp16, {b.getFloatTy()}, {x});
  return b.CreateBitCast(b.CreateFPTrunc(x, b.getHalfTy()), b.getInt16Ty());
}

llvm::Value* Ir::Round(PrimitiveType t, llvm::Value* v) {
  if (!IsFloat(t) || t == PrimitiveType::F32 || t == PrimitiveType::F64) return v;
  if (t == PrimitiveType::BF16) {
    llvm::Value* bits = Bf16Bits(*this, v);
    return b.CreateBitCast(b.CreateShl(b.CreateZExt(bits, b.getInt32Ty()), 16), b.getFloatTy());
  }
  if (t == PrimitiveType::F16 && level.f16c) return FromHalf(ToHalf(v));
  const TypeInfo& f = InfoOf(t);
  if (f.flavour == FloatFlavour::Exponent)
    return CallLibrary("kiln_e8m0_to_f32", b.getFloatTy(), {CallLibrary("kiln_f32_to_e8m0", b.getInt32Ty(), {v})});
  llvm::Value* e[] = {b.getInt32(f.exponent_bits), b.getInt32(f.mantissa_bits), b.getInt32(ExponentBias(t)),
                      b.getInt32(FlavourCode(t))};
  llvm::Value* bits = CallLibrary("kiln_f32_to_small", b.getInt32Ty(), {v, e[0], e[1], e[2], e[3]});
  return CallLibrary("kiln_small_to_f32", b.getFloatTy(), {bits, e[0], e[1], e[2], e[3]});
}

Val Ir::Convert(const Val& v, PrimitiveType from, PrimitiveType to) {
  if (from == to) return v;
  const bool from_int = IsIntegral(from) || from == PrimitiveType::Pred;
  if (to == PrimitiveType::Pred) {
    if (from_int) return {b.CreateICmpNE(v.re, llvm::ConstantInt::get(v.re->getType(), 0))};
    llvm::Value* zero = llvm::ConstantFP::get(v.re->getType(), 0);
    return {b.CreateFCmpUNE(v.re, zero)};  // the imaginary part is dropped, as in any real conversion
  }
  if (IsIntegral(to)) {
    if (from_int) return {b.CreateIntCast(v.re, RegType(to), IsSigned(from))};
    // Truncation that saturates, NaN to zero. Narrow results, whose limits are floats, are clamped before: LLVM makes
    // no vectors of its own conversion to them.
    if (constexpr int kWord = 32; InfoOf(to).bits < kWord) {
      const double values = static_cast<double>(int64_t{1} << InfoOf(to).bits), lowest = IsSigned(to) ? -values / 2 : 0;
      const auto of = [&](double x) { return llvm::ConstantFP::get(v.re->getType(), x); };
      llvm::Value* x = b.CreateMinNum(b.CreateMaxNum(v.re, of(lowest)), of(lowest + values - 1));
      x = b.CreateSelect(b.CreateFCmpORD(v.re, v.re), x, of(0));
      return {b.CreateTrunc(b.CreateFPToSI(x, b.getInt32Ty()), RegType(to))};
    }
    // The upper limit is no float, so what reaches it is chosen behind the conversion.
    const double limit = std::ldexp(1.0, InfoOf(to).bits - (IsSigned(to) ? 1 : 0));
    const auto of = [&](double x) { return llvm::ConstantFP::get(v.re->getType(), x); };
    llvm::Value* x = b.CreateMaxNum(v.re, of(IsSigned(to) ? -limit : 0));
    x = b.CreateSelect(b.CreateFCmpOLT(v.re, of(limit)), x, of(0));
    llvm::Type* type = RegType(to);
    const auto bits = static_cast<unsigned>(InfoOf(to).bits);
    llvm::Value* most = llvm::ConstantInt::get(
        type, IsSigned(to) ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
    return {b.CreateSelect(b.CreateFCmpOGE(v.re, of(limit)), most,
                           IsSigned(to) ? b.CreateFPToSI(x, type) : b.CreateFPToUI(x, type))};
  }
  const PrimitiveType part = ComponentType(to);
  llvm::Value* x = v.re;
  if (from_int) {
    // Wide integers go to narrow floats through an odd rounding, so that only one rounding shows.
    const bool narrow = IsFloat(part) && InfoOf(part).mantissa_bits < 23;
    const int bits = InfoOf(from).bits;
    if (narrow && bits > 24) {
      x = IsSigned(from) ? b.CreateSIToFP(x, b.getDoubleTy()) : b.CreateUIToFP(x, b.getDoubleTy());
      x = CallLibrary("kiln_f64_to_f32_odd", b.getFloatTy(), {x});
    } else {
      x = IsSigned(from) ? b.CreateSIToFP(x, RegType(part)) : b.CreateUIToFP(x, RegType(part));
    }
  } else if (x->getType() != RegType(part)) {
    const bool narrow = IsFloat(part) && InfoOf(part).mantissa_bits < 23 && part != PrimitiveType::F8E8M0FNU;
    auto cast = [&](llvm::Value* y) -> llvm::Value* {
      if (narrow && y->getType()->isDoubleTy()) return CallLibrary("kiln_f64_to_f32_odd", b.getFloatTy(), {y});
      return b.CreateFPCast(y, RegType(part));
    };
    x = cast(x);
    if (IsComplex(to)) return {x, v.im ? cast(v.im) : llvm::ConstantFP::get(RegType(to), 0)};
  }
  x = Round(part, x);
  if (IsComplex(to)) return {x, v.im ? v.im : llvm::ConstantFP::get(RegType(to), 0)};
  return {x};
}

void Ir::Prefetch(llvm::Value* address, Cache cache) {
  const uint32_t locality = cache == Cache::kFirst ? 3 : 2;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                    {address, b.getInt32(0), b.getInt32(locality), b.getInt32(1)});
}

llvm::AllocaInst* Ir::Alloca(llvm::Type* type, int64_t count, int64_t align) {
  llvm::BasicBlock& entry = current()->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  llvm::AllocaInst* a = at.CreateAlloca(type, count == 1 ? nullptr : at.getInt64(static_cast<uint64_t>(count)));
  a->setAlignment(llvm::Align(static_cast<uint64_t>(align)));
  return a;
}

void Ir::Loop(llvm::Value* from, llvm::Value* to, int64_t step, const std::function<void(llvm::Value*)>& body,
              bool parallel) {
  LoopWith({}, from, to, step, body, parallel);
}

llvm::Metadata* Ir::Hint(const std::string& name, llvm::Metadata* value) {
  llvm::SmallVector<llvm::Metadata*, 2> parts = {llvm::MDString::get(ctx, "llvm.loop." + name)};
  if (value) parts.push_back(value);
  return llvm::MDNode::get(ctx, parts);
}

namespace {
llvm::Metadata* Number(llvm::Constant* c) { return llvm::ConstantAsMetadata::get(c); }
}  // namespace

void Ir::VectorLoop(int64_t n, const std::function<void(llvm::Value*)>& body, bool parallel, int64_t sums) {
  constexpr int64_t kShortest = 5;    // scalars are as fast below
  constexpr int64_t kLongest = 4096;  // what is left of a longer loop is not worth code
  const int64_t lanes = level.vector_bytes / 4, rest = n % lanes, even = n - rest;
  const bool masks = level.vector_bytes == 64 && masked_stores;
  if (n < kShortest || n > kLongest || (n < lanes && n != lanes / 2 && !masks))
    return Loop(I64(0), I64(n), 1, body, parallel);
  // Unrolled before it is a loop over vectors, a short loop would stay scalar.
  Hints whole = {Hint("unroll.disable"),
                 Hint("vectorize.followup_vectorized", Hint("isvectorized", Number(b.getInt32(1))))};
  Hints masked = whole;
  // Sums wait for themselves: several at a time, where that leaves no rest or is worth a loop for it. Those of many
  // numbers push each other out of registers.
  constexpr int64_t kFew = 2, kWorthARest = 512;
  const int64_t most_chains = parallel ? 1 : sums > kFew ? 2 : 4;
  int64_t chains = most_chains;
  while (chains > 1 && even % (chains * lanes)) chains /= 2;
  if (chains == 1 && even >= kWorthARest) chains = most_chains;
  Hints several = whole;
  if (chains > 1) several.push_back(Hint("interleave.count", Number(b.getInt32(static_cast<uint32_t>(chains)))));
  masked.push_back(Hint("vectorize.predicate.enable", Number(b.getTrue())));
  if (n == lanes / 2) return LoopWith(whole, I64(0), I64(n), 1, body, parallel);  // a vector of half the width
  const int64_t most = even - even % (chains * lanes);
  LoopWith(several, I64(0), I64(most), 1, body, parallel);
  LoopWith(whole, I64(most), I64(even), 1, body, parallel);
  if (masks) return LoopWith(rest == lanes / 2 ? whole : masked, I64(even), I64(n), 1, body, parallel);
  const int64_t eight = even + (rest & 8), four = eight + (rest & 4);
  LoopWith(whole, I64(even), I64(eight), 1, body, parallel);
  LoopWith(whole, I64(eight), I64(four), 1, body, parallel);
  Loop(I64(four), I64(n), 1, body, parallel);
}

void Ir::LoopWith(Hints hints, llvm::Value* from, llvm::Value* to, int64_t step,
                  const std::function<void(llvm::Value*)>& body, bool parallel) {
  auto* cf = llvm::dyn_cast<llvm::ConstantInt>(from);
  auto* ct = llvm::dyn_cast<llvm::ConstantInt>(to);
  if (cf && ct) {
    if (cf->getSExtValue() >= ct->getSExtValue()) return;
    if (cf->getSExtValue() + step >= ct->getSExtValue()) {
      body(from);
      return;
    }
  }
  llvm::Function* f = current();
  auto* head = llvm::BasicBlock::Create(ctx, "loop", f);
  auto* done = llvm::BasicBlock::Create(ctx, "done", f);
  llvm::BasicBlock* before = b.GetInsertBlock();
  if (cf && ct)
    b.CreateBr(head);
  else
    b.CreateCondBr(b.CreateICmpSLT(from, to), head, done);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(from, before);
  llvm::MDNode* outer = access_group;
  llvm::MDNode* group = nullptr;
  if (parallel) {
    group = llvm::MDNode::getDistinct(ctx, {});
    access_group = group;
  }
  halves_ = false;
  body(i);
  access_group = outer;
  if (halves_) {
    int64_t width = level.vector_bytes / 4;
    if (cf && ct)
      while (width * step > ct->getSExtValue() - cf->getSExtValue()) width /= 2;
    hints.push_back(Hint("vectorize.width", Number(b.getInt32(static_cast<uint32_t>(width)))));
  }
  halves_ = false;
  llvm::Value* next = b.CreateAdd(i, I64(step), "", true, true);
  i->addIncoming(next, b.GetInsertBlock());
  llvm::BranchInst* back = b.CreateCondBr(b.CreateICmpSLT(next, to), head, done);
  if (parallel)
    hints.push_back(llvm::MDNode::get(ctx, {llvm::MDString::get(ctx, "llvm.loop.parallel_accesses"), group}));
  if (!hints.empty()) {
    hints.insert(hints.begin(), nullptr);
    llvm::MDNode* id = llvm::MDNode::getDistinct(ctx, hints);
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b.SetInsertPoint(done);
}

void Ir::If(llvm::Value* cond, const std::function<void()>& then) {
  llvm::Function* f = current();
  auto* yes = llvm::BasicBlock::Create(ctx, "then", f);
  auto* done = llvm::BasicBlock::Create(ctx, "endif", f);
  b.CreateCondBr(cond, yes, done);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

}  // namespace kiln
