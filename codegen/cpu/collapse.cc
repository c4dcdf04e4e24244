#include "codegen/cpu/collapse.h"

#include <algorithm>

namespace kiln::cpu {
namespace {

using Groups = std::vector<Ints>;  // dimensions of each merged dimension, in order

Ints MergedDims(const Ints& dims, const Groups& g) {
  Ints out;
  for (const Ints& group : g) {
    int64_t n = 1;
    for (int64_t d : group) n *= dims[d];
    out.push_back(n);
  }
  return out;
}

}  // namespace

std::unique_ptr<Module> Collapse(const Computation& f) {
  const Instruction* root = f.root();
  const bool reduce = root->Is(Opcode::Reduce);
  const Ints space = reduce                    ? root->operand(0)->shape().dims()
                     : root->shape().IsArray() ? root->shape().dims()
                                               : Ints();
  const int64_t n = static_cast<int64_t>(space.size());
  if (n < 2) return nullptr;
  // split[d]: dimensions d and d+1 must stay apart.
  std::vector<bool> split(n - 1, false);
  if (reduce) {
    const Ints& rd = *root->attrs().dimensions;
    auto reduced = [&](int64_t d) { return std::find(rd.begin(), rd.end(), d) != rd.end(); };
    for (int64_t d = 0; d + 1 < n; ++d)
      if (reduced(d) != reduced(d + 1)) split[d] = true;
  }
  for (const auto& p : f.instructions()) {
    const Instruction* i = p.get();
    if (i->shape().IsArray() && !i->shape().HasDefaultLayout()) return nullptr;
    if (i == root && reduce) continue;
    if (i->Is(Opcode::Parameter) || i->Is(Opcode::Constant)) continue;
    if (i->IsElementwise()) {
      if (i->shape().dims() == space) continue;
      if (i->shape().rank() == 0) continue;
      return nullptr;
    }
    if (i->Is(Opcode::Broadcast) && i->shape().dims() == space) {
      const Instruction* o = i->operand(0);
      if (o->shape().rank() > 0 && !o->Is(Opcode::Parameter)) return nullptr;
      const Ints& map = *i->attrs().dimensions;
      for (int64_t d = 0; d + 1 < n; ++d) {
        auto a = std::find(map.begin(), map.end(), d), b = std::find(map.begin(), map.end(), d + 1);
        const bool ha = a != map.end(), hb = b != map.end();
        if (ha != hb || (ha && b != a + 1)) split[d] = true;
      }
      if (!std::is_sorted(map.begin(), map.end())) return nullptr;
      continue;
    }
    if (i->Is(Opcode::Iota) && i->shape().dims() == space) {
      const int64_t k = *i->attrs().iota_dimension;
      if (k > 0) split[k - 1] = true;
      if (k + 1 < n) split[k] = true;
      continue;
    }
    return nullptr;
  }
  // A parameter is used at the loop space, through one broadcast, or as a scalar; used in two ways it cannot change
  // shape.
  for (const Instruction* p : f.parameters()) {
    const Instruction* seen = nullptr;
    for (const Instruction* u : p->users()) {
      const bool broadcast = u->Is(Opcode::Broadcast);
      if (broadcast && p->shape().rank() > 0) {
        if (seen && (!seen->Is(Opcode::Broadcast) || *seen->attrs().dimensions != *u->attrs().dimensions))
          return nullptr;
        if (p->users().size() > 1 && p->shape().dims() == space) return nullptr;
        seen = u;
      } else if (seen) {
        return nullptr;
      }
    }
  }
  // Extents of 1 always merge.
  Groups g;
  for (int64_t d = 0; d < n; ++d) {
    if (d == 0 || (split[d - 1]))
      g.push_back({d});
    else
      g.back().push_back(d);
  }
  if (static_cast<int64_t>(g.size()) == n) return nullptr;

  auto m = std::make_unique<Module>("collapsed");
  Computation* c = m->AddComputation("fused");
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  // New position of each old dimension of the loop space.
  Ints position(n);
  for (size_t k = 0; k < g.size(); ++k)
    for (int64_t d : g[k]) position[d] = static_cast<int64_t>(k);
  auto broadcast_groups = [&](const Ints& dims) {  // groups of an operand's own dimensions, and where they go
    std::pair<Groups, Ints> out;
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t to = position[dims[k]];
      if (out.second.empty() || out.second.back() != to) {
        out.second.push_back(to);
        out.first.emplace_back();
      }
      out.first.back().push_back(static_cast<int64_t>(k));
    }
    return out;
  };
  for (const Instruction* i : f.PostOrder()) {
    std::vector<Instruction*> ops;
    for (const Instruction* o : i->operands()) ops.push_back(map.at(o));
    Shape s = i->shape();
    if (i == root && reduce) {
      Ints kept_groups, reduced_groups;
      const Ints& rd = *i->attrs().dimensions;
      for (size_t k = 0; k < g.size(); ++k)
        (std::find(rd.begin(), rd.end(), g[k][0]) != rd.end() ? reduced_groups : kept_groups)
            .push_back(static_cast<int64_t>(k));
      const Ints merged = MergedDims(space, g);
      auto narrow = [&](const Shape& x) {
        Ints dims;
        for (int64_t k : kept_groups) dims.push_back(merged[k]);
        return Shape::Array(x.type(), dims);
      };
      if (s.IsTuple()) {
        std::vector<Shape> parts;
        for (const Shape& p : s.tuple()) parts.push_back(narrow(p));
        s = Shape::Tuple(parts);
      } else {
        s = narrow(s);
      }
      Instruction* r = c->AddClone(i, s, ops);
      r->mutable_attrs().dimensions = reduced_groups;
      map[i] = r;
      continue;
    }
    if (i->Is(Opcode::Parameter) && s.rank() > 0) {
      const Instruction* u = nullptr;
      for (const Instruction* x : i->users())
        if (x->Is(Opcode::Broadcast)) u = x;
      s = Shape::Array(s.type(), MergedDims(s.dims(), u ? broadcast_groups(*u->attrs().dimensions).first : g));
    } else if (s.rank() > 0) {
      s = Shape::Array(s.type(), MergedDims(s.dims(), g));
    }
    Instruction* x = c->AddClone(i, s, ops);
    if (i->Is(Opcode::Broadcast)) x->mutable_attrs().dimensions = broadcast_groups(*i->attrs().dimensions).second;
    if (i->Is(Opcode::Iota)) x->mutable_attrs().iota_dimension = position[*i->attrs().iota_dimension];
    map[i] = x;
  }
  c->set_root(map.at(root));
  m->set_entry(c);
  return m;
}

}  // namespace kiln::cpu
