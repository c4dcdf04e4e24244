#include "codegen/cpu/collapse.h"

#include <algorithm>

namespace kiln::cpu {
namespace {

using Groups = std::vector<Ints>;  // dimensions of each merged dimension, in order

bool Contains(const Ints& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// Of each dimension whether it goes with those that `reduce` reduces. One of extent 1 goes with the one before it,
// unless `reduce` reduces no others.
std::vector<bool> GoWithReduced(const Instruction* reduce) {
  const Ints &dims = *reduce->attrs().dimensions, &extents = reduce->operand(0)->shape().dims();
  const bool others = std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return extents[d] != 1; });
  std::vector<bool> out;
  for (int64_t d = 0; d < static_cast<int64_t>(extents.size()); ++d)
    out.push_back(others && d > 0 && extents[d] == 1 ? out.back() : Contains(dims, d));
  return out;
}

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

using Values = absl::flat_hash_set<const Instruction*>;

// Whether `u` brings `i`, a value of fewer dimensions that the computation makes, into the loop space.
bool Spreads(const Instruction* u, const Instruction* i) {
  return u->Is(Opcode::Broadcast) && !i->Is(Opcode::Parameter) && i->shape().rank() < u->shape().rank();
}

// What has no part in the loop space: what nothing reads but as a single number, such as an element that is sliced out
// of a parameter, and what is made of fewer dimensions before it is broadcast, such as a mean of a sum.
Values Aside(const Computation& f) {
  Values aside;
  const std::vector<const Instruction*> roots = Roots(f);
  const std::vector<Instruction*> order = f.PostOrder();
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    const std::vector<Instruction*>& users = (*i)->users();
    const bool number = (*i)->shape().IsArray() && (*i)->shape().rank() == 0;
    const bool result = *i == f.root() || std::find(roots.begin(), roots.end(), *i) != roots.end();
    if (!result && (number || std::all_of(users.begin(), users.end(),
                                          [&](const Instruction* u) { return aside.contains(u) || Spreads(u, *i); })))
      aside.insert(*i);
  }
  return aside;
}

// Whether the values aside are made of each other alone.
bool StandApart(const Values& aside) {
  for (const Instruction* i : aside)
    for (const Instruction* o : i->operands())
      if (!aside.contains(o)) return false;
  return true;
}

bool IsElementwiseInPlace(const Instruction* i) {
  return i->IsElementwise() || (i->Is(Opcode::BitcastConvert) && i->shape().dims() == i->operand(0)->shape().dims());
}

// Reads its operand at a place of other dimensions.
bool Moves(const Instruction* i) {
  return (i->Is(Opcode::Broadcast) && i->operand(0)->shape().rank() > 0) || i->Is(Opcode::Transpose);
}

// Which neighbours among the dimensions of the loop space must stay apart.
class Boundaries {
 public:
  Boundaries(const Computation& f, const Ints& space, const Values& aside)
      : roots_(Roots(f)),
        aside_(aside),
        space_(space),
        n_(static_cast<int64_t>(space.size())),
        split_(space.size() - 1, false) {}

  // Adds what `i` keeps apart; false if it does not let dimensions merge at all.
  bool Add(const Instruction* i) {
    if (i->shape().IsArray() && !i->shape().HasDefaultLayout()) return false;
    if (i->Is(Opcode::Reduce)) {
      if (std::find(roots_.begin(), roots_.end(), i) == roots_.end()) return false;
      AddReduce(i);
      return true;
    }
    if (i->Is(Opcode::Tuple)) return true;
    if (i->Is(Opcode::Parameter)) {
      const bool moved = std::any_of(i->users().begin(), i->users().end(), Moves);
      return moved || AddExtents(i->shape());
    }
    if (!AddExtents(i->shape())) return false;
    if (IsElementwiseInPlace(i)) return true;
    switch (i->opcode()) {
      case Opcode::Broadcast:
        return AddBroadcast(i);
      case Opcode::Transpose:
        return i->shape().dims() == space_ && AddTranspose(i);
      case Opcode::Iota:
        KeepApart(*i->attrs().iota_dimension);
        return true;
      case Opcode::Slice:
      case Opcode::DynamicSlice:
      case Opcode::Pad:
      case Opcode::Concatenate:
      case Opcode::Reverse:
        for (int64_t d = 0; d < n_; ++d)
          if (WorksOn(i, d)) KeepApart(d);
        return true;
      default:
        return false;
    }
  }

