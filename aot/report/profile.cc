#include "aot/report/profile.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/report/page.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

constexpr size_t kMostLines = 20;

double Giga(double work, double us) { return us > 0 ? work / us / 1e3 : 0; }
double Flops(const Profile::Row& r) { return static_cast<double>(r.op.flops) * r.calls; }
double Moved(const Profile::Row& r) { return static_cast<double>(r.op.bytes) * r.calls; }
double Measured(const Profile& p) {
  double us = 0;
  for (const Profile::Row& r : p.rows) us += r.self_us;
  return us;
}

std::vector<const Profile::Row*> SlowestFirst(const Profile& p) {
  std::vector<const Profile::Row*> out;
  for (const Profile::Row& r : p.rows)
    if (r.calls > 0) out.push_back(&r);
  std::stable_sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->self_us > b->self_us; });
  return out;
}

// The user's lines, slowest first.
struct Line {
  std::string source;
  double us = 0, flops = 0;
  int64_t ops = 0;
};
std::vector<Line> ByLine(const Profile& p) {
  std::map<std::string, Line> lines;
  for (const Profile::Row& r : p.rows) {
    if (r.calls == 0) continue;
    const std::string source = SourceText(r.op.source.file, r.op.source.line);
    Line& line = lines[source];
    line.source = source.empty() ? "(unknown)" : source;
    line.us += r.self_us;
    line.flops += Flops(r);
    ++line.ops;
  }
  std::vector<Line> out;
  for (auto& [source, line] : lines) out.push_back(std::move(line));
  std::stable_sort(out.begin(), out.end(), [](const Line& a, const Line& b) { return a.us > b.us; });
  return out;
}

std::string Percent(double share) { return share > 0 ? absl::StrFormat("%.0f %%", 100 * share) : ""; }

// Boxes over time, a lane for each thread; loops as frames around what runs in them.
std::string Timeline(const Profile& p) {
  if (p.events.empty()) return "<p class=\"dim\">No events were kept.</p>\n";
  constexpr double kWidth = 1156, kLane = 26;
  int64_t threads = 1;
  double begin = p.events[0].begin, end = begin;
  for (const Profile::Event& e : p.events) {
    threads = std::max(threads, e.thread + 1);
    begin = std::min(begin, e.begin);
    end = std::max(end, e.begin + e.us);
  }
  const double scale = kWidth / std::max(end - begin, 1e-3), height = kLane * static_cast<double>(threads) + 16;
  std::string out = absl::StrFormat("<svg id=\"timeline\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
                                    kWidth, height, kWidth, height);
  for (const Profile::Event& e : p.events) {
    const Profile::Row& r = p.rows[e.row];
    const bool frame = r.op.kind == "while" || r.op.kind == "conditional";
    const double x = (e.begin - begin) * scale, w = std::max(e.us * scale, 0.3);
    const double y = kLane * static_cast<double>(e.thread) + (frame ? 1 : 4), h = frame ? 22 : e.part ? 8 : 16;
    absl::StrAppendFormat(&out,
                          "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\"%s><title>%s, %.2f "
                          "us\n%s</title></rect>\n",
                          x, y, w, h, frame ? "none" : Colour(r.op.opcode), frame ? " stroke=\"#567\"" : "",
                          Escape(UserName(r.op.source.op_name, r.op.name)), e.us,
                          Escape(SourceText(r.op.source.file, r.op.source.line)));
  }
  absl::StrAppendFormat(&out, "<text x=\"2\" y=\"%.0f\">0</text><text x=\"%.0f\" y=\"%.0f\">%.0f us</text></svg>\n",
                        height - 3, kWidth - 66, height - 3, end - begin);
  std::map<std::string, double> opcodes;
  for (const Profile::Row& r : p.rows) opcodes[r.op.opcode] += r.self_us;
  out += "<p class=\"dim\">Colours: ";
  for (const auto& [opcode, us] : opcodes)
    if (us > 0.005 * Measured(p))
      absl::StrAppend(&out, "<span class=\"bar\" style=\"width:14px;background:", Colour(opcode), "\"></span> ",
                      Escape(opcode), " &nbsp;");
  return out + "</p>\n";
}

}  // namespace

