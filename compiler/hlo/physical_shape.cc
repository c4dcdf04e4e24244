#include "compiler/hlo/physical_shape.h"

#include <algorithm>

namespace kiln {
namespace {

// Dimensions with more than one element, in logical order, and what a reshape divides them into: runs of dimensions of
// either side that hold the same number of elements.
struct Runs {
  Ints from, to;  // run of each dimension; -1: of extent 1
};

Runs CommonRuns(const Shape& from, const Shape& to) {
  Runs r{Ints(from.rank(), -1), Ints(to.rank(), -1)};
  int64_t f = 0, t = 0, run = 0;
  while (f < from.rank() || t < to.rank()) {
    int64_t in = 1, out = 1;
    do {
      const bool takes_from = f < from.rank() && (in <= out || t == to.rank());
      const int64_t n = takes_from ? from.dim(f) : to.dim(t);
      if (n != 1) (takes_from ? r.from[f] : r.to[t]) = run;
      (takes_from ? in : out) *= n;
      ++(takes_from ? f : t);
    } while (in != out);
    ++run;
  }
  return r;
}

// Runs from the slowest to the fastest in memory; nothing if one is not together, in its own order.
bool RunsInMemory(const Shape& s, const Ints& runs, Ints* order) {
  Ints met;  // dimensions with more than one element, as they lie
  for (int64_t d : MajorToMinor(s))
    if (runs[d] >= 0) met.push_back(d);
  for (size_t k = 0; k < met.size(); ++k) {
    const int64_t run = runs[met[k]];
    if (!order->empty() && order->back() == run) {
      if (met[k] < met[k - 1]) return false;
      continue;
    }
    if (std::find(order->begin(), order->end(), run) != order->end()) return false;
    order->push_back(run);
  }
  return true;
}

}  // namespace

Ints MajorToMinor(const Shape& s) {
  const Ints minor = s.LayoutOrDefault().minor_to_major;
  return Ints(minor.rbegin(), minor.rend());
}

Ints InversePermutation(const Ints& permutation) {
  Ints out(permutation.size());
  for (size_t k = 0; k < permutation.size(); ++k) out[permutation[k]] = static_cast<int64_t>(k);
  return out;
}

Shape PhysicalShape(const Shape& s) {
  if (s.HasDefaultLayout()) return s;
  const Ints order = MajorToMinor(s);
  Shape out = Shape::Array(s.type(), Ints(order.size()));
  for (int64_t k = 0; k < s.rank(); ++k) {
    out.mutable_dims()[k] = s.dim(order[k]);
    out.set_dynamic(k, s.is_dynamic(order[k]));
  }
  Layout l = Layout::Descending(s.rank());
  l.extras = s.layout()->extras;
  out.set_layout(l);
  return out;
}

bool SameOrderInMemory(const Shape& a, const Shape& b) {
  return a.LayoutOrDefault().minor_to_major == b.LayoutOrDefault().minor_to_major;
}

bool ReshapeKeepsMemory(const Shape& from, const Shape& to) {
  if (from.ElementCount() == 0 || from.ElementCount() != to.ElementCount()) return false;
  const Runs runs = CommonRuns(from, to);
  Ints from_order, to_order;
  return RunsInMemory(from, runs.from, &from_order) && RunsInMemory(to, runs.to, &to_order) && from_order == to_order;
}

}  // namespace kiln
