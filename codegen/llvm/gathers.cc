#include "codegen/llvm/gathers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/llvm/lanes.h"
#include "codegen/llvm/short_rows.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Transforms/Utils/Local.h"

namespace kiln {
namespace {

namespace in = llvm::Intrinsic;

constexpr char kArray[] = "kiln.array";
constexpr int64_t kRegister = 64, kHalfRegister = 32, kShortTable = 512, kSecondCache = 1 << 20;  // bytes

// Of the array that lies there and that nothing writes; 0: not known.
int64_t BytesOf(const llvm::Value* address) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(address);
  const llvm::MDNode* mark = load ? load->getMetadata(kArray) : nullptr;
  return mark ? llvm::mdconst::extract<llvm::ConstantInt>(mark->getOperand(0))->getSExtValue() : 0;
}

class Gathers {
 public:
  // `tables`: whether elements can be picked among registers.
  Gathers(llvm::Function& f, bool tables) : f_(f), layout_(f.getParent()->getDataLayout()), with_tables_(tables) {}

  void Run() {
    std::vector<llvm::IntrinsicInst*> gathers;
    for (llvm::BasicBlock& block : f_)
      for (llvm::Instruction& i : block)
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
            call && call->getIntrinsicID() == in::masked_gather && llvm::isa<llvm::Constant>(call->getArgOperand(2)))
          gathers.push_back(call);
    for (llvm::IntrinsicInst* gather : gathers) Rewrite(gather);
  }

 private:
  void Rewrite(llvm::IntrinsicInst* gather) {
    llvm::IRBuilder<> b(gather);
    llvm::Value* addresses = gather->getArgOperand(0);
    const std::optional<Places> places = PlacesOf(b, addresses, layout_);
    if (!places) return;
    const bool all = IsAll(gather->getArgOperand(2));
    const int64_t bytes = BytesOf(places->base);
    llvm::Value* v = FromRun(b, gather, *places);
    if (!v && (!all || (!places->first && bytes > kSecondCache && !StepOf(places->lanes)))) return;
    if (!v && with_tables_ && BytesOfShortTable(places->base)) v = FromTable(b, gather, *places);
    if (!v) v = FromLoads(b, gather, *places);
    gather->replaceAllUsesWith(v);
    gather->eraseFromParent();
    llvm::RecursivelyDeleteTriviallyDeadInstructions(addresses);
  }

  // Lanes a few elements apart, picked from registers that are loaded with those elements and none besides. Null: they
  // lie otherwise, or are so few that they are as fast one by one.
  llvm::Value* FromRun(llvm::IRBuilder<>& b, llvm::IntrinsicInst* gather, const Places& p) {
    constexpr int64_t kFarthest = 4;
    auto* type = llvm::cast<llvm::FixedVectorType>(gather->getType());
    auto* taken = llvm::cast<llvm::Constant>(gather->getArgOperand(2));
    const auto width = static_cast<int64_t>(layout_.getTypeStoreSize(type->getElementType()).getFixedValue());
    const auto unit = static_cast<int64_t>(layout_.getTypeAllocSize(p.unit).getFixedValue());
    const auto lanes = static_cast<int64_t>(type->getNumElements());
    const int64_t bytes = StepOf(p.lanes).value_or(0) * unit, step = bytes / width;
    if ((width != 4 && width != 8) || bytes % width != 0 || step < 1 || step > kFarthest) return nullptr;
    std::vector<std::vector<llvm::Constant*>> masks;  // of the registers
    int64_t count = 0;
    for (int64_t k = 0; k < lanes; ++k) {
      const auto* one = llvm::dyn_cast_or_null<llvm::ConstantInt>(taken->getAggregateElement(static_cast<unsigned>(k)));
      if (!one) return nullptr;
      if (one->isZero()) continue;
      const auto at = static_cast<size_t>(step * k / lanes);
      masks.resize(std::max(masks.size(), at + 1),
                   std::vector<llvm::Constant*>(static_cast<size_t>(lanes), b.getFalse()));
      masks[at][static_cast<size_t>(step * k % lanes)] = b.getTrue();
      ++count;
    }
    if (count < 2 * std::ssize(masks)) return nullptr;
    llvm::Value *base = FirstAddress(b, p), *v = llvm::PoisonValue::get(type);
    for (int64_t r = 0; r < std::ssize(masks); ++r) {
      llvm::Value* from = b.CreateConstGEP1_64(b.getInt8Ty(), base, static_cast<uint64_t>(r * lanes * width));
      llvm::Value* loaded =
          b.CreateMaskedLoad(type, from, llvm::Align(static_cast<uint64_t>(width)),
                             llvm::ConstantVector::get(masks[static_cast<size_t>(r)]), llvm::PoisonValue::get(type));
      std::vector<int> pick;
      for (int64_t k = 0; k < lanes; ++k)
        pick.push_back(static_cast<int>(step * k / lanes == r ? lanes + step * k % lanes : k));
      v = b.CreateShuffleVector(v, loaded, pick);
    }
    llvm::Value* otherwise = gather->getArgOperand(3);
    return llvm::isa<llvm::UndefValue>(otherwise) || IsAll(taken) ? v : b.CreateSelect(taken, v, otherwise);
  }