double RooflineShare(const Profile& p, const Profile::Row& r) {
  if (r.self_us <= 0 || p.peaks.gflops <= 0 || p.peaks.gbytes <= 0) return 0;
  const double best = std::max(Flops(r) / p.peaks.gflops, Moved(r) / p.peaks.gbytes) / 1e3;
  return best / r.self_us;
}

std::string ProfileInText(const Profile& p) {
  const double all = std::max(Measured(p), 1e-9);
  std::string out = absl::StrFormat(
      "%s: %.1f us a run (median of %d, %d thread%s); operations took %.1f us on average\n"
      "peak of this machine: %.0f GFLOP/s (f32), %.1f GB/s\n\n"
      "          us   share      runs   GFLOP/s     GB/s  roofline  operation\n",
      p.title, p.median_us, p.repeat, p.threads, p.threads == 1 ? "" : "s", all, p.peaks.gflops, p.peaks.gbytes);
  const auto rows = SlowestFirst(p);
  for (size_t k = 0; k < std::min(rows.size(), kMostLines); ++k) {
    const Profile::Row& r = *rows[k];
    const std::string source = SourceText(r.op.source.file, r.op.source.line);
    absl::StrAppendFormat(
        &out, "%12.2f  %5.1f%%  %8.0f  %8.1f %8.1f  %8s  %s%s%s\n", r.self_us, 100 * r.self_us / all, r.calls,
        Giga(Flops(r), r.self_us), Giga(Moved(r), r.self_us), Percent(RooflineShare(p, r)),
        UserName(r.op.source.op_name, r.op.name),
        r.op.source.op_name.empty() ? absl::StrCat(" (", r.op.opcode, ")") : absl::StrCat("  %", r.op.name),
        source.empty() ? "" : "  " + source);
  }
  if (rows.size() > kMostLines) absl::StrAppendFormat(&out, "  ... and %d more\n", rows.size() - kMostLines);
  const std::vector<Line> lines = ByLine(p);
  if (lines.size() == 1 && lines[0].source == "(unknown)") return out;
  out += "\n          us   share  operations  line of the source\n";
  for (size_t k = 0; k < std::min(lines.size(), kMostLines); ++k)
    absl::StrAppendFormat(&out, "%12.2f  %5.1f%%  %10d  %s\n", lines[k].us, 100 * lines[k].us / all, lines[k].ops,
                          lines[k].source);
  return out;
}

std::string ProfileInJson(const Profile& p) {
  std::string out = absl::StrFormat(
      "{\"name\":%s,\"threads\":%d,\"repeat\":%d,\"median_us\":%.3f,\"peak_gflops\":%.3f,\"peak_gbytes\":%.3f,"
      "\"operations\":[",
      JsonQuote(p.title), p.threads, p.repeat, p.median_us, p.peaks.gflops, p.peaks.gbytes);
  for (size_t k = 0; k < p.rows.size(); ++k) {
    const Profile::Row& r = p.rows[k];
    absl::StrAppendFormat(
        &out,
        "%s\n{\"instruction\":%s,\"symbol\":%s,\"kind\":%s,\"opcode\":%s,\"op_name\":%s,\"source_file\":%s,"
        "\"source_line\":%d,\"hlo_line\":%d,\"parent\":%d,\"runs\":%.3f,\"us\":%.4f,\"self_us\":%.4f,"
        "\"thread_us\":%.4f,\"flops\":%d,\"bytes\":%d,\"roofline\":%.4f}",
        k ? "," : "", JsonQuote(r.op.name), JsonQuote(r.op.label), JsonQuote(r.op.kind), JsonQuote(r.op.opcode),
        JsonQuote(r.op.source.op_name), JsonQuote(r.op.source.file), r.op.source.line, r.op.hlo_line, r.op.parent,
        r.calls, r.us, r.self_us, r.thread_us, r.op.flops, r.op.bytes, RooflineShare(p, r));
  }
  return out + "\n]}\n";
}

