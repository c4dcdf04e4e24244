#include "aot/gpu_code_generation.h"

#include "codegen/gpu/emulated.h"

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

}  // namespace

absl::StatusOr<GeneratedCode> GenerateEmulatedCode(const std::string& library, const ProgramToGenerate& program,
                                                   bool checked, const CompileOptions& options) {
  ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel("native"));
  llvm::LLVMContext context;
  llvm::Module module(library, context);
  Ir ir(context, module, level);
  const KernelPlan plan = PlanKernels(program.name, *program.thunks);
  ASSIGN_OR_RETURN(gpu::Program kernels, gpu::EmitKernels(ir, plan));
  const std::string weights = program.constant_offsets->empty() ? "" : library + "_weights";
  RETURN_IF_ERROR(gpu::LowerToHost(ir, kernels, program.name, weights, checked));
  const EntryOptions entry = EntryOptionsFor(library, program, options);
  const std::string symbol = program.name + "_gpu_entry";
  RETURN_IF_ERROR(gpu::EmitEntry(ir, symbol, *program.thunks, plan, kernels, entry));
  module.getFunction(symbol)->setVisibility(llvm::GlobalValue::DefaultVisibility);
  GeneratedCode out;
  out.kernels = static_cast<int64_t>(kernels.kernels.size());
  std::string text;
  const bool want_text = !options.pipeline.dump_dir.empty();
  ASSIGN_OR_RETURN(std::string object, CompileToObject(module, level, options.sanitizer, &out.code_bytes,
                                                       want_text ? &text : nullptr));
  out.members.push_back({program.name + "_emulated.o", std::move(object)});
  return out;
}

}  // namespace kiln
