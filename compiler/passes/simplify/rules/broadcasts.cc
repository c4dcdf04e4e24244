// Broadcasts of broadcasts, of iotas and of extents 1.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/permutation.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* OfIota(Instruction* i) {
  const Instruction* iota = i->operand(0);
  if (!iota->Is(Opcode::Iota) || iota->shape().rank() == 0) return nullptr;
  const int64_t dim = (*i->attrs().dimensions)[static_cast<size_t>(*iota->attrs().iota_dimension)];
  return IotaOf(i->parent(), i->shape().type(), i->shape().dims(), dim).get();
}

Instruction* OfBroadcast(Instruction* i) {
  Instruction* inner = i->operand(0);
  if (!inner->Is(Opcode::Broadcast)) return nullptr;
  Ints composed;
  for (int64_t d : *inner->attrs().dimensions) composed.push_back((*i->attrs().dimensions)[d]);
  return BroadcastTo(inner->operand(0), i->shape().dims(), composed).get();
}

Instruction* WithoutRepetition(Instruction* i) {
  Instruction* x = i->operand(0);
  const Ints& map = *i->attrs().dimensions;
  if (i->shape().ElementCount() != x->shape().ElementCount() || !std::is_sorted(map.begin(), map.end())) return nullptr;
  return ReshapeTo(x, i->shape().dims()).get();
}

// A broadcast that repeats nothing but permutes is a transpose.
Instruction* Permutes(Instruction* i) {
  Instruction* x = i->operand(0);
  const Ints& map = *i->attrs().dimensions;
  if (i->shape().rank() != x->shape().rank() || std::is_sorted(map.begin(), map.end())) return nullptr;
  Ints permutation(map.size());
  for (size_t k = 0; k < map.size(); ++k) permutation[static_cast<size_t>(map[k])] = static_cast<int64_t>(k);
  return TransposeBy(x, permutation).get();
}

// Without them scalars and vectors show.
Instruction* DropExtentsOfOne(Instruction* i) {
  Instruction* x = i->operand(0);
  const Ints& map = *i->attrs().dimensions;
  Ints kept, kept_map;
  for (size_t k = 0; k < map.size(); ++k)
    if (x->shape().dim(k) != 1) {
      kept.push_back(x->shape().dim(k));
      kept_map.push_back(map[k]);
    }
  if (kept.size() == map.size()) return nullptr;
  return BroadcastTo(ReshapeTo(x, kept), i->shape().dims(), kept_map).get();
}

// Repetition along several dimensions, as of pixels, with a reshape after each: one broadcast writes the whole, where a
// reshape ends its loop anyway.
Instruction* OfRepetition(Instruction* i) {
  Instruction *reshape = i->operand(0), *inner = reshape->Is(Opcode::Reshape) ? reshape->operand(0) : nullptr;
  const Ints& map = *i->attrs().dimensions;
  if (!inner || !inner->Is(Opcode::Broadcast) || !std::is_sorted(map.begin(), map.end()) ||
      inner->shape().ElementCount() == inner->operand(0)->shape().ElementCount() ||
      !std::all_of(i->users().begin(), i->users().end(), [](const Instruction* u) { return u->Is(Opcode::Reshape); }))
    return nullptr;
  // Dimension k of the reshape is dimensions [ends[k - 1], ends[k]) of the broadcast.
  const Ints &merged = reshape->shape().dims(), &parts = inner->shape().dims();
  Ints ends;
  size_t next = 0;
  for (const int64_t extent : merged) {
    int64_t product = 1;
    while (next < parts.size() && (product < extent || parts[next] == 1)) product *= parts[next++];
    if (product != extent) return nullptr;
    ends.push_back(static_cast<int64_t>(next));
  }
  if (next != parts.size()) return nullptr;
  Ints dims, place(parts.size());
  size_t k = 0;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    if (k == map.size() || map[k] != d) {
      dims.push_back(i->shape().dim(d));
      continue;
    }
    for (int64_t q = k ? ends[k - 1] : 0; q < ends[k]; ++q) {
      place[static_cast<size_t>(q)] = static_cast<int64_t>(dims.size());
      dims.push_back(parts[static_cast<size_t>(q)]);
    }
    ++k;
  }
  Ints composed;
  for (const int64_t d : *inner->attrs().dimensions) composed.push_back(place[static_cast<size_t>(d)]);
  return ReshapeTo(BroadcastTo(inner->operand(0), dims, composed), i->shape().dims()).get();
}

const Rule kRules[] = {
    {"broadcast-to-itself",
     {Opcode::Broadcast},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] broadcast(p), dimensions={0,1}",
     "ROOT r = $T[4,6,2] broadcast(p), dimensions={0,1}",
     [](Instruction* i) {
       Instruction* x = i->operand(0);
       return i->shape().dims() == x->shape().dims() && IsIdentity(*i->attrs().dimensions) ? x : nullptr;
     }},
    {"broadcast-of-iota",
     {Opcode::Broadcast},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "n = $T[6] iota(), iota_dimension=0\n ROOT r = $T[4,6] broadcast(n), dimensions={1}",
     "ROOT r = $T[4,6] broadcast(s), dimensions={}",
     OfIota},
    {"broadcast-of-broadcast",
     {Opcode::Broadcast},
     kAllTypes,
     Numerics::Exact,
     "b = $T[6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] broadcast(b), dimensions={1}",
     "ROOT r = $T[4,6] broadcast(s), dimensions={}",
     OfBroadcast},
    {"broadcast-without-repetition",
     {Opcode::Broadcast},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,1,6] broadcast(p), dimensions={0,2}",
     "ROOT r = $T[6,1,4] broadcast(p), dimensions={2,0}",
     WithoutRepetition},
    {"broadcast-that-permutes",
     {Opcode::Broadcast},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[6,4] broadcast(p), dimensions={1,0}",
     "ROOT r = $T[6,2,4] broadcast(p), dimensions={2,0}",
     Permutes},
    {"broadcast-of-extent-one",
     {Opcode::Broadcast},
     kAllTypes,
     Numerics::Exact,
     "b = $T[1,4,6] reshape(p)\n ROOT r = $T[1,4,6,2] broadcast(b), dimensions={0,1,2}",
     "ROOT r = $T[4,6,2] broadcast(p), dimensions={0,1}",
     DropExtentsOfOne},
    {"broadcast-of-repetition",
     {Opcode::Broadcast},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,2,6] broadcast(p), dimensions={0,2}\n c = $T[8,6] reshape(b)\n d = $T[8,6,3] broadcast(c), "
     "dimensions={0,1}\n ROOT r = $T[8,18] reshape(d)",
     "b = $T[4,2,6] broadcast(p), dimensions={0,2}\n c = $T[2,4,6] reshape(b)\n d = $T[2,4,6,3] broadcast(c), "
     "dimensions={0,1,2}\n ROOT r = $T[8,18] reshape(d)",
     OfRepetition},
};

}  // namespace

absl::Span<const Rule> BroadcastRules() { return kRules; }

}  // namespace kiln
