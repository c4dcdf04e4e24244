#include "compiler/passes/simplify/inline_body.h"

#include "absl/strings/match.h"

namespace kiln {
namespace {

// Where the value of op_name="..." begins and ends in metadata, without its quotes; npos twice if it has none.
std::pair<size_t, size_t> OpName(absl::string_view metadata) {
  constexpr absl::string_view kKey = "op_name=\"", kNone = "";
  const size_t key = metadata.find(kKey);
  if (key == kNone.npos) return {kNone.npos, kNone.npos};
  const size_t begin = key + kKey.size();
  for (size_t k = begin; k < metadata.size(); ++k) {
    if (metadata[k] == '\\')
      ++k;
    else if (metadata[k] == '"')
      return {begin, k};
  }
  return {kNone.npos, kNone.npos};
}

// A function that many call names its operations from itself on, without a place in the source: those of the call are
// put before.
void PutInScope(Instruction* i, const Instruction* call) {
  if (!call->Is(Opcode::Call) || !call->attrs().metadata) return;
  std::string outer = call->attrs().metadata->text;
  if (i->attrs().metadata) {
    const std::string& inner = i->attrs().metadata->text;
    const auto [begin, end] = OpName(inner);
    const size_t at = OpName(outer).second;
    if (absl::StrContains(inner, "source_file") || absl::StrContains(inner, "stack_frame_id") || begin == end ||
        at == std::string::npos)
      return;
    outer.insert(at, absl::StrCat("/", absl::string_view(inner).substr(begin, end - begin)));
  }
  i->mutable_attrs().metadata = attr::Raw(std::move(outer));
}

}  // namespace

Instruction* InlineBody(Computation* into, const Computation* callee, const std::vector<Instruction*>& arguments,
                        const Instruction* site) {
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  for (Instruction* i : callee->PostOrder()) {
    if (i->Is(Opcode::Parameter)) {
      map[i] = arguments[*i->attrs().parameter_number];
      continue;
    }
    std::vector<Instruction*> ops;
    for (Instruction* o : i->operands()) ops.push_back(map.at(o));
    Instruction* n = into->AddClone(i, i->shape(), ops);
    if (n->loc().line == 0) n->set_loc(site->loc());
    PutInScope(n, site);
    for (Instruction* p : i->control_predecessors())
      if (!p->Is(Opcode::Parameter)) map.at(p)->AddControlDependencyTo(n);
    // Order asked of the call holds for what may be seen to run.
    const bool ordered = !site->control_predecessors().empty() || !site->control_successors().empty();
    if (ordered && site->parent() == into && n->HasSideEffect()) {
      for (Instruction* p : std::vector<Instruction*>(site->control_predecessors())) p->AddControlDependencyTo(n);
      for (Instruction* s : std::vector<Instruction*>(site->control_successors())) n->AddControlDependencyTo(s);
    }
    map[i] = n;
  }
  return map.at(callee->root());
}

}  // namespace kiln
