#include "codegen/cpu/collapse.h"

#include <algorithm>

namespace kiln::cpu {
namespace {

using Groups = std::vector<Ints>;  // dimensions of each merged dimension, in order

bool Contains(const Ints& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

Ints MergedDims(const Ints& dims, const Groups& g) {
  Ints out;
  for (const Ints& group : g) {
    int64_t n = 1;
    for (int64_t d : group) n *= dims[d];
    out.push_back(n);
  }
  return out;
}

std::vector<const Instruction*> Roots(const Computation& f) {
  const Instruction* root = f.root();
  if (!root->Is(Opcode::Tuple)) return {root};
  return {root->operands().begin(), root->operands().end()};
}

// The dimensions that the loops run over; none where results differ in them.
Ints LoopSpace(const Computation& f) {
  const auto space = [](const Instruction* i) {
    const Shape& s = i->Is(Opcode::Reduce) ? i->operand(0)->shape() : i->shape();
    return s.IsArray() ? s.dims() : Ints();
  };
  const std::vector<const Instruction*> roots = Roots(f);
  if (roots.empty()) return {};
  for (const Instruction* r : roots)
    if (r->opcode() != roots[0]->opcode() && (r->Is(Opcode::Reduce) || roots[0]->Is(Opcode::Reduce)))
      return {};
    else if (space(r) != space(roots[0]))
      return {};
  return space(roots[0]);
}

// Which neighbours among the dimensions of the loop space must stay apart.
class Boundaries {
 public:
  Boundaries(const Computation& f, const Ints& space)
      : roots_(Roots(f)), space_(space), n_(static_cast<int64_t>(space.size())), split_(space.size() - 1, false) {}

  // Adds what `i` keeps apart; false if it does not let dimensions merge at all.
  bool Add(const Instruction* i) {
    if (i->shape().IsArray() && !i->shape().HasDefaultLayout()) return false;
    if (i->Is(Opcode::Reduce)) {
      if (std::find(roots_.begin(), roots_.end(), i) == roots_.end()) return false;
      AddReduce(i);
      return true;
    }
    if (i->Is(Opcode::Parameter) || i->Is(Opcode::Constant) || i->Is(Opcode::Tuple)) return true;
    if (i->IsElementwise()) return i->shape().dims() == space_ || i->shape().rank() == 0;
    if (i->shape().dims() != space_) return false;
    if (i->Is(Opcode::Broadcast)) return AddBroadcast(i);
    if (i->Is(Opcode::Transpose)) return AddTranspose(i);
    if (!i->Is(Opcode::Iota)) return false;
    const int64_t k = *i->attrs().iota_dimension;
    if (k > 0) split_[k - 1] = true;
    if (k + 1 < n_) split_[k] = true;
    return true;
  }

  Groups Merged() const {
    Groups g;
    for (int64_t d = 0; d < n_; ++d) {
      if (d == 0 || split_[d - 1])
        g.push_back({d});
      else
        g.back().push_back(d);
    }
    return g;
  }

 private:
  void AddReduce(const Instruction* i) {
    const Ints& dims = *i->attrs().dimensions;
    for (int64_t d = 0; d + 1 < n_; ++d)
      if (Contains(dims, d) != Contains(dims, d + 1)) split_[d] = true;
  }

  bool AddBroadcast(const Instruction* i) {
    const Instruction* o = i->operand(0);
    if (o->shape().rank() > 0 && !o->Is(Opcode::Parameter)) return false;
    const Ints& map = *i->attrs().dimensions;
    for (int64_t d = 0; d + 1 < n_; ++d) {
      auto a = std::find(map.begin(), map.end(), d), b = std::find(map.begin(), map.end(), d + 1);
      const bool ha = a != map.end(), hb = b != map.end();
      if (ha != hb || (ha && b != a + 1)) split_[d] = true;
    }
    return std::is_sorted(map.begin(), map.end());
  }

  bool AddTranspose(const Instruction* i) {
    const Ints& from = *i->attrs().dimensions;
    for (int64_t d = 0; d + 1 < n_; ++d)
      if (from[d + 1] != from[d] + 1) split_[d] = true;
    return i->operand(0)->Is(Opcode::Parameter);
  }

  const std::vector<const Instruction*> roots_;
  const Ints& space_;
  const int64_t n_;
  std::vector<bool> split_;  // [d]: dimensions d and d+1 must stay apart
};

// Reads its operand at a place of other dimensions.
bool Moves(const Instruction* i) {
  return (i->Is(Opcode::Broadcast) && i->operand(0)->shape().rank() > 0) || i->Is(Opcode::Transpose);
}

// A parameter is used at the loop space, through one broadcast or transpose, or as a scalar; used in two ways it cannot
// change shape.
bool UsedInOneWay(const Instruction* parameter, const Ints& space) {
  const Instruction* seen = nullptr;
  for (const Instruction* u : parameter->users()) {
    if (Moves(u)) {
      if (seen && (seen->opcode() != u->opcode() || *seen->attrs().dimensions != *u->attrs().dimensions)) return false;
      if (parameter->users().size() > 1 && parameter->shape().dims() == space) return false;
      seen = u;
    } else if (seen) {
      return false;
    }
  }
  return true;
}

// Copies a computation, its loop space in merged dimensions.
class Merger {
 public:
  Merger(const Computation& f, const Ints& space, Groups groups)
      : f_(f), space_(space), groups_(std::move(groups)), position_(space.size()) {
    for (size_t k = 0; k < groups_.size(); ++k)
      for (int64_t d : groups_[k]) position_[d] = static_cast<int64_t>(k);
  }

  std::unique_ptr<Module> Copy() {
    auto m = std::make_unique<Module>("collapsed");
    Computation* c = m->AddComputation("fused");
    for (const Instruction* i : f_.PostOrder()) {
      std::vector<Instruction*> operands;
      for (const Instruction* o : i->operands()) operands.push_back(copies_.at(o));
      copies_[i] = i->Is(Opcode::Reduce)  ? CopyReduce(c, i, operands)
                   : i->Is(Opcode::Tuple) ? CopyTuple(c, i, operands)
                                          : CopyPlain(c, i, operands);
    }
    c->set_root(copies_.at(f_.root()));
    m->set_entry(c);
    return m;
  }

 private:
  // Groups of a broadcast operand's own dimensions, and where they go.
  struct Broadcasted {
    Groups groups;
    Ints to;
  };
  Broadcasted Broadcast(const Ints& dims) const {
    Broadcasted out;
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t to = position_[dims[k]];
      if (out.to.empty() || out.to.back() != to) {
        out.to.push_back(to);
        out.groups.emplace_back();
      }
      out.groups.back().push_back(static_cast<int64_t>(k));
    }
    return out;
  }

  Instruction* CopyReduce(Computation* c, const Instruction* i, const std::vector<Instruction*>& operands) {
    Ints kept, reduced;
    for (size_t k = 0; k < groups_.size(); ++k)
      (Contains(*i->attrs().dimensions, groups_[k][0]) ? reduced : kept).push_back(static_cast<int64_t>(k));
    const Ints merged = MergedDims(space_, groups_);
    auto narrow = [&](const Shape& x) {
      Ints dims;
      for (int64_t k : kept) dims.push_back(merged[k]);
      return Shape::Array(x.type(), dims);
    };
    Shape s = i->shape();
    if (s.IsTuple()) {
      std::vector<Shape> parts;
      for (const Shape& p : s.tuple()) parts.push_back(narrow(p));
      s = Shape::Tuple(parts);
    } else {
      s = narrow(s);
    }
    Instruction* copy = c->AddClone(i, s, operands);
    copy->mutable_attrs().dimensions = reduced;
    return copy;
  }

  static Instruction* CopyTuple(Computation* c, const Instruction* i, const std::vector<Instruction*>& operands) {
    std::vector<Shape> parts;
    for (const Instruction* o : operands) parts.push_back(o->shape());
    return c->AddClone(i, Shape::Tuple(parts), operands);
  }

  // The groups of a transposed parameter's own dimensions, in their order; `order`: of each group of the loop space,
  // where it is among them.
  Groups Transposed(const Ints& from, Ints* order) const {
    Groups groups;
    for (const Ints& group : groups_) {
      groups.emplace_back();
      for (int64_t d : group) groups.back().push_back(from[d]);
    }
    const Groups by_result = groups;
    std::sort(groups.begin(), groups.end());
    for (const Ints& group : by_result)
      order->push_back(std::find(groups.begin(), groups.end(), group) - groups.begin());
    return groups;
  }

  Instruction* CopyPlain(Computation* c, const Instruction* i, const std::vector<Instruction*>& operands) {
    Shape s = i->shape();
    if (s.rank() > 0) {
      const Instruction* moved = nullptr;
      if (i->Is(Opcode::Parameter))
        for (const Instruction* u : i->users())
          if (Moves(u)) moved = u;
      Ints order;
      const Groups groups = !moved                         ? groups_
                            : moved->Is(Opcode::Transpose) ? Transposed(*moved->attrs().dimensions, &order)
                                                           : Broadcast(*moved->attrs().dimensions).groups;
      s = Shape::Array(s.type(), MergedDims(s.dims(), groups));
    }
    Instruction* copy = c->AddClone(i, s, operands);
    if (i->Is(Opcode::Broadcast)) copy->mutable_attrs().dimensions = Broadcast(*i->attrs().dimensions).to;
    if (i->Is(Opcode::Transpose)) {
      Ints order;
      Transposed(*i->attrs().dimensions, &order);
      copy->mutable_attrs().dimensions = order;
    }
    if (i->Is(Opcode::Iota)) copy->mutable_attrs().iota_dimension = position_[*i->attrs().iota_dimension];
    return copy;
  }

  const Computation& f_;
  const Ints& space_;
  const Groups groups_;
  Ints position_;  // new one of each old dimension of the loop space
  absl::flat_hash_map<const Instruction*, Instruction*> copies_;
};

}  // namespace

std::unique_ptr<Module> Collapse(const Computation& f) {
  const Ints space = LoopSpace(f);
  if (space.size() < 2) return nullptr;
  Boundaries boundaries(f, space);
  for (const auto& i : f.instructions())
    if (!boundaries.Add(i.get())) return nullptr;
  for (const Instruction* p : f.parameters())
    if (!UsedInOneWay(p, space)) return nullptr;
  Groups groups = boundaries.Merged();
  if (groups.size() == space.size()) return nullptr;
  return Merger(f, space, std::move(groups)).Copy();
}

}  // namespace kiln::cpu
