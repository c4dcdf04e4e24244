// A reshape goes to the arrays in memory that what is reshaped is made of, where it is another name for them. Between
// two loops it would keep them apart: elements would have to be found by division.
// Keeps: every result, bit for bit. What products make stays, for their own loops go on with it.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/rewriter.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool MovesPlaces(const Instruction* i) {
  if (i->Is(Opcode::Pad))
    return std::all_of(i->attrs().padding->begin(), i->attrs().padding->end(),
                       [](const PadDim& p) { return p.interior == 0; });
  return i->Is(Opcode::Reverse) || i->Is(Opcode::Slice);
}

// A copy of `i`, a movement of places, over `x`; dimension d of `i` is `to[d]` of the copy, which has `dims`.
Instruction* MovedOver(const Instruction* i, Instruction* x, const Ints& dims, const Ints& to) {
  std::vector<Instruction*> operands = i->operands();
  operands[0] = x;
  Instruction* copy = i->parent()->AddClone(i, Shape::Array(i->shape().type(), dims), std::move(operands));
  Attributes& a = copy->mutable_attrs();
  if (i->Is(Opcode::Reverse)) {
    a.dimensions->clear();
    for (int64_t d : *i->attrs().dimensions)
      if (to[static_cast<size_t>(d)] >= 0) a.dimensions->push_back(to[static_cast<size_t>(d)]);
    std::sort(a.dimensions->begin(), a.dimensions->end());
    return copy;
  }
  if (i->Is(Opcode::Pad)) a.padding = attr::Padding(dims.size());
  if (i->Is(Opcode::Slice)) {
    a.slice->clear();
    for (int64_t n : dims) a.slice->push_back({0, n, 1});
  }
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] < 0) continue;
    const auto t = static_cast<size_t>(to[d]);
    if (i->Is(Opcode::Pad)) (*a.padding)[t] = (*i->attrs().padding)[d];
    if (i->Is(Opcode::Slice)) (*a.slice)[t] = (*i->attrs().slice)[d];
  }
  return copy;
}

// How the dimensions of an array are those of what it is reshaped to.
struct Alike {
  Ints to;                 // of each dimension, the one that is the same; -1: it is joined, taken apart or of extent 1
  std::vector<bool> same;  // which ones of the result are such
};

Alike AlikeDims(const Ints& from, const Ints& to) {
  Alike out{Ints(from.size(), -1), std::vector<bool>(to.size(), false)};
  size_t f = 0, t = 0;
  while (f < from.size() && t < to.size()) {
    size_t f_end = f + 1, t_end = t + 1;
    int64_t n = from[f], m = to[t];
    while (n != m && (n < m ? f_end < from.size() : t_end < to.size())) n < m ? n *= from[f_end++] : m *= to[t_end++];
    if (n != m) break;
    if (f_end == f + 1 && t_end == t + 1) {
      out.to[f] = static_cast<int64_t>(t);
      out.same[t] = true;
    }
    f = f_end;
    t = t_end;
  }
  return out;
}

class Reshaper {
 public:
  // `x` with extents `dims`, made of reshaped arrays in memory; null if it is made of anything else.
  Instruction* Of(Instruction* x, const Ints& dims, bool single = true) {
    if (--budget_ < 0 || !x->shape().IsArray() || x->shape().rank() == 0 || dims.empty() ||
        !x->shape().HasDefaultLayout())
      return nullptr;
    if (x->shape().dims() == dims) return x;
    if (x->Is(Opcode::Bitcast) && x->operand(0)->shape().HasDefaultLayout() &&
        x->operand(0)->shape().type() == x->shape().type())
      return Named(x->operand(0), dims);
    if (x->Is(Opcode::Broadcast)) return OfBroadcast(x, dims);
    if (InMemory(x)) return Named(x, dims);
    if (single && x->users().size() != 1) return nullptr;
    if (x->IsElementwise() && x->operand_count() > 0) return OfElementwise(x, dims);
    return MovesPlaces(x) ? OfMovement(x, dims) : nullptr;
  }

 private:
  // What a loop reads, because it is no loop itself.
  static bool InMemory(const Instruction* x) {
    return x->Is(Opcode::Parameter) || x->Is(Opcode::GetTupleElement) || x->Is(Opcode::Fusion) ||
           (x->Is(Opcode::Constant) && x->shape().rank() > 0);
  }

