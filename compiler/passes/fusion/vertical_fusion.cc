#include "compiler/passes/fusion/vertical_fusion.h"

#include <algorithm>

#include "compiler/hlo/tuning.h"
#include "compiler/hlo/uses.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/fusion/joins.h"
#include "compiler/passes/fusion/recompute.h"

namespace kiln {
namespace {

// Values that a loop can compute at any index.
bool FusibleProducer(const Instruction* i) {
  if (!i->shape().IsArray() || i->shape().HasDynamic()) return false;
  if (i->Is(Opcode::Constant)) return i->shape().rank() == 0;
  return i->Is(Opcode::Bitcast) || InfoOf(i->opcode()).lowering == Lowering::Elemental;
}

// Elements of the windows of a reduce-window; 0 for anything else, and where windows have results of several arrays.
int64_t WindowElements(const Instruction* i) {
  if (!i->Is(Opcode::ReduceWindow) || !i->shape().IsArray() || i->shape().HasDynamic()) return 0;
  int64_t n = 1;
  for (const WindowDim& w : i->attrs().window.value_or(attr::Win())) n *= w.size;
  return n;
}

// Whether no element is in two windows.
bool WindowsAreApart(const Instruction* i) {
  const attr::Win window = i->attrs().window.value_or(attr::Win());
  return std::all_of(window.begin(), window.end(),
                     [](const WindowDim& w) { return w.DilatedSize() <= w.stride && w.lhs_dilate == 1; });
}

// Elements that each result of a reduction of one array is made of.
int64_t Reduced(const Instruction* i) {
  return i->operand(0)->shape().ElementCount() / std::max<int64_t>(1, i->shape().ElementCount());
}

// Products that an output of a convolution adds, where no product of matrices computes it; 0 for anything else.
int64_t Taps(const Instruction* i) {
  if (!i->Is(Opcode::Convolution) || IsTunableProduct(i) || !i->shape().HasDefaultLayout()) return 0;
  const Shape& kernel = i->operand(1)->shape();
  return kernel.ElementCount() / std::max<int64_t>(1, kernel.dims().back());
}

bool Expensive(const Instruction* i) {
  return i->HasTrait(Transcendental) || i->HasTrait(Costly) || i->Is(Opcode::ReduceWindow) || i->Is(Opcode::Gather) ||
         i->Is(Opcode::Convolution) || i->Is(Opcode::Reduce);
}

// Loops over these read their operand elements through an element function.
bool FusibleConsumer(const Instruction* i) {
  if (i->shape().HasDynamic()) return false;
  if (FusibleProducer(i) && !i->Is(Opcode::Bitcast) && !i->Is(Opcode::Constant)) return true;
  switch (i->opcode()) {
    case Opcode::Reduce:
    case Opcode::Concatenate:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Scatter:
      return true;
    case Opcode::Fusion:
      return !IsCustomFusion(i);
    default:
      return false;
  }
}

// Windows that a gather takes.
int64_t PlacesOf(const Instruction* gather) {
  const Shape& indices = gather->operand(1)->shape();
  const int64_t dim = *gather->attrs().index_vector_dim;
  return indices.ElementCount() / (dim < indices.rank() ? std::max<int64_t>(1, indices.dim(dim)) : 1);
}

class Fuser {
 public:
  Fuser(Module& m, PassContext& ctx, const FusionLimits& limits) : m_(m), ctx_(ctx), limits_(limits) {}

  bool Run() {
    for (Computation* c : ControlComputations(m_)) {
      RunOn(c);
      if (limits_.pooled) TakeWindows(c);
      TakeConstants(c);
    }
    return changed_;
  }

