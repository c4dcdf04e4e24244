#include "codegen/llvm/narrow_tables.h"

#include "codegen/llvm/gathers.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"

namespace kiln {
namespace {

constexpr uint64_t kWord = 4;  // bytes

// Where in its table a load of `l` reads, counted in elements; null: it is no such load, or neighbours read neighbours.
llvm::Value* PlaceInTable(const llvm::LoadInst& load, const llvm::Loop& l, llvm::ScalarEvolution& se) {
  auto* at = llvm::dyn_cast<llvm::GetElementPtrInst>(load.getPointerOperand());
  if (!load.isSimple() || !at || at->getNumIndices() != 1) return nullptr;
  const llvm::DataLayout& layout = load.getModule()->getDataLayout();
  const uint64_t width = layout.getTypeStoreSize(load.getType()).getFixedValue();
  const int64_t bytes = BytesOfShortTable(at->getPointerOperand());
  if (width >= kWord || layout.getTypeAllocSize(at->getSourceElementType()) != width || !bytes || bytes % kWord)
    return nullptr;
  llvm::Value* place = at->getOperand(1);
  if (!l.isLoopInvariant(at->getPointerOperand()) ||
      se.getLoopDisposition(se.getSCEV(place), &l) != llvm::ScalarEvolution::LoopVariant)
    return nullptr;
  return place;
}

void ReadWord(llvm::LoadInst* load, llvm::Value* place) {
  llvm::IRBuilder<> b(load);
  const auto bits = static_cast<unsigned>(load->getType()->getScalarSizeInBits());
  const unsigned elements = kWord * 8 / bits, shift = llvm::Log2_32(elements);
  llvm::Value* narrow = nullptr;
  if (!llvm::PatternMatch::match(place, llvm::PatternMatch::m_ZExt(llvm::PatternMatch::m_Value(narrow))))
    narrow = place;
  narrow = b.CreateZExtOrTrunc(narrow, b.getInt32Ty());  // a short table has few places
  llvm::Value* table = llvm::cast<llvm::GetElementPtrInst>(load->getPointerOperand())->getPointerOperand();
  llvm::Value* at = b.CreateGEP(b.getInt32Ty(), table, b.CreateZExt(b.CreateLShr(narrow, shift), b.getInt64Ty()));
  llvm::LoadInst* word = b.CreateAlignedLoad(b.getInt32Ty(), at, load->getAlign());
  word->copyMetadata(
      *load, {llvm::LLVMContext::MD_access_group, llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
  llvm::Value* behind = b.CreateMul(b.CreateAnd(narrow, elements - 1), b.getInt32(bits));
  llvm::Value* v = b.CreateTrunc(b.CreateLShr(word, behind), b.getIntNTy(bits));
  load->replaceAllUsesWith(b.CreateBitCast(v, load->getType()));
  load->eraseFromParent();
}

}  // namespace

llvm::PreservedAnalyses WordsOfNarrowTables::run(llvm::Function& f, llvm::FunctionAnalysisManager& fam) {
  auto& loops = fam.getResult<llvm::LoopAnalysis>(f);
  auto& se = fam.getResult<llvm::ScalarEvolutionAnalysis>(f);
  std::vector<std::pair<llvm::LoadInst*, llvm::Value*>> reads;
  for (llvm::Loop* l : loops.getLoopsInPreorder()) {
    if (!l->isInnermost() || !l->isAnnotatedParallel()) continue;
    for (llvm::BasicBlock* block : l->blocks())
      for (llvm::Instruction& i : *block)
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
          if (llvm::Value* place = PlaceInTable(*load, *l, se)) reads.emplace_back(load, place);
  }
  for (const auto& [load, place] : reads) {
    se.forgetValue(load);
    ReadWord(load, place);
  }
  if (reads.empty()) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace kiln
