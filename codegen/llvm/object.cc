#include "codegen/llvm/object.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/kernels/bitcode.h"
#include "codegen/llvm/empty_text.h"
#include "codegen/llvm/gathers.h"
#include "codegen/llvm/halves.h"
#include "codegen/llvm/inverse_roots.h"
#include "codegen/llvm/narrow_tables.h"
#include "codegen/llvm/neighbours.h"
#include "codegen/llvm/rare_calls.h"
#include "codegen/llvm/row_questions.h"
#include "codegen/llvm/target_machine.h"
#include "codegen/llvm/truths.h"
#include "codegen/llvm/without_strength_reduction.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopStrengthReduce.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace kiln {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

// Sets one of LLVM's options, which it declares as `opt` of that type.
template <typename T>
void SetOption(const char* name, T value) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto it = options.find(name);
  KILN_CHECK(it != options.end());
  static_cast<llvm::cl::opt<T>*>(it->second)->setValue(value);
}

std::unique_ptr<llvm::TargetMachine> MakeTarget(const CpuLevel& level) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    // Loops along rows are long bodies where an operand is computed, and many where few rows were unrolled. The option
    // is the whole process's, but GPU code is no different for it: LLVM unswitches no loops where branches diverge.
    SetOption("unswitch-threshold", 400);
  });
  return MakeTargetMachine(kTriple, level.cpu, "", llvm::CodeGenOptLevel::Default, llvm::CodeModel::Small);
}

// LLVM says on standard error where it did not make vectors of a loop that asks for them; users have no use for it.
struct OnlyErrors : llvm::DiagnosticHandler {
  bool handleDiagnostics(const llvm::DiagnosticInfo& d) override { return d.getSeverity() != llvm::DS_Error; }
};

// The functions of a module read this way are decoded when something links them.
absl::StatusOr<std::unique_ptr<llvm::Module>> ReadBitcode(llvm::LLVMContext& ctx, const unsigned char* data,
                                                          size_t size, const char* what) {
  auto buffer = llvm::MemoryBufferRef(llvm::StringRef(reinterpret_cast<const char*>(data), size), what);
  auto m = llvm::getLazyBitcodeModule(buffer, ctx);
  if (!m) return Internal("cannot read the kernel library: ", llvm::toString(m.takeError()));
  return std::move(*m);
}

// The library was compiled for a plain machine: its functions take the level's features instead.
void Retarget(llvm::Module& m, const CpuLevel& level) {
  for (llvm::Function& f : m) {
    f.removeFnAttr("target-cpu");
    f.removeFnAttr("target-features");
    f.removeFnAttr("tune-cpu");
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", level.cpu);
    if (!level.features.empty()) f.addFnAttr("target-features", level.features);
    if (level.vector_bytes == 64) f.addFnAttr("prefer-vector-width", "512");
    f.addFnAttr(llvm::Attribute::NoUnwind);
    f.removeFnAttr(llvm::Attribute::UWTable);
    if (m.getUwtable() != llvm::UWTableKind::None) {
      f.setUWTableKind(m.getUwtable());
      f.addFnAttr("frame-pointer", "all");
    }
  }
}

bool Is(const llvm::Function& f, const char* attribute) { return f.hasFnAttribute(attribute); }

// Functions that gather, and those that call them, become vectors at levels where LLVM would not make any for the sake
// of one gather among much else: RewriteGathers makes loads of it.
void LetGather(llvm::Module& m, const CpuLevel& level) {
  constexpr int64_t kAvx2Bytes = 32;
  if (level.vector_bytes != kAvx2Bytes) return;
  std::vector<llvm::Function*> work;
  for (llvm::Function& f : m)
    if (Is(f, kGathers)) work.push_back(&f);
  while (!work.empty()) {
    llvm::Function* f = work.back();
    work.pop_back();
    f->addFnAttr("target-features", absl::StrCat(level.features, level.features.empty() ? "" : ",", "+fast-gather"));
    for (llvm::User* u : f->users()) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(u);
      if (!call || Is(*call->getFunction(), kGathers)) continue;
      call->getFunction()->addFnAttr(kGathers);
      work.push_back(call->getFunction());
    }
  }
}