 private:
  // How many times the consumer reads each element of operand `p`, at most (1 for a straight loop), and whether any use
  // of it is at an index where recomputing is wasteful. `columns`: that the consumer computes side by side, from what
  // it reads once for all.
  static bool ReadsOnce(const Instruction* consumer, const Instruction* p, int64_t columns = 1) {
    auto direct = [&](const Instruction* user, const Instruction* value) {
      if (user->Is(Opcode::Broadcast))
        return user->shape().ElementCount() <= value->shape().ElementCount() || AddsColumns(user, columns);
      if (user->Is(Opcode::Gather)) {
        const int64_t reads = user->shape().ElementCount();
        return user->operand(0) == value ? reads <= value->shape().ElementCount() : reads <= PlacesOf(user);
      }
      if (user->Is(Opcode::Scatter)) {
        const Instruction* last = user->operand(user->operand_count() - 1);
        return user->operand(user->operand_count() / 2) != value ||
               last->shape().ElementCount() <= value->shape().ElementCount();
      }
      if (user->Is(Opcode::Pad)) return user->operand(0) != value || !LeavesHoles(user);
      if (user->Is(Opcode::DynamicUpdateSlice)) return true;
      if (user->Is(Opcode::DynamicSlice)) return user->operand(0) == value;
      if (user->Is(Opcode::Convolution)) return false;
      return !user->Is(Opcode::ReduceWindow) || user->operand(0) != value || WindowsAreApart(user);
    };
    if (!consumer->Is(Opcode::Fusion)) return direct(consumer, p);
    const Computation* f = *consumer->attrs().calls;
    for (int64_t k = 0; k < consumer->operand_count(); ++k) {
      if (consumer->operand(k) != p) continue;
      // On every path from the parameter to the root the product of growth must stay one.
      if (!EveryUseKeeps(
              f->parameter(k), [](const Instruction*) { return false; }, direct))
        return false;
    }
    return true;
  }

  // Whether all that a broadcast adds is so many columns.
  static bool AddsColumns(const Instruction* broadcast, int64_t columns) {
    const Ints dims = broadcast->attrs().dimensions.value_or(Ints());
    const int64_t rank = broadcast->shape().rank();
    if (columns == 1 || static_cast<int64_t>(dims.size()) != rank - 1 || broadcast->shape().dims().back() != columns)
      return false;
    for (int64_t d = 0; d < rank - 1; ++d)
      if (dims[static_cast<size_t>(d)] != d) return false;
    return true;
  }

  int64_t ColumnsOf(const Instruction* consumer) const {
    constexpr int64_t kLeastReduced = 16;
    const Instruction* r = RootOf(consumer);
    if (limits_.columns == 1 || !r->Is(Opcode::Reduce) || r->attrs().dimensions->empty()) return 1;
    const Ints& reduced = *r->attrs().dimensions;
    const Shape& in = r->operand(0)->shape();
    const int64_t minor = in.rank() - 1, last = *std::max_element(reduced.begin(), reduced.end());
    return last != minor && in.dim(minor) <= limits_.columns && in.dim(last) >= kLeastReduced ? in.dim(minor) : 1;
  }

  // Whether the loop of `c` can compute `p`, and should where `p` has no other reader. kDear: it can, but would compute
  // too much too often by the rules for CPUs.
  enum class Verdict { kNo, kDear, kYes };

