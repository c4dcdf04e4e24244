#include "aot/report/page.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

constexpr char kStyle[] =
    "body{font:14px/1.4 system-ui,sans-serif;margin:20px auto;max-width:1160px;color:#222;background:#fff}"
    "h1{font-size:21px;margin:0 0 4px}h2{margin:22px 0 4px;font-size:16px}p{margin:4px 0}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "tr:nth-child(even) td{background:#f5f6f8}th[data-c]{cursor:pointer;white-space:nowrap}"
    "th[data-c]::after{content:' \\2195';color:#aab}.scroll{max-height:560px;overflow-y:auto;border:1px solid #dde}"
    ".scroll th{position:sticky;top:0;background:#eef0f4}svg{border:1px solid #ccd;background:#fcfcfd;max-width:100%}"
    "svg text{font:11px system-ui,sans-serif;fill:#222;pointer-events:none}.dim{color:#666;font-size:13px}"
    ".cards{display:flex;flex-wrap:wrap;gap:8px;margin:8px 0}.card{border:1px solid #dde;border-radius:6px;"
    "padding:5px 12px;background:#f8f9fb}.card b{display:block;font-size:17px;font-weight:600}"
    ".bar{display:inline-block;height:9px;background:#7d9fdc;vertical-align:middle}";

// Sorts a table by the column that is clicked, the other way round at the second click.
constexpr char kScript[] =
    "document.querySelectorAll('th[data-c]').forEach(function(th){th.onclick=function(){"
    "var t=th.closest('table'),b=t.tBodies[0],c=+th.dataset.c,up=th.dataset.up==='1';th.dataset.up=up?'0':'1';"
    "Array.from(b.rows).sort(function(x,y){var p=x.cells[c],q=y.cells[c];"
    "var d=p.dataset.v!==undefined?p.dataset.v-q.dataset.v:p.textContent.localeCompare(q.textContent);"
    "return up?d:-d}).forEach(function(r){b.appendChild(r)})}});";

// A scope with those in it, in the order of the program.
struct Scope {
  std::string name;
  double us = 0;
  std::string detail;
  std::vector<Scope> inner;

  Scope* Inner(absl::string_view wanted) {
    for (Scope& s : inner)
      if (s.name == wanted) return &s;
    inner.push_back({std::string(wanted), 0, "", {}});
    return &inner.back();
  }
};

constexpr double kWidth = 1156, kRow = 17;

size_t Draw(const Scope& s, double x, double scale, size_t depth, double whole, std::string* out) {
  const double w = s.us * scale, y = static_cast<double>(depth) * kRow;
  constexpr double kVisible = 0.4, kPerLetter = 6.2;
  if (w < kVisible) return depth;
  absl::StrAppendFormat(out,
                        "<g><title>%s: %.1f us, %.1f %%%s</title><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
                        "height=\"16\" fill=\"%s\"/>",
                        Escape(s.name), s.us, 100 * s.us / whole, Escape(s.detail), x, y, std::max(w - 0.5, kVisible),
                        Colour(s.name));
  const size_t letters = static_cast<size_t>(w / kPerLetter);
  if (letters > 3)
    absl::StrAppendFormat(out, "<text x=\"%.1f\" y=\"%.0f\">%s</text>", x + 3, y + 12,
                          Escape(s.name.size() <= letters ? s.name : s.name.substr(0, letters - 1) + "…"));
  *out += "</g>\n";
  size_t deepest = depth;
  for (const Scope& i : s.inner) {
    deepest = std::max(deepest, Draw(i, x, scale, depth + 1, whole, out));
    x += i.us * scale;
  }
  return deepest;
}

}  // namespace

std::string Escape(absl::string_view s) {
  return absl::StrReplaceAll(s, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Bytes(int64_t n) {
  if (n < 10000) return absl::StrCat(n, " B");
  if (n < 10000000) return absl::StrFormat("%.1f kB", static_cast<double>(n) / 1e3);
  return absl::StrFormat("%.1f MB", static_cast<double>(n) / 1e6);
}

std::string Colour(absl::string_view name) {
  const std::string s(name);
  return absl::StrFormat("hsl(%d,%d%%,%d%%)", StableHash(s) % 360, 45 + StableHash(s + "s") % 25,
                         66 + StableHash(s + "l") % 14);
}

std::string PageBegin(absl::string_view title, absl::string_view command) {
  return absl::StrCat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", Escape(title), " - ",
                      command, "</title>\n<style>", kStyle, "</style></head><body>\n<h1>", Escape(title), "</h1>\n");
}

std::string PageEnd() { return absl::StrCat("<script>", kScript, "</script>\n</body></html>\n"); }

std::string SortableTable(absl::string_view id, const std::vector<Column>& columns,
                          const std::vector<std::vector<Cell>>& rows) {
  std::string out = absl::StrCat("<div class=\"scroll\"><table id=\"", id, "\" width=\"100%\"><thead><tr>");
  for (size_t c = 0; c < columns.size(); ++c)
    absl::StrAppend(&out, "<th data-c=\"", c, "\" title=\"", Escape(columns[c].hint), "\"",
                    columns[c].number ? " class=\"n\"" : "", ">", Escape(columns[c].title), "</th>");
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].number)
        absl::StrAppendFormat(&out, "<td class=\"n\" data-v=\"%.6g\">%s</td>", row[c].value, row[c].html);
      else
        absl::StrAppend(&out, "<td>", row[c].html, "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string FlameGraph(const std::vector<FlameLeaf>& leaves) {
  Scope all{"all", 0, "", {}};
  for (const FlameLeaf& leaf : leaves) {
    Scope* at = &all;
    at->us += leaf.us;
    for (absl::string_view word : absl::StrSplit(leaf.path, '/', absl::SkipEmpty())) {
      at = at->Inner(word);
      at->us += leaf.us;
    }
    at->detail = leaf.detail;
  }
  if (all.us <= 0) return "";
  std::string boxes;
  const size_t deepest = Draw(all, 0, kWidth / all.us, 0, all.us, &boxes);
  const double height = kRow * static_cast<double>(deepest + 1);
  return absl::StrFormat("<svg id=\"flame\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n", kWidth,
                         height, kWidth, height) +
         boxes + "</svg>\n";
}

std::string UserName(const std::string& op_name, const std::string& instruction) {
  return op_name.empty() ? absl::StrCat("%", instruction) : op_name;
}

std::string SourceText(const std::string& file, int64_t line) {
  if (file.empty()) return "";
  return absl::StrCat(file.substr(file.rfind('/') + 1), ":", line);
}

}  // namespace kiln
