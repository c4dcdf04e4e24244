// Constant tables that C code reads: structs of 64-bit numbers, texts and pointers to further tables.
#pragma once

#include <string>
#include <vector>

#include "codegen/llvm/ir.h"

namespace kiln {

class Tables {
 public:
  // Internal symbols get the name `symbol`, made unique.
  Tables(Ir& ir, std::string symbol) : ir_(ir), b_(ir.b), symbol_(std::move(symbol)) {}

  llvm::Constant* Number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(b_.getPtrTy()); }
  llvm::Constant* Struct(const std::vector<llvm::Constant*>& fields) {
    return llvm::ConstantStruct::getAnon(ir_.ctx, fields);
  }
  // The address of a constant.
  llvm::Constant* Global(llvm::Constant* init, uint64_t align = 8) {
    auto* g =
        new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init, symbol_);
    g->setAlignment(llvm::Align(align));
    return g;
  }
  llvm::Constant* Text(const std::string& s, uint64_t align = 1) {
    return Global(llvm::ConstantDataArray::getString(ir_.ctx, s), align);
  }
  // Null for an empty one.
  llvm::Constant* Array(const std::vector<llvm::Constant*>& v) {
    if (v.empty()) return Null();
    return Global(llvm::ConstantArray::get(llvm::ArrayType::get(v[0]->getType(), v.size()), v));
  }
  llvm::Constant* Numbers(const std::vector<int64_t>& v) {
    std::vector<llvm::Constant*> out;
    for (int64_t n : v) out.push_back(Number(n));
    return Array(out);
  }
  // A table under its own name, for other objects of the library.
  void Publish(const std::string& name, llvm::Constant* init) {
    auto* g =
        new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::ExternalLinkage, init, name);
    g->setVisibility(llvm::GlobalValue::HiddenVisibility);
  }

 private:
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  std::string symbol_;
};

}  // namespace kiln
