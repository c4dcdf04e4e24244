#include "codegen/llvm/short_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "codegen/llvm/lanes.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Local.h"

namespace kiln {
namespace {

namespace in = llvm::Intrinsic;

// A gather or scatter of one element of every row.
struct Column {
  llvm::IntrinsicInst* access;
  Places places;
  bool IsStore() const { return access->getIntrinsicID() == in::masked_scatter; }
  llvm::Value* Addresses() const { return access->getArgOperand(IsStore() ? 1 : 0); }
  llvm::FixedVectorType* Type() const {
    return llvm::cast<llvm::FixedVectorType>(IsStore() ? access->getArgOperand(0)->getType() : access->getType());
  }
};

// Columns of the same rows.
class Rows {
 public:
  Rows(std::vector<Column> columns, int64_t step, const llvm::DataLayout& layout) : columns_(std::move(columns)) {
    type_ = columns_[0].Type();
    lanes_ = type_->getNumElements();
    width_ = static_cast<int64_t>(layout.getTypeStoreSize(type_->getElementType()));
    row_ = step * static_cast<int64_t>(layout.getTypeAllocSize(columns_[0].places.unit));
    low_ = columns_[0].places.shift;
    int64_t high = low_;
    for (const Column& c : columns_) {
      low_ = std::min(low_, c.places.shift);
      high = std::max(high, c.places.shift);
    }
    window_ = (high - low_) / width_ + 1;
    for (registers_ = 4; registers_ < window_;) registers_ *= 2;
  }

  bool IsWorthIt() const {
    if (registers_ > lanes_ || (width_ != 4 && width_ != 8)) return false;
    std::vector<bool> taken(static_cast<size_t>(window_));
    for (const Column& c : columns_) {
      if ((c.places.shift - low_) % width_ != 0) return false;
      const auto k = static_cast<size_t>(PlaceOf(c));
      if (taken[k] && columns_[0].IsStore()) return false;
      taken[k] = true;
    }
    if (columns_[0].IsStore() && row_ < window_ * width_) return false;  // one row's end is the next one's start
    int64_t turns = 0;
    while ((int64_t{1} << turns) < registers_) ++turns;
    return registers_ * (turns + lanes_ / registers_ - 1) < std::ssize(columns_) * (lanes_ - 1) && NothingBetween();
  }

  void Load() {
    llvm::IRBuilder<> b(columns_[0].access);
    llvm::Value* first = FirstRow(b);
    std::vector<llvm::Value*> registers;
    for (int64_t k = 0; k < registers_; ++k) {
      std::vector<llvm::Value*> pieces;
      for (int64_t row = k; row < lanes_; row += registers_) {
        llvm::Value* at = RowAt(b, first, row);
        if (window_ == registers_)
          pieces.push_back(b.CreateAlignedLoad(Piece(), at, Align()));
        else
          pieces.push_back(b.CreateMaskedLoad(Piece(), at, Align(), Mask(b), llvm::PoisonValue::get(Piece())));
      }
      registers.push_back(llvm::concatenateVectors(b, pieces));
    }
    TurnBlocks(b, registers);
    for (const Column& c : columns_) Replace(c, registers[static_cast<size_t>(PlaceOf(c))]);
  }

  void Store() {
    llvm::IRBuilder<> b(columns_.back().access);
    llvm::Value* first = FirstRow(b);
    std::vector<llvm::Value*> registers(static_cast<size_t>(registers_), llvm::PoisonValue::get(type_));
    for (const Column& c : columns_) registers[static_cast<size_t>(PlaceOf(c))] = c.access->getArgOperand(0);
    TurnBlocks(b, registers);
    // In the order of rows, and so of memory.
    for (int64_t row = 0; row < lanes_; ++row) {
      std::vector<int> piece;
      for (int64_t k = 0; k < registers_; ++k) piece.push_back(static_cast<int>(row / registers_ * registers_ + k));
      llvm::Value* v = b.CreateShuffleVector(registers[static_cast<size_t>(row % registers_)], piece);
      llvm::Value* at = RowAt(b, first, row);
      if (std::ssize(columns_) == registers_)
        b.CreateAlignedStore(v, at, Align());
      else
        b.CreateMaskedStore(v, at, Align(), Mask(b));
    }
    for (const Column& c : columns_) Replace(c, nullptr);
  }

