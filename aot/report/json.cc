// The report for programs.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/report/explanation.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

// A list of what `each` appends for the elements of `all`.
template <typename List, typename Each>
std::string Array(const List& all, Each each) {
  return absl::StrCat("[", absl::StrJoin(all, ",", [&](std::string* out, const auto& x) { *out += each(x); }), "]");
}

std::string Text(const Explanation::Pass& p) {
  const auto rewrite = [](std::string* out, const auto& r) { absl::StrAppend(out, JsonQuote(r.first), ":", r.second); };
  return absl::StrFormat("{\"name\":%s,\"runs\":%d,\"changes\":%d,\"ms\":%.3f,\"instructions\":%d,\"rewrites\":{%s}}",
                         JsonQuote(p.name), p.runs, p.changed, p.ms, p.instructions,
                         absl::StrJoin(p.rewrites, ",", rewrite));
}

std::string Text(const Explanation::Buffer& b) {
  return absl::StrFormat("{\"owner\":%s,\"shape\":%s,\"place\":%s,\"offset\":%d,\"bytes\":%d,\"begin\":%d,\"end\":%d}",
                         JsonQuote(b.owner), JsonQuote(b.shape), JsonQuote(b.place), b.offset, b.bytes, b.begin, b.end);
}

std::string Text(const Explanation::Kernel& k) {
  return absl::StrFormat(
      "{\"name\":%s,\"opcode\":%s,\"shape\":%s,\"operations\":%s,\"depth\":%d,\"runs\":%d,\"flops\":%d,\"bytes\":%d,"
      "\"estimated_us\":%.3f,\"measured_us\":%.3f,\"op_name\":%s,\"source\":%s}",
      JsonQuote(k.name), JsonQuote(k.opcode), JsonQuote(k.shape),
      Array(k.operations, [](const std::string& o) { return JsonQuote(o); }), k.depth, k.runs, k.flops, k.bytes,
      k.estimated_us, k.measured_us, JsonQuote(k.op_name), JsonQuote(k.source));
}

std::string Text(const Explanation::Exchange& x) {
  return absl::StrFormat(
      "{\"name\":%s,\"kind\":%s,\"transport\":%s,\"algorithm\":%s,\"bytes\":%d,\"group_size\":%d,\"groups\":%d,"
      "\"runs\":%d,\"beside\":%d,\"first\":%s,\"last\":%s,\"beside_us\":%.3f}",
      JsonQuote(x.name), JsonQuote(x.kind), JsonQuote(x.transport), JsonQuote(x.how), x.bytes, x.members, x.groups,
      x.runs, x.beside, JsonQuote(x.first), JsonQuote(x.last), x.beside_us);
}

std::string Text(const Explanation::Weight& w) {
  return absl::StrFormat("{\"name\":%s,\"shape\":%s,\"bytes\":%d}", JsonQuote(w.name), JsonQuote(w.shape), w.bytes);
}

std::string Text(const RematerializeStep& s) {
  return absl::StrFormat("{\"action\":%s,\"value\":%s,\"bytes\":%d,\"instructions\":%d}", JsonQuote(ToText(s.kind)),
                         JsonQuote(s.value), s.bytes, s.instructions);
}

}  // namespace

std::string ExplainInJson(const Explanation& e) {
  const auto text = [](const auto& x) { return Text(x); };
  double estimated = 0;
  for (const auto& k : e.kernels) estimated += k.estimated_us;
  return absl::StrFormat(
      "{\"name\":%s,\"device\":%s,\"arguments\":%d,\"results\":%d,\"operations\":%d,\"kernels\":%d,\"flops\":%d,"
      "\"bytes_accessed\":%d,\"temp_bytes\":%d,\"slow_bytes\":%d,\"argument_bytes\":%d,\"result_bytes\":%d,"
      "\"estimated_us\":%.3f,\"measured_us\":%.3f,\"steps\":%s,\"collectives\":%s,\"buffers\":%s,\"weights\":%s,"
      "\"passes\":%s,\"pass_changes\":%s,\"rematerialized\":%s}\n",
      JsonQuote(e.name), JsonQuote(e.device), e.arguments, e.results, e.kernels.size(), e.distinct_kernels, e.flops,
      e.bytes_accessed, e.temp_bytes, e.slow_bytes, e.argument_bytes, e.result_bytes, estimated, e.measured_us,
      Array(e.kernels, text), Array(e.exchanges, text), Array(e.buffers, text), Array(e.weights, text),
      Array(e.passes, text), Array(e.pass_changes, [](const std::string& c) { return JsonQuote(c); }),
      Array(e.rematerialized, text));
}

}  // namespace kiln