// Micro-kernels, and entries that nothing is inlined into, are written as the machine should run them: LLVM's passes
// would only read them, some forty times.
//
// Jumps are not threaded where kernels read under a condition (kAsksOfRows). On a path that knows a loop's index, as at
// the end of a row behind another condition, the address becomes a number; where paths meet again LLVM's vectoriser
// takes that number for the address of a vector that begins where the condition does not hold.
void LeaveAlone(llvm::PassInstrumentationCallbacks* callbacks) {
  callbacks->registerShouldRunOptionalPassCallback([](llvm::StringRef pass, llvm::Any ir) {
    if (const auto* f = llvm::any_cast<const llvm::Function*>(&ir)) {
      const auto asks = [](const llvm::Function& other) { return Is(other, kAsksOfRows); };
      if (pass == "JumpThreadingPass" && llvm::any_of(*(*f)->getParent(), asks)) return false;
      return !Is(**f, kWrittenAsRun);
    }
    if (const auto* l = llvm::any_cast<const llvm::Loop*>(&ir))
      return !Is(*(*l)->getHeader()->getParent(), kWrittenAsRun);
    return true;
  });
}

// Strength reduction is for elementwise loops. Its extra induction variables push a micro-kernel's accumulators out of
// registers, what calls micro-kernels spends no time in its own loops, and on long bodies it takes more time than all
// other passes together.
void ReduceStrength(llvm::Module& m, llvm::FunctionAnalysisManager& fam) {
  llvm::FunctionPassManager reduce;
  reduce.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopStrengthReducePass()));
  constexpr unsigned kLongBody = 600;
  for (llvm::Function& f : m)
    if (!f.isDeclaration() && !Is(f, kWrittenAsRun) && !Is(f, kCallsMicroKernels) &&
        f.getInstructionCount() < kLongBody)
      reduce.run(f, fam);
}

// For code that was optimised when kiln was built, after a few of its values became constants.
constexpr char kTidyPasses[] = "function(instcombine<no-verify-fixpoint>,simplifycfg),globaldce";

enum class CodeState { kFresh, kOptimised };

absl::StatusOr<std::string> Emit(llvm::Module& m, const CpuLevel& level, llvm::TargetMachine& tm, Sanitizer sanitizer,
                                 int64_t* text_bytes, std::string* ir_text, CodeState state) {
  std::string problem;
  llvm::raw_string_ostream os(problem);
  if (llvm::verifyModule(m, &os)) return Internal("invalid IR: ", os.str());
  {
    llvm::LoopAnalysisManager lam;
    llvm::FunctionAnalysisManager fam;
    llvm::CGSCCAnalysisManager cam;
    llvm::ModuleAnalysisManager mam;
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = true;
    tuning.SLPVectorization = false;
    tuning.LoopUnrolling = true;
    llvm::PassInstrumentationCallbacks callbacks;
    LeaveAlone(&callbacks);
    llvm::PassBuilder pb(&tm, tuning, std::nullopt, &callbacks);
    pb.registerModuleAnalyses(mam);
    pb.registerCGSCCAnalyses(cam);
    pb.registerFunctionAnalyses(fam);
    pb.registerLoopAnalyses(lam);
    pb.crossRegisterProxies(lam, fam, cam, mam);
    // Passes behind the vectoriser shrink to halves again.
    pb.registerVectorizerStartEPCallback([&](llvm::FunctionPassManager& at, llvm::OptimizationLevel) {
      at.addPass(WidenHalves());
      at.addPass(AskRowsFirst());
      at.addPass(ReadNeighboursAgain());
      if (PicksFromTables(level)) at.addPass(WordsOfNarrowTables());
    });
    llvm::ModulePassManager passes;
    if (state == CodeState::kFresh)
      passes = pb.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
    else if (llvm::Error e = pb.parsePassPipeline(passes, kTidyPasses))
      return Internal("LLVM's passes: ", llvm::toString(std::move(e)));
    if (sanitizer != Sanitizer::kNone) {
      const bool address = sanitizer == Sanitizer::kAddress;
      for (llvm::Function& f : m)
        if (!f.isDeclaration())
          f.addFnAttr(address ? llvm::Attribute::SanitizeAddress : llvm::Attribute::SanitizeThread);
      if (address) {
        passes.addPass(llvm::AddressSanitizerPass(llvm::AddressSanitizerOptions()));
      } else {
        passes.addPass(llvm::ModuleThreadSanitizerPass());
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
      }
    }
    if (state == CodeState::kFresh) LetGather(m, level);
    passes.run(m, mam);
    InlineVariantsOfRareCalls(m, mam);
    for (llvm::Function& f : m) {
      WidenHalves().run(f, fam);
      RewriteInverseRoots(f);
      RewriteGathers(f, level);
      if (level.vector_bytes == 64) RewriteTruths(f);
    }
    ReduceStrength(m, fam);
  }
  if (ir_text) {
    llvm::raw_string_ostream text(*ir_text);
    m.print(text, nullptr);
  }
  m.setSourceFileName("");  // the object's symbol table would hold it, and the other symbols already begin with it
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  WithoutStrengthReduction pm;
  if (tm.addPassesToEmitFile(pm, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    return Internal("this target cannot emit objects");
  KILN_CHECK(pm.LeftBothOut());
  pm.run(m);
  if (text_bytes) {
    auto obj = llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "o"));
    if (!obj) return Internal(llvm::toString(obj.takeError()));
    for (const llvm::object::SectionRef& s : (*obj)->sections())
      if (s.isText()) *text_bytes += static_cast<int64_t>(s.getSize());
  }
  return std::string(object.data(), object.size());
}

}  // namespace