 private:
  int64_t PlaceOf(const Column& c) const { return (c.places.shift - low_) / width_; }
  llvm::FixedVectorType* Piece() const {
    return llvm::FixedVectorType::get(type_->getElementType(), static_cast<unsigned>(registers_));
  }
  llvm::Align Align() const { return llvm::Align(static_cast<uint64_t>(width_)); }

  // Which elements of a piece are read or written.
  llvm::Constant* Mask(llvm::IRBuilder<>& b) const {
    std::vector<llvm::Constant*> mask(static_cast<size_t>(registers_), b.getFalse());
    for (const Column& c : columns_) mask[static_cast<size_t>(PlaceOf(c))] = b.getTrue();
    return llvm::ConstantVector::get(mask);
  }

  llvm::Value* FirstRow(llvm::IRBuilder<>& b) const {
    Places p = columns_[0].places;
    p.shift = low_;
    return FirstAddress(b, p);
  }

  llvm::Value* RowAt(llvm::IRBuilder<>& b, llvm::Value* first, int64_t row) const {
    return b.CreateGEP(b.getInt8Ty(), first, b.getInt64(static_cast<uint64_t>(row * row_)));
  }

  // Whether loads may all be where the first is, or stores where the last is.
  bool NothingBetween() const {
    const bool stores = columns_[0].IsStore();
    for (const llvm::Instruction* i = columns_[0].access; i != columns_.back().access; i = i->getNextNode()) {
      const bool own = std::any_of(columns_.begin(), columns_.end(), [&](const Column& c) { return c.access == i; });
      if (!own && (stores ? i->mayReadOrWriteMemory() : i->mayWriteToMemory())) return false;
    }
    return true;
  }

  static void Replace(const Column& c, llvm::Value* with) {
    llvm::Value* addresses = c.Addresses();
    if (with) c.access->replaceAllUsesWith(with);
    c.access->eraseFromParent();
    llvm::RecursivelyDeleteTriviallyDeadInstructions(addresses);
  }

  std::vector<Column> columns_;  // in the block's order
  llvm::FixedVectorType* type_;
  int64_t lanes_, width_, row_, low_;  // bytes, but for the lanes
  int64_t window_, registers_;         // elements of a row from the first to the last; the power of 2 that holds them
};

}  // namespace

void TurnShortRows(llvm::Function& f) {
  const llvm::DataLayout& layout = f.getParent()->getDataLayout();
  for (llvm::BasicBlock& block : f) {
    using Key = std::tuple<in::ID, llvm::Type*, llvm::Value*, llvm::Value*, llvm::Value*, llvm::Type*>;
    std::vector<Key> order;
    std::map<Key, std::vector<Column>> groups;
    for (llvm::Instruction& i : llvm::make_early_inc_range(block)) {
      auto* access = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (!access) continue;
      const bool stores = access->getIntrinsicID() == in::masked_scatter;
      if ((!stores && access->getIntrinsicID() != in::masked_gather) || !IsAll(access->getArgOperand(stores ? 3 : 2)))
        continue;
      llvm::IRBuilder<> b(access);
      const auto places = PlacesOf(b, access->getArgOperand(stores ? 1 : 0), layout);
      if (!places || !StepOf(places->lanes)) continue;
      const Column column{access, *places};
      const Key key = {
          access->getIntrinsicID(), column.Type(), places->base, places->first, places->lanes, places->unit};
      if (!groups.contains(key)) order.push_back(key);
      groups[key].push_back(column);
    }
    for (const Key& key : order) {
      std::vector<Column>& columns = groups[key];
      const bool stores = columns[0].IsStore();
      Rows rows(columns, *StepOf(columns[0].places.lanes), layout);
      if (!rows.IsWorthIt()) continue;
      stores ? rows.Store() : rows.Load();
    }
  }
}

}  // namespace kiln
