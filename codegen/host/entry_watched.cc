// Thunks whose time is measured and whose results are looked at.
#include <algorithm>
#include <cstddef>

#include "codegen/host/entry.h"
#include "codegen/llvm/tables.h"
#include "llvm/IR/Intrinsics.h"
#include "runtime_min/abi.h"

namespace kiln {
namespace {

// How numbers of a format that are not finite look (runtime_min/cpu/numerics.c).
struct SpecialBits {
  uint64_t mask = 0, special = 0, fraction = 0;
};

SpecialBits SpecialBitsOf(PrimitiveType t) {
  const TypeInfo& info = InfoOf(t);
  const uint64_t fraction = (uint64_t{1} << info.mantissa_bits) - 1;
  const uint64_t exponent = ((uint64_t{1} << info.exponent_bits) - 1) << info.mantissa_bits;
  const uint64_t all = (uint64_t{1} << (BitWidth(t) - 1) << 1) - 1, sign = uint64_t{1} << (BitWidth(t) - 1);
  switch (info.flavour) {
    case FloatFlavour::Ieee:
      return {exponent, exponent, fraction};
    case FloatFlavour::Fn:
      return {exponent | fraction, exponent | fraction, 0};
    case FloatFlavour::Fnuz:
      return {all, sign, 0};
    case FloatFlavour::Exponent:
      return {all, all, 0};
    default:
      return {};
  }
}

llvm::Constant* CheckedArray(Tables& tables, const Shape& s, bool overwritten) {
  const PrimitiveType type = ComponentType(s.type());
  const SpecialBits bits = IsFloat(type) ? SpecialBitsOf(type) : SpecialBits{};
  const int64_t parts = IsComplex(s.type()) ? 2 : 1;
  const auto word = [&](uint64_t v) { return tables.Number(static_cast<int64_t>(v)); };
  return tables.Struct({tables.Number(s.ElementCount() * parts), tables.Number(bits.mask ? ByteWidth(type) : 0),
                        word(bits.mask), word(bits.special), word(bits.fraction), tables.Number(parts),
                        tables.Number(overwritten), tables.Text(s.ToString(!s.HasDefaultLayout()))});
}

// What computes: others only pass on what they are given.
bool Computes(ThunkKind kind) {
  return kind == ThunkKind::Kernel || kind == ThunkKind::CustomCall || kind == ThunkKind::Exchange ||
         kind == ThunkKind::AllGather;
}

}  // namespace

llvm::FunctionCallee HostEntry::Runtime(const std::string& function, llvm::Type* result,
                                        llvm::ArrayRef<llvm::Type*> arguments) {
  auto f = ir_.module.getOrInsertFunction(absl::StrCat(options_.library, "_", function),
                                          llvm::FunctionType::get(result, arguments, false));
  llvm::cast<llvm::Function>(f.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return f;
}

void HostEntry::BeginSampling(bool entry) {
  llvm::Type *word = b_.getInt64Ty(), *ptr = b_.getPtrTy();
  constexpr int64_t kWords = sizeof(kiln_profiled_machine) / sizeof(int64_t);
  constexpr int64_t kSampled = offsetof(kiln_profiled_machine, sampled) / sizeof(int64_t);
  if (entry) {
    llvm::Value* own = ir_.Alloca(ptr, kWords, alignof(kiln_profiled_machine));
    const llvm::Align align(alignof(kiln_machine));
    b_.CreateMemCpy(own, align, machine_, align, sizeof(kiln_machine));
    b_.CreateStore(b_.CreateCall(Runtime("profile_begins", word, {})),
                   b_.CreateInBoundsGEP(word, own, ir_.I64(kSampled)));
    machine_ = own;
  }
  llvm::Value* sampled = b_.CreateLoad(word, b_.CreateInBoundsGEP(word, machine_, ir_.I64(kSampled)));
  sampled_ = b_.CreateICmpNE(sampled, ir_.I64(0));
}

absl::Status HostEntry::EmitTimed(const Thunk& t) {
  llvm::Type* i64 = b_.getInt64Ty();
  const auto ticks = [&] { return b_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {}); };
  auto* timed = llvm::BasicBlock::Create(ir_.ctx, "timed", fn_);
  auto* begins = llvm::BasicBlock::Create(ir_.ctx, "begins", fn_);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(sampled_, timed, begins);
  b_.SetInsertPoint(timed);
  llvm::Value* now = ticks();
  b_.CreateBr(begins);
  b_.SetInsertPoint(begins);
  llvm::PHINode* begin = b_.CreatePHI(i64, 2);
  begin->addIncoming(ir_.I64(0), before);
  begin->addIncoming(now, timed);
  RETURN_IF_ERROR(EmitThunk(t));
  ir_.If(sampled_, [&] {
    b_.CreateCall(Runtime("profile_record", b_.getVoidTy(), {i64, i64, i64, i64}),
                  {ir_.I64(OpOf(t)), begin, ticks(), ir_.I64(0)});
  });
  return absl::OkStatus();
}

absl::Status HostEntry::EmitWatched(const Thunk& t) {
  NumericsCheck check;
  if (options_.check_numerics && Computes(t.kind)) check = BeginNumericsCheck(t);
  RETURN_IF_ERROR(options_.profile ? EmitTimed(t) : EmitThunk(t));
  if (!check.op) return absl::OkStatus();
  FillTable(t);
  llvm::Type *ptr = b_.getPtrTy(), *i32 = b_.getInt32Ty();
  Checked(b_.CreateCall(Runtime("numerics_check", i32, {ptr, ptr, i32}), {check.op, table_, check.before}),
          KILN_NUMERICS);
  return absl::OkStatus();
}

HostEntry::NumericsCheck HostEntry::BeginNumericsCheck(const Thunk& t) {
  std::vector<Shape> reads, writes = ArrayLeaves(t.instruction->shape());
  for (const Instruction* o : t.instruction->operands())
    for (Shape& s : ArrayLeaves(o->shape())) reads.push_back(std::move(s));
  if (reads.size() != t.reads.size() || writes.size() != t.writes.size()) return {};
  Tables tables(ir_, name_ + "_checked");
  std::vector<llvm::Constant*> arrays;
  bool any_overwritten = false;
  for (size_t k = 0; k < reads.size(); ++k) {
    const bool overwritten =
        std::any_of(t.writes.begin(), t.writes.end(), [&](const Slice& w) { return w == t.reads[k]; });
    any_overwritten = any_overwritten || overwritten;
    arrays.push_back(CheckedArray(tables, reads[k], overwritten));
  }
  for (const Shape& s : writes) arrays.push_back(CheckedArray(tables, s, false));
  NumericsCheck check;
  check.op = tables.Global(tables.Struct({tables.Number(OpOf(t)), tables.Number(static_cast<int64_t>(reads.size())),
                                          tables.Number(static_cast<int64_t>(writes.size())), tables.Array(arrays)}));
  check.before = b_.getInt32(0);
  if (!any_overwritten) return check;
  FillTable(t);
  llvm::Type *ptr = b_.getPtrTy(), *i32 = b_.getInt32Ty();
  check.before = b_.CreateCall(Runtime("numerics_before", i32, {ptr, ptr}), {check.op, table_});
  return check;
}

}  // namespace kiln