std::string ProfileInHtml(const Profile& p) {
  const double all = std::max(Measured(p), 1e-9);
  double flops = 0;
  for (const Profile::Row& r : p.rows) flops += Flops(r);
  const auto card = [](const std::string& value, const char* what) {
    return absl::StrCat("<div class=\"card\"><b>", value, "</b>", what, "</div>");
  };
  std::string out = PageBegin(p.title, "kiln profile");
  absl::StrAppend(&out, "<div class=\"cards\">", card(absl::StrFormat("%.1f us", p.median_us), "a run, median"),
                  card(absl::StrFormat("%.1f us", all), "in operations, on average"),
                  card(absl::StrCat(p.threads), "threads"), card(absl::StrFormat("%.1f", Giga(flops, all)), "GFLOP/s"),
                  card(absl::StrFormat("%.0f GFLOP/s", p.peaks.gflops), "peak of this machine, f32"),
                  card(absl::StrFormat("%.1f GB/s", p.peaks.gbytes), "peak, copying"), "</div>\n");
  out += "<h2>Timeline of the last run</h2>\n" + Timeline(p);
  std::vector<FlameLeaf> leaves;
  for (const Profile::Row& r : p.rows)
    if (r.self_us > 0)
      leaves.push_back({r.op.source.op_name.empty() ? r.op.opcode + "/%" + r.op.name : r.op.source.op_name, r.self_us,
                        absl::StrCat(", %", r.op.name, " ", SourceText(r.op.source.file, r.op.source.line))});
  absl::StrAppend(&out,
                  "<h2>Where the time goes, by the program's scopes</h2>\n<p class=\"dim\">As wide as its time; point "
                  "at a box for its figures.</p>\n",
                  FlameGraph(leaves));
  std::vector<std::vector<Cell>> rows;
  for (const Profile::Row* r : SlowestFirst(p)) {
    const double share = r->self_us / all, roofline = RooflineShare(p, *r);
    rows.push_back(
        {{Escape(UserName(r->op.source.op_name, r->op.name))},
         {absl::StrFormat("%.2f", r->self_us), r->self_us},
         {absl::StrFormat("<span class=\"bar\" style=\"width:%.0fpx\"></span> %.1f %%", 60 * share, 100 * share),
          share},
         {absl::StrFormat("%.0f", r->calls), r->calls},
         {absl::StrFormat("%.1f", Giga(Flops(*r), r->self_us)), Giga(Flops(*r), r->self_us)},
         {absl::StrFormat("%.1f", Giga(Moved(*r), r->self_us)), Giga(Moved(*r), r->self_us)},
         {Percent(roofline), roofline},
         {Escape(SourceText(r->op.source.file, r->op.source.line))},
         {Escape(absl::StrCat("%", r->op.name, " ", r->op.opcode))}});
  }
  absl::StrAppend(
      &out, "<h2>Operations</h2>\n",
      SortableTable("operations",
                    {{"operation", "the program's own name of it", false},
                     {"us", "microseconds of one run, without what is nested in it", true},
                     {"share", "of all measured time", true},
                     {"runs", "in one run of the program", true},
                     {"GFLOP/s", "floating-point operations by the cost analysis", true},
                     {"GB/s", "bytes of operands and results; more than the peak: they came from a cache", true},
                     {"roofline", "the least time that the peaks allow, of the time it took", true},
                     {"source", "where the program says it was written", false},
                     {"instruction", "in the optimised program", false}},
                    rows));
  rows.clear();
  for (const Line& l : ByLine(p))
    rows.push_back({{Escape(l.source)},
                    {absl::StrFormat("%.2f", l.us), l.us},
                    {absl::StrFormat("%.1f %%", 100 * l.us / all), l.us},
                    {absl::StrFormat("%.1f", Giga(l.flops, l.us)), Giga(l.flops, l.us)},
                    {absl::StrCat(l.ops), static_cast<double>(l.ops)}});
  absl::StrAppend(&out, "<h2>Lines of the source</h2>\n",
                  SortableTable("lines",
                                {{"line", "", false},
                                 {"us", "of one run", true},
                                 {"share", "of all measured time", true},
                                 {"GFLOP/s", "", true},
                                 {"operations", "that come from it", true}},
                                rows));
  return out + PageEnd();
}

}  // namespace kiln