  Verdict Judge(const Instruction* p, const Instruction* c) {
    // On GPUs windows of several arrays, as of a pooling's gradient, compute what costs nothing.
    const bool windows = c->Is(Opcode::ReduceWindow) && (MayBeProducer(c) || (limits_.window && c->shape().IsTuple()));
    const bool consumer = FusibleConsumer(c) || windows;
    if (!consumer || !p->control_successors().empty() || !p->control_predecessors().empty()) return Verdict::kNo;
    if (p->Is(Opcode::Fusion) || ReadsWhatIsUpdated(p, c)) return Verdict::kNo;
    if (IsFull(c, p)) return Verdict::kNo;
    if (c->operand_count() + p->operand_count() > limits_.operands) return Verdict::kNo;
    const size_t most = MostEvaluations(p), evaluations = p->shape().rank() == 0 ? 0 : Evaluations(c, p, most);
    const bool few = evaluations <= most;
    if (p->Is(Opcode::Bitcast) || p->Is(Opcode::Reshape)) {
      if (DegenerateBitcast(p) || (limits_.reshapes && (JoinsLoops(p, c) || JoinsReduction(p, c))))
        return Verdict::kYes;
      return few && ReshapesProducer(p) && Judge(p->operand(0), c) != Verdict::kNo ? Verdict::kDear : Verdict::kNo;
    }
    if (p->Is(Opcode::Pad) && c->Is(Opcode::Reduce)) return Verdict::kNo;
    if (p->Is(Opcode::Transpose) && p->operand(0)->shape().ElementCount() > 1024 && !TransposeFuses(p, c))
      return Verdict::kNo;
    if (p->Is(Opcode::Concatenate) && p->operand_count() > 4) return Verdict::kNo;
    if (!few) return Verdict::kNo;
    return IsCheap(p, c) && evaluations <= kMostEvaluations ? Verdict::kYes : Verdict::kDear;
  }

  // Whether fusion `c` has grown too large for `p`. What is the same everywhere, or a place, is a register or none in
  // the loop, however large that is; in memory it would be an array to write and to read.
  bool IsFull(const Instruction* c, const Instruction* p) const {
    if (!c->Is(Opcode::Fusion) || p->Is(Opcode::Iota) || p->Is(Opcode::Constant)) return false;
    // A scalar that is computed would need a kernel of its own.
    if (p->Is(Opcode::Broadcast) && p->operand(0)->shape().rank() == 0 && p->operand(0)->operand_count() == 0)
      return false;
    const int64_t most = p->users().size() == 1 ? std::max(limits_.alone, limits_.instructions) : limits_.instructions;
    return (*c->attrs().calls)->instruction_count() > most;
  }

  // At how many places a loop may evaluate `p`. A GPU computes fewer elements than it has lanes no faster: what reads
  // them has time to compute them at more places, as levels of an associative scan do, unless that is most elements
  // over and over.
  size_t MostEvaluations(const Instruction* p) const {
    constexpr int64_t kFew = 8192;
    const int64_t n = p->shape().ElementCount();
    return limits_.recompute && n <= kFew && n >= static_cast<int64_t>(kMostPlaces) ? kMostPlaces : kMostEvaluations;
  }

  // Updated or scattered-into arrays are worked on in place: they stay whole. On a CPU places of a scatter do, too:
  // they are read again for each element of an update.
  bool ReadsWhatIsUpdated(const Instruction* p, const Instruction* c) const {
    const Instruction* root = RootOf(c);
    const auto in_place_operand = [&](const Instruction* v) {
      if (root->Is(Opcode::DynamicUpdateSlice)) return root->operand(0) == v;
      if (root->Is(Opcode::Scatter))
        for (int64_t k = 0; k < root->operand_count() / 2 + (limits_.recompute ? 0 : 1); ++k)
          if (root->operand(k) == v) return true;
      return false;
    };
    const bool fused = c->Is(Opcode::Fusion);
    for (int64_t k = 0; k < c->operand_count(); ++k) {
      const Instruction* updated = c->operand(k);
      if (!in_place_operand(fused ? (*c->attrs().calls)->parameter(k) : updated)) continue;
      if (updated == p || ReadsBehind(p, updated)) return true;
    }
    return false;
  }