absl::Status LinkKernelLibrary(llvm::Module& m, bool fma) {
  std::set<std::string> own;
  for (const llvm::GlobalValue& g : m.global_values())
    if (!g.isDeclaration() && g.hasExternalLinkage()) own.insert(g.getName().str());
  using Part = std::pair<const unsigned char*, size_t>;
  const Part math = fma ? Part{kFusedMathBitcode, kFusedMathBitcodeSize} : Part{kMathBitcode, kMathBitcodeSize};
  std::vector<Part> libraries = {math, {kAlgorithmsBitcode, kAlgorithmsBitcodeSize}, math};
  for (const llvm::Function& f : m)
    if (f.isDeclaration() && f.getName().starts_with("kiln_linalg_")) {
      libraries.push_back({kLinalgBitcode, kLinalgBitcodeSize});
      break;
    }
  for (auto [data, size] : libraries) {
    ASSIGN_OR_RETURN(auto lib, ReadBitcode(m.getContext(), data, size, "kernels"));
    lib->setTargetTriple(m.getTargetTriple());
    lib->setDataLayout(m.getDataLayout());
    if (llvm::Linker::linkModules(m, std::move(lib), llvm::Linker::LinkOnlyNeeded))
      return Internal("cannot link the kernel library");
  }
  llvm::internalizeModule(
      m, [&](const llvm::GlobalValue& g) { return own.count(g.getName().str()) || g.isDeclaration(); });
  return absl::OkStatus();
}

absl::StatusOr<std::string> CompileToObject(llvm::Module& m, const CpuLevel& level, Sanitizer sanitizer,
                                            int64_t* text_bytes, std::string* ir_text) {
  m.getContext().setDiagnosticHandler(std::make_unique<OnlyErrors>());
  auto tm = MakeTarget(level);
  m.setTargetTriple(kTriple);
  m.setDataLayout(tm->createDataLayout());
  RETURN_IF_ERROR(LinkKernelLibrary(m, level.fma));
  AddVariantsOfRareCalls(m, level);
  Retarget(m, level);
  return Emit(m, level, *tm, sanitizer, text_bytes, ir_text, CodeState::kFresh);
}

absl::StatusOr<std::string> BatchDispatchObject(const std::string& name, const std::vector<int64_t>& batches,
                                                int32_t otherwise) {
  llvm::LLVMContext ctx;
  ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("v2"));
  auto tm = MakeTarget(level);
  llvm::Module m(name, ctx);
  m.setTargetTriple(kTriple);
  m.setDataLayout(tm->createDataLayout());
  llvm::IRBuilder<> b(ctx);
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy()}, false);
  auto* run = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name + "_run", m);
  b.SetInsertPoint(llvm::BasicBlock::Create(ctx, "entry", run));
  auto* none = llvm::BasicBlock::Create(ctx, "none", run);
  llvm::SwitchInst* pick = b.CreateSwitch(b.CreateLoad(b.getInt64Ty(), run->getArg(0)), none);
  for (int64_t batch : batches) {
    auto* block = llvm::BasicBlock::Create(ctx, "batch", run);
    pick->addCase(b.getInt64(static_cast<uint64_t>(batch)), block);
    b.SetInsertPoint(block);
    auto f = m.getOrInsertFunction(name + "_b" + std::to_string(batch) + "_run", type);
    llvm::cast<llvm::Function>(f.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    b.CreateRet(b.CreateCall(f, {run->getArg(0)}));
  }
  b.SetInsertPoint(none);
  b.CreateRet(b.getInt32(static_cast<uint32_t>(otherwise)));
  Retarget(m, level);
  return Emit(m, level, *tm, Sanitizer::kNone, nullptr, nullptr, CodeState::kFresh);
}

