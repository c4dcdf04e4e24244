#include "codegen/llvm/target_machine.h"

#include "compiler/base/status.h"
#include "llvm/MC/TargetRegistry.h"

namespace kiln {

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const char* triple, const std::string& cpu,
                                                       const std::string& features, llvm::CodeGenOptLevel level,
                                                       std::optional<llvm::CodeModel::Model> model) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  KILN_CHECK(target != nullptr);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_, model, level));
}

}  // namespace kiln
