#include "compiler/hlo/verify.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/infer.h"

namespace kiln {
namespace {

absl::Status At(const Instruction* i, const absl::Status& s) { return ErrorAt(i, s.message(), s.code()); }

// Group 1: structure.
absl::Status CheckStructure(const Module& m) {
  absl::flat_hash_set<const Computation*> owned;
  for (const auto& c : m.computations()) owned.insert(c.get());
  // Cycles between computations, by colour.
  absl::flat_hash_map<const Computation*, int> colour;
  auto visit = [&](auto&& self, const Computation* c) -> absl::Status {
    int& k = colour[c];
    if (k == 1) return InvalidArgument(m.file, ":0:0: error: computation ", c->name(), " calls itself");
    if (k == 2) return absl::OkStatus();
    k = 1;
    for (const auto& i : c->instructions()) {
      for (const Computation* callee : i->called()) {
        if (!callee || !owned.contains(callee)) return ErrorAt(i.get(), "calls a computation outside the module");
        RETURN_IF_ERROR(self(self, callee));
      }
    }
    colour[c] = 2;
    return absl::OkStatus();
  };
  for (const auto& c : m.computations()) {
    RETURN_IF_ERROR(visit(visit, c.get()));
    absl::flat_hash_set<const Instruction*> mine;
    for (const auto& i : c->instructions()) mine.insert(i.get());
    if (!c->root() || !mine.contains(c->root()))
      return InvalidArgument(m.file, ":0:0: error: computation ", c->name(), " has no root");
    for (const auto& i : c->instructions()) {
      for (const Instruction* o : i->operands()) {
        if (!mine.contains(o))
          return ErrorAt(i.get(), absl::StrCat("operand ", o->name(), " is of another computation"));
        if (!o->IsUsedBy(i.get()))
          return ErrorAt(i.get(), absl::StrCat("operand ", o->name(), " does not list it as a user"),
                         absl::StatusCode::kInternal);
      }
    }
    // Acyclic: Kahn over operands and control edges.
    absl::flat_hash_map<const Instruction*, int64_t> left;
    std::vector<const Instruction*> ready;
    for (const auto& i : c->instructions()) {
      absl::flat_hash_set<const Instruction*> preds(i->operands().begin(), i->operands().end());
      const int64_t n = static_cast<int64_t>(preds.size() + i->control_predecessors().size());
      left[i.get()] = n;
      if (n == 0) ready.push_back(i.get());
    }
    size_t done = 0;
    while (!ready.empty()) {
      const Instruction* i = ready.back();
      ready.pop_back();
      ++done;
      for (const Instruction* u : i->users())
        if (--left[u] == 0) ready.push_back(u);
      for (const Instruction* u : i->control_successors())
        if (--left[u] == 0) ready.push_back(u);
    }
    if (done != c->instructions().size()) {
      for (const auto& i : c->instructions())
        if (left[i.get()] > 0) return ErrorAt(i.get(), "is part of a cycle");
    }
  }
  return absl::OkStatus();
}

// Group 2: shapes. Layouts are another group's; bounded dynamic extents compare by their bounds.
absl::Status CheckShape(const Instruction* i) {
  auto inferred = InferShape(*i);
  if (!inferred.ok()) return At(i, inferred.status());
  auto same = [](auto&& self, const Shape& a, const Shape& b) -> bool {
    if (a.IsTuple() != b.IsTuple()) return false;
    if (a.IsTuple()) {
      if (a.tuple().size() != b.tuple().size()) return false;
      for (size_t k = 0; k < a.tuple().size(); ++k)
        if (!self(self, a.tuple()[k], b.tuple()[k])) return false;
      return true;
    }
    if (a.rank() != b.rank()) return false;
    if (a.type() != b.type() && !(IsFloat(a.type()) && IsFloat(b.type()))) return false;  // mixed precision is allowed
    for (int64_t d = 0; d < a.rank(); ++d)
      if (a.dim(d) != b.dim(d) && !a.is_dynamic(d) && !b.is_dynamic(d)) return false;
    return true;
  };
  if (!same(same, *inferred, i->shape()))
    return ErrorAt(i, absl::StrCat("shape is ", i->shape().ToString(false),
                                   ", but its operands and attributes make it ", inferred->ToString(false)));
  return absl::OkStatus();
}

// Group 3: entry parameters and layout.
absl::Status CheckEntry(const Module& m) {
  if (!m.entry_layout) return absl::OkStatus();
  const EntryLayout& l = *m.entry_layout;
  if (l.parameters.size() != m.entry()->parameters().size())
    return InvalidArgument(m.file, ":0:0: error: entry_computation_layout has ", l.parameters.size(),
                           " parameters, the entry ", m.entry()->parameters().size());
  for (size_t p = 0; p < l.parameters.size(); ++p)
    if (!l.parameters[p].Compatible(m.entry()->parameter(p)->shape()))
      return ErrorAt(m.entry()->parameter(p),
                     absl::StrCat("shape is ", m.entry()->parameter(p)->shape().ToString(false),
                                  ", the entry layout says ", l.parameters[p].ToString(false)));
  if (!l.result.Compatible(m.entry()->root()->shape()))
    return ErrorAt(m.entry()->root(), absl::StrCat("shape is ", m.entry()->root()->shape().ToString(false),
                                                   ", the entry layout says ", l.result.ToString(false)));
  return absl::OkStatus();
}

// Group 4: fusions.
absl::Status CheckFusion(const Instruction* i) {
  static const char* const kKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
  if (!i->attrs().fusion_kind) return ErrorAt(i, "kind is missing");
  if (std::none_of(std::begin(kKinds), std::end(kKinds),
                   [&](const char* k) { return i->attrs().fusion_kind->text == k; }))
    return ErrorAt(i, absl::StrCat("unknown kind ", i->attrs().fusion_kind->text));
  return absl::OkStatus();
}

// Group 5: computations that an op applies to scalars.
absl::Status CheckApplied(const Instruction* i) {
  const Attributes& a = i->attrs();
  auto scalar_result = [&](const Computation* c, PrimitiveType t) -> absl::Status {
    const Shape& r = c->root()->shape();
    if (!r.IsScalar() || r.type() != t)
      return ErrorAt(
          i, absl::StrCat("computation ", c->name(), " returns ", r.ToString(false), ", not ", TextOf(t), "[]"));
    return absl::OkStatus();
  };
  if (i->Is(Opcode::SelectAndScatter)) {
    if ((*a.select)->parameters().size() != 2 || (*a.scatter)->parameters().size() != 2)
      return ErrorAt(i, "select and scatter take two parameters");
    return scalar_result(*a.select, PrimitiveType::Pred);
  }
  if (i->Is(Opcode::Reduce) || i->Is(Opcode::ReduceWindow) || i->Is(Opcode::Scatter)) {
    const Shape& r = (*a.to_apply)->root()->shape();
    const size_t n = i->operand_count() / 2;
    if (n > 1 && (!r.IsTuple() || r.tuple().size() != n))
      return ErrorAt(i, absl::StrCat("reducer returns ", r.ToString(false), ", not a tuple of ", n));
    if (n == 1 && !r.IsScalar() && !(r.IsTuple() && r.tuple().size() == 1))
      return ErrorAt(i, absl::StrCat("reducer returns ", r.ToString(false), ", not a scalar"));
  }
  if (i->Is(Opcode::Map)) {
    if (static_cast<int64_t>((*a.to_apply)->parameters().size()) != i->operand_count())
      return ErrorAt(i, "to_apply does not take as many parameters as there are operands");
  }
  return absl::OkStatus();
}

// Group 6: asynchronous chains.
absl::Status CheckAsync(const Instruction* i) {
  auto one_user = [&]() -> absl::Status {
    if (i->users().size() > 1) return ErrorAt(i, "has more than one user");
    return absl::OkStatus();
  };
  switch (i->opcode()) {
    case Opcode::AsyncStart:
      if (!i->attrs().calls) return ErrorAt(i, "wraps no computation");
      RETURN_IF_ERROR(one_user());
      if (!i->shape().IsTuple() || i->shape().tuple().size() < 2)
        return ErrorAt(i, "shape is not ((operands), results, ...)");
      return absl::OkStatus();
    case Opcode::AsyncUpdate:
      RETURN_IF_ERROR(one_user());
      [[fallthrough]];
    case Opcode::AsyncDone:
      if (!i->operand(0)->Is(Opcode::AsyncStart) && !i->operand(0)->Is(Opcode::AsyncUpdate))
        return ErrorAt(i, "operand is no async-start or async-update");
      return absl::OkStatus();
    case Opcode::AllReduceDone:
      return i->operand(0)->Is(Opcode::AllReduceStart) ? absl::OkStatus()
                                                       : ErrorAt(i, "operand is no all-reduce-start");
    case Opcode::AllGatherDone:
      return i->operand(0)->Is(Opcode::AllGatherStart) ? absl::OkStatus()
                                                       : ErrorAt(i, "operand is no all-gather-start");
    case Opcode::CollectivePermuteDone:
      return i->operand(0)->Is(Opcode::CollectivePermuteStart) ? absl::OkStatus()
                                                               : ErrorAt(i, "operand is no collective-permute-start");
    case Opcode::CopyDone:
      return i->operand(0)->Is(Opcode::CopyStart) ? absl::OkStatus() : ErrorAt(i, "operand is no copy-start");
    default:
      return absl::OkStatus();
  }
}

// Group 7: channels and collectives.
absl::Status CheckCollective(const Instruction* i, absl::flat_hash_map<int64_t, const Instruction*>* channels) {
  const Attributes& a = i->attrs();
  // A channel joins sends with receives, or collectives with each other, never both.
  if (a.channel_id && *a.channel_id > 0) {
    auto point_to_point = [](const Instruction* x) {
      return x->Is(Opcode::Send) || x->Is(Opcode::SendDone) || x->Is(Opcode::Recv) || x->Is(Opcode::RecvDone);
    };
    auto [it, fresh] = channels->insert({*a.channel_id, i});
    if (!fresh && point_to_point(it->second) != point_to_point(i))
      return ErrorAt(i, absl::StrCat("channel ", *a.channel_id, " is used by ", TextOf(it->second->opcode()), " too"));
  }
  if (a.use_global_device_ids.value_or(false) && a.channel_id.value_or(0) <= 0)
    return ErrorAt(i, "use_global_device_ids needs a channel_id");
  if (a.replica_groups) {
    // Explicit groups {{0,1},{2,3}}: each id once. The iota form ([2,4]<=[8]) covers ids once by construction.
    const std::string& t = a.replica_groups->text;
    if (t.size() > 1 && t[0] == '{') {
      absl::flat_hash_set<int64_t> seen;
      for (absl::string_view n : absl::StrSplit(t, absl::ByAnyChar("{}, "), absl::SkipEmpty())) {
        int64_t id;
        if (!absl::SimpleAtoi(n, &id) || id < 0)
          return ErrorAt(i, absl::StrCat("replica group member '", n, "' is no id"));
        if (!seen.insert(id).second) return ErrorAt(i, absl::StrCat("id ", id, " is in two replica groups"));
      }
    }
  }
  if (a.source_target_pairs) {
    absl::flat_hash_set<int64_t> from, to;
    int k = 0;
    for (absl::string_view n :
         absl::StrSplit(a.source_target_pairs->text, absl::ByAnyChar("{}, "), absl::SkipEmpty())) {
      int64_t id;
      if (!absl::SimpleAtoi(n, &id)) return ErrorAt(i, absl::StrCat("'", n, "' is no id"));
      if (!(k % 2 ? to : from).insert(id).second)
        return ErrorAt(i, absl::StrCat("id ", id, k % 2 ? " is the target" : " is the source", " of two pairs"));
      ++k;
    }
  }
  return absl::OkStatus();
}

// Group 8: layouts.
absl::Status CheckLayout(const Instruction* i) {
  if (!i->IsElementwise() || i->Is(Opcode::Copy) || !i->shape().layout()) return absl::OkStatus();
  for (const Instruction* o : i->operands()) {
    if (o->shape().rank() != i->shape().rank() || !o->shape().layout()) continue;
    if (o->shape().layout()->minor_to_major != i->shape().layout()->minor_to_major)
      return ErrorAt(i, absl::StrCat("layout is ", i->shape().layout()->ToString(), ", operand ", o->name(), " has ",
                                     o->shape().layout()->ToString()));
  }
  return absl::OkStatus();
}

// Group 9: aliasing tables.
absl::Status CheckAliases(const Module& m) {
  absl::flat_hash_set<std::string> inputs;
  auto leaf = [](const Shape& s, const ShapeIndex& idx) -> const Shape* {
    const Shape* p = &s;
    for (int64_t k : idx) {
      if (!p->IsTuple() || k < 0 || k >= static_cast<int64_t>(p->tuple().size())) return nullptr;
      p = &p->tuple()[k];
    }
    return p;
  };
  for (const AliasEntry& e : m.aliases) {
    if (e.parameter < 0 || e.parameter >= static_cast<int64_t>(m.entry()->parameters().size()))
      return InvalidArgument(m.file, ":1:1: error: input_output_alias names parameter ", e.parameter, " of ",
                             m.entry()->parameters().size());
    const Shape* in = leaf(m.entry()->parameter(e.parameter)->shape(), e.parameter_index);
    const Shape* out = leaf(m.entry()->root()->shape(), e.output);
    if (!in || !out)
      return InvalidArgument(m.file, ":1:1: error: input_output_alias names an index that does not exist");
    if (in->ByteSize() != out->ByteSize())
      return InvalidArgument(m.file, ":1:1: error: input_output_alias joins ", in->ToString(false), " and ",
                             out->ToString(false), " of different sizes");
    if (!inputs.insert(absl::StrCat(e.parameter, AttrText(e.parameter_index))).second)
      return InvalidArgument(m.file, ":1:1: error: input_output_alias uses parameter ", e.parameter, " twice");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyModule(const Module& m, const VerifyOptions& options) {
  RETURN_IF_ERROR(CheckStructure(m));
  absl::flat_hash_map<int64_t, const Instruction*> channels;
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) {
      RETURN_IF_ERROR(CheckShape(i.get()));
      if (i->Is(Opcode::Fusion)) RETURN_IF_ERROR(CheckFusion(i.get()));
      RETURN_IF_ERROR(CheckApplied(i.get()));
      RETURN_IF_ERROR(CheckAsync(i.get()));
      RETURN_IF_ERROR(CheckCollective(i.get(), &channels));
      if (options.layout_sensitive) RETURN_IF_ERROR(CheckLayout(i.get()));
    }
  }
  RETURN_IF_ERROR(CheckEntry(m));
  return CheckAliases(m);
}

}  // namespace kiln
