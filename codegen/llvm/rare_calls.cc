#include "codegen/llvm/rare_calls.h"

#include "absl/strings/str_cat.h"
#include "codegen/llvm/ir.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/VFABIDemangler.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"

namespace kiln {
namespace {

constexpr char kVariant[] = "kiln-variant-of-rare-call";

std::vector<llvm::Function*> RareFunctions(llvm::Module& m) {
  std::vector<llvm::Function*> out;
  for (llvm::Function& f : m)
    if (!f.isDeclaration() && f.getName().starts_with("kiln_rare_")) out.push_back(&f);
  return out;
}

// name(x, ..., mask): calls `f` for every lane of the mask.
llvm::Function* EachLane(llvm::Function* f, llvm::FixedVectorType* vector, const std::string& name) {
  llvm::IRBuilder<> b(f->getContext());
  const unsigned lanes = vector->getNumElements();
  std::vector<llvm::Type*> types(f->arg_size(), vector);
  types.push_back(llvm::FixedVectorType::get(b.getInt1Ty(), lanes));
  auto* out = llvm::Function::Create(llvm::FunctionType::get(vector, types, false), llvm::Function::InternalLinkage,
                                     name, *f->getParent());
  out->addFnAttr(llvm::Attribute::NoInline);
  out->addFnAttr(llvm::Attribute::Cold);
  out->addFnAttr(kWrittenAsRun);
  auto* entry = llvm::BasicBlock::Create(b.getContext(), "entry", out);
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "loop", out);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", out);
  b.SetInsertPoint(entry);
  std::vector<llvm::Value*> arrays;
  for (unsigned k = 0; k < f->arg_size(); ++k) {
    arrays.push_back(b.CreateAlloca(vector));
    b.CreateStore(out->getArg(k), arrays.back());
  }
  llvm::Value* all = b.CreateBitCast(out->getArg(out->arg_size() - 1), b.getIntNTy(lanes));
  all = b.CreateZExt(all, b.getInt32Ty());
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* left = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::Value* lane = b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt32Ty()}, {left, b.getTrue()});
  std::vector<llvm::Value*> places, args;
  for (llvm::Value* array : arrays) {
    places.push_back(b.CreateInBoundsGEP(b.getDoubleTy(), array, lane));
    args.push_back(b.CreateLoad(b.getDoubleTy(), places.back()));
  }
  b.CreateStore(b.CreateCall(f, args), places[0]);
  llvm::Value* next = b.CreateAnd(left, b.CreateSub(left, b.getInt32(1)));
  left->addIncoming(all, entry);
  left->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpEQ(next, b.getInt32(0)), done, loop);
  b.SetInsertPoint(done);
  b.CreateRet(b.CreateLoad(vector, arrays[0]));
  return out;
}

// name(x, ..., mask): the result of every lane of the mask, others undefined.
void AddVariant(llvm::Function* f, unsigned lanes, const std::string& name) {
  llvm::Module& m = *f->getParent();
  llvm::IRBuilder<> b(m.getContext());
  auto* vector = llvm::FixedVectorType::get(b.getDoubleTy(), lanes);
  std::vector<llvm::Type*> types(f->arg_size(), vector);
  types.push_back(llvm::FixedVectorType::get(b.getInt1Ty(), lanes));
  // External, so that it stays while nothing calls it.
  auto* out =
      llvm::Function::Create(llvm::FunctionType::get(vector, types, false), llvm::Function::ExternalLinkage, name, m);
  out->addFnAttr(kVariant);
  out->setVisibility(llvm::GlobalValue::HiddenVisibility);
  out->addFnAttr(llvm::Attribute::NoInline);  // until loops are vectorised
  for (llvm::Attribute::AttrKind a : {llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn}) out->addFnAttr(a);
  out->setDoesNotAccessMemory();
  auto* entry = llvm::BasicBlock::Create(b.getContext(), "entry", out);
  auto* rare = llvm::BasicBlock::Create(b.getContext(), "rare", out);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", out);
  b.SetInsertPoint(entry);
  llvm::Value* mask = out->getArg(out->arg_size() - 1);
  b.CreateCondBr(b.CreateOrReduce(mask), rare, done, llvm::MDBuilder(b.getContext()).createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(rare);
  std::vector<llvm::Value*> args;
  for (unsigned k = 0; k < f->arg_size(); ++k) args.push_back(out->getArg(k));
  llvm::Value* none = llvm::PoisonValue::get(vector);
  args.push_back(mask);
  llvm::Value* result = b.CreateCall(EachLane(f, vector, name + "_each"), args);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* phi = b.CreatePHI(vector, 2);
  phi->addIncoming(none, entry);
  phi->addIncoming(result, rare);
  b.CreateRet(phi);
}

}  // namespace

void AddVariantsOfRareCalls(llvm::Module& m, const CpuLevel& level) {
  const unsigned lanes = static_cast<unsigned>(level.vector_bytes) / 8;
  for (llvm::Function* f : RareFunctions(m)) {
    const std::string name = f->getName().str(), variant = absl::StrCat(name, "_", lanes);
    AddVariant(f, lanes, variant);
    // The library is compiled without builtins; the vectoriser takes no variants of such calls.
    for (llvm::User* u : f->users())
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(u)) call->removeFnAttr(llvm::Attribute::NoBuiltin);
    f->addFnAttr(llvm::VFABI::MappingsAttrName,
                 absl::StrCat("_ZGV_LLVM_M", lanes, std::string(f->arg_size(), 'v'), "_", name, "(", variant, ")"));
  }
}

void InlineVariantsOfRareCalls(llvm::Module& m, llvm::ModuleAnalysisManager& mam) {
  bool any = false;
  for (llvm::Function& f : m) {
    if (!f.hasFnAttribute(kVariant)) continue;
    any = true;
    f.removeFnAttr(llvm::Attribute::NoInline);
    f.addFnAttr(llvm::Attribute::AlwaysInline);
    f.setVisibility(llvm::GlobalValue::DefaultVisibility);
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  if (!any) return;
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass());
  passes.addPass(llvm::GlobalDCEPass());
  passes.run(m, mam);
}

}  // namespace kiln
