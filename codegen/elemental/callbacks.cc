#include "codegen/elemental/callbacks.h"

namespace kiln {

llvm::Function* Callback(Ir& ir, const std::string& name, llvm::Type* result, const std::vector<llvm::Type*>& arguments,
                         const std::function<absl::Status(llvm::Function*)>& fill, absl::Status* status) {
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, arguments, false), llvm::Function::InternalLinkage,
                                   ir.current()->getName() + "." + name, ir.module);
  f->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::IRBuilderBase::InsertPointGuard guard(ir.b);
  ir.b.SetInsertPoint(llvm::BasicBlock::Create(ir.ctx, "entry", f));
  *status = fill(f);
  return f;
}

llvm::Value* TableOf(Ir& ir, const std::vector<llvm::Value*>& addresses) {
  llvm::Type* ptr = ir.b.getPtrTy();
  llvm::Value* t = ir.Alloca(ptr, static_cast<int64_t>(addresses.size()), 16);
  for (size_t k = 0; k < addresses.size(); ++k)
    ir.b.CreateStore(addresses[k], ir.b.CreateInBoundsGEP(ptr, t, ir.I64(static_cast<int64_t>(k))));
  return t;
}

}  // namespace kiln
