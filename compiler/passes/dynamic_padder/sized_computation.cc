// Sizes of dynamic dimensions by instruction, and the masks that they ask for.
#include "compiler/passes/dynamic_padder/sized_computation.h"

#include <algorithm>

namespace kiln::padding {

const LeafSizes& SizedComputation::All(const Instruction* i) const {
  static const auto* none = new LeafSizes;
  const auto it = sizes_.find(i);
  return it == sizes_.end() ? *none : it->second;
}

const Sizes& SizedComputation::Of(const Instruction* i, const ShapeIndex& leaf) const {
  static const auto* none = new Sizes;
  const LeafSizes& all = All(i);
  const auto it = all.find(leaf);
  return it == all.end() ? *none : it->second;
}

void SizedComputation::SetAll(const Instruction* i, LeafSizes sizes) {
  for (auto it = sizes.begin(); it != sizes.end();) it = it->second.empty() ? sizes.erase(it) : std::next(it);
  if (sizes.empty())
    sizes_.erase(i);
  else
    sizes_[i] = std::move(sizes);
}

Expr SizedComputation::SizeOf(const Instruction* i, int64_t dim, const ShapeIndex& leaf) {
  const Sizes& sizes = Of(i, leaf);
  if (const auto it = sizes.find(dim); it != sizes.end()) return it->second;
  const Shape* s = &i->shape();
  for (int64_t k : leaf) s = &s->tuple()[k];
  return Int(s->dim(dim));
}

Instruction* SizedComputation::Masked(Instruction* x, const Ints& dims, Expr value) {
  Expr out = x;
  const Ints extents = x->shape().dims();
  for (int64_t d : dims) {
    const auto it = Of(x).find(d);
    if (it == Of(x).end()) continue;
    const Expr inside =
        CompareExpr(Direction::LT, IotaOf(c_, PrimitiveType::S32, extents, d), BroadcastTo(it->second, extents));
    out = SelectExpr(inside, out, value.shape().rank() == 0 ? BroadcastTo(value, extents) : value);
  }
  return out.get();
}

absl::Status SizedComputation::Replace(Instruction* i, Instruction* with, const LeafSizes& sizes) {
  if (with != i) {
    i->ReplaceAllUsesWith(with);
    sizes_.erase(i);
    c_->Remove(i);
  }
  SetAll(with, sizes);
  return absl::OkStatus();
}

DynamicDims DeclaredDims(const Shape& shape) {
  DynamicDims out;
  ForEachLeaf(shape, [&](const ShapeIndex& leaf, const Shape& s) {
    for (int64_t d = 0; d < s.rank(); ++d)
      if (s.is_dynamic(d)) out.insert({leaf, d});
  });
  return out;
}

DynamicDims KnownDims(const LeafSizes& sizes) {
  DynamicDims out;
  for (const auto& [leaf, of_leaf] : sizes)
    for (const auto& [dim, size] : of_leaf) out.insert({leaf, dim});
  return out;
}

void StripDynamic(Shape* s) {
  for (Shape& e : s->mutable_tuple()) StripDynamic(&e);
  for (int64_t d = 0; d < s->rank(); ++d)
    if (s->is_dynamic(d)) s->set_dynamic(d, false);
}

bool IsDynamicComputation(const Computation* c) {
  absl::flat_hash_set<const Computation*> seen = {c};
  std::vector<const Computation*> work = {c};
  while (!work.empty()) {
    const Computation* at = work.back();
    work.pop_back();
    for (const auto& i : at->instructions()) {
      if (i->Is(Opcode::SetDimensionSize) || i->Is(Opcode::GetDimensionSize) || i->Is(Opcode::DynamicReshape) ||
          i->shape().HasDynamic())
        return true;
      for (const Computation* callee : i->called())
        if (seen.insert(callee).second) work.push_back(callee);
    }
  }
  return false;
}

Ints AllDims(const Shape& s) {
  Ints out;
  for (int64_t d = 0; d < s.rank(); ++d) out.push_back(d);
  return out;
}

absl::Status RefuseDynamic(const SizedComputation& f, const Instruction* i) {
  for (const Instruction* o : i->operands())
    if (f.IsDynamic(o))
      return ErrorAt(i, "a dynamic dimension is not supported here", absl::StatusCode::kUnimplemented);
  return ErrorAt(i, "nothing says the size of its dynamic dimension", absl::StatusCode::kUnimplemented);
}

Instruction* ElementOf(Instruction* tuple, int64_t k) {
  return tuple->Is(Opcode::Tuple) ? tuple->operand(k) : PartOf(tuple, k).get();
}

void AddSizesToParameter(SizedComputation& f, Instruction* p, const DynamicDims& dims) {
  if (dims.empty()) return;
  const Shape old = p->shape();
  std::vector<Shape> shapes = old.IsTuple() ? old.tuple() : std::vector<Shape>{old};
  const int64_t values = static_cast<int64_t>(shapes.size());
  shapes.resize(shapes.size() + dims.size(), Shape::Scalar(PrimitiveType::S32));
  const std::vector<Instruction*> users = p->users();
  const bool root = p->IsRoot();
  p->mutable_shape() = Shape::Tuple(shapes);
  std::vector<Expr> parts;
  for (int64_t k = 0; k < values; ++k) parts.push_back(PartOf(p, k));
  Instruction* view = old.IsTuple() ? f.computation()->Add(Opcode::Tuple, old,
                                                           [&] {
                                                             std::vector<Instruction*> elements;
                                                             for (const Expr& e : parts) elements.push_back(e.get());
                                                             return elements;
                                                           }())
                                    : parts[0].get();
  for (Instruction* u : users) p->ReplaceUseWith(u, view);
  if (root) f.computation()->set_root(view);
  LeafSizes sizes;
  int64_t at = values;
  for (const auto& [leaf, dim] : dims) {
    ShapeIndex inside = leaf;
    if (!old.IsTuple()) inside.insert(inside.begin(), 0);
    sizes[inside][dim] = PartOf(p, at++).get();
  }
  f.SetAll(p, sizes);
}

Instruction* WithSizes(SizedComputation& f, Instruction* value, const DynamicDims& dims) {
  if (dims.empty()) return value;
  std::vector<Instruction*> parts;
  if (value->shape().IsTuple())
    for (size_t k = 0; k < value->shape().tuple().size(); ++k)
      parts.push_back(ElementOf(value, static_cast<int64_t>(k)));
  else
    parts.push_back(value);
  for (const auto& [leaf, dim] : dims) parts.push_back(f.SizeOf(value, dim, leaf).get());
  std::vector<Shape> shapes;
  for (const Instruction* p : parts) shapes.push_back(p->shape());
  return f.computation()->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
}

}  // namespace kiln::padding
