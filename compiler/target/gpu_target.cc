#include "compiler/target/gpu_target.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/base/status.h"

namespace kiln {

// Made from gpus/*.txt when kiln is built.
extern const char* const kGpuTargetTexts[];
extern const int kGpuTargetCount;

absl::StatusOr<GpuTarget> ParseGpuTarget(absl::string_view text, const std::string& file) {
  GpuTarget t;
  int64_t bf16 = 0;
  const std::map<std::string, int64_t*> numbers = {
      {"memory_bytes", &t.memory_bytes},
      {"multiprocessors", &t.multiprocessors},
      {"shared_bytes_per_block", &t.shared_bytes_per_block},
      {"shared_bytes_per_multiprocessor", &t.shared_bytes_per_multiprocessor},
      {"threads_per_multiprocessor", &t.threads_per_multiprocessor},
      {"registers_per_multiprocessor", &t.registers_per_multiprocessor},
      {"bandwidth_bytes_per_second", &t.bandwidth_bytes_per_second},
      {"clock_hz", &t.clock_hz},
      {"l2_bytes", &t.l2_bytes},
      {"f32_flops_per_cycle", &t.f32_flops_per_cycle},
      {"f16_tensor_flops_per_cycle", &t.f16_tensor_flops_per_cycle},
      {"bf16_tensor_cores", &bf16},
  };
  std::string capability;
  const std::map<std::string, std::string*> texts = {{"name", &t.name},
                                                     {"device", &t.device},
                                                     {"capability", &capability},
                                                     {"llvm_cpu", &t.llvm_cpu},
                                                     {"llvm_features", &t.llvm_features}};
  int line_number = 0;
  size_t seen = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> kv = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    const auto number = numbers.find(kv[0]);
    const auto word = texts.find(kv[0]);
    if (kv.size() != 2 || (number == numbers.end() && word == texts.end()))
      return InvalidArgument(file, ":", line_number, ":1: error: '", std::string(line),
                             "' is no `key: value` of a GPU");
    if (word != texts.end()) *word->second = kv[1];
    if (number != numbers.end() && (!absl::SimpleAtoi(kv[1], number->second) || *number->second < 0))
      return InvalidArgument(file, ":", line_number, ":1: error: '", kv[1], "' is no count");
    ++seen;
  }
  const std::vector<std::string> parts = absl::StrSplit(capability, '.');
  if (seen != numbers.size() + texts.size() || parts.size() != 2 || !absl::SimpleAtoi(parts[0], &t.major) ||
      !absl::SimpleAtoi(parts[1], &t.minor))
    return InvalidArgument(file, ":1:1: error: a GPU is described by each of its keys, once");
  t.bf16_tensor_cores = bf16 != 0;
  return t;
}

const std::vector<GpuTarget>& AllGpuTargets() {
  static const auto* targets = [] {
    auto* list = new std::vector<GpuTarget>;
    for (int k = 0; k < kGpuTargetCount; ++k) {
      auto t = ParseGpuTarget(kGpuTargetTexts[k], "gpus");
      KILN_CHECK(t.ok());
      list->push_back(*t);
    }
    std::sort(list->begin(), list->end(), [](const GpuTarget& a, const GpuTarget& b) {
      return std::pair(a.major, a.minor) < std::pair(b.major, b.minor);
    });
    return list;
  }();
  return *targets;
}

absl::StatusOr<GpuTarget> FindGpuTarget(absl::string_view name) {
  for (const GpuTarget& t : AllGpuTargets())
    if (t.name == name) return t;
  return InvalidArgument(
      "error: GPU '", std::string(name), "' is unknown; there are ",
      absl::StrJoin(AllGpuTargets(), ", ", [](std::string* s, const GpuTarget& t) { *s += t.name; }));
}

}  // namespace kiln