  bool IsCheap(const Instruction* p, const Instruction* c) const {
    const bool reads_once = ReadsOnce(c, p, ColumnsOf(c));
    // An element of a concatenation is found by comparing its place with those of the operands: on a CPU that pays only
    // where a window of it is taken, as rolling an array does, or where the place is known, as in indices of a gather,
    // or where the loop ends wherever arrays meet.
    if (p->Is(Opcode::Concatenate) && !FusesJoined(c, p, reads_once)) return false;
    if (p->Is(Opcode::Pad) && limits_.joins && !FusesPadded(c, p)) return false;
    if ((Expensive(p) && !reads_once) || p->Is(Opcode::Reduce)) return false;
    if (!reads_once && HoldsWindow(c))
      return p->Is(Opcode::Broadcast) || p->Is(Opcode::Iota) || p->Is(Opcode::Constant) ||
             (limits_.window && p->Is(Opcode::Pad));
    // Anything but a broadcast or iota read many times over an inflating consumer is better kept, unless tiny work:
    // cheap elementwise over small operands pays, for LLVM hoists it out of the inner loop where it does not vary.
    return reads_once || p->Is(Opcode::Broadcast) || p->Is(Opcode::Iota) || p->Is(Opcode::Constant) ||
           p->shape().ElementCount() == 1 || p->operand_count() <= 2;
  }

  // A reshape of what nothing else reads and a loop can compute.
  bool ReshapesProducer(const Instruction* reshape) const {
    const Instruction* x = reshape->operand(0);
    return limits_.reshapes && limits_.recompute && !x->Is(Opcode::Constant) && !x->Is(Opcode::Bitcast) &&
           MayBeProducer(x) && x->users().size() == 1 && x->shape().type() == reshape->shape().type() &&
           x->shape().HasDefaultLayout() && reshape->shape().HasDefaultLayout();
  }

  // A reshape between two loops that visit the same elements in the same order: they become one, and what lies between
  // them needs no memory.
  static bool JoinsLoops(const Instruction* reshape, const Instruction* c) {
    const Instruction *x = reshape->operand(0), *root = RootOf(c);
    const bool elementwise = root->IsElementwise() && root->shape().IsArray() &&
                             root->shape().ElementCount() == reshape->shape().ElementCount();
    return elementwise && x->IsElementwise() && x->operand_count() > 0 && x->users().size() == 1 &&
           reshape->users().size() == 1 && x->shape().type() == reshape->shape().type() &&
           x->shape().HasDefaultLayout() && reshape->shape().HasDefaultLayout() && ReadsOnce(c, reshape);
  }

  // A reshape between a loop and the reduction of its elements, as grouped and split reductions have it, or between
  // places and the windows that choose among them.
  static bool JoinsReduction(const Instruction* reshape, const Instruction* c) {
    const Instruction *x = reshape->operand(0), *root = RootOf(c);
    const bool free = x->Is(Opcode::Iota) || x->Is(Opcode::Broadcast);
    const bool loop = (x->IsElementwise() || x->Is(Opcode::Pad)) && x->operand_count() > 0 && x->users().size() == 1;
    const bool joins = root->Is(Opcode::Reduce) ? (free || loop) && ReadsOnce(c, reshape)
                                                : root->Is(Opcode::ReduceWindow) && x->Is(Opcode::Iota);
    return joins && x->shape().type() == reshape->shape().type() && x->shape().HasDefaultLayout() &&
           reshape->shape().HasDefaultLayout();
  }

  static bool HoldsWindow(const Instruction* c) {
    const auto walks = [](const Instruction* i) { return i->Is(Opcode::ReduceWindow) || i->Is(Opcode::Convolution); };
    if (!c->Is(Opcode::Fusion)) return walks(c);
    for (const auto& i : (*c->attrs().calls)->instructions())
      if (walks(i.get())) return true;
    return false;
  }

  bool MayBeProducer(const Instruction* i) const {
    if (const int64_t window = WindowElements(i)) return window <= limits_.window;
    if (const int64_t taps = Taps(i)) return taps <= limits_.taps;
    if (i->Is(Opcode::Reduce)) return limits_.recompute && i->shape().IsArray() && Reduced(i) <= limits_.window;
    return FusibleProducer(i);
  }

