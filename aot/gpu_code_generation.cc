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
  entry.poison_freed = options.debug.poison_freed;
  entry.replicas = program.replicas;
  entry.partitions = program.partitions;
  const bool several = program.replicas * program.partitions > 1;
  entry.tf32 = options.gpu.tf32;
  entry.nccl = several && options.gpu.transport == GpuOptions::Transport::kNccl;
  return entry;
}

// Code for one architecture that LLVM knows, and the cubins made of it.
struct Variant {
  std::vector<const GpuTarget*> targets;
  std::string ptx, text;
  std::vector<std::string> cubins;  // beside `targets`
  std::vector<gpu::Program> programs;
  absl::Status status;
};

struct Image {
  bool machine_code;
  int major, minor;
  const std::string* bytes;
  std::string name;
};

// A program that the runtime is told of, and what runs it.
struct Described {
  const std::string& name;
  const gpu::Program& kernels;
  const gpu::EntryUse& use;
  bool products;
  const GpuPorts& ports;
};

// Hidden in the library, and defined there.
llvm::Function* FunctionOfLibrary(Ir& ir, const std::string& name) {
  if (llvm::Function* f = ir.module.getFunction(name)) return f;
  auto* type = llvm::FunctionType::get(ir.b.getPtrTy(), false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, ir.module);
  f->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return f;
}

llvm::Constant* WeightsOfLibrary(Ir& ir, const std::string& name) {
  if (llvm::GlobalVariable* known = ir.module.getGlobalVariable(name)) return known;
  auto* data =
      new llvm::GlobalVariable(ir.module, ir.b.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage, nullptr, name);
  data->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return data;
}

// A program's kiln_gpu_communication; null: it has none.
llvm::Constant* Communication(Ir& ir, const std::string& library, const Described& p, Tables* t) {
  if (!p.ports.communicates) return t->Null();
  const bool nccl = p.use.groups && !p.use.groups->isNullValue();
  return t->Global(t->Struct({t->Number(p.ports.exchange_bytes), FunctionOfLibrary(ir, library + "_gpu_by_host"),
                              nccl ? p.use.groups : t->Null(),
                              nccl ? FunctionOfLibrary(ir, library + "_gpu_collectives") : t->Null()}));
}

// The descriptions that the runtime reads (<name>_gpu_program), and the code they point to, which is there once.
void Describe(Ir& ir, const std::string& library, const std::vector<Image>& images,
              const std::vector<Described>& programs, const std::string& architectures) {
  constexpr uint64_t kCodeAlignment = 64;
  Tables t(ir, library + "_gpu_data");
  std::vector<llvm::Constant*> list;
  for (const Image& i : images)
    list.push_back(t.Struct({t.Number(i.machine_code), t.Number(i.major), t.Number(i.minor),
                             t.Text(*i.bytes, kCodeAlignment), t.Text(i.name)}));
  llvm::Constant *code = t.Array(list), *named = t.Text(architectures);
  for (const Described& p : programs) {
    const GpuPorts& ports = p.ports;
    // What the description names is linked, and nothing else of the archive that these programs could do without.
    llvm::Constant* gemm = p.products ? FunctionOfLibrary(ir, library + "_gpu_gemm") : t.Null();
    llvm::Constant* weights = ports.weights_bytes > 0 ? WeightsOfLibrary(ir, library + "_weights") : t.Null();
    std::vector<llvm::Constant*> names;
    for (const gpu::Program::Kernel& k : p.kernels.kernels) names.push_back(t.Text(k.symbol));
    t.Publish(p.name + "_gpu_program", t.Struct({t.Number(static_cast<int64_t>(images.size())),
                                                 code,
                                                 t.Number(static_cast<int64_t>(names.size())),
                                                 t.Array(names),
                                                 t.Number(p.use.regions),
                                                 t.Number(static_cast<int64_t>(p.use.calls.size())),
                                                 t.Array(p.use.calls),
                                                 gemm,
                                                 weights,
                                                 t.Number(ports.weights_bytes),
                                                 t.Number(ports.arena_bytes),
                                                 Communication(ir, library, p, &t),
                                                 t.Number(static_cast<int64_t>(ports.argument_bytes.size())),
                                                 t.Number(static_cast<int64_t>(ports.result_bytes.size())),
                                                 t.Numbers(ports.argument_bytes),
                                                 t.Numbers(ports.result_bytes),
                                                 t.Numbers(ports.result_in_argument),
                                                 named,
                                                 FunctionOfLibrary(ir, p.name + "_gpu_entry"),
                                                 t.Number(ports.host_arena_bytes),
                                                 ports.on_host.empty() ? t.Null() : t.Numbers(ports.on_host)}));
  }
}

