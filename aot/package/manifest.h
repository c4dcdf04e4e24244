// NAME.manifest.json: what was compiled, with what, into what.
#pragma once

#include <string>
#include <vector>

namespace kiln {

struct CompiledModel;
struct CompileOptions;

inline constexpr char kKilnVersion[] = "0.1.0";

std::string Manifest(const CompiledModel& model, const CompileOptions& options, const std::vector<std::string>& levels,
                     uint64_t weights_hash);
// The JSON object that compile and run print: sizes and counts, without braces.
std::string StatsJson(const CompiledModel& model);
// The element type as results name it ("bf16").
std::string PortJson(const CompiledModel& model, bool results);

}  // namespace kiln
