#include "codegen/llvm/ptx.h"

#include <map>
#include <mutex>
#include <set>

#include "codegen/llvm/object.h"
#include "codegen/llvm/target_machine.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

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
  return MakeTargetMachine(kTriple, level.cpu, level.features, llvm::CodeGenOptLevel::Aggressive, std::nullopt);
}

// The kernel library was compiled for the host: what that says of a machine goes.
void Retarget(llvm::Module& m, bool flush) {
  for (llvm::Function& f : m) {
    for (const char* attribute :
         {"target-cpu", "target-features", "tune-cpu", "frame-pointer", "stack-protector-buffer-size"})
      f.removeFnAttr(attribute);
    f.removeFnAttr(llvm::Attribute::UWTable);
    if (flush) f.addFnAttr("denormal-fp-math-f32", "preserve-sign");
    if (!f.isDeclaration()) f.addFnAttr(llvm::Attribute::NoUnwind);
  }
  // Flags of the host's code model say nothing here, and clash.
  if (llvm::NamedMDNode* flags = m.getModuleFlagsMetadata()) flags->eraseFromParent();
}

// Functions of the C library that the kernel library calls: instructions where there is one, else libdevice's.
absl::Status LinkMathFunctions(llvm::Module& m, const std::string& libdevice) {
  const std::map<std::string, llvm::Intrinsic::ID> instructions = {
      {"sqrt", llvm::Intrinsic::sqrt},   {"fabs", llvm::Intrinsic::fabs}, {"copysign", llvm::Intrinsic::copysign},
      {"floor", llvm::Intrinsic::floor}, {"ceil", llvm::Intrinsic::ceil}, {"trunc", llvm::Intrinsic::trunc},
      {"rint", llvm::Intrinsic::rint},   {"fma", llvm::Intrinsic::fma},
  };
  std::vector<llvm::Function*> missing;
  for (llvm::Function& f : m) {
    const std::string name = f.getName().str();
    if (!f.isDeclaration() || f.isIntrinsic() || f.use_empty()) continue;
    const bool single = !name.empty() && name.back() == 'f' && f.getReturnType()->isFloatTy();
    const auto known = instructions.find(single ? name.substr(0, name.size() - 1) : name);
    if (known == instructions.end()) {
      missing.push_back(&f);
      continue;
    }
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(m.getContext(), "entry", &f));
    std::vector<llvm::Value*> arguments;
    for (llvm::Argument& a : f.args()) arguments.push_back(&a);
    b.CreateRet(b.CreateIntrinsic(known->second, {f.getReturnType()}, arguments));
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
    f.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  if (missing.empty()) return absl::OkStatus();
  std::string names;
  for (llvm::Function* f : missing) names += (names.empty() ? "" : ", ") + f->getName().str();
  if (libdevice.empty())
    return Unimplemented("error: ", names,
                         ": the CUDA Toolkit's libdevice.10.bc is needed for these, and was not found");
  for (llvm::Function* f : missing) f->setName("__nv_" + f->getName().str());
  auto buffer = llvm::MemoryBuffer::getFile(libdevice);
  if (!buffer) return InvalidArgument("error: cannot read ", libdevice);
  auto lib = llvm::parseBitcodeFile((*buffer)->getMemBufferRef(), m.getContext());
  if (!lib) return InvalidArgument("error: ", libdevice, ": ", llvm::toString(lib.takeError()));
  (*lib)->setTargetTriple(m.getTargetTriple());
  (*lib)->setDataLayout(m.getDataLayout());
  const std::set<std::string> wanted = [&] {
    std::set<std::string> s;
    for (llvm::Function* f : missing) s.insert(f->getName().str());
    return s;
  }();
  if (llvm::Linker::linkModules(
          m, std::move(*lib), llvm::Linker::LinkOnlyNeeded, [](llvm::Module& linked, const llvm::StringSet<>& added) {
            llvm::internalizeModule(linked, [&](const llvm::GlobalValue& g) { return !added.contains(g.getName()); });
          }))
    return Internal("cannot link libdevice");
  for (const std::string& name : wanted)
    if (m.getFunction(name) && m.getFunction(name)->isDeclaration())
      return Unimplemented("error: ", name, " is no function of libdevice");
  return absl::OkStatus();
}

// The kernel with the most parameters, and their bytes.
std::pair<std::string, int64_t> LargestParameters(const llvm::Module& m) {
  std::pair<std::string, int64_t> out;
  for (const llvm::Function& f : m) {
    if (f.isDeclaration() || f.hasLocalLinkage()) continue;
    int64_t bytes = 0;
    for (const llvm::Argument& a : f.args())
      bytes += static_cast<int64_t>(m.getDataLayout().getTypeAllocSize(a.getType()));
    if (bytes > out.second) out = {f.getName().str(), bytes};
  }
  return out;
}

// Drivers before CUDA 12.1 do not read the version of PTX that kernels of very many parameters need; others stay as
// they are.
absl::StatusOr<CpuLevel> WithRoomForParameters(CpuLevel level, const llvm::Module& m) {
  constexpr int64_t kOfAnyVersion = 4352, kMost = 32764;
  const auto [kernel, bytes] = LargestParameters(m);
  if (bytes > kMost)
    return Unimplemented("error: ", kernel, ": takes ", bytes, " bytes of arguments; a GPU's kernel can take ", kMost);
  if (bytes > kOfAnyVersion) level.features += level.features.empty() ? "+ptx81" : ",+ptx81";
  return level;
}

// LLVM numbers calls through all modules of a process, in comments: they would tell what was compiled before.
std::string WithoutCallNumbers(llvm::StringRef ptx) {
  std::string out;
  out.reserve(ptx.size());
  while (!ptx.empty()) {
    const auto [line, rest] = ptx.split('\n');
    out += line.substr(0, line.find(" // callseq ")).str();
    out += '\n';
    ptx = rest;
  }
  return out;
}

}  // namespace

CpuLevel PtxLevel(const std::string& cpu, const std::string& features) {
  return {cpu, cpu, features, 16, 255, /*f16c=*/true, /*fma=*/true, /*amx=*/false};
}

absl::StatusOr<std::string> CompileToPtx(llvm::Module& m, const CpuLevel& wanted, bool flush,
                                         const std::string& libdevice, std::string* ir_text) {
  ASSIGN_OR_RETURN(const CpuLevel level, WithRoomForParameters(wanted, m));
  auto tm = MakeTarget(level);
  m.setTargetTriple(kTriple);
  m.setDataLayout(tm->createDataLayout());
  RETURN_IF_ERROR(LinkKernelLibrary(m, /*fma=*/true));
  RETURN_IF_ERROR(LinkMathFunctions(m, libdevice));
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
  return WithoutCallNumbers(llvm::StringRef(ptx.data(), ptx.size()));
}

}  // namespace kiln
