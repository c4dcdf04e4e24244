#include "aot/targets/target.h"

namespace kiln {

bool Emulates(const CompileOptions& o) { return o.gpu.emulation != GpuOptions::Emulation::kNone; }

ProgramToGenerate Compilation::ToGenerate(const Planned& p) const {
  return {out.symbols + p.suffix,
          &p.program.thunks,
          &p.offsets,
          p.program.module->replica_count,
          p.program.module->partition_count,
          large_weights,
          p.ops.ops.empty() ? nullptr : &p.ops};
}

void Compilation::Add(GeneratedCode code) {
  out.report.code_bytes += code.code_bytes;
  out.report.kernels += code.kernels;
  out.report.gpu_steps += code.gpu_steps;
  for (auto& member : code.members) members.push_back(std::move(member));
}

}  // namespace kiln
