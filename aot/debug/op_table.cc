#include "aot/debug/op_table.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/analysis/cost.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"

namespace kiln {
namespace {

constexpr absl::string_view kThunkKinds[] = {
#define THUNK(e, text, ...) text,
#include "compiler/thunk/thunks.def"
};

// Lines of instructions in a module's text, by name.
absl::flat_hash_map<std::string, int64_t> LinesOf(const std::string& hlo) {
  absl::flat_hash_map<std::string, int64_t> out;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(hlo, '\n')) {
    ++number;
    if (!absl::ConsumePrefix(&line, "  ")) continue;
    absl::ConsumePrefix(&line, "ROOT ");
    if (!absl::ConsumePrefix(&line, "%")) continue;
    out[std::string(line.substr(0, line.find(' ')))] = number;
  }
  return out;
}

// The last two words of a path of scopes, without what JAX puts around them: "layer0", "dot_general".
std::vector<std::string> LastWords(const std::string& op_name) {
  std::vector<std::string> words;
  for (absl::string_view word : absl::StrSplit(op_name, '/', absl::SkipEmpty())) {
    word = word.substr(0, word.find('['));
    if (!absl::StrContains(word, '(')) words.emplace_back(word);
  }
  if (words.size() > 2) words.erase(words.begin(), words.end() - 2);
  return words;
}

std::string LabelOf(const Instruction* i, const SourcePlace& source) {
  constexpr size_t kMost = 64;
  std::string label = i->name();
  std::vector<std::string> words = LastWords(source.op_name);
  if (words.empty() && i->Is(Opcode::Fusion)) words.emplace_back(TextOf(MainOperation(i)->opcode()));
  for (const std::string& word : words)
    if (!absl::StrContains(label, word)) absl::StrAppend(&label, "_", word);
  return CIdentifier(label.substr(0, kMost));
}

// Where debuggers shall look for `i`: in the program's text, or where the user wrote it.
DebugOp PlaceOf(const Instruction* i, const SourcePlace& source, const std::string& hlo_file, int64_t hlo_line,
                LineTables lines) {
  DebugOp out{LabelOf(i, source), "", 0};
  if (lines == LineTables::kHlo) {
    out.file = hlo_file;
    out.line = hlo_line;
  } else if (lines == LineTables::kSource && !source.file.empty()) {
    out.file = source.file;
    out.line = source.line;
  }
  return out;
}

void AddRows(const ThunkSequence& thunks, int64_t parent, const SourceMap& sources,
             const absl::flat_hash_map<std::string, int64_t>& lines, OpTable* out) {
  for (const Thunk& t : thunks) {
    const Instruction* i = t.instruction;
    const auto [it, fresh] = out->of.insert({i, static_cast<int64_t>(out->ops.size())});
    if (fresh) {
      ProgramOp op;
      op.name = i->name();
      op.kind = std::string(kThunkKinds[static_cast<int>(t.kind)]);
      op.opcode = std::string(TextOf(MainOperation(i)->opcode()));
      op.source = sources.Of(i);
      op.label = LabelOf(i, op.source);
      if (const auto line = lines.find(i->name()); line != lines.end()) op.hlo_line = line->second;
      if (t.nested.empty()) {
        const Cost cost = CostOfKernel(i);
        op.flops = cost.flops;
        op.bytes = cost.bytes_accessed;
      }
      op.parent = parent;
      out->ops.push_back(std::move(op));
    }
    const int64_t row = it->second;
    for (const ThunkSequence& n : t.nested) AddRows(n, row, sources, lines, out);
  }
}

}  // namespace

OpTable MakeOpTable(const Module& module, const ThunkSequence& thunks, const std::string& hlo_file,
                    const DebugOptions& options) {
  OpTable out;
  PrintOptions print;
  constexpr int64_t kShownElements = 16;
  print.max_constant_elements = kShownElements;
  out.hlo = ToText(module, print);
  const absl::flat_hash_map<std::string, int64_t> lines = LinesOf(out.hlo);
  const SourceMap sources(module);
  AddRows(thunks, -1, sources, lines, &out);
  const std::string module_file = module.file.substr(module.file.rfind('/') + 1);
  out.debug.file = options.line_tables == LineTables::kSource ? module_file : hlo_file;
  for (const auto& c : module.computations())
    for (const auto& i : c->instructions()) {
      const auto line = lines.find(i->name());
      out.debug.ops[i->name()] =
          PlaceOf(i.get(), sources.Of(i.get()), hlo_file, line == lines.end() ? 0 : line->second, options.line_tables);
    }
  return out;
}

}  // namespace kiln
