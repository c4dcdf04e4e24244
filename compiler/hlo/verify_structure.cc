#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/verify_rules.h"

namespace kiln::verify {

namespace {

absl::Status CheckOperands(const Computation& c) {
  if (!c.root() || c.root()->parent() != &c)
    return InvalidArgument(c.module()->file, ":1:1: error: computation ", c.name(), " has no root");
  for (const auto& i : c.instructions()) {
    for (const Instruction* o : i->operands()) {
      if (o->parent() != &c) return ErrorAt(i.get(), absl::StrCat("operand ", o->name(), " is of another computation"));
      if (!o->IsUsedBy(i.get()))
        return ErrorAt(i.get(), absl::StrCat("operand ", o->name(), " does not list it as a user"),
                       absl::StatusCode::kInternal);
    }
  }
  return absl::OkStatus();
}

// Kahn over operands and control edges.
absl::Status CheckAcyclic(const Computation& c) {
  absl::flat_hash_map<const Instruction*, int64_t> left;
  left.reserve(static_cast<size_t>(c.instruction_count()));
  std::vector<const Instruction*> ready;
  for (const auto& i : c.instructions()) {
    const absl::flat_hash_set<const Instruction*> operands(i->operands().begin(), i->operands().end());
    const auto n = static_cast<int64_t>(operands.size() + i->control_predecessors().size());
    left[i.get()] = n;
    if (n == 0) ready.push_back(i.get());
  }
  size_t done = 0;
  while (!ready.empty()) {
    const Instruction* i = ready.back();
    ready.pop_back();
    ++done;
    for (const auto* next : {&i->users(), &i->control_successors()})
      for (const Instruction* u : *next)
        if (--left[u] == 0) ready.push_back(u);
  }
  if (done == static_cast<size_t>(c.instruction_count())) return absl::OkStatus();
  for (const auto& i : c.instructions())
    if (left[i.get()] > 0) return ErrorAt(i.get(), "is part of a cycle");
  return absl::OkStatus();
}

// Depth first with a stack of its own: the depth is the input's to choose.
absl::Status CheckCalls(const Module& m) {
  const int64_t most = m.limits.call_depth;
  absl::flat_hash_set<const Computation*> owned;
  for (const auto& c : m.computations()) owned.insert(c.get());
  struct Call {
    const Instruction* by;
    const Computation* callee;
  };
  struct Frame {
    const Computation* c;
    std::vector<Call> calls;
    size_t next = 0;
    int64_t depth = 1;
  };
  const auto frame = [](const Computation* c) {
    Frame f{c, {}};
    for (const auto& i : c->instructions())
      for (const Computation* callee : i->called()) f.calls.push_back({i.get(), callee});
    return f;
  };
  absl::flat_hash_map<const Computation*, int64_t> depth;  // of what it calls; 0 while it is open
  for (const auto& first : m.computations()) {
    if (depth.contains(first.get())) continue;
    std::vector<Frame> stack = {frame(first.get())};
    depth[first.get()] = 0;
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next == f.calls.size()) {
        depth[f.c] = f.depth;
        stack.pop_back();
        continue;
      }
      const Call call = f.calls[f.next];
      if (!call.callee || !owned.contains(call.callee))
        return ErrorAt(call.by, "calls a computation outside the module");
      const auto known = depth.find(call.callee);
      if (known == depth.end()) {
        depth[call.callee] = 0;
        stack.push_back(frame(call.callee));  // and then this call again
        continue;
      }
      if (known->second == 0)
        return ErrorAt(call.by, absl::StrCat("computation ", call.callee->name(), " calls itself"));
      ++f.next;
      f.depth = std::max(f.depth, known->second + 1);
      if (f.depth > most)
        return ErrorAt(call.by, absl::StrCat("calls nest deeper than ", most), absl::StatusCode::kResourceExhausted);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStructure(const Module& m) {
  if (m.instruction_count() > m.limits.instructions)
    return ResourceExhausted(m.file, ":1:1: error: the module has ", m.instruction_count(), " instructions, more than ",
                             m.limits.instructions, "");
  RETURN_IF_ERROR(CheckCalls(m));
  for (const auto& c : m.computations()) {
    RETURN_IF_ERROR(CheckOperands(*c));
    RETURN_IF_ERROR(CheckAcyclic(*c));
  }
  return absl::OkStatus();
}

}  // namespace kiln::verify
