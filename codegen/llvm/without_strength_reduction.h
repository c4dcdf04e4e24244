// Code generation without LLVM's strength reduction, for code that had it before (ReduceStrength).
//
// Why: LLVM's own option for it is the whole process's: GPU code would depend on whether CPU code was generated first.
#pragma once

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Pass.h"

namespace kiln {

class WithoutStrengthReduction : public llvm::legacy::PassManager {
 public:
  void add(llvm::Pass* pass) override {
    const llvm::StringRef name = pass->getPassName();
    if (name == kPrepares || name == kReduces) {
      ++left_out_;
      delete pass;
    } else {
      llvm::legacy::PassManager::add(pass);
    }
  }
  // False: this LLVM calls them otherwise.
  bool LeftBothOut() const { return left_out_ == 2; }

 private:
  static constexpr llvm::StringLiteral kPrepares = "Canonicalize Freeze Instructions in Loops";
  static constexpr llvm::StringLiteral kReduces = "Loop Strength Reduction";
  int left_out_ = 0;
};

}  // namespace kiln
