// The report as a page: what one wants to know first on one screen, tables below.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/report/explanation.h"
#include "aot/report/page.h"

namespace kiln {
namespace {

constexpr double kWidth = 1156, kHeight = 150;

class Page {
 public:
  explicit Page(const Explanation& e) : e_(e) {
    int64_t steps = 0;
    for (bool works : e.works) {
      step_of_tick_.push_back(steps);
      steps += works;
    }
    steps_ = std::max<int64_t>(steps, 1);
  }

  std::string Write() {
    out_ = PageBegin(e_.name, "kiln explain");
    Summary();
    Flame();
    Memory();
    Buffers();
    Steps();
    KernelTable();
    Exchanges();
    Weights();
    Passes();
    return std::move(out_) + PageEnd();
  }

 private:
  // Ticks that only name what is there already, such as those of parameters, take no room.
  double X(int64_t tick) const {
    const auto t = static_cast<size_t>(tick);
    const int64_t step = t < step_of_tick_.size() ? step_of_tick_[t] : steps_;
    return kWidth * static_cast<double>(step) / static_cast<double>(steps_);
  }
  double Y(int64_t bytes) const {
    const int64_t most = std::max({e_.temp_bytes, e_.max_arena_bytes, int64_t{1}});
    return kHeight - (kHeight - 14) * static_cast<double>(bytes) / static_cast<double>(most);
  }
  bool measured() const { return e_.measured_us > 0; }
  double Us(const Explanation::Kernel& k) const { return measured() ? k.measured_us : k.estimated_us; }

  void Card(const std::string& value, const std::string& what) {
    absl::StrAppend(&out_, "<div class=\"card\"><b>", value, "</b>", what, "</div>");
  }

  void Summary() {
    double estimated = 0;
    int64_t weight_bytes = 0;
    for (const auto& k : e_.kernels) estimated += k.estimated_us;
    for (const auto& w : e_.weights) weight_bytes += w.bytes;
    out_ += "<div class=\"cards\" id=\"summary\">";
    if (measured()) Card(absl::StrFormat("%.1f us", e_.measured_us), "a run, measured");
    Card(absl::StrFormat("%.1f us", estimated), absl::StrCat("a run, estimated, ", e_.device));
    Card(absl::StrFormat("%.2f GFLOP", static_cast<double>(e_.flops) / 1e9), "floating-point operations");
    Card(Bytes(e_.bytes_accessed), "read and written");
    Card(absl::StrCat(e_.kernels.size()), absl::StrCat("operations, ", e_.distinct_kernels, " different kernels"));
    Card(Bytes(e_.temp_bytes),
         e_.max_arena_bytes ? absl::StrCat("arena, of ", Bytes(e_.max_arena_bytes), " allowed") : "arena");
    if (e_.slow_bytes) Card(Bytes(e_.slow_bytes), e_.SlowArena());
    Card(Bytes(weight_bytes), "weights in the archive");
    Card(absl::StrCat(e_.arguments, ", ", e_.results), "arguments, results");
    out_ += "</div>\n";
  }

  void Flame() {
    std::vector<FlameLeaf> leaves;
    for (const auto& k : e_.kernels)
      if (Us(k) > 0)
        leaves.push_back({k.op_name.empty() ? k.opcode + "/%" + k.name : k.op_name, Us(k),
                          absl::StrCat(", %", k.name, " ", k.source)});
    absl::StrAppend(
        &out_, "<h2>Where the time goes, by the program's scopes (", measured() ? "measured" : "estimated",
        ")</h2>\n<p class=\"dim\">Each box is as wide as its time and lies under what it is part of; colours "
        "only tell names apart. Point at a box for its figures.</p>\n",
        FlameGraph(leaves));
  }

  void Line(int64_t bytes, const std::string& text, const char* colour) {
    absl::StrAppendFormat(&out_,
                          "<line x1=\"0\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"4 3\"/>"
                          "<text x=\"4\" y=\"%.1f\">%s</text>\n",
                          kWidth, Y(bytes), Y(bytes), colour, Y(bytes) - 3, text);
  }

  void Memory() {
    out_ += "<h2>Memory over the steps of a run</h2>\n";
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
    Owners();
  }