using EmitForTarget = std::function<absl::StatusOr<std::vector<gpu::Program>>(Ir&, const GpuTarget&)>;

absl::Status CompileVariant(const EmitForTarget& emit, const std::string& name, const std::string& ptxas,
                            const CompileOptions& options, Variant* v) {
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  const CpuLevel level = PtxLevel(v->targets[0]->llvm_cpu, v->targets[0]->llvm_features);
  Ir ir(context, module, level);
  ir.keeps_excess = KeepsExcess(options);
  ASSIGN_OR_RETURN(v->programs, emit(ir, *v->targets[0]));
  gpu::LowerToDevice(ir, v->programs);
  ASSIGN_OR_RETURN(v->ptx, CompileToPtx(module, level, options.cpu.flush_subnormals, FindLibdevice(ptxas), &v->text));
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
  // Beside `images`: of which variant they are, and what tuning chose for.
  std::vector<std::pair<const Variant*, std::string>> started;
  std::string architectures;
  int64_t bytes = 0;  // of machine code

  // How the images start one of the programs.
  std::vector<gpu::Image> ImagesOf(size_t program) const {
    std::vector<gpu::Image> out;
    for (const auto& [variant, target] : started) out.push_back({&variant->programs[program], target});
    return out;
  }
};

// Emits and compiles for each of `code->variants`; PTX of the newest serves devices to come.
absl::Status CompileVariants(const EmitForTarget& emit, const std::string& name, const CompileOptions& options,
                             const std::function<void(const std::string&)>& note, DeviceCode* code) {
  const std::string ptxas = FindPtxas(options.gpu.ptxas);
  if (ptxas.empty()) note("no ptxas: the archive holds PTX, which the driver compiles when the program starts");
  std::vector<Variant>& variants = code->variants;
  ParallelFor(variants.size(),
              [&](size_t k) { variants[k].status = CompileVariant(emit, name, ptxas, options, &variants[k]); });
  std::vector<std::string> architectures;
  for (const Variant& v : variants) {
    RETURN_IF_ERROR(v.status);
    for (size_t k = 0; k < v.cubins.size(); ++k) {
      code->images.push_back({true, v.targets[k]->major, v.targets[k]->minor, &v.cubins[k], v.targets[k]->name});
      code->started.push_back({&v, v.targets[k]->name});
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
    code->started.push_back({&v, ptxas.empty() ? v.targets[0]->name : ""});
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

// The kernels of every program, and what these stand on.
struct Plans {
  std::vector<KernelPlan> list;
  std::vector<std::unique_ptr<Module>> stand_ins;
};

absl::StatusOr<Plans> PlanAll(const std::string& library, const std::vector<ProgramToGenerate>& programs,
                              const CompileOptions& options) {
  Plans out;
  for (const ProgramToGenerate& p : programs) {
    // Kernels are named within their image.
    const std::string prefix = CIdentifier(options.model.name) + p.name.substr(library.size());
    out.list.push_back(PlanKernels(prefix, *p.thunks));
    if (!options.gpu.fallback_kernels) continue;
    ASSIGN_OR_RETURN(auto stand_ins, gpu::PlanStandIns(prefix, *p.thunks, &out.list.back()));
    out.stand_ins.push_back(std::move(stand_ins));
  }
  return out;
}

// Targets that the same kernels serve are one variant.
std::vector<Variant> VariantsFor(const std::vector<GpuTarget>& targets, const Plans& plans) {
  std::vector<Variant> out;
  for (const GpuTarget& t : targets) {
    const auto same = [&](const Variant& v) {
      return std::all_of(plans.list.begin(), plans.list.end(),
                         [&](const KernelPlan& p) { return gpu::SameKernels(p, *v.targets[0], t); });
    };
    auto at = std::find_if(out.begin(), out.end(), same);
    if (at == out.end()) at = out.emplace(out.end());
    at->targets.push_back(&t);
  }
  return out;
}

}  // namespace

absl::StatusOr<GeneratedCode> GenerateGpuCode(const std::string& library,
                                              const std::vector<ProgramToGenerate>& programs,
                                              const std::vector<GpuTarget>& targets, const std::vector<GpuPorts>& ports,
                                              const CompileOptions& options,
                                              const std::function<void(const std::string&)>& note) {
  const std::string file = CIdentifier(options.model.name);
  ASSIGN_OR_RETURN(const Plans plans, PlanAll(library, programs, options));
  DeviceCode code;
  code.variants = VariantsFor(targets, plans);
  const auto emit = [&](Ir& ir, const GpuTarget& target) -> absl::StatusOr<std::vector<gpu::Program>> {
    std::vector<gpu::Program> out;
    for (const KernelPlan& plan : plans.list) {
      ASSIGN_OR_RETURN(gpu::Program emitted, gpu::EmitKernels(ir, plan, target));
      RETURN_IF_ERROR(CheckArrays(emitted));  // before seconds are spent on its code
      out.push_back(std::move(emitted));
    }
    return out;
  };
  RETURN_IF_ERROR(CompileVariants(emit, file, options, note, &code));
  GeneratedCode out;
  out.code_bytes = code.bytes;
  ASSIGN_OR_RETURN(CpuLevel host, FindCpuLevel("v2"));
  llvm::LLVMContext context;
  llvm::Module module(library, context);
  Ir ir(context, module, host);
  std::vector<gpu::EntryUse> uses;
  for (size_t k = 0; k < programs.size(); ++k) {
    ASSIGN_OR_RETURN(gpu::EntryUse use, gpu::EmitEntry(ir, programs[k].name + "_gpu_entry", *programs[k].thunks,
                                                       plans.list[k], code.ImagesOf(k), &options.gpu.tuning.algorithms,
                                                       EntryOptionsFor(library, programs[k], options)));
    uses.push_back(std::move(use));
  }
  std::vector<Described> described;
  for (size_t k = 0; k < programs.size(); ++k) {
    // What starts the kernels is the same for every architecture.
    const gpu::Program& kernels = code.variants[0].programs[k];
    described.push_back({programs[k].name, kernels, uses[k], !uses[k].calls.empty(), ports[k]});
    out.kernels += static_cast<int64_t>(kernels.kernels.size());
    out.gpu_steps += uses[k].steps;
  }
  Describe(ir, library, code.images, described, code.architectures);
  int64_t host_bytes = 0;
  ASSIGN_OR_RETURN(std::string object, CompileToObject(module, host, Sanitizer::kNone, &host_bytes));
  out.code_bytes += host_bytes;
  out.members.push_back({file + "_gpu.o", std::move(object)});
  return out;
}

absl::StatusOr<GeneratedCode> GenerateEmulatedCode(const std::string& library, const ProgramToGenerate& program,
                                                   bool checked, const CompileOptions& options) {
  ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("native"));
  ASSIGN_OR_RETURN(GpuTarget target, FindGpuTarget(options.gpu.targets.empty() ? "sm_80" : options.gpu.targets[0]));
  target.tf32 = options.gpu.tf32;
  llvm::LLVMContext context;
  llvm::Module module(library, context);
  Ir ir(context, module, level);
  ir.keeps_excess = KeepsExcess(options);
  const std::string file = CIdentifier(options.model.name);
  KernelPlan plan = PlanKernels(file, *program.thunks);
  std::unique_ptr<Module> stand_ins;
  if (options.gpu.fallback_kernels) {
    ASSIGN_OR_RETURN(stand_ins, gpu::PlanStandIns(file, *program.thunks, &plan));
  }
  ASSIGN_OR_RETURN(gpu::Program kernels, gpu::EmitKernels(ir, plan, target));
  const std::string weights = program.constant_offsets->empty() ? "" : library + "_weights";
  RETURN_IF_ERROR(gpu::LowerToHost(ir, kernels, program.name, weights, checked));
  const EntryOptions entry = EntryOptionsFor(library, program, options);
  const std::string symbol = program.name + "_gpu_entry";
  ASSIGN_OR_RETURN(const gpu::EntryUse use,
                   gpu::EmitEntry(ir, symbol, *program.thunks, plan, {{&kernels, target.name}}, nullptr, entry));
  Tables tables(ir, symbol);
  tables.Publish(program.name + "_emulated_groups", use.groups);
  module.getNamedGlobal(program.name + "_emulated_groups")->setVisibility(llvm::GlobalValue::DefaultVisibility);
  module.getFunction(symbol)->setVisibility(llvm::GlobalValue::DefaultVisibility);
  GeneratedCode out;
  out.kernels = static_cast<int64_t>(kernels.kernels.size());
  std::string text;
  const bool want_text = !options.pipeline.dump_dir.empty();
  ASSIGN_OR_RETURN(std::string object, CompileToObject(module, level, options.debug.sanitizer, &out.code_bytes,
                                                       want_text ? &text : nullptr));
  out.members.push_back({file + "_emulated.o", std::move(object)});
  return out;
}

absl::StatusOr<TunerCode> GenerateTunerCode(const std::string& name, const std::vector<Instruction*>& subjects,
                                            const GpuTarget& target, const CompileOptions& options,
                                            const std::function<void(const std::string&)>& note) {
  TunerCode out;
  for (const Instruction* i : subjects) out.calls_cublas = out.calls_cublas || IsCallTo(i, kGemmTarget);
  std::vector<gpu::TuneSubject> measured;
  const auto emit = [&](Ir& ir, const GpuTarget& t) -> absl::StatusOr<std::vector<gpu::Program>> {
    std::vector<gpu::Program> programs(1);
    ASSIGN_OR_RETURN(measured,
                     gpu::EmitCandidates(ir, t, name, subjects, options.gpu.tuning.results.get(), &programs[0]));
    return programs;
  };
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  int64_t host_bytes = 0;
  if (options.gpu.emulation != GpuOptions::Emulation::kNone) {
    ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("native"));
    Ir ir(context, module, level);
    ir.keeps_excess = KeepsExcess(options);
    ASSIGN_OR_RETURN(const std::vector<gpu::Program> programs, emit(ir, target));
    const bool checked = options.gpu.emulation == GpuOptions::Emulation::kChecked;
    RETURN_IF_ERROR(gpu::LowerToHost(ir, programs[0], name, "", checked));
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
  Describe(ir, name, code.images, {{name, code.variants[0].programs[0], {}, out.calls_cublas, {}}}, code.architectures);
  RETURN_IF_ERROR(gpu::EmitTuneTables(ir, name, target.name, options.gpu.tuning.level, options.gpu.tf32,
                                      code.images.size(), measured));
  ASSIGN_OR_RETURN(std::string object, CompileToObject(module, host, Sanitizer::kNone, &host_bytes));
  out.members.push_back({name + "_gpu.o", std::move(object)});
  return out;
}

}  // namespace kiln
