#include "aot/debug/source_map.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/metadata.h"

namespace kiln {
namespace {

int64_t NumberField(absl::string_view text, absl::string_view key) {
  int64_t n = 0;
  return absl::SimpleAtoi(MetadataField(text, key), &n) ? n : 0;
}

int Rank(Opcode op) {
  constexpr Opcode kByWeight[] = {Opcode::Convolution,  Opcode::Dot,     Opcode::CustomCall,       Opcode::Sort,
                                  Opcode::Fft,          Opcode::Scatter, Opcode::SelectAndScatter, Opcode::Gather,
                                  Opcode::ReduceWindow, Opcode::Reduce};
  const auto at = std::find(std::begin(kByWeight), std::end(kByWeight), op);
  return static_cast<int>(at - std::begin(kByWeight));
}

bool IsControl(const Instruction* i) { return InfoOf(i->opcode()).lowering == Lowering::Control; }

bool OnlyMoves(Opcode op) {
  constexpr Opcode kMoves[] = {Opcode::Copy, Opcode::Pad, Opcode::Slice, Opcode::Transpose};
  return std::find(std::begin(kMoves), std::end(kMoves), op) != std::end(kMoves);
}

}  // namespace

const Instruction* MainOperation(const Instruction* i) {
  if (!i->Is(Opcode::Fusion)) return i;
  const Computation& f = **i->attrs().calls;
  const Instruction* main = f.root();
  for (const auto& x : f.instructions())
    if (Rank(x->opcode()) < Rank(main->opcode())) main = x.get();
  return main;
}

// The tables stand before the computations, a row each: `1 "model.py"` under FileNames,
// `1 {file_name_id=1 ... line=8 ...}` under FileLocations, `1 {file_location_id=1 ...}` under StackFrames.
SourceMap::SourceMap(const Module& m) : file_(m.file.substr(m.file.rfind('/') + 1)) {
  absl::flat_hash_map<int64_t, std::string> files;
  absl::flat_hash_map<int64_t, std::pair<std::string, int64_t>> locations;
  std::string table;
  for (absl::string_view row : absl::StrSplit(m.preamble, '\n')) {
    row = absl::StripAsciiWhitespace(row);
    const size_t space = row.find(' ');
    int64_t id = 0;
    if (space == absl::string_view::npos || !absl::SimpleAtoi(row.substr(0, space), &id)) {
      if (!row.empty()) table = std::string(row);
      continue;
    }
    const absl::string_view rest = row.substr(space + 1);
    if (table == "FileNames")
      files[id] = MetadataField(absl::StrCat("name=", rest), "name");
    else if (table == "FileLocations")
      locations[id] = {files[NumberField(rest, "file_name_id")], NumberField(rest, "line")};
    else if (table == "StackFrames")
      frames_[id] = locations[NumberField(rest, "file_location_id")];
  }
}

SourcePlace SourceMap::Own(const Instruction* i) const {
  if (!i->attrs().metadata) return {};
  const std::string& text = i->attrs().metadata->text;
  SourcePlace out{MetadataField(text, "op_name"), MetadataField(text, "source_file"), NumberField(text, "source_line")};
  if (!out.file.empty()) return out;
  if (const auto frame = frames_.find(NumberField(text, "stack_frame_id")); frame != frames_.end())
    std::tie(out.file, out.line) = frame->second;
  return out;
}

// Passes give a fusion the metadata of what it replaced, which need not be what takes its time.
SourcePlace SourceMap::Stated(const Instruction* i) const {
  SourcePlace own = Own(i);
  if (!i->Is(Opcode::Fusion)) return own;
  if (SourcePlace main = Own(MainOperation(i)); !main.op_name.empty() || !main.file.empty()) return main;
  if (!own.op_name.empty() || !own.file.empty()) return own;
  for (const auto& x : (*i->attrs().calls)->instructions())
    if (SourcePlace any = Own(x.get()); !any.op_name.empty()) return any;
  return own;
}

// Passes turn, copy and pad what an operation reads, and nothing says for whom. Copies of what a loop or branch gets
// are not its work.
SourcePlace SourceMap::OfReader(const Instruction* i) const {
  constexpr int kFar = 4;
  for (int k = 0; k < kFar && !i->users().empty(); ++k) {
    for (const Instruction* u : i->users())
      if (SourcePlace place = Stated(u); !place.op_name.empty() && !IsControl(u)) return place;
    i = i->users()[0];
    if (IsControl(i)) break;
  }
  return {};
}

SourcePlace SourceMap::Of(const Instruction* i) const {
  SourcePlace out = Stated(i);
  if (out.op_name.empty() && out.file.empty() && OnlyMoves(MainOperation(i)->opcode())) out = OfReader(i);
  if (!out.file.empty()) return out;
  const int line = MainOperation(i)->loc().line > 0 ? MainOperation(i)->loc().line : i->loc().line;
  if (line > 0) std::tie(out.file, out.line) = std::pair(file_, int64_t{line});
  return out;
}

}  // namespace kiln
