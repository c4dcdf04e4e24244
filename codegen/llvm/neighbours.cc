#include "codegen/llvm/neighbours.h"

#include <algorithm>
#include <map>

#include "codegen/llvm/gathers.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace kiln {
namespace {

// A value that the loop passes on: what lies at `at`, which moves with the loop, as `read` read it some turns before.
struct PassedOn {
  const llvm::SCEVAddRecExpr* at;
  llvm::LoadInst* read;
};

class Neighbours {
 public:
  Neighbours(llvm::Loop& l, llvm::ScalarEvolution& se) : l_(l), se_(se) {}

  bool Run() {
    // A value may be passed on twice, in any order of phis.
    for (size_t known = 1; known > 0;) {
      known = found_.size();
      for (llvm::PHINode& phi : l_.getHeader()->phis())
        if (!values_.contains(&phi)) Find(&phi);
      known = found_.size() - known;
    }
    if (!IsWorthIt()) return false;
    llvm::SCEVExpander expander(se_, l_.getHeader()->getDataLayout(), "neighbour");
    const auto begin = l_.getHeader()->getFirstInsertionPt();
    std::vector<llvm::Value*> loads;
    for (llvm::PHINode* phi : found_) {
      const PassedOn& value = values_.at(phi);
      llvm::Value* at = expander.expandCodeFor(value.at, value.read->getPointerOperandType(), begin);
      auto* load = new llvm::LoadInst(phi->getType(), at, "", false, llvm::Align(1), begin);
      load->copyMetadata(*value.read, {llvm::LLVMContext::MD_access_group, llvm::LLVMContext::MD_alias_scope,
                                       llvm::LLVMContext::MD_noalias});
      loads.push_back(load);
    }
    for (size_t k = 0; k < loads.size(); ++k) found_[k]->replaceAllUsesWith(loads[k]);
    for (llvm::PHINode* phi : found_) llvm::RecursivelyDeleteTriviallyDeadInstructions(phi);
    return true;
  }

 private:
  // Loads that are not aligned cost, too: two of a register of bytes as much as the shuffles do.
  bool IsWorthIt() const {
    constexpr size_t kFew = 2;
    return std::any_of(found_.begin(), found_.end(), [&](const llvm::PHINode* phi) {
      return found_.size() > kFew || phi->getType()->getScalarSizeInBits() > 8;
    });
  }

  const llvm::SCEVAddRecExpr* Along(llvm::Value* address) const {
    const auto* at = llvm::dyn_cast<llvm::SCEVAddRecExpr>(se_.getSCEV(address));
    return at && at->getLoop() == &l_ && at->isAffine() ? at : nullptr;
  }

  void Find(llvm::PHINode* phi) {
    constexpr unsigned kWord = 32;  // bits; words of two registers are put together by one instruction
    if (phi->getType()->getScalarSizeInBits() >= kWord) return;
    const int before = phi->getBasicBlockIndex(l_.getLoopPreheader());
    auto* first = llvm::dyn_cast<llvm::LoadInst>(phi->getIncomingValue(static_cast<unsigned>(before)));
    llvm::Value* next = phi->getIncomingValueForBlock(l_.getLoopLatch());
    if (!first || !first->isSimple()) return;
    PassedOn value{nullptr, nullptr};
    if (auto* read = llvm::dyn_cast<llvm::LoadInst>(next)) {
      if (!l_.contains(read) || !read->isSimple() ||
          !IsConstantArray(llvm::getUnderlyingObject(read->getPointerOperand())))
        return;
      value = {Along(read->getPointerOperand()), read};
    } else if (auto* other = llvm::dyn_cast<llvm::PHINode>(next); other && values_.contains(other)) {
      value = values_.at(other);
    }
    if (!value.at) return;
    const llvm::SCEV* step = value.at->getStepRecurrence(se_);
    value.at = llvm::dyn_cast<llvm::SCEVAddRecExpr>(se_.getMinusSCEV(value.at, step));
    if (!value.at || value.at->getStart() != se_.getSCEV(first->getPointerOperand())) return;
    values_.emplace(phi, value);
    found_.push_back(phi);
  }

  llvm::Loop& l_;
  llvm::ScalarEvolution& se_;
  std::map<const llvm::PHINode*, PassedOn> values_;
  std::vector<llvm::PHINode*> found_;  // those of `values_`, in an order that is always the same
};

}  // namespace

llvm::PreservedAnalyses ReadNeighboursAgain::run(llvm::Function& f, llvm::FunctionAnalysisManager& fam) {
  auto& loops = fam.getResult<llvm::LoopAnalysis>(f);
  auto& se = fam.getResult<llvm::ScalarEvolutionAnalysis>(f);
  bool any = false;
  for (llvm::Loop* l : loops.getLoopsInPreorder())
    if (l->isInnermost() && l->getLoopPreheader() && l->getLoopLatch() && l->isAnnotatedParallel())
      any |= Neighbours(*l, se).Run();
  if (!any) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace kiln