  bool FusesJoined(const Instruction* c, const Instruction* p, bool reads_once) const {
    return TakesWindow(c, p) || NamesPlaces(c, p) || (limits_.concatenations && reads_once) ||
           (limits_.joins && (reads_once || GathersFew(c, p)) && Meetings(c) + Meetings(p) <= limits_.joins &&
            JoinsPieces(p) && std::none_of(p->operands().begin(), p->operands().end(), Expensive) && ReadsInOrder(c));
  }

  // To ask of a narrow element whether it is padding is dearer than to write it and read it again, where rows have
  // holes or blocks of few elements are turned.
  static bool FusesPadded(const Instruction* c, const Instruction* p) {
    constexpr int64_t kFew = 16;
    if (ByteWidth(p->shape().type()) >= kNarrow || !OnlyMoves(c)) return true;
    const Instruction* r = RootOf(c);
    if (r->Is(Opcode::Transpose) && !KeepsRows(r) && r->shape().dims().back() < kFew) return false;
    return !LeavesHolesInRows(p) || TakesWindow(c, p);
  }

  // Bytes of elements that are as dear to ask for as to move.
  static constexpr int64_t kNarrow = 4;

  // Whether all that the consumer reads of `p`, a concatenation, is the places of a gather: whose number is read
  // where is then known.
  static bool NamesPlaces(const Instruction* c, const Instruction* p) {
    const auto names = [&](const Instruction* user, const Instruction* value) {
      return user->Is(Opcode::Gather) && user->operand(1) == value && user->operand(0) != value &&
             *user->attrs().index_vector_dim == (*p->attrs().dimensions)[0] && ReadsOnce(user, value);
    };
    if (!c->Is(Opcode::Fusion)) return names(c, p);
    const Computation* f = *c->attrs().calls;
    for (int64_t k = 0; k < c->operand_count(); ++k)
      if (c->operand(k) == p)
        for (const Instruction* u : f->parameter(k)->users())
          if (!names(u, f->parameter(k))) return false;
    return true;
  }

  // The consumer reads no more than half of `p`, and only through a window.
  static bool TakesWindow(const Instruction* c, const Instruction* p) {
    const auto window = [&](const Instruction* user) {
      return (user->Is(Opcode::DynamicSlice) || user->Is(Opcode::Slice)) &&
             user->shape().ElementCount() * 2 <= p->shape().ElementCount();
    };
    if (!c->Is(Opcode::Fusion)) return window(c);
    const Computation* f = *c->attrs().calls;
    for (int64_t k = 0; k < c->operand_count(); ++k)
      if (c->operand(k) == p)
        for (const Instruction* u : f->parameter(k)->users())
          if (!window(u)) return false;
    return true;
  }

  // Whether `p`, or what would be fused into it, reads `array`. A loop that overwrites the array must not: it would see
  // some elements old and some new. Fusing only a part of what computes an update would not help either: all that
  // reads the array would stay behind, each in memory of its own.
  static bool ReadsBehind(const Instruction* p, const Instruction* array) {
    constexpr size_t kFar = 100;
    std::vector<const Instruction*> work = {p};
    absl::flat_hash_set<const Instruction*> seen;
    while (!work.empty() && seen.size() < kFar) {
      const Instruction* i = work.back();
      work.pop_back();
      if (!seen.insert(i).second) continue;
      for (const Instruction* o : i->operands()) {
        if (o == array) return true;
        if (FusibleProducer(o)) work.push_back(o);
      }
    }
    return false;
  }

  // Strided reads inside a reduction or a second transpose are worse than a tiled transpose of their own.
  // Loops that end where arrays meet walk rows, too.
  bool TransposeFuses(const Instruction* p, const Instruction* c) const {
    const Instruction* r = RootOf(c);
    if (r->Is(Opcode::Reduce) || r->Is(Opcode::Concatenate)) return false;
    constexpr int64_t kMany = 2;  // of a part elements are read apart
    if (limits_.joins && !KeepsRows(p) && OnlyMoves(c)) {
      const bool narrow = ByteWidth(p->shape().type()) < kNarrow;
      if (r->Is(Opcode::Broadcast) || (r->Is(Opcode::Pad) && narrow)) return false;
    }
    if (!c->Is(Opcode::Fusion) || KeepsRows(p) || r->shape().IsTuple()) return true;
    if (r->shape().ElementCount() * kMany <= p->shape().ElementCount()) return true;
    const auto& all = (*c->attrs().calls)->instructions();
    return std::none_of(all.begin(), all.end(), [](const auto& i) { return i->Is(Opcode::Concatenate); });
  }

