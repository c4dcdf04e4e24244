#include "codegen/llvm/lanes.h"

#include <utility>

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/PatternMatch.h"

namespace kiln {
namespace {

using namespace llvm::PatternMatch;

// As StepOf; loops of values are no deeper than an induction variable's.
std::optional<int64_t> StepWithin(const llvm::Value* v, int depth) {
  if (depth == 0) return std::nullopt;
  const auto of = [&](const llvm::Value* x) { return StepWithin(x, depth - 1); };
  if (llvm::getSplatValue(v)) return 0;
  if (const auto* c = llvm::dyn_cast<llvm::ConstantDataVector>(v)) {
    const auto at = [&](unsigned k) { return static_cast<int64_t>(c->getElementAsInteger(k)); };
    const int64_t step = at(1) - at(0);
    for (unsigned k = 2; k < c->getNumElements(); ++k)
      if (at(k) - at(k - 1) != step) return std::nullopt;
    return step;
  }
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(v)) {
    if (phi->getNumIncomingValues() != 2) return std::nullopt;
    for (unsigned k = 0; k < 2; ++k) {
      llvm::Value* by = nullptr;
      if (match(phi->getIncomingValue(k), m_c_Add(m_Specific(v), m_Value(by))) && llvm::getSplatValue(by))
        return of(phi->getIncomingValue(1 - k));
    }
    return std::nullopt;
  }
  llvm::Value *x = nullptr, *y = nullptr;
  const llvm::APInt* by = nullptr;
  if (match(v, m_AddLike(m_Value(x), m_Value(y)))) {
    const auto a = of(x), b = of(y);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  const bool shifts = match(v, m_Shl(m_Value(x), m_APInt(by)));
  if (!shifts && !match(v, m_Mul(m_Value(x), m_APInt(by)))) return std::nullopt;
  const auto step = of(x);
  if (!step) return std::nullopt;
  return shifts ? *step << by->getZExtValue() : *step * by->getSExtValue();
}

}  // namespace

std::optional<Places> PlacesOf(llvm::IRBuilder<>& b, llvm::Value* addresses, const llvm::DataLayout& layout) {
  Places p{nullptr, 0, nullptr, nullptr, nullptr, true};
  const auto bytes = [&](llvm::Type* unit) { return static_cast<int64_t>(layout.getTypeAllocSize(unit)); };
  llvm::Value* at = addresses;
  std::vector<std::pair<llvm::Type*, llvm::Value*>> moves;  // of all lanes alike
  while (!p.base) {
    auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(at);
    if (!gep || gep->getNumIndices() != 1) return std::nullopt;
    llvm::Value *base = gep->getPointerOperand(), *index = gep->getOperand(1);
    if (base->getType()->isVectorTy()) base = llvm::getSplatValue(base);
    if (base && index->getType()->isVectorTy()) {
      p.base = base;
      p.unit = gep->getSourceElementType();
      p.lanes = index;
      break;
    }
    llvm::Value* same = index->getType()->isVectorTy() ? llvm::getSplatValue(index) : index;
    if (!same) return std::nullopt;
    if (auto* by = llvm::dyn_cast<llvm::ConstantInt>(same))
      p.shift += by->getSExtValue() * bytes(gep->getSourceElementType());
    else
      moves.emplace_back(gep->getSourceElementType(), same);
    at = gep->getPointerOperand();
  }
  for (const auto& [unit, by] : moves) p.base = b.CreateGEP(unit, p.base, by);
  const auto take_first = [&] {
    llvm::Value *x = nullptr, *y = nullptr;
    if (!match(p.lanes, m_AddLike(m_Value(x), m_Value(y)))) return false;
    if (!llvm::getSplatValue(x)) std::swap(x, y);
    llvm::Value* same = llvm::getSplatValue(x);
    if (!same) return false;
    if (auto* by = llvm::dyn_cast<llvm::ConstantInt>(same))
      p.shift += by->getSExtValue() * bytes(p.unit);
    else
      p.first = p.first ? b.CreateAdd(p.first, same) : same;
    p.lanes = y;
    return true;
  };
  while (take_first()) {
  }
  llvm::Value* narrow = nullptr;
  if (match(p.lanes, m_ZExt(m_Value(narrow)))) p.is_signed = false;
  if (!p.is_signed || match(p.lanes, m_SExt(m_Value(narrow)))) p.lanes = narrow;
  llvm::Value *x = nullptr, *y = nullptr;
  if (!p.is_signed &&
      (match(narrow, m_DisjointOr(m_Value(x), m_Value(y))) || match(narrow, m_NUWAdd(m_Value(x), m_Value(y))))) {
    if (!llvm::getSplatValue(x)) std::swap(x, y);
    if (llvm::Value* same = llvm::getSplatValue(x)) {
      same = b.CreateZExt(same, b.getInt64Ty());
      p.first = p.first ? b.CreateAdd(p.first, same) : same;
      p.lanes = y;
    }
  }
  return p;
}

bool IsAll(const llvm::Value* mask) {
  const auto* c = llvm::dyn_cast<llvm::Constant>(mask);
  return c && c->isAllOnesValue();
}

std::optional<int64_t> StepOf(const llvm::Value* lanes) {
  constexpr int kDeepest = 8;
  if (!lanes->getType()->getScalarType()->isIntegerTy(64)) return std::nullopt;
  return StepWithin(lanes, kDeepest);
}

llvm::Value* FirstAddress(llvm::IRBuilder<>& b, const Places& p) {
  llvm::Value* base = p.first ? b.CreateGEP(p.unit, p.base, p.first) : p.base;
  base = b.CreateGEP(p.unit, base, b.CreateExtractElement(p.lanes, uint64_t{0}));
  return p.shift ? b.CreateGEP(b.getInt8Ty(), base, b.getInt64(static_cast<uint64_t>(p.shift))) : base;
}

// Halves of blocks change places, then quarters, and so on.
void TurnBlocks(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& rows) {
  const auto n = static_cast<int>(rows.size());
  const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements());
  for (int half = n / 2; half > 0; half /= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < lanes; ++lane) {
      const bool second = (lane & half) != 0;
      low.push_back(second ? lanes + lane - half : lane);
      high.push_back(second ? lanes + lane : lane + half);
    }
    for (int r = 0; r < n; ++r) {
      if (r & half) continue;
      llvm::Value *x = rows[static_cast<size_t>(r)], *y = rows[static_cast<size_t>(r + half)];
      rows[static_cast<size_t>(r)] = b.CreateShuffleVector(x, y, low);
      rows[static_cast<size_t>(r + half)] = b.CreateShuffleVector(x, y, high);
    }
  }
}

}  // namespace kiln
