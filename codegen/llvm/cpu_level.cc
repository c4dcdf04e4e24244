#include "codegen/llvm/cpu_level.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/status.h"
#include "runtime_min/cpu/level.h"

namespace kiln {

namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

// The best level for this machine, as an archive's dispatch would choose.
absl::string_view Native() { return kNames[std::max<int>(best_level((1u << KILN_LEVELS) - 1), V2)]; }

}  // namespace

absl::StatusOr<CpuLevel> FindCpuLevel(absl::string_view name) {
  const char* const tiles = "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16";
  const CpuLevel levels[] = {
      {"v2", "x86-64-v2", "", 16, 16, false, false, false, false, false},
      {"v3", "x86-64-v3", "", 32, 16, true, true, false, false, false},
      {"v3dot", "x86-64-v3", "+avxvnni", 32, 16, true, true, true, false, false},
      {"v4", "x86-64-v4", "", 64, 32, true, true, false, false, false},
      {"v4dot", "x86-64-v4", "+avx512vnni", 64, 32, true, true, true, false, false},
      {"v4fp16", "x86-64-v4", "+avx512vnni,+avx512fp16", 64, 32, true, true, true, false, false, true},
      {"v4bf16", "x86-64-v4", "+avx512vnni,+avx512bf16", 64, 32, true, true, true, true, false, false, 1},
      {"amx", "x86-64-v4", tiles, 64, 32, true, true, true, true, true}};
  if (name == "native") name = Native();
  for (const CpuLevel& l : levels)
    if (name == l.name || name == l.cpu) return l;
  return InvalidArgument("error: CPU level '", name, "' is unknown; there are ", absl::StrJoin(kNames, ", "),
                         " and native");
}

std::vector<std::string> DefaultCpuLevels() { return {"v2", "v3", "v3dot", "v4", "v4dot", "v4fp16", "v4bf16", "amx"}; }

std::string PlainLevelOf(const CpuLevel& level) {
  if (!level.dot_bytes) return "";
  return level.vector_bytes == 64 ? "v4" : "v3";
}

bool IsBelow(const CpuLevel& below, const CpuLevel& level) {
  const auto products = [](const CpuLevel& l) { return l.dot_bytes + l.fp16 + l.dot_bf16 + l.amx; };
  return below.cpu == level.cpu && products(below) < products(level);
}

}  // namespace kiln
