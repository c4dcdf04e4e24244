// The report for a terminal.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/report/explanation.h"

namespace kiln {
namespace {

constexpr size_t kMostLines = 20;  // of a list that may be as long as the program

void AppendMore(size_t all, const char* what, std::string* out) {
  if (all > kMostLines) absl::StrAppendFormat(out, "  ... and %d more %s\n", all - kMostLines, what);
}

// Rules of algebra by name, with how often each was applied.
void AppendRewrites(const Explanation& e, std::string* out) {
  for (const auto& p : e.passes) {
    if (p.rewrites.empty()) continue;
    absl::StrAppendFormat(out, "\nrewrites by %s\n", p.name);
    for (const auto& [rewrite, times] : p.rewrites) absl::StrAppendFormat(out, "  %11d  %s\n", times, rewrite);
  }
}

// What travels between devices, how, and what the device does meanwhile.
void AppendExchanges(const Explanation& e, std::string* out) {
  if (e.exchanges.empty()) return;
  *out += "\nexchanges between devices, and what runs beside them\n         bytes  devices  times\n";
  for (size_t k = 0; k < std::min(e.exchanges.size(), kMostLines); ++k) {
    const Explanation::Exchange& x = e.exchanges[k];
    absl::StrAppendFormat(out, "  %12d  %7s  %5d  %%%s = %s, %s: %s", x.bytes,
                          x.groups > 1 ? absl::StrFormat("%d x %d", x.groups, x.members) : absl::StrCat(x.members),
                          x.runs, x.name, x.kind, x.transport, x.how);
    if (x.beside > 0)
      absl::StrAppendFormat(out, "; beside %d %s, %%%s to %%%s, %.1f us", x.beside,
                            x.beside == 1 ? "operation" : "operations", x.first, x.last, x.beside_us);
    else if (x.transport == "kiln_comm")
      *out += "; beside nothing";
    *out += '\n';
  }
  AppendMore(e.exchanges.size(), "exchanges", out);
}

}  // namespace

std::string ExplainInText(const Explanation& e) {
  std::string out = absl::StrFormat("%s: %d arguments, %d results, %d operations with %d different kernels\n", e.name,
                                    e.arguments, e.results, e.kernels.size(), e.distinct_kernels);
  double estimated = 0;
  for (const auto& k : e.kernels) estimated += k.estimated_us;
  absl::StrAppendFormat(&out, "work: %d flops, %d bytes read and written; estimated %.1f us on %s%s\n", e.flops,
                        e.bytes_accessed, estimated, e.device,
                        e.measured_us > 0 ? absl::StrFormat(", measured %.1f us", e.measured_us) : "");
  absl::StrAppendFormat(&out, "arguments: %d bytes, results: %d bytes\n", e.argument_bytes, e.result_bytes);
  absl::StrAppendFormat(&out, "arena: %d bytes%s%s\n", e.temp_bytes,
                        e.max_arena_bytes ? absl::StrFormat(" of the %d allowed", e.max_arena_bytes) : "",
                        e.slow_bytes ? absl::StrFormat(", %s %d bytes", e.SlowArena(), e.slow_bytes) : "");

  if (!e.arena_use.empty() && e.temp_bytes > 0) {
    absl::StrAppendFormat(&out, "\npeak: %d bytes live at %%%s\n", e.arena_use[e.peak_tick], e.ticks[e.peak_tick]);
    std::vector<const Explanation::Buffer*> owners;
    for (const auto& b : e.buffers)
      if (b.place == "arena" && b.begin <= e.peak_tick && e.peak_tick <= b.end) owners.push_back(&b);
    std::stable_sort(owners.begin(), owners.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
    for (size_t k = 0; k < std::min(owners.size(), kMostLines); ++k)
      absl::StrAppendFormat(&out, "  %12d  %%%s  %s\n", owners[k]->bytes, owners[k]->owner, owners[k]->shape);
    AppendMore(owners.size(), "values", &out);
  }
  int64_t borrowed = 0;
  for (const auto& b : e.buffers) borrowed += b.place != "arena";
  if (borrowed)
    absl::StrAppendFormat(
        &out, "  beside the arena, %d values lie for a while in the memory of results that are written later\n",
        borrowed);

  if (!e.rematerialized.empty()) {
    out += "\nto meet the limit\n";
    for (size_t k = 0; k < std::min(e.rematerialized.size(), kMostLines); ++k) {
      const RematerializeStep& s = e.rematerialized[k];
      absl::StrAppendFormat(&out, "  %-10s %%%s, %d bytes", ToText(s.kind), s.value, s.bytes);
      if (s.instructions) absl::StrAppendFormat(&out, " (%d instructions run twice)", s.instructions);
      out += "\n";
    }
    AppendMore(e.rematerialized.size(), "steps", &out);
  }

  const bool measured = e.measured_us > 0;
  absl::StrAppend(&out, "\nkernels by ", measured ? "measured" : "estimated", " time\n  ",
                  measured ? "measured us  " : "", "estimated us         flops         bytes\n");
  std::vector<const Explanation::Kernel*> kernels;
  for (const auto& k : e.kernels) kernels.push_back(&k);
  std::stable_sort(kernels.begin(), kernels.end(), [&](auto* a, auto* b) {
    return measured ? a->measured_us > b->measured_us : a->estimated_us > b->estimated_us;
  });
  for (size_t k = 0; k < std::min(kernels.size(), kMostLines); ++k) {
    const auto& x = *kernels[k];
    if (measured) absl::StrAppendFormat(&out, "  %11.2f", x.measured_us);
    absl::StrAppendFormat(&out, "  %12.2f  %12d  %12d  %%%s = %s %s%s%s%s\n", x.estimated_us, x.flops, x.bytes, x.name,
                          x.shape, x.opcode,
                          x.operations.empty() ? "" : absl::StrCat(" {", absl::StrJoin(x.operations, ", "), "}"),
                          x.runs > 1 ? absl::StrFormat("  %d times", x.runs)
                          : x.depth  ? "  in a loop or branch"
                                     : "",
                          x.op_name.empty() ? "" : absl::StrCat("  ", x.op_name, " ", x.source));
  }
  AppendMore(kernels.size(), "kernels", &out);
  AppendExchanges(e, &out);

  out += "\npasses\n           ms  changed  instructions\n";
  for (const auto& p : e.passes)
    if (p.changed)
      absl::StrAppendFormat(&out, "  %11.3f  %3d/%-3d  %+12d  %s\n", p.ms, p.changed, p.runs, p.instructions, p.name);
  double idle = 0;
  for (const auto& p : e.passes)
    if (!p.changed) idle += p.ms;
  absl::StrAppendFormat(&out, "  %11.3f  by passes that changed nothing\n", idle);
  for (const std::string& change : e.pass_changes) absl::StrAppend(&out, "  the config ", change, "\n");
  AppendRewrites(e, &out);
  return out;
}

}  // namespace kiln
