#include "aot/package/manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/compile.h"
#include "compiler/base/text.h"
#include "runtime_min/types.h"

namespace kiln {

std::string PortJson(const CompiledModel& m, bool results) {
  std::string out = "[";
  const std::vector<Port>& ports = results ? m.ports.results : m.ports.arguments;
  for (size_t k = 0; k < ports.size(); ++k) {
    const Port& p = ports[k];
    absl::StrAppend(&out, k ? "," : "", "{\"name\":", JsonQuote(p.name), ",\"path\":", JsonQuote(p.path),
                    ",\"dtype\":", JsonQuote(TextOf(p.shape.type())), ",\"shape\":[",
                    absl::StrJoin(p.shape.dims(), ","), "]");
    if (p.tiling)
      absl::StrAppend(&out, ",\"whole_shape\":[", absl::StrJoin(p.tiling->whole.dims(), ","), "],\"tiles\":[",
                      absl::StrJoin(p.tiling->tiles, ","), "],\"tile_of_partition\":[",
                      absl::StrJoin(p.tiling->tile_of_partition, ","), "]");
    if (p.weight) out += ",\"weight\":true";
    if (p.low <= p.high) absl::StrAppend(&out, ",\"bounds\":[", p.low, ",", p.high, "]");
    if (p.alias >= 0) absl::StrAppend(&out, results ? ",\"donated_argument\":" : ",\"becomes_result\":", p.alias);
    out += "}";
  }
  return out + "]";
}

// What was done to meet max_arena_bytes, in order.
std::string StepsJson(const std::vector<RematerializeStep>& steps) {
  return absl::StrJoin(steps, ",", [](std::string* s, const RematerializeStep& r) {
    absl::StrAppend(s, "{\"value\":", JsonQuote(r.value), ",\"how\":", JsonQuote(ToText(r.kind)),
                    ",\"bytes\":", r.bytes, ",\"instructions\":", r.instructions, "}");
  });
}

std::string CollectivesJson(const std::vector<CollectiveUse>& collectives) {
  return absl::StrJoin(collectives, ",", [](std::string* s, const CollectiveUse& c) {
    absl::StrAppend(s, "{\"kind\":", JsonQuote(c.kind), ",\"bytes\":", c.bytes, ",\"group_size\":", c.group_size,
                    ",\"count\":1,\"groups\":", c.groups, ",\"name\":", JsonQuote(c.name),
                    ",\"transport\":", JsonQuote(c.transport), ",\"algorithm\":", JsonQuote(c.algorithm), "}");
  });
}

std::string StatsJson(const CompiledModel& m) {
  return absl::StrCat(
      "\"name\":", JsonQuote(m.name), ",\"target\":",
      JsonQuote(absl::StrCat(m.on_cpu ? "cpu" : "", m.on_cpu && !m.code.gpu_targets.empty() ? "," : "",
                             absl::StrJoin(m.code.gpu_targets, ","))),
      m.code.gpu_targets.empty() ? "" : absl::StrCat(",\"gpu_steps\":", m.report.gpu_steps),
      ",\"gpu_temp_bytes\":", m.report.gpu_temp_bytes, ",\"gpu_host_arena_bytes\":", m.report.gpu_host_bytes,
      ",\"gpu_flops\":", m.report.gpu_flops, ",\"collectives\":[", CollectivesJson(m.report.collectives), "]",
      ",\"argument_bytes\":", m.report.argument_bytes, ",\"output_bytes\":", m.report.output_bytes,
      ",\"temp_bytes\":", m.report.temp_bytes, ",\"slow_arena_bytes\":", m.report.slow_bytes,
      ",\"constant_bytes\":", m.report.constant_bytes, ",\"code_bytes\":", m.report.code_bytes,
      ",\"archive_bytes\":", m.code.archive.size(), ",\"kernels\":", m.report.kernels, ",\"thunks\":", m.report.thunks,
      ",\"fusions\":", m.report.fusions, ",\"bytes_accessed\":", m.report.bytes_accessed, ",\"flops\":", m.report.flops,
      ",\"rematerialized\":[", StepsJson(m.report.rematerialized), "]");
}

// What each entry of a library with several takes and gives; empty for another.
std::string EntriesJson(const CompiledModel& m) {
  if (m.entries.empty()) return "";
  return absl::StrCat(
      ",\n\"entries\":[",
      absl::StrJoin(
          m.entries, ",",
          [](std::string* s, const CompiledModel& e) {
            const auto batch = [](std::string* sizes, const BatchPorts& b) { absl::StrAppend(sizes, b.batch); };
            absl::StrAppend(
                s, "\n{\"name\":", JsonQuote(e.entry), ",\"argument_bytes\":", e.report.argument_bytes,
                ",\"output_bytes\":", e.report.output_bytes, ",\"temp_bytes\":", e.report.temp_bytes,
                ",\"slow_arena_bytes\":", e.report.slow_bytes,
                e.code.gpu_targets.empty() ? "" : absl::StrCat(",\"gpu_temp_bytes\":", e.report.gpu_temp_bytes),
                ",\"batch_sizes\":[", absl::StrJoin(e.ports.batches, ",", batch),
                "],\n\"arguments\":", PortJson(e, false), ",\n\"results\":", PortJson(e, true), "}");
          }),
      "]");
}

std::string Manifest(const CompiledModel& m, const CompileOptions& o, const std::vector<std::string>& levels,
                     uint64_t weights_hash) {
  return absl::StrCat(
      "{\n\"kiln\":", JsonQuote(kKilnVersion), ",\n\"abi_version\":", KILN_ABI_VERSION,
      ",\n\"symbols\":", JsonQuote(m.symbols), ",\n", StatsJson(m), ",\n\"cpu_levels\":[",
      absl::StrJoin(levels, ",", [](std::string* s, const std::string& l) { *s += JsonQuote(l); }),
      "],\n\"threads\":", o.cpu.threads, ",\n\"devices\":", m.devices, ",\n\"batch_sizes\":[",
      absl::StrJoin(o.model.batch_sizes, ","), "],\n\"numerics\":\"IEEE operations; algebra ", Describe(m.algebra),
      "; bf16 and f16 rounded ", m.keeps_excess ? "where kernels store, compare or convert them" : "in every operation",
      HasSumsInF16(m) ? "; short sums of products of f16 are f16 at v4fp16" : "",
      "; sums are reassociated inside reductions and products; subnormals ",
      o.cpu.flush_subnormals ? "flushed" : "kept",
      o.gpu.tf32 && !o.gpu.targets.empty() ? "; f32 multiplied in TF32" : "", "\",\n\"pass_changes\":[",
      absl::StrJoin(m.pass_changes, ",", [](std::string* s, const std::string& c) { *s += JsonQuote(c); }),
      "],\n\"archive_hash\":", JsonQuote(absl::StrFormat("%016x", StableHash(m.code.archive))),
      ",\n\"weights_hash\":", JsonQuote(absl::StrFormat("%016x", weights_hash)), ",\n\"untuned\":[",
      absl::StrJoin(m.report.untuned, ",",
                    [](std::string* s, const UntunedKernel& u) {
                      absl::StrAppend(s, "{\"target\":", JsonQuote(u.target), ",\"name\":", JsonQuote(u.name),
                                      ",\"key\":", JsonQuote(u.key), ",\"computes\":", JsonQuote(u.text), "}");
                    }),
      "],\n\"tuned\":[",
      absl::StrJoin(m.report.tuned, ",",
                    [](std::string* s, const TunedKernel& t) {
                      absl::StrAppend(s, "{\"target\":", JsonQuote(t.target), ",\"name\":", JsonQuote(t.name),
                                      ",\"key\":", JsonQuote(t.key), ",\"choice\":", t.choice, "}");
                    }),
      "],\n\"config\":", JsonQuote(o.config_text), ",\n\"arguments\":", PortJson(m, false),
      ",\n\"results\":", PortJson(m, true), EntriesJson(m), "\n}\n");
}

}  // namespace kiln