  llvm::Value* FromLoads(llvm::IRBuilder<>& b, llvm::IntrinsicInst* gather, const Places& p) {
    auto* type = llvm::cast<llvm::FixedVectorType>(gather->getType());
    const llvm::Align align = llvm::cast<llvm::ConstantInt>(gather->getArgOperand(1))->getAlignValue();
    const std::optional<int64_t> step = StepOf(p.lanes);
    llvm::Value* base = p.base;
    if (step) {
      base = FirstAddress(b, p);
    } else {
      if (p.first) base = b.CreateGEP(p.unit, base, p.first);
      if (p.shift) base = b.CreateGEP(b.getInt8Ty(), base, b.getInt64(static_cast<uint64_t>(p.shift)));
    }
    const std::vector<llvm::Value*> lanes = step ? std::vector<llvm::Value*>() : Numbers(b, gather, p);
    llvm::Value* v = llvm::PoisonValue::get(type);
    for (unsigned k = 0; k < type->getNumElements(); ++k) {
      llvm::Value* at = b.CreateGEP(p.unit, base, step ? b.getInt64(static_cast<uint64_t>(*step * k)) : lanes[k]);
      v = b.CreateInsertElement(v, b.CreateAlignedLoad(type->getElementType(), at, align), b.getInt64(k));
    }
    return v;
  }

  // The lanes of places, each in a register of its own: read where they were read from, or taken out of the vector. The
  // upper one of two comes with the lower one; not the lower one of both, since LLVM 19 takes all 64 bits for an
  // address where it knows some of its bits.
  static std::vector<llvm::Value*> Numbers(llvm::IRBuilder<>& b, llvm::IntrinsicInst* gather, const Places& p) {
    auto* type = llvm::cast<llvm::FixedVectorType>(p.lanes->getType());
    llvm::Type* place = type->getElementType();
    const unsigned count = type->getNumElements();
    auto* load = llvm::dyn_cast<llvm::LoadInst>(p.lanes);
    const bool there = load && IsStillThere(load, gather), pairs = place->isIntegerTy(32) && count % 2 == 0;
    llvm::Value* wide = p.lanes;
    if (!there && pairs) wide = b.CreateBitCast(wide, llvm::FixedVectorType::get(b.getInt64Ty(), count / 2));
    std::vector<llvm::Value*> numbers;
    for (unsigned k = 0; k < count; ++k) {
      llvm::Value* n = nullptr;
      if (there) {
        const auto align = llvm::Align(b.GetInsertBlock()->getDataLayout().getTypeStoreSize(place).getFixedValue());
        llvm::Value* at = b.CreateConstInBoundsGEP1_64(place, load->getPointerOperand(), k);
        n = b.CreateAlignedLoad(place, at, std::min(load->getAlign(), align));
      } else if (pairs && k % 2) {
        n = b.CreateTrunc(b.CreateLShr(b.CreateExtractElement(wide, uint64_t{k / 2}), 32), place);
      } else {
        n = b.CreateExtractElement(p.lanes, uint64_t{k});
      }
      numbers.push_back(b.CreateIntCast(n, b.getInt64Ty(), p.is_signed));
    }
    return numbers;
  }

  // Whether what was loaded is in memory still when `later` runs.
  static bool IsStillThere(const llvm::LoadInst* load, const llvm::Instruction* later) {
    if (!load->isSimple() || load->getParent() != later->getParent()) return false;
    for (const llvm::Instruction* i = load; i != later; i = i->getNextNode())
      if (i->mayWriteToMemory()) return false;
    return true;
  }

