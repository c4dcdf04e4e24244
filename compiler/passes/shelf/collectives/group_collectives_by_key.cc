// Collectives of a computation that are marked as one group start and end together, as one asynchronous call.
//
// The mark is collective_group_key. Members do not depend on each other; a group that others could only wait for in a
// circle stays apart.
#include "absl/strings/str_cat.h"
#include "compiler/hlo/exchange.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"

namespace kiln {
namespace {

constexpr const char* kKey = "collective_group_key";

std::map<std::string, std::vector<Instruction*>> GroupsOf(const Computation* c) {
  std::map<std::string, std::vector<Instruction*>> out;
  for (Instruction* i : c->PostOrder()) {
    if (!IsSynchronousCollective(i)) continue;
    if (const auto key = AnnotationOf(i, kKey)) out[*key].push_back(i);
  }
  return out;
}

// Whether the members can wait for all that any of them waits for: none of it depends on a member.
bool Independent(const std::vector<Instruction*>& members, const Reachability& reach) {
  for (const Instruction* a : members)
    for (const Instruction* b : members)
      if (a != b && reach.Reaches(a, b)) return false;
  return true;
}

Computation* Body(Module* m, const std::vector<Instruction*>& members) {
  Computation* body = m->AddComputation("collectives_group");
  body->set_execution_thread(members[0]->parent()->execution_thread());
  std::vector<Instruction*> results;
  std::vector<Shape> shapes;
  int64_t number = 0;
  for (const Instruction* i : members) {
    std::vector<Instruction*> operands;
    for (const Instruction* o : i->operands()) {
      operands.push_back(body->AddParameter(number, o->shape(), absl::StrCat("operand", number)));
      ++number;
    }
    results.push_back(body->AddClone(i, i->shape(), operands));
    shapes.push_back(i->shape());
  }
  body->set_root(body->Add(Opcode::Tuple, Shape::Tuple(shapes), results));
  return body;
}

void Form(Computation* c, const std::vector<Instruction*>& members) {
  Computation* body = Body(c->module(), members);
  std::vector<Instruction*> operands;
  std::vector<Shape> given;
  for (const Instruction* i : members)
    for (Instruction* o : i->operands()) {
      operands.push_back(o);
      given.push_back(o->shape());
    }
  const Shape result = body->root()->shape();
  Instruction* start = c->Add(Opcode::AsyncStart, Shape::Tuple({Shape::Tuple(given), result}), operands);
  Instruction* done = c->Add(Opcode::AsyncDone, result, {start});
  for (Instruction* i : {start, done}) {
    i->mutable_attrs().calls = body;
    if (!c->execution_thread().empty()) i->mutable_attrs().async_execution_thread = c->execution_thread();
    i->mutable_attrs().frontend_attributes = members[0]->attrs().frontend_attributes;
    i->mutable_attrs().metadata = members[0]->attrs().metadata;
    i->mutable_attrs().backend_config = members[0]->attrs().backend_config;
  }
  for (size_t k = 0; k < members.size(); ++k) {
    Instruction* member = members[k];
    for (Instruction* p : std::vector<Instruction*>(member->control_predecessors())) p->AddControlDependencyTo(start);
    for (Instruction* s : std::vector<Instruction*>(member->control_successors())) done->AddControlDependencyTo(s);
    member->DropControlDependencies();
    Instruction* e = PartOf(done, static_cast<int64_t>(k)).get();
    e->mutable_attrs().sharding = member->attrs().sharding;
    member->ReplaceAllUsesWith(e);
    c->Remove(member);
  }
}

}  // namespace

absl::StatusOr<bool> GroupCollectivesByKey(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all;
  absl::flat_hash_set<const Computation*> asynchronous;
  for (const auto& c : m.computations()) {
    all.push_back(c.get());
    for (const auto& i : c->instructions())
      if (i->HasTrait(Async))
        for (const Computation* f : i->called()) asynchronous.insert(f);
  }
  for (Computation* c : all) {
    if (asynchronous.contains(c) || !Reachability::Affordable(c)) continue;
    // Each group formed becomes one node: what depends on what is looked at anew.
    for (const auto& [key, members] : GroupsOf(c)) {
      if (members.size() < 2 || !Independent(members, Reachability(c)) || !ctx.Take()) continue;
      Form(c, members);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
