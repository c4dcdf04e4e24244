// Long reductions to few results become two: the first gives enough partial results for threads to share, the second
// combines these. Batch statistics, losses and norms of gradients are such.
//
// Of the dimensions that are reduced, those outermost in memory are left to the second. Where there is only one, an
// array that lies in memory is seen as parts x rest; one that is computed on the way is not, since what computes it
// would not fuse any more. Where a few elements that lie together are reduced along with what lies around them, as a
// group of channels in each pixel is, they come second: the first then adds whole vectors. What is split does not
// depend on the number of threads, so neither do results. Sums of floats are reassociated, as every vector does.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/bitcasts.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

constexpr int64_t kLong = 1 << 15;     // elements; fewer are reduced while threads wake
constexpr int64_t kLongest = 1 << 18;  // of predicates, that one thread looks through
constexpr int64_t kEnough = 16;        // units of work
constexpr int64_t kMostParts = 64, kLeastRest = 64;
constexpr int64_t kColumns =
    1024;  // results along the minor dimension that are a unit: a narrower strip of rows is no stream

Ints Reduced(const Instruction* i) {
  Ints dims = *i->attrs().dimensions;
  std::sort(dims.begin(), dims.end());
  return dims;
}

// The dimensions that the second reduction takes: the fewest that give enough parts; none if too little is left to the
// first.
Ints Outermost(const Instruction* i) {
  const Shape& in = i->operand(0)->shape();
  const Ints dims = Reduced(i);
  Ints out;
  int64_t parts = 1, all = 1;
  for (int64_t d : dims) all *= in.dim(d);
  for (size_t k = 0; k < dims.size() && parts < kEnough; ++k) {
    parts *= in.dim(dims[k]);
    out.push_back(dims[k]);
  }
  if (parts < kEnough || all / parts < kLeastRest) return {};
  return out;
}

// How many parts a dimension of `n` elements has; 0 if none fits.
int64_t PartsOf(int64_t n) {
  for (int64_t parts = kMostParts; parts >= kEnough; --parts)
    if (n % parts == 0 && n / parts >= kLeastRest) return parts;
  return 0;
}

// The one dimension that is reduced, if it can be seen as two; or -1.
int64_t Divisible(const Instruction* i) {
  const Instruction* x = i->operand(0);
  while (x->Is(Opcode::Bitcast)) x = x->operand(0);
  const bool in_memory = x->Is(Opcode::Parameter) || x->Is(Opcode::GetTupleElement) || x->Is(Opcode::Dot) ||
                         x->Is(Opcode::Convolution) || x->Is(Opcode::Constant);
  int64_t found = -1;
  for (int64_t d : Reduced(i)) {
    if (i->operand(0)->shape().dim(d) == 1) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return in_memory && found >= 0 && PartsOf(i->operand(0)->shape().dim(found)) > 0 ? found : -1;
}

int64_t Units(const Instruction* i) {
  const Shape& in = i->operand(0)->shape();
  const Ints& dims = *i->attrs().dimensions;
  const auto kept = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); };
  for (int64_t d = 0; d < in.rank(); ++d) {
    if (!kept(d) || in.dim(d) == 1) continue;
    return d == in.rank() - 1 ? (in.dim(d) + kColumns - 1) / kColumns : in.dim(d);
  }
  return 1;
}

// The innermost dimensions, if few elements of them are reduced beside others, and what is kept lies in between.
Ints Groups(const Instruction* i) {
  constexpr int64_t kMostTogether = 64, kLeastRow = 16, kLeastAround = 8;
  const Shape& in = i->operand(0)->shape();
  Ints dims = Reduced(i), inner;
  int64_t d = in.rank() - 1, together = 1, row = 1, around = 1;
  for (; d >= 0 && (in.dim(d) == 1 || (!dims.empty() && dims.back() == d)); --d) {
    if (dims.empty() || dims.back() != d) continue;
    inner.push_back(d);
    together *= in.dim(d);
    dims.pop_back();
  }
  for (; d >= 0 && (dims.empty() || dims.back() != d); --d) row *= in.dim(d);
  for (int64_t outer : dims) around *= in.dim(outer);
  const bool apart = together > 1 && together <= kMostTogether && row > 1 && row * together >= kLeastRow;
  return apart && around >= kLeastAround ? inner : Ints();
}