  bool JoinsAll(const Instruction* p, const std::vector<Instruction*>& users) {
    bool yes = true;
    for (const Instruction* u : users) {
      const Verdict v = Judge(p, u);
      if (v == Verdict::kNo || (v == Verdict::kDear && !limits_.recompute)) return false;
      yes = yes && v == Verdict::kYes;
    }
    if (yes && (users.size() == 1 || IsCheapForAll(p, users))) return true;
    const bool reshape = p->Is(Opcode::Bitcast) || p->Is(Opcode::Reshape);
    const Instruction* x = reshape ? p->operand(0) : p;
    return limits_.recompute && !ReadsChangingState(x) && SavesTimeInside(x, p, users);
  }

  // Whether `p` reads a large array that the loop around it replaces. What reads the old array elsewhere than at the
  // place that it writes cannot write the new one over it: the loop would copy it.
  static bool ReadsChangingState(const Instruction* p) {
    constexpr int64_t kCopiedForNothing = 1 << 16;
    const Instruction* root = p->parent()->root();
    return root->Is(Opcode::Tuple) &&
           std::any_of(p->operands().begin(), p->operands().end(), [&](const Instruction* o) {
             if (!o->Is(Opcode::GetTupleElement) || !o->operand(0)->Is(Opcode::Parameter)) return false;
             const auto k = static_cast<size_t>(*o->attrs().tuple_index);
             return root->shape() == o->operand(0)->shape() && root->operands()[k] != o && o->shape().IsArray() &&
                    o->shape().ByteSize() > kCopiedForNothing;
           });
  }

  // Duplicated chains grow exponentially; a value with several consumers is fused only when it is nearly free, or when
  // it is made of little data, or is cheap and made of one array beside such data: computing it again then costs less
  // memory traffic than keeping it.
  bool IsCheapForAll(const Instruction* p, const std::vector<Instruction*>& users) const {
    if (Expensive(p)) return false;
    const bool free = p->Is(Opcode::Broadcast) || p->Is(Opcode::Iota) || p->Is(Opcode::Constant) ||
                      p->Is(Opcode::Convert) || p->Is(Opcode::Bitcast) || p->Is(Opcode::Slice) ||
                      p->Is(Opcode::Compare) || p->Is(Opcode::Reshape) || p->shape().ElementCount() <= 16;
    int64_t arrays = 0, parts = 0;  // and what is computed anew in every reader, if it is computed
    for (const Instruction* o : p->operands()) {
      const bool made = o->Is(Opcode::Broadcast) || o->Is(Opcode::Iota) || o->Is(Opcode::Constant);
      arrays += !made && o->shape().ElementCount() * 8 > p->shape().ElementCount();
      const Instruction* source = o->Is(Opcode::Broadcast) ? o->operand(0) : o;
      parts += !o->Is(Opcode::Iota) && source->shape().ElementCount() * 64 > p->shape().ElementCount();
    }
    const bool one_array = limits_.one_array && p->IsElementwise() && arrays == 1 && parts == 1;
    const bool again = users.size() <= 4 && (arrays == 0 || one_array);
    return free || again || (users.size() <= 3 && p->operand_count() <= 1) || OneReadsAll(p, users);
  }

