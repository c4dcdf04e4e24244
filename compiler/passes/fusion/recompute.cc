#include "compiler/passes/fusion/recompute.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

// A server's GPU at what programs reach of it.
constexpr double kLaunchUs = 1.5, kBytesPerUs = 2.4e6, kCachedBytesPerUs = 4.5e6, kOperationsPerUs = 1.2e7;
constexpr double kThreadsAtFullRate = 12000;  // fewer take as long as one does
constexpr double kCacheBytes = 16 << 20;      // of arrays that the next kernel still finds there

double Elements(const Shape& s) {
  if (s.IsArray()) return static_cast<double>(s.ElementCount());
  return s.IsTuple() && !s.tuple().empty() ? Elements(s.tuple()[0]) : 0;
}

double ElementBytes(const Shape& s) { return static_cast<double>(s.ByteSize()) / std::max(1.0, Elements(s)); }

double WindowOf(const Instruction* i) {
  double n = 1;
  for (const WindowDim& w : i->attrs().window.value_or(attr::Win())) n *= static_cast<double>(w.size);
  return n;
}

double Taps(const Instruction* convolution) {
  const Shape& kernel = convolution->operand(1)->shape();
  return Elements(kernel) / std::max(1.0, static_cast<double>(kernel.dims().back()));
}

// Elements of operand `k` for one of `i`.
double ReadsForOne(const Instruction* i, int64_t k) {
  const double own = std::max(1.0, Elements(i->shape())), operand = Elements(i->operand(k)->shape());
  switch (i->opcode()) {
    case Opcode::Reduce:
      return k < i->operand_count() / 2 ? operand / own : 0;
    case Opcode::ReduceWindow:
      return k < i->operand_count() / 2 ? WindowOf(i) : 0;
    case Opcode::Convolution:
      return Taps(i);
    case Opcode::Concatenate:
      return operand / own;
    case Opcode::Pad:
      return k == 0 ? std::min(1.0, operand / own) : 0;
    case Opcode::Gather:
      return k == 0 ? 1 : static_cast<double>(i->attrs().start_index_map->size());
    case Opcode::DynamicSlice:
      return k == 0 ? 1 : 0;
    case Opcode::Scatter:
      return k == i->operand_count() / 2 ? static_cast<double>(i->attrs().scatter_dims_to_operand_dims->size()) : 1;
    default:
      return 1;
  }
}

// Elements that the loop of a kernel with this root visits.
double Visited(const Instruction* root) {
  if (root->Is(Opcode::DynamicUpdateSlice)) return Elements(root->operand(1)->shape());
  if (root->Is(Opcode::Scatter)) return Elements(root->operand(root->operand_count() - 1)->shape());
  return Elements(root->shape());
}

// Threads that a kernel keeps busy: a reduction shares its outputs out.
double Threads(const Instruction* kernel) {
  const Instruction* root = RootOf(kernel);
  return std::max(1.0, root->Is(Opcode::Reduce) ? Elements(root->operand(0)->shape()) / 4 : Visited(root));
}

// Operations of one lane for one element, its operands apart.
double OperationsOf(const Instruction* x) {
  constexpr double kFunction = 20, kPower = 40, kDivision = 8, kPlace = 2, kReshape = 8, kGather = 8, kWindow = 4;
  const double wide = x->shape().IsArray() && InfoOf(x->shape().type()).bits > 32 ? 4 : 1;
  switch (x->opcode()) {
    case Opcode::Power:
      return wide * kPower;
    case Opcode::Reduce:
      return wide * kWindow * ReadsForOne(x, 0);
    case Opcode::ReduceWindow:
      return wide * kWindow * WindowOf(x);
    case Opcode::Convolution:
      return wide * kWindow * Taps(x);
    case Opcode::Gather:
      return kGather;
    case Opcode::Concatenate:
      return kPlace * static_cast<double>(x->operand_count());
    case Opcode::Bitcast:
    case Opcode::Reshape:
      return kReshape;
    default:
      if (x->HasTrait(Transcendental)) return wide * kFunction;
      if (x->HasTrait(Costly)) return wide * kDivision;
      return x->IsElementwise() ? wide : kPlace;
  }
}

