// Random operations whose places are computed: dynamic slices and updates, gathers, scatters. Indices may lie outside,
// and an array may be written into itself.
#include <algorithm>

#include "tests/random/growth.h"

namespace kiln {
namespace {

// Each extent, part of it, or nothing.
Ints AnySizes(Growth& g, const Ints& dims) {
  Ints out;
  for (int64_t d : dims) out.push_back(g.Chance(25) ? d : g.Chance(5) ? 0 : d ? g.Between(1, d) : 0);
  return out;
}

std::optional<Expr> DynamicSlicePart(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  std::vector<Expr> starts;
  for (int64_t d = 0; d < x.shape().rank(); ++d) starts.push_back(g.Index(c));
  return DynamicSliceOf(x, starts, AnySizes(g, x.shape().dims()));
}

std::optional<Expr> DynamicUpdate(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  auto starts = [&] {
    std::vector<Expr> out;
    for (int64_t d = 0; d < x.shape().rank(); ++d) out.push_back(g.Index(c));
    return out;
  };
  const Ints sizes = AnySizes(g, x.shape().dims());
  // A part of the array written elsewhere into it, or the array into itself.
  Expr update = g.Chance(10) ? x : g.Chance(40) ? DynamicSliceOf(x, starts(), sizes) : g.Fit(c, x.type(), sizes);
  return UpdateOf(x, update, starts());
}

// The operand dimensions that indices address, and the slice of each dimension.
struct Windows {
  Ints indexed, sizes, collapsed;
  explicit Windows(Growth& g, const Ints& dims) : sizes(AnySizes(g, dims)) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (g.Chance(60)) indexed.push_back(static_cast<int64_t>(d));
      if (dims[d] > 0 && g.Chance(35)) {
        sizes[d] = 1;
        collapsed.push_back(static_cast<int64_t>(d));
      }
    }
    if (g.Chance(40)) std::shuffle(indexed.begin(), indexed.end(), g.rng);
  }
  // The extents of a window without what is collapsed.
  Ints Kept() const {
    Ints out;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (std::find(collapsed.begin(), collapsed.end(), static_cast<int64_t>(d)) == collapsed.end())
        out.push_back(sizes[d]);
    return out;
  }
};

// XLA:CPU takes index vectors of no numbers for no index vectors.
bool NotPortable(const Growth& g, const Windows& w) { return g.options.portable && w.indexed.empty(); }

// `count` index vectors, along dimension `vector` of the array.
Expr Indices(Growth& g, Computation* c, int64_t count, int64_t length, int64_t vector) {
  return g.Fit(c, PrimitiveType::S32, vector == 0 ? Ints{length, count} : Ints{count, length});
}

std::optional<Expr> GatherOf(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  const Windows w(g, x.shape().dims());
  if (NotPortable(g, w)) return std::nullopt;
  const int64_t count = g.Between(1, 5), vector = g.Between(0, 1);
  const Ints window = w.Kept();
  // The batch dimension stands in front of the window, behind it, or within.
  const int64_t at = g.Between(0, static_cast<int64_t>(window.size()));
  Ints dims = window, offset;
  dims.insert(dims.begin() + at, count);
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (d != at) offset.push_back(d);
  if (Product(dims) > g.most) return std::nullopt;
  Expr indices = Indices(g, c, count, static_cast<int64_t>(w.indexed.size()), vector);
  Instruction* i = c->Add(Opcode::Gather, Shape::Array(x.type(), dims), {x.get(), indices.get()});
  i->mutable_attrs().offset_dims = offset;
  i->mutable_attrs().collapsed_slice_dims = w.collapsed;
  i->mutable_attrs().start_index_map = w.indexed;
  i->mutable_attrs().index_vector_dim = vector;
  i->mutable_attrs().slice_sizes = w.sizes;
  return i;
}

std::optional<Expr> ScatterOf(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  x = g.Tame(x);
  const Windows w(g, x.shape().dims());
  if (NotPortable(g, w)) return std::nullopt;
  const Opcode op = g.Reducer(x.type());
  // Of updates that replace, no two may meet.
  const bool replace = g.Chance(30);
  const int64_t count = replace ? 1 : g.Between(1, 4), vector = g.Between(0, 1);
  Ints dims = w.Kept(), window_dims;
  dims.insert(dims.begin(), count);
  for (int64_t d = 1; d < static_cast<int64_t>(dims.size()); ++d) window_dims.push_back(d);
  if (Product(dims) > g.most) return std::nullopt;
  Expr updates = g.Fit(c, x.type(), dims);
  // The operand's own elements as updates of it.
  if (g.Chance(40) && dims.size() == x.shape().dims().size() + 1 && count == 1) {
    attr::Slices part;
    for (int64_t d : w.sizes) part.push_back({0, d, 1});
    Instruction* s = c->Add(Opcode::Slice, Shape::Array(x.type(), w.sizes), {x.get()});
    s->mutable_attrs().slice = part;
    updates = ReshapeTo(s, dims);
  }
  Expr indices = Indices(g, c, count, static_cast<int64_t>(w.indexed.size()), vector);
  Computation* f;
  if (replace) {
    f = g.module->AddComputation("replace");
    f->AddParameter(0, Shape::Scalar(x.type()), "old");
    f->set_root(f->AddParameter(1, Shape::Scalar(x.type()), "new"));
  } else {
    f = ScalarFunction(g.module, op, x.type());
  }
  Instruction* i =
      c->Add(Opcode::Scatter, Shape::Array(x.type(), x.shape().dims()), {x.get(), indices.get(), updates.get()});
  i->mutable_attrs().update_window_dims = window_dims;
  i->mutable_attrs().inserted_window_dims = w.collapsed;
  i->mutable_attrs().scatter_dims_to_operand_dims = w.indexed;
  i->mutable_attrs().index_vector_dim = vector;
  i->mutable_attrs().to_apply = f;
  return g.Tame(i);
}

}  // namespace

std::vector<Maker> IndexingMakers() {
  return {{4, DynamicSlicePart, true}, {5, DynamicUpdate, true}, {5, GatherOf, true}, {5, ScatterOf, true}};
}

}  // namespace kiln
