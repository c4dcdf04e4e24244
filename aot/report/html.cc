// The report as a page: tables and SVG, written out in full, so that it opens anywhere and prints.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "aot/report/explanation.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

constexpr double kWidth = 1080, kHeight = 260;
constexpr size_t kMostNodes = 240;  // of the graph; a larger one cannot be read

std::string Escape(absl::string_view s) {
  return absl::StrReplaceAll(s, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Colour(const std::string& owner) {
  return absl::StrFormat("hsl(%d,%d%%,%d%%)", StableHash(owner) % 360, 45 + StableHash(owner + "s") % 25,
                         55 + StableHash(owner + "l") % 20);
}

std::string Bytes(int64_t n) {
  if (n < 10000) return absl::StrCat(n, " B");
  if (n < 10000000) return absl::StrFormat("%.1f kB", static_cast<double>(n) / 1e3);
  return absl::StrFormat("%.1f MB", static_cast<double>(n) / 1e6);
}

class Page {
 public:
  explicit Page(const Explanation& e) : e_(e) {}

  std::string Write() {
    absl::StrAppend(&out_, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", Escape(e_.name),
                    " - kiln explain</title>\n<style>", kStyle, "</style></head><body>\n<h1>", Escape(e_.name),
                    "</h1>\n");
    Summary();
    Memory();
    Buffers();
    Steps();
    Graph();
    KernelTable();
    Passes();
    out_ += "</body></html>\n";
    return std::move(out_);
  }

 private:
  static constexpr char kStyle[] =
      "body{font:14px/1.4 system-ui,sans-serif;margin:24px auto;max-width:1120px;color:#222;background:#fff}"
      "h2{margin:28px 0 6px;font-size:17px}table{border-collapse:collapse;font-size:13px}"
      "td,th{padding:2px 10px 2px 0;text-align:left;vertical-align:top}td.n,th.n{text-align:right;"
      "font-variant-numeric:tabular-nums}tr:nth-child(even) td{background:#f5f6f8}svg{border:1px solid #ccd;"
      "background:#fcfcfd;max-width:100%}svg text{font:11px system-ui,sans-serif;fill:#333}.dim{color:#777}";

  double X(int64_t tick) const {
    return kWidth * static_cast<double>(tick) / static_cast<double>(std::max<size_t>(e_.ticks.size(), 1));
  }
  double Y(int64_t bytes) const {
    const int64_t most = std::max({e_.temp_bytes, e_.max_arena_bytes, int64_t{1}});
    return kHeight - (kHeight - 14) * static_cast<double>(bytes) / static_cast<double>(most);
  }
  void Line(int64_t bytes, const std::string& text, const char* colour) {
    absl::StrAppendFormat(&out_,
                          "<line x1=\"0\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"4 3\"/>"
                          "<text x=\"4\" y=\"%.1f\">%s</text>\n",
                          kWidth, Y(bytes), Y(bytes), colour, Y(bytes) - 3, text);
  }
  void Row(const char* what, const std::string& value) {
    absl::StrAppend(&out_, "<tr><td>", what, "</td><td class=\"n\">", value, "</td></tr>\n");
  }

  void Summary() {
    double estimated = 0;
    for (const auto& k : e_.kernels) estimated += k.estimated_us;
    out_ += "<table id=\"summary\">\n";
    Row("arguments, results", absl::StrCat(e_.arguments, ", ", e_.results));
    Row("kernels", absl::StrCat(e_.kernels.size()));
    Row("floating-point operations", absl::StrCat(e_.flops));
    Row("bytes read and written", absl::StrCat(e_.bytes_accessed));
    Row("arena", absl::StrCat(e_.temp_bytes, " B"));
    if (e_.max_arena_bytes) Row("allowed", absl::StrCat(e_.max_arena_bytes, " B"));
    if (e_.slow_bytes) Row("slow arena", absl::StrCat(e_.slow_bytes, " B"));
    Row("estimated time, one core", absl::StrFormat("%.1f us", estimated));
    if (e_.measured_us > 0) Row("measured time", absl::StrFormat("%.1f us", e_.measured_us));
    out_ += "</table>\n";
  }

  void Memory() {
    out_ += "<h2>Memory over time</h2>\n";
    if (e_.temp_bytes == 0) {
      out_ += "<p>The program needs no arena.</p>\n";
      return;
    }
    absl::StrAppendFormat(&out_, "<svg id=\"memory\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
                          kWidth, kHeight, kWidth, kHeight);
    std::string path = absl::StrFormat("M0 %.1f", kHeight);
    for (size_t t = 0; t < e_.arena_use.size(); ++t) {
      if (t && e_.arena_use[t] == e_.arena_use[t - 1]) continue;
      absl::StrAppendFormat(&path, "H%.1fV%.1f", X(static_cast<int64_t>(t)), Y(e_.arena_use[t]));
    }
    absl::StrAppendFormat(&path, "H%.0fV%.1fZ", kWidth, kHeight);
    absl::StrAppend(&out_, "<path d=\"", path, "\" fill=\"#9db8e8\" stroke=\"#456\"/>\n");
    Line(e_.temp_bytes, absl::StrCat("arena ", Bytes(e_.temp_bytes)), "#333");
    if (e_.max_arena_bytes) Line(e_.max_arena_bytes, absl::StrCat("allowed ", Bytes(e_.max_arena_bytes)), "#b00");
    out_ += "</svg>\n";
    absl::StrAppend(&out_, "<p>The peak, ", Bytes(e_.arena_use[e_.peak_tick]), ", is at <b>%",
                    Escape(e_.ticks[e_.peak_tick]), "</b>. Its owners:</p>\n<table id=\"owners\">\n");
    std::vector<const Explanation::Buffer*> owners;
    for (const auto& b : e_.buffers)
      if (b.place == "arena" && b.begin <= e_.peak_tick && e_.peak_tick <= b.end) owners.push_back(&b);
    std::stable_sort(owners.begin(), owners.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
    if (owners.size() > 12) owners.resize(12);
    for (const auto* b : owners)
      absl::StrAppend(&out_, "<tr><td class=\"n\">", Bytes(b->bytes), "</td><td>%", Escape(b->owner), "</td><td>",
                      Escape(b->shape), "</td></tr>\n");
    out_ += "</table>\n";
  }

  // Each value a box: from when it is written to when it is read last, at its place in the arena.
  void Buffers() {
    if (e_.temp_bytes == 0) return;
    out_ += "<h2>The arena, packed</h2>\n<p class=\"dim\">Across: time. Up: the offset in the arena.</p>\n";
    absl::StrAppendFormat(&out_, "<svg id=\"buffers\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
                          kWidth, kHeight, kWidth, kHeight);
    for (const auto& b : e_.buffers) {
      if (b.place != "arena") continue;
      const double x = X(b.begin), w = std::max(X(b.end + 1) - x, 0.5);
      const double y = Y(b.offset + b.bytes), h = std::max(Y(b.offset) - y, 0.5);
      absl::StrAppendFormat(&out_,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#fff\" "
                            "stroke-width=\".4\"><title>%%%s %s, %s at %d</title></rect>\n",
                            x, y, w, h, Colour(b.owner), Escape(b.owner), Escape(b.shape), Bytes(b.bytes), b.offset);
      if (w > 70 && h > 13)
        absl::StrAppendFormat(&out_, "<text x=\"%.1f\" y=\"%.1f\">%%%s</text>\n", x + 3, y + 12, Escape(b.owner));
    }
    out_ += "</svg>\n";
  }

  void Steps() {
    if (e_.rematerialized.empty()) return;
    out_ += "<h2>To meet the limit</h2>\n<table id=\"steps\">\n";
    for (const RematerializeStep& s : e_.rematerialized)
      absl::StrAppend(&out_, "<tr><td>", ToText(s.kind), "</td><td>%", Escape(s.value), "</td><td class=\"n\">",
                      Bytes(s.bytes), "</td></tr>\n");
    out_ += "</table>\n";
  }

  // Kernels in columns by how far they are from the arguments; an edge for each result that another reads.
  void Graph() {
    const size_t n = std::min(e_.kernels.size(), kMostNodes);
    out_ += "<h2>Kernels and what they fuse</h2>\n";
    if (n < e_.kernels.size())
      absl::StrAppendFormat(&out_, "<p class=\"dim\">The first %d of %d.</p>\n", n, e_.kernels.size());
    std::vector<size_t> column(n, 0), row(n, 0), used;
    for (size_t k = 0; k < n; ++k) {
      for (size_t r : e_.kernels[k].reads)
        if (r < n) column[k] = std::max(column[k], column[r] + 1);
      if (used.size() <= column[k]) used.resize(column[k] + 1, 0);
      row[k] = used[column[k]]++;
    }
    const double step_x = 150, step_y = 34;
    const size_t rows = used.empty() ? 0 : *std::max_element(used.begin(), used.end());
    const double width = step_x * static_cast<double>(used.size()) + 10,
                 height = step_y * static_cast<double>(rows) + 10;
    auto x = [&](size_t k) { return 6 + step_x * static_cast<double>(column[k]); };
    auto y = [&](size_t k) { return 6 + step_y * static_cast<double>(row[k]); };
    absl::StrAppendFormat(&out_,
                          "<div style=\"overflow:auto;max-height:520px\"><svg id=\"graph\" viewBox=\"0 0 %.0f %.0f\" "
                          "width=\"%.0f\" height=\"%.0f\" style=\"max-width:none\">\n",
                          width, height, width, height);
    for (size_t k = 0; k < n; ++k)
      for (size_t r : e_.kernels[k].reads)
        if (r < n)
          absl::StrAppendFormat(
              &out_, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\" fill=\"none\" stroke=\"#99a\"/>\n",
              x(r) + 128, y(r) + 13, x(r) + 142, y(r) + 13, x(k) - 14, y(k) + 13, x(k), y(k) + 13);
    for (size_t k = 0; k < n; ++k) {
      const auto& i = e_.kernels[k];
      const std::string name = i.name.size() > 20 ? i.name.substr(0, 19) + "~" : i.name;
      absl::StrAppendFormat(
          &out_,
          "<g><title>%%%s %s: %s; %d flops, %s, %.2f us</title><rect x=\"%.0f\" y=\"%.0f\" width=\"128\" "
          "height=\"26\" rx=\"4\" fill=\"%s\"/><text x=\"%.0f\" y=\"%.0f\">%s</text><text x=\"%.0f\" "
          "y=\"%.0f\">%s</text></g>\n",
          Escape(i.name), Escape(i.shape),
          i.operations.empty() ? Escape(i.root) : Escape(absl::StrJoin(i.operations, ", ")), i.flops, Bytes(i.bytes),
          i.estimated_us, x(k), y(k), Colour(i.root), x(k) + 4, y(k) + 11, Escape(name), x(k) + 4, y(k) + 22,
          Escape(i.root));
    }
    out_ += "</svg></div>\n";
  }

  void KernelTable() {
    out_ +=
        "<h2>Kernels</h2>\n<table id=\"kernels\"><tr><th class=\"n\">us, estimated</th><th class=\"n\">flops</th>"
        "<th class=\"n\">bytes</th><th class=\"n\">runs</th><th>kernel</th><th>result</th><th>operations</th><th "
        "class=\"n\">line</th></tr>\n";
    for (const auto& k : e_.kernels)
      absl::StrAppend(&out_, "<tr><td class=\"n\">", absl::StrFormat("%.2f", k.estimated_us), "</td><td class=\"n\">",
                      k.flops, "</td><td class=\"n\">", k.bytes, "</td><td class=\"n\">", k.runs, "</td><td>",
                      std::string(2 * k.depth, '.'), " %", Escape(k.name), "</td><td>", Escape(k.shape), "</td><td>",
                      Escape(k.operations.empty() ? k.root : absl::StrJoin(k.operations, ", ")),
                      "</td><td class=\"n\">", k.line ? absl::StrCat(k.line) : "", "</td></tr>\n");
    out_ += "</table>\n";
  }

  void Passes() {
    double most = 1e-9;
    for (const auto& p : e_.passes) most = std::max(most, p.ms);
    out_ +=
        "<h2>Passes</h2>\n<table id=\"passes\"><tr><th>pass</th><th class=\"n\">ms</th><th></th>"
        "<th class=\"n\">changed / runs</th><th class=\"n\">instructions</th></tr>\n";
    for (const auto& p : e_.passes)
      absl::StrAppendFormat(&out_,
                            "<tr><td>%s</td><td class=\"n\">%.3f</td><td><svg width=\"120\" height=\"10\" "
                            "style=\"border:0\"><rect width=\"%.1f\" height=\"10\" fill=\"#9db8e8\"/></svg></td>"
                            "<td class=\"n\">%d / %d</td><td class=\"n\">%+d</td></tr>\n",
                            p.name, p.ms, 120 * p.ms / most, p.changed, p.runs, p.instructions);
    out_ += "</table>\n";
  }

  const Explanation& e_;
  std::string out_;
};

}  // namespace

std::string ExplainInHtml(const Explanation& e) { return Page(e).Write(); }

}  // namespace kiln