  // Whether an element's place along `d` is another one in the operand.
  static bool WorksOn(const Instruction* i, int64_t d) {
    const Attributes& a = i->attrs();
    if (i->Is(Opcode::Concatenate) || i->Is(Opcode::Reverse)) return Contains(*a.dimensions, d);
    if (i->Is(Opcode::Pad)) return (*a.padding)[static_cast<size_t>(d)] != PadDim{};
    if (i->shape().dim(d) != i->operand(0)->shape().dim(d)) return true;
    return i->Is(Opcode::Slice) && (*a.slice)[static_cast<size_t>(d)].stride != 1;
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
  void KeepApart(int64_t d) {
    if (d > 0) split_[d - 1] = true;
    if (d + 1 < n_) split_[d] = true;
  }

  // Where a value, as the operand of a slice, has other extents than the loop space, its dimensions stay as they are.
  bool AddExtents(const Shape& s) {
    if (!s.IsArray() || s.rank() != n_) return false;
    for (int64_t d = 0; d < n_; ++d)
      if (s.dim(d) != space_[static_cast<size_t>(d)]) KeepApart(d);
    return true;
  }

  void AddReduce(const Instruction* i) {
    const std::vector<bool> reduced = GoWithReduced(i);
    for (int64_t d = 0; d + 1 < n_; ++d)
      if (reduced[d] != reduced[d + 1]) split_[d] = true;
  }

  bool AddBroadcast(const Instruction* i) {
    const Instruction* o = i->operand(0);
    const Ints& map = *i->attrs().dimensions;
    if (o->shape().rank() > 0 && aside_.contains(o))
      for (int64_t d : map) KeepApart(d);
    else if (o->shape().rank() > 0 && !o->Is(Opcode::Parameter))
      return false;
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
  const Values& aside_;
  const Ints& space_;
  const int64_t n_;
  std::vector<bool> split_;  // [d]: dimensions d and d+1 must stay apart
};

// A parameter is used at the loop space, through one broadcast or transpose, or as a scalar; used in two ways it cannot
// change shape.
bool UsedInOneWay(const Instruction* parameter, const Ints& space, const Values& aside) {
  if (aside.contains(parameter)) return true;
  const Instruction* seen = nullptr;
  for (const Instruction* u : parameter->users()) {
    if (aside.contains(u)) return false;
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
  Merger(const Computation& f, const Ints& space, Groups groups, const Values& aside)
      : f_(f), space_(space), groups_(std::move(groups)), aside_(aside), position_(space.size()) {
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
    const std::vector<bool> goes = GoWithReduced(i);
    for (size_t k = 0; k < groups_.size(); ++k)
      (goes[groups_[k][0]] ? reduced : kept).push_back(static_cast<int64_t>(k));
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

  // What a slice, pad, concatenation or reversal does along the dimensions that it works on; it leaves merged ones
  // whole.
  void Redirect(Instruction* copy, const Instruction* i) const {
    Attributes& a = copy->mutable_attrs();
    if (i->Is(Opcode::Concatenate) || i->Is(Opcode::Reverse))
      for (int64_t& d : *a.dimensions) d = position_[d];
    if (i->Is(Opcode::Slice)) {
      a.slice->clear();
      for (size_t k = 0; k < groups_.size(); ++k)
        a.slice->push_back(groups_[k].size() == 1 ? (*i->attrs().slice)[static_cast<size_t>(groups_[k][0])]
                                                  : SliceDim{0, copy->shape().dim(static_cast<int64_t>(k)), 1});
    }
    if (i->Is(Opcode::Pad)) {
      a.padding->clear();
      for (const Ints& group : groups_) a.padding->push_back((*i->attrs().padding)[static_cast<size_t>(group[0])]);
    }
    if (i->Is(Opcode::DynamicSlice)) a.dynamic_slice_sizes = copy->shape().dims();
  }

  Instruction* CopyPlain(Computation* c, const Instruction* i, std::vector<Instruction*> operands) {
    if (aside_.contains(i)) return c->AddClone(i, i->shape(), operands);
    if (i->Is(Opcode::DynamicSlice)) {  // one start for each merged dimension
      std::vector<Instruction*> starts = {operands[0]};
      for (const Ints& group : groups_) starts.push_back(operands[static_cast<size_t>(1 + group[0])]);
      operands = std::move(starts);
    }
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
    Redirect(copy, i);
    return copy;
  }

  const Computation& f_;
  const Ints& space_;
  const Groups groups_;
  const Values& aside_;
  Ints position_;  // new one of each old dimension of the loop space
  absl::flat_hash_map<const Instruction*, Instruction*> copies_;
};

}  // namespace

std::unique_ptr<Module> Collapse(const Computation& f) {
  const Ints space = LoopSpace(f);
  if (space.size() < 2) return nullptr;
  const Values aside = Aside(f);
  if (!StandApart(aside)) return nullptr;
  Boundaries boundaries(f, space, aside);
  for (const auto& i : f.instructions())
    if (!aside.contains(i.get()) && !boundaries.Add(i.get())) return nullptr;
  for (const Instruction* p : f.parameters())
    if (!UsedInOneWay(p, space, aside)) return nullptr;
  Groups groups = boundaries.Merged();
  if (groups.size() == space.size()) return nullptr;
  return Merger(f, space, std::move(groups), aside).Copy();
}

}  // namespace kiln::cpu
