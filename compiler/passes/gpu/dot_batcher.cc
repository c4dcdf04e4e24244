// A product whose one operand has free dimensions on both sides of what is contracted, as b and j in ij,bjf->bif, takes
// the outer ones as a batch, along which the other operand is repeated: the library reads that with a stride of 0,
// where a product without batch would need a transposed copy.
//
// The batch leads the result. Of a left operand it does so anyway; of a right one, a transpose that alone reads the
// result must put it there. What follows the batch is in the order that such a transpose asks for.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

constexpr int64_t kFewest = 16;  // rows, columns and terms that a product of the batch is worth a library's call with

// Of an operand: how many free dimensions stand before what is contracted, and what extents they and those after have.
struct Around {
  int64_t before = 0, outer = 1, inner = 1;
};

Around AroundOf(const Instruction* dot, int64_t operand) {
  const DotSide side = SideOf(dot, operand);
  Around out;
  for (const int64_t d : side.free) {
    const int64_t extent = dot->operand(operand)->shape().dim(d);
    (d < side.contracting[0] ? out.outer : out.inner) *= extent;
    out.before += d < side.contracting[0];
  }
  return out;
}

// Weights of fewer bits, which another kernel reads as they are.
bool Widens(const Instruction* i) {
  if (i->Is(Opcode::Multiply)) return Widens(i->operand(0)) || Widens(i->operand(1));
  return i->Is(Opcode::Convert);
}

bool ServedByLibrary(const Instruction* dot) {
  const PrimitiveType t = dot->operand(0)->shape().type();
  return t == dot->operand(1)->shape().type() && (IsFloat(t) ? InfoOf(t).bits >= 16 : IsComplex(t));
}

// How a product is cut: which operand has the batch, whether what is free of the other comes before what is left of it,
// and what is computed in that order too, up to the transpose that asked for it.
struct Cut {
  int64_t operand = -1;  // none: the product stays
  bool other_first = false;
  std::vector<Instruction*> behind;
};

// `from` and the numbers behind it.
Ints Numbers(int64_t from, int64_t count) {
  Ints out;
  for (int64_t k = 0; k < count; ++k) out.push_back(from + k);
  return out;
}

Ints Joined(const Ints& a, const Ints& b, const Ints& c) {
  Ints out = a;
  out.insert(out.end(), b.begin(), b.end());
  out.insert(out.end(), c.begin(), c.end());
  return out;
}

// What reads `dot` alone, up to a transpose: functions of single elements, and the transpose last. Empty without one.
std::vector<Instruction*> UpToTranspose(const Instruction* dot) {
  std::vector<Instruction*> out;
  for (const Instruction* i = dot; i->users().size() == 1 && !i->IsRoot(); i = out.back()) {
    out.push_back(i->users()[0]);
    if (out.back()->Is(Opcode::Transpose)) return out;
    if (!out.back()->IsElementwise()) return {};
    for (const Instruction* o : out.back()->operands())
      if (o != i && !(o->Is(Opcode::Broadcast) && o->operand(0)->shape().rank() == 0)) return {};
  }
  return {};
}

// The cut of operand `k`, in the order that a transpose which alone reads the result asks for.
Cut CutOf(const Instruction* dot, int64_t k) {
  const auto free = static_cast<int64_t>(SideOf(dot, k).free.size()),
             others = static_cast<int64_t>(SideOf(dot, 1 - k).free.size()), before = AroundOf(dot, k).before;
  const int64_t first = k == 0 ? 0 : others;
  const Ints batch = Numbers(first, before), inner = Numbers(first + before, free - before),
             other = Numbers(k == 0 ? free : 0, others);
  const std::vector<Instruction*> behind = UpToTranspose(dot);
  for (const bool other_first : {true, false}) {
    const Ints order = other_first ? Joined(batch, other, inner) : Joined(batch, inner, other);
    if (!behind.empty() && *behind.back()->attrs().dimensions == order) return {k, other_first, behind};
    if (k == 0 && !other_first) return {k, other_first, {}};
  }
  return {};
}

Cut CutOf(const Instruction* dot) {
  if (!IsPlainDot(dot) || !ServedByLibrary(dot)) return {};
  for (const int64_t k : {0, 1}) {
    const DotSide side = SideOf(dot, k), other = SideOf(dot, 1 - k);
    if (!side.batch.empty() || side.contracting.size() != 1 || other.free.empty()) continue;
    const Around x = AroundOf(dot, k), w = AroundOf(dot, 1 - k);
    const int64_t terms = dot->operand(k)->shape().dim(side.contracting[0]);
    if (x.outer < 2 || std::min({x.inner, terms, w.outer * w.inner}) < kFewest) continue;
    if ((w.outer > 1 && w.inner > 1) || Widens(dot->operand(1 - k))) continue;
    if (const Cut cut = CutOf(dot, k); cut.operand >= 0) return cut;
  }
  return {};
}

void Batch(Instruction* dot, const Cut& cut) {
  Computation* c = dot->parent();
  Instruction *x = dot->operand(cut.operand), *w = dot->operand(1 - cut.operand);
  DotSide side = SideOf(dot, cut.operand), other = SideOf(dot, 1 - cut.operand);
  const int64_t before = AroundOf(dot, cut.operand).before, rank = w->shape().rank();
  Ints dims;
  for (int64_t d = 0; d < before; ++d) dims.push_back(x->shape().dim(d));
  for (int64_t d = 0; d < rank; ++d) dims.push_back(w->shape().dim(d));
  Instruction* repeated = c->Add(Opcode::Broadcast, Shape::Array(w->shape().type(), dims), {w});
  repeated->mutable_attrs().dimensions = Numbers(before, rank);
  side.batch = other.batch = Numbers(0, before);
  other.contracting[0] += before;
  const bool swapped = cut.other_first == (cut.operand == 0);
  Expr out = cut.other_first ? DotLike(dot, repeated, other, x, side, swapped)
                             : DotLike(dot, x, side, repeated, other, swapped);
  std::vector<Instruction*> old = {dot};
  for (Instruction* i : cut.behind) {
    if (!i->Is(Opcode::Transpose)) {
      std::vector<Instruction*> operands;
      for (Instruction* o : i->operands())
        operands.push_back(o == old.back() ? out.get() : BroadcastTo(o->operand(0), out.shape().dims()).get());
      out = c->AddClone(i, Shape::Array(i->shape().type(), out.shape().dims()), operands);
    }
    old.push_back(i);
  }
  old.back()->ReplaceAllUsesWith(out.get());
  for (; !old.empty(); old.pop_back()) c->Remove(old.back());
}

}  // namespace

absl::StatusOr<bool> DotBatcher(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* dot : OfOpcode(c.get(), Opcode::Dot)) {
      const Cut cut = CutOf(dot);
      if (cut.operand < 0 || !ctx.Take()) continue;
      Batch(dot, cut);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
