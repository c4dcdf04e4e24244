#include "codegen/llvm/ptx.h"

#include <mutex>

#include "codegen/llvm/object.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

namespace kiln {
namespace {

constexpr char kTriple[] = "nvptx64-nvidia-cuda";

std::unique_ptr<llvm::TargetMachine> MakeTarget(const CpuLevel& level) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  KILN_CHECK(target != nullptr);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      kTriple, level.cpu, level.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

// The kernel library was compiled for the host: what that says of a machine goes.
void Retarget(llvm::Module& m, bool flush) {
  for (llvm::Function& f : m) {
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu", "frame-pointer", "stack-protector-buffer-size"})
      f.removeFnAttr(attribute);
    f.removeFnAttr(llvm::Attribute::UWTable);
    if (flush) f.addFnAttr("denormal-fp-math-f32", "preserve-sign");
    if (!f.isDeclaration()) f.addFnAttr(llvm::Attribute::NoUnwind);
  }
  // Flags of the host's code model say nothing here, and clash.
  if (llvm::NamedMDNode* flags = m.getModuleFlagsMetadata()) flags->eraseFromParent();
}

}  // namespace

CpuLevel PtxLevel(const std::string& cpu, const std::string& features) {
  return {cpu, cpu, features, 16, 255, /*f16c=*/true, /*fma=*/true, /*amx=*/false};
}

absl::StatusOr<std::string> CompileToPtx(llvm::Module& m, const CpuLevel& level, bool flush,
                                         std::string* ir_text) {
  auto tm = MakeTarget(level);
  m.setTargetTriple(kTriple);
  m.setDataLayout(tm->createDataLayout());
  RETURN_IF_ERROR(LinkKernelLibrary(m));
  Retarget(m, flush);
  std::string problem;
  llvm::raw_string_ostream os(problem);
  if (llvm::verifyModule(m, &os)) return Internal("invalid IR: ", os.str());
  {
    llvm::LoopAnalysisManager lam;
    llvm::FunctionAnalysisManager fam;
    llvm::CGSCCAnalysisManager cam;
    llvm::ModuleAnalysisManager mam;
    llvm::PassBuilder pb(tm.get());
    pb.registerModuleAnalyses(mam);
    pb.registerCGSCCAnalyses(cam);
    pb.registerFunctionAnalyses(fam);
    pb.registerLoopAnalyses(lam);
    pb.crossRegisterProxies(lam, fam, cam, mam);
    pb.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(m, mam);
  }
  if (ir_text) {
    llvm::raw_string_ostream text(*ir_text);
    m.print(text, nullptr);
  }
  llvm::SmallVector<char, 0> ptx;
  llvm::raw_svector_ostream out(ptx);
  llvm::legacy::PassManager pm;
  if (tm->addPassesToEmitFile(pm, out, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return Internal("this LLVM cannot emit PTX");
  pm.run(m);
  return std::string(ptx.data(), ptx.size());
}

}  // namespace kiln
