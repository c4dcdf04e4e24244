// Elements as registers hold them, in an array of a thread's own or of its block's.
#pragma once

#include "codegen/llvm/ir.h"

namespace kiln::gpu {

class Cells {
 public:
  // `array`: room for `parts(t)` registers of the type for each element.
  Cells(Ir& ir, PrimitiveType t, llvm::Value* array) : ir_(ir), type_(ir.RegType(t)), parts_(parts(t)), array_(array) {}
  static int64_t parts(PrimitiveType t) { return IsComplex(t) ? 2 : 1; }

  Val Get(llvm::Value* at) const {
    Val v{ir_.b.CreateLoad(type_, Part(at, 0))};
    if (parts_ == 2) v.im = ir_.b.CreateLoad(type_, Part(at, 1));
    return v;
  }
  void Put(llvm::Value* at, const Val& v) const {
    ir_.b.CreateStore(v.re, Part(at, 0));
    if (v.im) ir_.b.CreateStore(v.im, Part(at, 1));
  }

 private:
  llvm::Value* Part(llvm::Value* at, int64_t part) const {
    return ir_.b.CreateInBoundsGEP(type_, array_, ir_.Add(ir_.Mul(at, parts_), ir_.I64(part)));
  }

  Ir& ir_;
  llvm::Type* type_;
  int64_t parts_;
  llvm::Value* array_;
};

}  // namespace kiln::gpu