  // Of a short table; null: its elements are no lanes of registers.
  llvm::Value* FromTable(llvm::IRBuilder<>& b, llvm::IntrinsicInst* gather, const Places& p) {
    auto* type = llvm::cast<llvm::FixedVectorType>(gather->getType());
    llvm::Type* element = type->getElementType();
    const unsigned bits = layout_.getTypeSizeInBits(element);
    if (p.shift || (bits != 32 && bits != 64) || element->isPointerTy() ||
        layout_.getTypeSizeInBits(p.unit) != layout_.getTypeSizeInBits(element))
      return nullptr;
    const std::vector<llvm::Value*>& table = Table(llvm::cast<llvm::LoadInst>(p.base), element);
    const unsigned lanes = kRegister * 8 / bits, count = type->getNumElements();
    auto* place = llvm::FixedVectorType::get(b.getIntNTy(bits), count);
    llvm::Value* at = b.CreateIntCast(p.lanes, place, p.is_signed);
    if (p.first) at = b.CreateAdd(at, b.CreateVectorSplat(count, b.CreateTrunc(p.first, place->getElementType())));
    std::vector<llvm::Value*> pieces;
    for (unsigned from = 0; from < count; from += lanes) {
      std::vector<int> mask(lanes, llvm::PoisonMaskElem);
      for (unsigned k = 0; k < lanes && from + k < count; ++k) mask[k] = static_cast<int>(from + k);
      pieces.push_back(Picked(b, table, b.CreateShuffleVector(at, mask), element));
    }
    std::vector<int> mask(count);
    for (unsigned k = 0; k < count; ++k) mask[k] = static_cast<int>(k);
    return b.CreateShuffleVector(llvm::concatenateVectors(b, pieces), mask);
  }

  // The elements of a table at the places `at`, which are a register's; two registers at a time.
  static llvm::Value* Picked(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& table, llvm::Value* at,
                             llvm::Type* element) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(at->getType())->getNumElements();
    const bool wide = element->getPrimitiveSizeInBits() == 64;
    const in::ID id = element->isFloatingPointTy()
                          ? (wide ? in::x86_avx512_vpermi2var_pd_512 : in::x86_avx512_vpermi2var_ps_512)
                          : (wide ? in::x86_avx512_vpermi2var_q_512 : in::x86_avx512_vpermi2var_d_512);
    llvm::Value* v = nullptr;
    for (size_t k = 0; k < table.size(); k += 2) {
      llvm::Value* picked = b.CreateIntrinsic(id, {}, {table[k], at, table[k + 1 < table.size() ? k + 1 : k]});
      llvm::Value* from = llvm::ConstantInt::get(at->getType(), k * lanes);
      v = v ? b.CreateSelect(b.CreateICmpUGE(at, from), picked, v) : picked;
    }
    return v;
  }

  // The registers of the table that lies there, filled where its address is known first.
  const std::vector<llvm::Value*>& Table(llvm::LoadInst* address, llvm::Type* element) {
    std::vector<llvm::Value*>& table = tables_[{address, element}];
    if (!table.empty()) return table;
    llvm::IRBuilder<> b(address->getNextNode());
    const int64_t bytes = BytesOf(address);
    const auto width = static_cast<int64_t>(layout_.getTypeStoreSize(element).getFixedValue());
    const auto lanes = static_cast<unsigned>(kRegister / width);
    auto* type = llvm::FixedVectorType::get(element, lanes);
    const llvm::Align align(static_cast<uint64_t>(width));
    for (int64_t from = 0; from < bytes; from += kRegister) {
      llvm::Value* piece = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), address, static_cast<uint64_t>(from));
      if (from + kRegister <= bytes) {
        table.push_back(b.CreateAlignedLoad(type, piece, align));
        continue;
      }
      std::vector<llvm::Constant*> mask(lanes, b.getFalse());
      for (int64_t k = 0; k < (bytes - from) / width; ++k) mask[static_cast<size_t>(k)] = b.getTrue();
      table.push_back(
          b.CreateMaskedLoad(type, piece, align, llvm::ConstantVector::get(mask), llvm::Constant::getNullValue(type)));
    }
    return table;
  }

  llvm::Function& f_;
  const llvm::DataLayout& layout_;
  const bool with_tables_;
  std::map<std::pair<llvm::LoadInst*, llvm::Type*>, std::vector<llvm::Value*>> tables_;
};

}  // namespace

void MarkArray(llvm::LoadInst* address, int64_t bytes) {
  llvm::LLVMContext& ctx = address->getContext();
  auto* number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(ctx), static_cast<uint64_t>(bytes));
  address->setMetadata(kArray, llvm::MDNode::get(ctx, llvm::ConstantAsMetadata::get(number)));
}

bool IsConstantArray(const llvm::Value* address) { return BytesOf(address) > 0; }

bool PicksFromTables(const CpuLevel& level) { return level.vector_bytes == kRegister; }

int64_t BytesOfShortTable(const llvm::Value* address) {
  const int64_t bytes = BytesOf(address);
  return bytes <= kShortTable ? bytes : 0;
}

void RewriteGathers(llvm::Function& f, const CpuLevel& level) {
  if (level.vector_bytes < kHalfRegister) return;
  if (level.vector_bytes == kRegister) TurnShortRows(f);
  Gathers(f, PicksFromTables(level)).Run();
}

}  // namespace kiln