  // Whether all readers but one, and few of them, take only elements here and there, as a diagonal does.
  bool OneReadsAll(const Instruction* p, const std::vector<Instruction*>& users) const {
    constexpr double kLeastShare = 1.0 / 64;
    constexpr size_t kMostReaders = 4;
    if (!limits_.one_array || !p->IsElementwise() || users.size() > kMostReaders) return false;
    const double few = kLeastShare * static_cast<double>(p->shape().ElementCount());
    return std::count_if(users.begin(), users.end(),
                         [&](const Instruction* u) { return ElementsEvaluated(u, p) > few; }) <= 1;
  }

  void RunOn(Computation* c) {
    std::vector<Instruction*> order = c->PostOrder();
    std::reverse(order.begin(), order.end());
    absl::flat_hash_set<Instruction*> removed;
    for (Instruction* p : order) {
      if (removed.contains(p) || p->IsRoot() || p->users().empty() || !MayBeProducer(p) || p->Is(Opcode::Constant))
        continue;
      const std::vector<Instruction*> users = p->users();
      if (!JoinsAll(p, users) || !ctx_.Take()) continue;
      for (Instruction* u : users) {
        if (!u->Is(Opcode::Fusion)) removed.insert(u);
        FuseInto(p, u);
      }
      c->Remove(p);
      removed.insert(p);
      changed_ = true;
    }
  }

  // Loops go on with the windows that they alone read, when all else is fused: what such a loop reads beside its window
  // are arrays in memory, as they lie or repeated.
  void TakeWindows(Computation* c) {
    absl::flat_hash_set<Instruction*> removed;
    for (Instruction* p : c->PostOrder()) {
      if (removed.contains(p) || p->IsRoot() || p->users().size() != 1) continue;
      Instruction* u = p->users()[0];
      if (!IsPooledBy(p, u) || !ctx_.Take()) continue;
      if (!u->Is(Opcode::Fusion)) removed.insert(u);
      FuseInto(p, u);
      c->Remove(p);
      changed_ = true;
    }
  }

  bool IsPooledBy(const Instruction* p, const Instruction* u) const {
    const int64_t elements = WindowElements(p);
    if (elements == 0 || elements > limits_.pooled) return false;
    for (const WindowDim& w : *p->attrs().window)
      if (w.lhs_dilate != 1) return false;
    for (const Instruction* i : {p, u})
      if (!i->shape().IsArray() || !i->shape().HasDefaultLayout() || i->shape().HasDynamic() ||
          !i->control_successors().empty() || !i->control_predecessors().empty())
        return false;
    if (p->shape().dims() != u->shape().dims() || !RootOf(u)->IsElementwise()) return false;
    if (!u->Is(Opcode::Fusion)) return true;
    const auto& all = (*u->attrs().calls)->instructions();
    return !IsCustomFusion(u) && std::all_of(all.begin(), all.end(), [](const auto& i) {
      const Instruction* leaf = i->Is(Opcode::Broadcast) ? i->operand(0) : i.get();
      return i->IsElementwise() || leaf->Is(Opcode::Parameter) || leaf->Is(Opcode::Constant);
    });
  }

  // Scalar constants become the fusions' own. By themselves they make none: fusion-wrapper takes them along.
  void TakeConstants(Computation* c) {
    for (Instruction* p : c->PostOrder()) {
      if (!p->Is(Opcode::Constant) || p->IsRoot() || !FusibleProducer(p)) continue;
      for (Instruction* u : std::vector<Instruction*>(p->users())) {
        if (!u->Is(Opcode::Fusion) || Judge(p, u) != Verdict::kYes || !ctx_.Take()) continue;
        FuseInto(p, u);
        changed_ = true;
      }
      if (p->users().empty() && p->control_predecessors().empty() && p->control_successors().empty()) c->Remove(p);
    }
  }

  Module& m_;
  PassContext& ctx_;
  const FusionLimits& limits_;
  bool changed_ = false;
};

}  // namespace

bool FuseVertically(Module& m, PassContext& ctx, const FusionLimits& limits) { return Fuser(m, ctx, limits).Run(); }

}  // namespace kiln