  void Owners() {
    std::vector<const Explanation::Buffer*> owners;
    for (const auto& b : e_.buffers)
      if (b.place == "arena" && b.begin <= e_.peak_tick && e_.peak_tick <= b.end) owners.push_back(&b);
    std::stable_sort(owners.begin(), owners.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
    constexpr size_t kMost = 8;
    absl::StrAppend(&out_, "<p id=\"owners\">Most is live at <b>%", Escape(e_.ticks[e_.peak_tick]),
                    "</b>: ", Bytes(e_.arena_use[e_.peak_tick]), ", of ");
    for (size_t k = 0; k < std::min(owners.size(), kMost); ++k)
      absl::StrAppend(&out_, k ? ", " : "", "%", Escape(owners[k]->owner), " ", Escape(owners[k]->shape), " (",
                      Bytes(owners[k]->bytes), ")");
    absl::StrAppend(&out_, owners.size() > kMost ? absl::StrCat(" and ", owners.size() - kMost, " more") : "",
                    ".</p>\n");
  }

  // Each value a box: from when it is written to when it is read last, at its place in the arena.
  void Buffers() {
    if (e_.temp_bytes == 0) return;
    out_ +=
        "<h2>The arena, packed</h2>\n<p class=\"dim\">Across: steps, as above. Up: the place in the arena. A box is a "
        "value, from the step that writes it to the last that reads it; colours only tell values apart.</p>\n";
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

  void KernelTable() {
    std::vector<Column> columns = {{"operation", "the program's own name of it", false}};
    if (measured()) columns.push_back({"us, measured", "of one run of the program, median of 9", true});
    for (const Column& c :
         std::vector<Column>{{"us, estimated", absl::StrCat("on ", e_.device, ", by work and memory traffic"), true},
                             {"MFLOP", "of one run of the operation", true},
                             {"kB", "of its operands and results", true},
                             {"runs", "in one run of the program, where loops are counted", true},
                             {"source", "where the program says it was written", false},
                             {"instruction", "in the optimised program; dots: inside of loops", false},
                             {"fuses", "operations inside of it", false}})
      columns.push_back(c);
    std::vector<std::vector<Cell>> rows;
    for (const auto& k : e_.kernels) {
      rows.push_back({{Escape(UserName(k.op_name, k.name))}});
      const auto number = [&](int digits, double v) { rows.back().push_back({absl::StrFormat("%.*f", digits, v), v}); };
      if (measured()) number(2, k.measured_us);
      number(2, k.estimated_us);
      number(3, static_cast<double>(k.flops) / 1e6);
      number(1, static_cast<double>(k.bytes) / 1e3);
      number(0, static_cast<double>(k.runs));
      rows.back().push_back({Escape(k.source)});
      rows.back().push_back({absl::StrCat(std::string(2 * k.depth, '.'), " %", Escape(k.name), " ", Escape(k.shape))});
      rows.back().push_back({Escape(k.operations.empty() ? k.opcode : absl::StrJoin(k.operations, ", "))});
    }
    absl::StrAppend(&out_,
                    "<h2>Operations</h2>\n<p class=\"dim\">In the order of a run; a click on a column sorts.</p>\n",
                    SortableTable("kernels", columns, rows));
  }

  void Exchanges() {
    std::vector<std::vector<Cell>> rows;
    for (const auto& x : e_.exchanges)
      rows.push_back({{absl::StrCat("%", Escape(x.name))},
                      {Escape(x.kind)},
                      {Escape(x.transport)},
                      {Escape(x.how)},
                      {Bytes(x.bytes), static_cast<double>(x.bytes)},
                      {absl::StrCat(x.groups, " x ", x.members), static_cast<double>(x.members)},
                      {absl::StrCat(x.runs), static_cast<double>(x.runs)},
                      {absl::StrFormat("%.1f", x.beside_us), x.beside_us},
                      {x.beside == 0 ? "" : absl::StrCat("%", Escape(x.first), " to %", Escape(x.last))}});
    if (rows.empty()) return;
    absl::StrAppend(&out_, "<h2>Exchanges between devices</h2>\n",
                    SortableTable("exchanges",
                                  {{"exchange", "", false},
                                   {"kind", "", false},
                                   {"transport", "", false},
                                   {"algorithm", "", false},
                                   {"size", "of what a device gives or gets", true},
                                   {"groups x devices", "", true},
                                   {"runs", "in one run of the program", true},
                                   {"us beside", "estimated, of the work while it is under way", true},
                                   {"work beside", "", false}},
                                  rows));
  }

  void Weights() {
    constexpr size_t kMost = 200;
    std::vector<std::vector<Cell>> rows;
    for (const auto& w : e_.weights)
      if (rows.size() < kMost)
        rows.push_back(
            {{absl::StrCat("%", Escape(w.name))}, {Escape(w.shape)}, {Bytes(w.bytes), static_cast<double>(w.bytes)}});
    if (rows.empty()) return;
    absl::StrAppend(
        &out_, "<h2>Weights in the archive</h2>\n",
        SortableTable("weights", {{"constant", "", false}, {"shape", "", false}, {"size", "", true}}, rows));
    if (e_.weights.size() > kMost)
      absl::StrAppend(&out_, "<p class=\"dim\">The largest ", kMost, " of ", e_.weights.size(), ".</p>\n");
  }

  void Passes() {
    double most = 1e-9;
    for (const auto& p : e_.passes) most = std::max(most, p.ms);
    std::vector<std::vector<Cell>> rows;
    for (const auto& p : e_.passes)
      rows.push_back(
          {{Escape(p.name)},
           {absl::StrFormat("<span class=\"bar\" style=\"width:%.0fpx\"></span> %.3f", 90 * p.ms / most, p.ms), p.ms},
           {absl::StrFormat("%d / %d", p.changed, p.runs), static_cast<double>(p.changed)},
           {absl::StrFormat("%+d", p.instructions), static_cast<double>(p.instructions)}});
    absl::StrAppend(&out_, "<h2>Passes of the compiler</h2>\n");
    for (const std::string& c : e_.pass_changes) absl::StrAppend(&out_, "<p>The config ", Escape(c), ".</p>\n");
    absl::StrAppend(&out_, SortableTable("passes",
                                         {{"pass", "", false},
                                          {"ms", "of this compile", true},
                                          {"changed / runs", "how often it changed the program", true},
                                          {"instructions", "that it added or removed", true}},
                                         rows));
  }

  const Explanation& e_;
  std::vector<int64_t> step_of_tick_;
  int64_t steps_ = 1;
  std::string out_;
};

}  // namespace

std::string ExplainInHtml(const Explanation& e) { return Page(e).Write(); }

}  // namespace kiln
