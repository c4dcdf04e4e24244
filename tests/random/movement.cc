// Random operations that move elements by static rules, at the edges of their attributes too.
#include <algorithm>

#include "tests/random/growth.h"

namespace kiln {
namespace {

std::optional<Expr> BroadcastOf(Growth& g, Computation*, Expr x) {
  Ints out = g.AnyDims(), map, result;
  const Ints dims = x.shape().dims();
  if (Product(out) == 0 && Product(dims) != 0) out.clear();
  size_t next = 0;
  for (int64_t d : dims) {
    while (next < out.size() && g.Chance(50)) result.push_back(out[next++]);
    map.push_back(static_cast<int64_t>(result.size()));
    result.push_back(d);
  }
  while (next < out.size()) result.push_back(out[next++]);
  if (Product(result) > g.most) return std::nullopt;
  return BroadcastTo(x, result, map);
}

std::optional<Expr> TransposeOf(Growth& g, Computation*, Expr x) {
  Ints order(x.shape().rank());
  for (int64_t d = 0; d < x.shape().rank(); ++d) order[d] = d;
  std::shuffle(order.begin(), order.end(), g.rng);
  return TransposeBy(x, order);
}

// Merges neighbours, or splits a dimension.
std::optional<Expr> ReshapeOf(Growth& g, Computation*, Expr x) {
  Ints out = x.shape().dims();
  const size_t rank = out.size();
  if (rank >= 2 && g.Chance(60)) {
    const size_t d = g.Pick(rank - 1);
    out[d] *= out[d + 1];
    out.erase(out.begin() + static_cast<int64_t>(d) + 1);
  } else {
    const size_t d = g.Pick(rank + 1);
    const bool even = d < rank && out[d] > 0 && out[d] % 2 == 0;
    if (even) out[d] /= 2;
    out.insert(out.begin() + static_cast<int64_t>(d), even ? 2 : 1);
  }
  return ReshapeTo(x, out);
}

std::optional<Expr> SlicePart(Growth& g, Computation* c, Expr x) {
  attr::Slices r;
  Ints out;
  for (int64_t d : x.shape().dims()) {
    const int64_t start = g.Between(0, d), limit = g.Chance(30) ? d : g.Between(start, d), stride = g.Between(1, 3);
    r.push_back({start, limit, stride});
    out.push_back((limit - start + stride - 1) / stride);
  }
  Instruction* i = c->Add(Opcode::Slice, Shape::Array(x.type(), out), {x.get()});
  i->mutable_attrs().slice = r;
  return i;
}

std::optional<Expr> PadOf(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  attr::Padding p;
  Ints out;
  for (int64_t d : x.shape().dims()) {
    const PadDim q{g.Between(-3, 4), g.Between(-3, 4), g.Chance(30) ? g.Between(1, 2) : 0};
    const int64_t extent = d + std::max<int64_t>(d - 1, 0) * q.interior + q.low + q.high;
    if (extent < 0) return std::nullopt;
    p.push_back(q);
    out.push_back(extent);
  }
  if (Product(out) > g.most) return std::nullopt;
  Instruction* i = c->Add(Opcode::Pad, Shape::Array(x.type(), out), {x.get(), g.Fit(c, x.type(), {}).get()});
  i->mutable_attrs().padding = p;
  return i;
}

std::optional<Expr> ConcatenateOf(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || 3 * x.shape().ElementCount() > g.most) return std::nullopt;
  std::vector<Expr> parts = {x};
  const int64_t more = g.Between(0, 2);
  for (int64_t k = 0; k < more; ++k) parts.push_back(g.Chance(30) ? x : g.Fit(c, x.type(), x.shape().dims()));
  return ConcatOf(parts, g.Between(0, x.shape().rank() - 1));
}

std::optional<Expr> ReverseOf(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  Instruction* i = c->Add(Opcode::Reverse, Shape::Array(x.type(), x.shape().dims()), {x.get()});
  Ints dims;
  for (int64_t d = 0; d < x.shape().rank(); ++d)
    if (g.Chance(50)) dims.push_back(d);
  i->mutable_attrs().dimensions = dims;
  return i;
}

std::optional<Expr> IotaNew(Growth& g, Computation* c, Expr) {
  const Ints dims = g.AnyDims();
  if (dims.empty()) return std::nullopt;
  return IotaOf(c, g.Chance(50) ? PrimitiveType::S32 : PrimitiveType::F32, dims,
                g.Between(0, static_cast<int64_t>(dims.size()) - 1));
}

}  // namespace

std::vector<Maker> MovementMakers() {
  return {{4, BroadcastOf, true}, {5, TransposeOf, true},   {5, ReshapeOf, true}, {5, SlicePart, true},
          {5, PadOf, true},       {4, ConcatenateOf, true}, {4, ReverseOf, true}, {2, IotaNew, true}};
}

}  // namespace kiln