bool ForThreads(const Instruction* i) { return Units(i) < kEnough && (!Outermost(i).empty() || Divisible(i) >= 0); }

bool Wanted(const Instruction* i) {
  if (!i->Is(Opcode::Reduce) || i->operand_count() != 2) return false;
  const Shape& in = i->operand(0)->shape();
  if (in.HasDynamic() || !in.HasDefaultLayout() || in.ElementCount() < kLong) return false;
  const auto op = ReducerOf(i);
  // One thread has found an element that decides before others wake.
  if (in.type() == PrimitiveType::Pred && in.ElementCount() < kLongest && (op == Opcode::Or || op == Opcode::And))
    return false;
  if (!op || !InitialMayRepeat(*op, in.type(), i->operand(1)) || (Groups(i).empty() && !ForThreads(i))) return false;
  // A narrow sum is rounded once, at its end.
  return !IsFloat(in.type()) || ByteWidth(in.type()) >= 4 || *op == Opcode::Maximum || *op == Opcode::Minimum;
}

// One view for all reductions of an array, so that these share a loop.
Instruction* ViewOf(Instruction* x, const Shape& shape) {
  for (Instruction* u : x->users())
    if (u->Is(Opcode::Bitcast) && u->shape() == shape) return u;
  return BitcastTo(x, shape);
}

// `i` over a view of its array in which dimension `d` is parts x rest.
Instruction* Divided(Instruction* i, int64_t d) {
  Ints view = i->operand(0)->shape().dims(), dims;
  const int64_t parts = PartsOf(view[static_cast<size_t>(d)]);
  view[static_cast<size_t>(d)] /= parts;
  view.insert(view.begin() + d, parts);
  for (int64_t k : Reduced(i)) dims.push_back(k < d ? k : k + 1);
  dims.insert(dims.begin(), d);
  const PrimitiveType t = i->operand(0)->shape().type();
  return ReduceLike(i, {ViewOf(i->operand(0), LaidOut(t, view))}, dims, {i->shape()});
}

struct Two {
  Instruction *first, *second;
};
// `i` as a reduction of the other dimensions, and one of `last` behind it.
Two InTwo(Instruction* i, const Ints& last) {
  const auto among = [](const Ints& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  const Ints reduced = Reduced(i);
  Ints first, second, between;
  for (int64_t d = 0; d < i->operand(0)->shape().rank(); ++d) {
    if (among(reduced, d) && !among(last, d)) {
      first.push_back(d);
      continue;
    }
    if (among(last, d)) second.push_back(static_cast<int64_t>(between.size()));
    between.push_back(i->operand(0)->shape().dim(d));
  }
  Instruction* partial = ReduceLike(i, {i->operand(0)}, first, {LaidOut(i->shape().type(), between)});
  return {partial, ReduceLike(i, {partial}, second, {i->shape()})};
}

// `i` in two, so that threads share the first.
Instruction* Shared(Instruction* i) {
  const Ints outer = Outermost(i);
  if (!outer.empty()) return InTwo(i, outer).second;
  Instruction* divided = Divided(i, Divisible(i));
  Instruction* both = InTwo(divided, {(*divided->attrs().dimensions)[0]}).second;
  i->parent()->Remove(divided);
  return both;
}

}  // namespace

absl::StatusOr<bool> CpuReductionSplitter(Module& m, PassContext& ctx) {
  // What cpu-column-fusion took stays whole.
  const std::vector<Computation*> control = ControlComputations(m);
  const absl::flat_hash_set<const Computation*> outside(control.begin(), control.end());
  const auto wanted = [&](const Instruction* i) { return Wanted(i) && outside.contains(i->parent()); };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const Ints groups = Groups(i);
    if (groups.empty()) return Shared(i);
    const Two two = InTwo(i, groups);
    if (!ForThreads(two.first)) return two.second;
    two.first->ReplaceAllUsesWith(Shared(two.first));
    i->parent()->Remove(two.first);
    return two.second;
  });
}

}  // namespace kiln