  static Instruction* Named(Instruction* x, const Ints& dims) {
    if (x->shape().dims() == dims) return x;
    return x->parent()->Add(Opcode::Bitcast, Shape::Array(x->shape().type(), dims), {x});
  }

  Instruction* OfElementwise(Instruction* x, const Ints& dims) {
    std::vector<Instruction*> operands;
    for (Instruction* o : x->operands()) {
      operands.push_back(o->shape().rank() == 0 ? o : Of(o, dims));
      if (!operands.back()) return nullptr;
    }
    return x->parent()->AddClone(x, Shape::Array(x->shape().type(), dims), std::move(operands));
  }

  static Instruction* OfBroadcast(Instruction* x, const Ints& dims) {
    const Alike alike = AlikeDims(x->shape().dims(), dims);
    Ints map;
    for (int64_t d : *x->attrs().dimensions) {
      if (alike.to[static_cast<size_t>(d)] < 0) return nullptr;
      map.push_back(alike.to[static_cast<size_t>(d)]);
    }
    return BroadcastTo(x->operand(0), dims, map).get();
  }

  // What moves along dimensions that stay.
  Instruction* OfMovement(Instruction* x, const Ints& dims) {
    const Alike alike = AlikeDims(x->shape().dims(), dims);
    const Shape& from = x->operand(0)->shape();
    Ints inner = dims;
    for (int64_t d = 0; d < from.rank(); ++d) {
      const int64_t to = alike.to[static_cast<size_t>(d)];
      if (to >= 0)
        inner[static_cast<size_t>(to)] = from.dim(d);
      else if (from.dim(d) != x->shape().dim(d) || Works(x, d))
        return nullptr;
    }
    Instruction* moved = Of(x->operand(0), inner);
    return moved ? MovedOver(x, moved, dims, alike.to) : nullptr;
  }

  static bool Works(const Instruction* x, int64_t d) {
    if (x->Is(Opcode::Pad)) return (*x->attrs().padding)[static_cast<size_t>(d)] != PadDim{};
    if (x->Is(Opcode::Slice)) return false;  // all of it is taken
    const Ints& reversed = *x->attrs().dimensions;
    return x->shape().dim(d) != 1 && std::find(reversed.begin(), reversed.end(), d) != reversed.end();
  }

  int budget_ = 32;
};

// Whether a loop reads the reshape.
bool IsReadByLoop(const Instruction* reshape) {
  return std::all_of(reshape->users().begin(), reshape->users().end(), [](const Instruction* u) {
    return u->IsElementwise() || u->Is(Opcode::Slice) || u->Is(Opcode::Pad) || u->Is(Opcode::Reverse) ||
           u->Is(Opcode::Concatenate) || u->Is(Opcode::Reduce) || u->Is(Opcode::Transpose);
  });
}

Instruction* ToMemory(Instruction* i) {
  if (!i->Is(Opcode::Bitcast) || i->users().empty() || !IsReadByLoop(i)) return nullptr;
  Instruction* x = i->operand(0);
  if (x->shape().type() != i->shape().type() || !i->shape().HasDefaultLayout() || x->users().size() != 1)
    return nullptr;
  const bool loop = (x->IsElementwise() && x->operand_count() > 0) || MovesPlaces(x);
  return loop ? Reshaper().Of(x, i->shape().dims()) : nullptr;
}

// Fusion counts readers: what was read by `i` alone goes with it.
void RemoveUnread(Computation* c, Instruction* i) {
  std::vector<Instruction*> work = {i};
  while (!work.empty()) {
    Instruction* x = work.back();
    work.pop_back();
    const absl::flat_hash_set<Instruction*> operands(x->operands().begin(), x->operands().end());
    c->Remove(x);
    for (Instruction* o : operands)
      if (o->users().empty() && !o->IsRoot() && !o->Is(Opcode::Parameter)) work.push_back(o);
  }
}

}  // namespace

absl::StatusOr<bool> CpuReshapePlacement(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  for (Computation* c : ControlComputations(m))
    for (Instruction* i : c->PostOrder()) {
      ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, ToMemory));
      if (replaced) RemoveUnread(c, i);
    }
  return rewriter.changed();
}

}  // namespace kiln