namespace {

// `of_others`: the visibility that the data gives the symbols that it refers to. What one object of a program hides is
// hidden, so only those may be hidden that always are.
absl::StatusOr<std::string> EmitConstant(const std::string& symbol, const std::string& bytes,
                                         const std::vector<DataAddress>& addresses,
                                         llvm::GlobalValue::VisibilityTypes of_others) {
  llvm::LLVMContext ctx;
  ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("v2"));
  auto tm = MakeTarget(level);
  llvm::Module m(symbol, ctx);
  m.setTargetTriple(kTriple);
  m.setDataLayout(tm->createDataLayout());
  const auto global = [&](llvm::Type* type, const std::string& name, llvm::GlobalValue::VisibilityTypes visibility) {
    auto* g = new llvm::GlobalVariable(m, type, true, llvm::GlobalValue::ExternalLinkage, nullptr, name);
    g->setVisibility(visibility);
    return g;
  };
  std::vector<const DataAddress*> order;
  for (const DataAddress& a : addresses) order.push_back(&a);
  std::sort(order.begin(), order.end(), [](const DataAddress* a, const DataAddress* b) { return a->at < b->at; });
  // A packed struct of what lies between the addresses, and of these.
  auto* byte = llvm::Type::getInt8Ty(ctx);
  auto* pointer = llvm::PointerType::getUnqual(ctx);
  std::vector<llvm::Type*> types;
  size_t done = 0;
  for (const DataAddress* a : order) {
    types.insert(types.end(), {llvm::ArrayType::get(byte, a->at - done), pointer});
    done = a->at + sizeof(uint64_t);
  }
  types.push_back(llvm::ArrayType::get(byte, bytes.size() - done));
  auto* type = llvm::StructType::get(ctx, types, /*isPacked=*/true);
  llvm::GlobalVariable* data = global(type, symbol, llvm::GlobalValue::HiddenVisibility);
  std::vector<llvm::Constant*> values;
  const auto text = [&](size_t begin, size_t end) {
    return llvm::ConstantDataArray::getRaw(llvm::StringRef(bytes).slice(begin, end), end - begin, byte);
  };
  done = 0;
  for (const DataAddress* a : order) {
    values.push_back(text(done, a->at));
    done = a->at + sizeof(uint64_t);
    llvm::Constant* target = data;
    if (!a->symbol.empty())
      target = m.getOrInsertGlobal(a->symbol, byte, [&] { return global(byte, a->symbol, of_others); });
    if (a->offset)
      target =
          llvm::ConstantExpr::getGetElementPtr(byte, target, llvm::ConstantInt::get(ctx, llvm::APInt(64, a->offset)));
    values.push_back(target);
  }
  values.push_back(text(done, bytes.size()));
  data->setInitializer(llvm::ConstantStruct::get(type, values));
  data->setAlignment(llvm::Align(16));
  ASSIGN_OR_RETURN(const std::string object,
                   Emit(m, level, *tm, Sanitizer::kNone, nullptr, nullptr, CodeState::kOptimised));
  return WithoutEmptyText(object);
}

}  // namespace

absl::StatusOr<std::string> ConstantObject(const std::string& symbol, const std::string& bytes,
                                           const std::vector<DataAddress>& addresses) {
  return EmitConstant(symbol, bytes, addresses, llvm::GlobalValue::DefaultVisibility);
}

absl::StatusOr<std::string> AddressObject(const std::string& name, const std::string& symbol) {
  return EmitConstant(name, std::string(sizeof(uint64_t), '\0'), {{0, symbol}}, llvm::GlobalValue::HiddenVisibility);
}

