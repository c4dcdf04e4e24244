#include "aot/gpu_code_generation.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "aot/ptxas.h"
#include "codegen/gpu/emulated.h"
#include "codegen/gpu/lower_device.h"
#include "codegen/gpu/stand_in.h"
#include "codegen/gpu/tuner.h"
#include "codegen/llvm/ptx.h"
#include "codegen/llvm/tables.h"
#include "compiler/base/parallel.h"
#include "compiler/base/text.h"
#include "compiler/hlo/library_calls.h"
#include "runtime_min/gpu/program.h"

namespace kiln {
namespace {

EntryOptions EntryOptionsFor(const std::string& library, const ProgramToGenerate& program,
                             const CompileOptions& options) {
  EntryOptions entry;
  entry.library = library;
  entry.constant_offsets = *program.constant_offsets;
  entry.poison_freed = options.poison_freed;
  entry.replicas = program.replicas;
  entry.partitions = program.partitions;
  return entry;
}

// Code for one architecture that LLVM knows, and the cubins made of it.
struct Variant {
  std::vector<const GpuTarget*> targets;
  std::string ptx, text;
  std::vector<std::string> cubins;  // beside `targets`
  gpu::Program program;
  absl::Status status;
};

struct Image {
  bool machine_code;
  int major, minor;
  const std::string* bytes;
  std::string name;
};

// The description that the runtime reads (<library>_gpu_program), and the code it points to.
void Describe(Ir& ir, const std::string& library, const std::vector<Image>& images, const gpu::Program& program,
              const gpu::EntryUse& use, bool products, const GpuPorts& ports, const std::string& architectures) {
  constexpr uint64_t kCodeAlignment = 64;
  Tables t(ir, library + "_gpu_data");
  std::vector<llvm::Constant*> list, names;
  for (const Image& i : images)
    list.push_back(t.Struct({t.Number(i.machine_code), t.Number(i.major), t.Number(i.minor),
                             t.Text(*i.bytes, kCodeAlignment), t.Text(i.name)}));
  // What the description names is linked, and nothing else of the archive that these programs could do without.
  llvm::Constant *gemm = t.Null(), *weights = t.Null();
  if (products) {
    auto* type = llvm::FunctionType::get(ir.b.getPtrTy(), false);
    auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, library + "_gpu_gemm", ir.module);
    f->setVisibility(llvm::GlobalValue::HiddenVisibility);
    gemm = f;
  }
  if (ports.weights_bytes > 0) {
    auto* data = new llvm::GlobalVariable(ir.module, ir.b.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage,
                                          nullptr, library + "_weights");
    data->setVisibility(llvm::GlobalValue::HiddenVisibility);
    weights = data;
  }
  for (const gpu::Program::Kernel& k : program.kernels) names.push_back(t.Text(k.symbol));
  t.Publish(library + "_gpu_program",
            t.Struct({t.Number(static_cast<int64_t>(images.size())), t.Array(list),
                      t.Number(static_cast<int64_t>(names.size())), t.Array(names), t.Number(use.regions),
                      t.Number(static_cast<int64_t>(use.calls.size())), t.Array(use.calls), gemm, weights,
                      t.Number(ports.weights_bytes), t.Number(ports.arena_bytes), t.Number(ports.communicates),
                      t.Number(ports.exchange_bytes), t.Number(static_cast<int64_t>(ports.argument_bytes.size())),
                      t.Number(static_cast<int64_t>(ports.result_bytes.size())), t.Numbers(ports.argument_bytes),
                      t.Numbers(ports.result_bytes), t.Numbers(ports.result_in_argument), t.Text(architectures)}));
}

using EmitForTarget = std::function<absl::StatusOr<gpu::Program>(Ir&, const GpuTarget&)>;

absl::Status CompileVariant(const EmitForTarget& emit, const std::string& name, const std::string& ptxas,
                            const CompileOptions& options, Variant* v) {
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  const CpuLevel level = PtxLevel(v->targets[0]->llvm_cpu, v->targets[0]->llvm_features);
  Ir ir(context, module, level);
  ASSIGN_OR_RETURN(v->program, emit(ir, *v->targets[0]));
  gpu::LowerToDevice(ir, v->program);
  ASSIGN_OR_RETURN(v->ptx, CompileToPtx(module, level, options.flush_subnormals, FindLibdevice(ptxas), &v->text));
  if (ptxas.empty()) return absl::OkStatus();
  for (const GpuTarget* t : v->targets) {
    ASSIGN_OR_RETURN(std::string cubin, AssemblePtx(ptxas, v->ptx, t->name));
    v->cubins.push_back(std::move(cubin));
  }
  return absl::OkStatus();
}

// Everything that a library holds for devices.
struct DeviceCode {
  std::vector<Variant> variants;
  std::vector<Image> images;
  std::vector<gpu::Image> started;  // beside `images`
  std::string architectures;
  int64_t bytes = 0;  // of machine code
};

// Emits and compiles for each of `code->variants`; PTX of the newest serves devices to come.
absl::Status CompileVariants(const EmitForTarget& emit, const std::string& name, const CompileOptions& options,
                             const std::function<void(const std::string&)>& note, DeviceCode* code) {
  const std::string ptxas = FindPtxas(options.ptxas);
  if (ptxas.empty()) note("no ptxas: the archive holds PTX, which the driver compiles when the program starts");
  std::vector<Variant>& variants = code->variants;
  ParallelFor(variants.size(),
              [&](size_t k) { variants[k].status = CompileVariant(emit, name, ptxas, options, &variants[k]); });
  std::vector<std::string> architectures;
  for (const Variant& v : variants) {
    RETURN_IF_ERROR(v.status);
    for (size_t k = 0; k < v.cubins.size(); ++k) {
      code->images.push_back({true, v.targets[k]->major, v.targets[k]->minor, &v.cubins[k], v.targets[k]->name});
      code->started.push_back({&v.program, v.targets[k]->name});
      architectures.push_back(v.targets[k]->name);
      code->bytes += static_cast<int64_t>(v.cubins[k].size());
    }
    if (!options.pipeline.dump_dir.empty()) {
      const std::string stem = absl::StrCat(options.pipeline.dump_dir, "/", name, ".", v.targets[0]->name);
      RETURN_IF_ERROR(WriteFile(stem + ".ir-with-opt.ll", v.text));
      RETURN_IF_ERROR(WriteFile(stem + ".ptx", v.ptx));
    }
  }
  // Without machine code every variant's PTX is needed.
  for (const Variant& v : variants) {
    if (!ptxas.empty() && &v != &variants.back()) continue;
    const std::string& cpu = v.targets[0]->llvm_cpu;
    const std::string digits = cpu.substr(3);
    code->images.push_back(
        {false, std::stoi(digits.substr(0, digits.size() - 1)), digits.back() - '0', &v.ptx, "PTX of " + cpu});
    code->started.push_back({&v.program, ptxas.empty() ? v.targets[0]->name : ""});
    architectures.push_back("PTX of " + cpu);
  }
  code->architectures = absl::StrJoin(architectures, ", ");
  return absl::OkStatus();
}

absl::Status CheckArrays(const gpu::Program& program) {
  for (const gpu::Program::Kernel& k : program.kernels)
    if (static_cast<int64_t>(k.buffer_bytes.size()) > KILN_GPU_MOST_BUFFERS)
      return ErrorAt(k.instruction,
                     absl::StrCat("its kernel takes ", k.buffer_bytes.size(), " arrays, more than ",
                                  static_cast<int64_t>(KILN_GPU_MOST_BUFFERS)),
                     absl::StatusCode::kUnimplemented);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GeneratedCode> GenerateGpuCode(const std::string& library, const ProgramToGenerate& program,
                                              const std::vector<GpuTarget>& targets, const GpuPorts& ports,
                                              const CompileOptions& options,
                                              const std::function<void(const std::string&)>& note) {
  // Kernels are named within their image.
  const std::string file = CIdentifier(options.name);
  KernelPlan plan = PlanKernels(file, *program.thunks);
  std::unique_ptr<Module> stand_ins;
  if (options.gpu_fallback_kernels) {
    ASSIGN_OR_RETURN(stand_ins, gpu::PlanStandIns(file, *program.thunks, &plan));
  }
  DeviceCode code;
  for (const GpuTarget& t : targets) {
    auto at = std::find_if(code.variants.begin(), code.variants.end(),
                           [&](const Variant& v) { return gpu::SameKernels(plan, *v.targets[0], t); });
    if (at == code.variants.end()) at = code.variants.emplace(code.variants.end());
    at->targets.push_back(&t);
  }
  const auto emit = [&](Ir& ir, const GpuTarget& target) -> absl::StatusOr<gpu::Program> {
    ASSIGN_OR_RETURN(gpu::Program emitted, gpu::EmitKernels(ir, plan, target));
    RETURN_IF_ERROR(CheckArrays(emitted));  // before seconds are spent on its code
    return emitted;
  };
  RETURN_IF_ERROR(CompileVariants(emit, file, options, note, &code));
  GeneratedCode out;
  out.code_bytes = code.bytes;
  ASSIGN_OR_RETURN(CpuLevel host, FindCpuLevel("v2"));
  llvm::LLVMContext context;
  llvm::Module module(library, context);
  Ir ir(context, module, host);
  // What starts the kernels is the same for every architecture.
  const gpu::Program& kernels = code.variants[0].program;
  const EntryOptions entry = EntryOptionsFor(library, program, options);
  ASSIGN_OR_RETURN(const gpu::EntryUse use, gpu::EmitEntry(ir, program.name + "_gpu_entry", *program.thunks, plan,
                                                           code.started, &options.library_algorithms, entry));
  Describe(ir, program.name, code.images, kernels, use, !use.calls.empty(), ports, code.architectures);
  int64_t host_bytes = 0;
  ASSIGN_OR_RETURN(std::string object, CompileToObject(module, host, Sanitizer::kNone, &host_bytes));
  out.code_bytes += host_bytes;
  out.kernels = static_cast<int64_t>(kernels.kernels.size());
  out.gpu_steps = use.steps;
  out.members.push_back({file + "_gpu.o", std::move(object)});
  return out;
}

absl::StatusOr<GeneratedCode> GenerateEmulatedCode(const std::string& library, const ProgramToGenerate& program,
                                                   bool checked, const CompileOptions& options) {
  ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("native"));
  ASSIGN_OR_RETURN(GpuTarget target, FindGpuTarget(options.gpu_targets.empty() ? "sm_80" : options.gpu_targets[0]));
  llvm::LLVMContext context;
  llvm::Module module(library, context);
  Ir ir(context, module, level);
  const std::string file = CIdentifier(options.name);
  KernelPlan plan = PlanKernels(file, *program.thunks);
  std::unique_ptr<Module> stand_ins;
  if (options.gpu_fallback_kernels) {
    ASSIGN_OR_RETURN(stand_ins, gpu::PlanStandIns(file, *program.thunks, &plan));
  }
  ASSIGN_OR_RETURN(gpu::Program kernels, gpu::EmitKernels(ir, plan, target));
  const std::string weights = program.constant_offsets->empty() ? "" : library + "_weights";
  RETURN_IF_ERROR(gpu::LowerToHost(ir, kernels, program.name, weights, checked));
  const EntryOptions entry = EntryOptionsFor(library, program, options);
  const std::string symbol = program.name + "_gpu_entry";
  RETURN_IF_ERROR(
      gpu::EmitEntry(ir, symbol, *program.thunks, plan, {{&kernels, target.name}}, nullptr, entry).status());
  module.getFunction(symbol)->setVisibility(llvm::GlobalValue::DefaultVisibility);
  GeneratedCode out;
  out.kernels = static_cast<int64_t>(kernels.kernels.size());
  std::string text;
  const bool want_text = !options.pipeline.dump_dir.empty();
  ASSIGN_OR_RETURN(std::string object,
                   CompileToObject(module, level, options.sanitizer, &out.code_bytes, want_text ? &text : nullptr));
  out.members.push_back({file + "_emulated.o", std::move(object)});
  return out;
}

absl::StatusOr<TunerCode> GenerateTunerCode(const std::string& name, const std::vector<Instruction*>& subjects,
                                            const GpuTarget& target, const CompileOptions& options,
                                            const std::function<void(const std::string&)>& note) {
  TunerCode out;
  for (const Instruction* i : subjects) out.calls_cublas = out.calls_cublas || IsCallTo(i, kGemmTarget);
  std::vector<gpu::TuneSubject> measured;
  const auto emit = [&](Ir& ir, const GpuTarget& t) -> absl::StatusOr<gpu::Program> {
    gpu::Program program;
    ASSIGN_OR_RETURN(measured, gpu::EmitCandidates(ir, t, name, subjects, options.tuning.get(), &program));
    return program;
  };
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  int64_t host_bytes = 0;
  if (options.emulation != CompileOptions::Emulation::kNone) {
    ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("native"));
    Ir ir(context, module, level);
    ASSIGN_OR_RETURN(const gpu::Program program, emit(ir, target));
    const bool checked = options.emulation == CompileOptions::Emulation::kChecked;
    RETURN_IF_ERROR(gpu::LowerToHost(ir, program, name, "", checked));
    ASSIGN_OR_RETURN(std::string object, CompileToObject(module, level, Sanitizer::kNone, &host_bytes));
    out.members.push_back({name + "_emulated.o", std::move(object)});
    return out;
  }
  DeviceCode code;
  code.variants.emplace_back();
  code.variants[0].targets.push_back(&target);
  RETURN_IF_ERROR(CompileVariants(emit, name, options, note, &code));
  for (const gpu::TuneSubject& s : measured) {
    if (s.candidates.empty())
      return ErrorAt(s.instruction, "has no algorithm to measure: the denylist names all of them");
    out.candidates += static_cast<int64_t>(s.candidates.size());
  }
  ASSIGN_OR_RETURN(CpuLevel host, FindCpuLevel("v2"));
  Ir ir(context, module, host);
  Describe(ir, name, code.images, code.variants[0].program, {}, out.calls_cublas, {}, code.architectures);
  RETURN_IF_ERROR(gpu::EmitTuneTables(ir, name, target.name, options.tuning_level, code.images.size(), measured));
  ASSIGN_OR_RETURN(std::string object, CompileToObject(module, host, Sanitizer::kNone, &host_bytes));
  out.members.push_back({name + "_gpu.o", std::move(object)});
  return out;
}

}  // namespace kiln
