// Instructions of called computations are named by where they were called from: "caller/own" as op_name, or the
// caller's metadata where they have none. Messages and profiles then show the path that the user wrote.
//
// Computations with one caller only: what several call has no one path.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

const std::string kKey = "op_name=\"";

std::string OpName(const Instruction* i) {
  if (!i->attrs().metadata) return "";
  const std::string& text = i->attrs().metadata->text;
  const size_t at = text.find(kKey);
  if (at == std::string::npos) return "";
  const size_t from = at + kKey.size(), to = text.find('"', from);
  return to == std::string::npos ? "" : text.substr(from, to - from);
}

bool Within(const std::string& name, const std::string& path) {
  return name == path || absl::StartsWith(name, path + "/");
}

// Puts `path` in front of the name of `i`; false if it stands there.
bool Prepend(Instruction* i, const std::string& path) {
  const std::string own = OpName(i);
  if (own.empty() || Within(own, path)) return false;
  std::string text = i->attrs().metadata->text;
  const size_t at = text.find(kKey);
  i->mutable_attrs().metadata = text.insert(at + kKey.size(), path + "/");
  return true;
}

// `c` and what it runs as loops and branches; calls are for their own turn.
bool PrependAll(Computation* c, const Instruction* call, const std::string& path, PassContext& ctx) {
  bool changed = false;
  for (const auto& i : c->instructions()) {
    if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
      for (Computation* f : i->called()) changed |= PrependAll(f, call, path, ctx);
    if (i->Is(Opcode::Parameter) || ctx.fuel == 0) continue;
    bool did = false;
    if (!i->attrs().metadata) {
      i->mutable_attrs().metadata = call->attrs().metadata;
      did = true;
    } else if (!path.empty()) {
      did = Prepend(i.get(), path);
    }
    if (did) ctx.Take();
    changed |= did;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> PropagateCallMetadata(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all = m.PostOrder();
  absl::flat_hash_map<const Computation*, int> callers;
  for (const Computation* c : all)
    for (const auto& i : c->instructions())
      for (const Computation* f : i->called()) ++callers[f];
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    for (const auto& call : (*it)->instructions()) {
      if (!call->Is(Opcode::Call) || !call->attrs().metadata || callers[*call->attrs().to_apply] != 1) continue;
      changed |= PrependAll(*call->attrs().to_apply, call.get(), OpName(call.get()), ctx);
    }
  return changed;
}

}  // namespace kiln