double OperationsTime(double elements, double operations, double threads) {
  return elements * operations / (kOperationsPerUs * std::min(1.0, threads / kThreadsAtFullRate));
}

// Of reading `reads` elements of an array of this shape: each once from memory, what is read again from the cache.
double ReadTime(const Shape& s, double reads, bool cached) {
  const double once = std::min(reads, Elements(s));
  return ElementBytes(s) * (once / (cached ? kCachedBytesPerUs : kBytesPerUs) + (reads - once) / kCachedBytesPerUs);
}

}  // namespace

double ElementsEvaluated(const Instruction* c, const Instruction* p) {
  if (!c->Is(Opcode::Fusion)) {
    double most = 0;
    for (int64_t k = 0; k < c->operand_count(); ++k)
      if (c->operand(k) == p) most = std::max(most, Visited(c) * ReadsForOne(c, k));
    return most;
  }
  constexpr size_t kMix = 0x9e3779b97f4a7c15;
  const std::vector<Instruction*> order = (*c->attrs().calls)->PostOrder();
  // By the name of a place, how many elements are evaluated there.
  absl::flat_hash_map<const Instruction*, std::map<size_t, double>> places;
  const Instruction* root = order.back();
  if (!root->Is(Opcode::Tuple)) places[root] = {{0, Visited(root)}};
  for (const Instruction* output : root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>())
    places[output][output->Is(Opcode::Reduce) ? static_cast<size_t>(output->id()) : 0] = Visited(output);
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    if ((*i)->Is(Opcode::Tuple)) continue;
    const std::map<size_t, double> own = places[*i];
    for (int64_t k = 0; k < (*i)->operand_count(); ++k) {
      std::map<size_t, double>& of = places[(*i)->operand(k)];
      for (const auto& [place, elements] : own) {
        const size_t there = (*i)->IsElementwise() ? place : place * kMix + static_cast<size_t>((*i)->id() * 64 + k);
        double& n = of[there];
        n = std::max(n, elements * ReadsForOne(*i, k));
      }
      if (of.size() > kMostPlaces) return std::numeric_limits<double>::infinity();
    }
  }
  double sum = 0;
  for (int64_t k = 0; k < c->operand_count(); ++k)
    if (c->operand(k) == p)
      for (const auto& [place, elements] : places[(*c->attrs().calls)->parameter(k)]) sum += elements;
  return sum;
}

bool SavesTimeInside(const Instruction* x, const Instruction* p, const std::vector<Instruction*>& readers) {
  const double own = Elements(x->shape());
  double moved = own * ElementBytes(x->shape()) / kBytesPerUs;
  for (int64_t k = 0; k < x->operand_count(); ++k) {
    const Shape& s = x->operand(k)->shape();
    if (!x->operand(k)->Is(Opcode::Constant)) moved += ReadTime(s, own * ReadsForOne(x, k), false);
  }
  double apart = kLaunchUs + std::max(moved, OperationsTime(own, OperationsOf(x), own)), inside = 0;
  const bool cached = own * ElementBytes(x->shape()) <= kCacheBytes;
  for (const Instruction* u : readers) {
    const double n = ElementsEvaluated(u, p);
    apart += ReadTime(x->shape(), n, cached);
    inside += OperationsTime(n, OperationsOf(x) + (x == p ? 0 : OperationsOf(p)), Threads(u));
    for (int64_t k = 0; k < x->operand_count(); ++k) {
      const Instruction* o = x->operand(k);
      const bool shared = std::find(u->operands().begin(), u->operands().end(), o) != u->operands().end();
      if (!o->Is(Opcode::Constant)) inside += ReadTime(o->shape(), n * ReadsForOne(x, k), shared);
    }
  }
  return inside < apart;
}

}  // namespace kiln