std::string DataObject(const std::string& symbol, const std::vector<DataPiece>& pieces, bool large) {
  // ELF64, little endian: header, the data, .symtab, .strtab, .shstrtab, .note.GNU-stack, section table.
  size_t bytes = 0;
  for (const DataPiece& p : pieces) bytes = std::max(bytes, p.offset + p.bytes.size());
  std::string out(64, '\0');
  constexpr size_t kBesides = 4096;  // room for everything but the data and the symbol's name
  out.reserve(bytes + kBesides + symbol.size());
  auto put = [](std::string* s, size_t at, uint64_t v, int n) {
    if (s->size() < at + n) s->resize(at + n);
    for (int k = 0; k < n; ++k) (*s)[at + k] = static_cast<char>(v >> (8 * k));
  };
  auto align = [&](size_t a) { out.resize((out.size() + a - 1) / a * a); };
  const size_t data_at = out.size();
  for (const DataPiece& p : pieces) {
    out.resize(data_at + p.offset, '\0');
    out.append(p.bytes.data(), p.bytes.size());
  }
  if (bytes == 0) out.push_back('\0');
  const size_t data_size = out.size() - data_at;
  align(8);
  const size_t sym_at = out.size();
  std::string sym(48, '\0');
  put(&sym, 24, 1, 4);     // name
  put(&sym, 28, 0x11, 1);  // global object
  put(&sym, 29, 2, 1);     // hidden
  put(&sym, 30, 1, 2);     // section 1
  put(&sym, 40, data_size, 8);
  out += sym;
  const size_t str_at = out.size();
  out += '\0' + symbol + '\0';
  const size_t str_size = out.size() - str_at;
  const size_t shstr_at = out.size();
  std::string names(1, '\0');
  std::vector<size_t> name_at;
  for (const char* name : {large ? ".lrodata" : ".rodata", ".symtab", ".strtab", ".shstrtab", ".note.GNU-stack"}) {
    name_at.push_back(names.size());
    names += name;
    names += '\0';
  }
  out += names;
  align(8);
  const size_t table_at = out.size();
  auto section = [&](uint64_t name, uint64_t type, uint64_t flags, uint64_t offset, uint64_t size, uint64_t link,
                     uint64_t info, uint64_t al, uint64_t entsize) {
    const size_t at = out.size();
    put(&out, at, name, 4);
    put(&out, at + 4, type, 4);
    put(&out, at + 8, flags, 8);
    put(&out, at + 16, 0, 8);
    put(&out, at + 24, offset, 8);
    put(&out, at + 32, size, 8);
    put(&out, at + 40, link, 4);
    put(&out, at + 44, info, 4);
    put(&out, at + 48, al, 8);
    put(&out, at + 56, entsize, 8);
  };
  section(0, 0, 0, 0, 0, 0, 0, 0, 0);
  constexpr uint64_t kAlloc = 2, kLarge = 0x10000000;
  section(name_at[0], 1, kAlloc | (large ? kLarge : 0), data_at, data_size, 0, 0, 64, 0);
  section(name_at[1], 2, 0, sym_at, 48, 3, 1, 8, 24);
  section(name_at[2], 3, 0, str_at, str_size, 0, 0, 1, 0);
  section(name_at[3], 3, 0, shstr_at, names.size(), 0, 0, 1, 0);
  section(name_at[4], 1, 0, table_at, 0, 0, 0, 1, 0);
  const unsigned char ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0};
  std::memcpy(out.data(), ident, sizeof ident);
  put(&out, 16, 1, 2);   // relocatable
  put(&out, 18, 62, 2);  // x86-64
  put(&out, 20, 1, 4);
  put(&out, 40, table_at, 8);
  put(&out, 52, 64, 2);
  put(&out, 58, 64, 2);
  put(&out, 60, 6, 2);
  put(&out, 62, 4, 2);
  return out;
}

absl::StatusOr<std::string> WriteArchive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::vector<llvm::NewArchiveMember> list;
  constexpr size_t kMostBytes = 9999999999;  // what ten digits of a member's header say
  std::string out;
  size_t bytes = 0;
  for (const auto& [name, object] : members) {
    if (object.size() > kMostBytes)
      return Unimplemented("error: ", name, " has ", object.size(), " bytes; a member of an archive has at most ",
                           kMostBytes);
    list.emplace_back(llvm::MemoryBufferRef(object, name));
    list.back().MemberName = name;
    bytes += object.size();
  }
  out.reserve(bytes + bytes / 16 + (1 << 16));  // with headers and the table of symbols
  llvm::raw_string_ostream stream(out);
  if (llvm::Error e = llvm::writeArchiveToStream(stream, list, llvm::SymtabWritingMode::NormalSymtab,
                                                 llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false))
    return Internal("cannot write the archive: ", llvm::toString(std::move(e)));
  stream.flush();
  return out;
}

}  // namespace kiln
