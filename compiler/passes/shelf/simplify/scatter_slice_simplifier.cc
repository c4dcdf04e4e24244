// A scatter of which only the front is read scatters into the front: updates behind it fall outside, where a scatter
// drops them. Between scatter and slice may stand elementwise operations.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// A slice that begins at 0 everywhere and is shorter than what it slices.
bool TakesFront(const Instruction* i) {
  if (!i->Is(Opcode::Slice) || i->shape().dims() == i->operand(0)->shape().dims()) return false;
  for (const SliceDim& s : *i->attrs().slice)
    if (s.start != 0 || s.stride != 1) return false;
  return true;
}

Shape Front(const Shape& of, const Ints& dims) {
  Shape s = of;
  s.mutable_dims() = dims;
  return s;
}

class FrontOfScatter {
 public:
  explicit FrontOfScatter(const Instruction* slice) : slice_(slice), dims_(slice->shape().dims()) {}

  // Whether there is a scatter behind the slice, and nothing else reads what lies between.
  bool Fits() {
    if (!Visit(slice_->operand(0))) return false;
    for (const Instruction* i : visited_)
      for (const Instruction* u : i->users())
        if (u != slice_ && !visited_.contains(u)) return false;
    return found_ && !visited_.contains(slice_->parent()->root());
  }

  Instruction* Build(Instruction* i) {
    if (const auto it = built_.find(i); it != built_.end()) return it->second;
    Computation* c = i->parent();
    Instruction*& out = built_[i];
    if (!visited_.contains(i)) return out = SliceOf(i, Ints(dims_.size(), 0), dims_).get();
    if (i->Is(Opcode::GetTupleElement)) return out = c->AddClone(i, Front(i->shape(), dims_), {Scatter(i->operand(0))});
    if (i->Is(Opcode::Scatter)) return out = Scatter(i);
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) operands.push_back(Build(o));
    return built_[i] = c->AddClone(i, Front(i->shape(), dims_), operands);
  }

 private:
  bool Visit(const Instruction* i) {
    if (!visited_.insert(i).second) return true;
    if (!i->control_predecessors().empty() || !i->control_successors().empty()) return false;
    if (i->Is(Opcode::Scatter)) return found_ = ScattersPoints(i);
    if (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Scatter)) return Visit(i->operand(0));
    for (const Instruction* o : i->operands())
      if (Leads(o) && !Visit(o)) return false;
    return true;
  }

  // Elementwise operations and scatters of the same extents; everything else is sliced where it is.
  bool Leads(const Instruction* i) const {
    if (!i->shape().IsArray() || i->shape().dims() != slice_->operand(0)->shape().dims()) return false;
    return i->Is(Opcode::Scatter) || (i->IsElementwise() && i->operand_count() > 0) ||
           (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Scatter));
  }

  // Along each dimension that is cut, an update is one element: it lies inside or outside as a whole.
  bool ScattersPoints(const Instruction* i) const {
    const Attributes& a = i->attrs();
    const Instruction* updates = i->operand(i->operand_count() - 1);
    if (a.input_batching_dims && !a.input_batching_dims->empty()) return false;
    size_t window = 0;
    for (int64_t d = 0; d < static_cast<int64_t>(dims_.size()); ++d) {
      const Ints inserted = a.inserted_window_dims.value_or(Ints());
      const bool is_inserted = std::find(inserted.begin(), inserted.end(), d) != inserted.end();
      const int64_t extent = is_inserted ? 1 : updates->shape().dim((*a.update_window_dims)[window++]);
      if (dims_[static_cast<size_t>(d)] != slice_->operand(0)->shape().dim(d) && extent != 1) return false;
    }
    return true;
  }

  Instruction* Scatter(Instruction* i) {
    if (const auto it = scatters_.find(i); it != scatters_.end()) return it->second;
    std::vector<Instruction*> operands = i->operands();
    for (int64_t k = 0; k < i->operand_count() / 2; ++k)
      operands[static_cast<size_t>(k)] = SliceOf(i->operand(k), Ints(dims_.size(), 0), dims_).get();
    Shape s = i->shape();
    if (s.IsTuple())
      for (Shape& part : s.mutable_tuple()) part = Front(part, dims_);
    else
      s = Front(s, dims_);
    return scatters_[i] = i->parent()->AddClone(i, s, operands);
  }

  const Instruction* slice_;
  const Ints dims_;
  bool found_ = false;
  absl::flat_hash_set<const Instruction*> visited_;
  std::map<const Instruction*, Instruction*> built_, scatters_;
};

bool Wanted(const Instruction* i) {
  if (!TakesFront(i) || i->shape().HasDynamic()) return false;
  const Instruction* x = i->operand(0);
  const bool leads = x->Is(Opcode::Scatter) || (x->IsElementwise() && x->operand_count() > 0) ||
                     (x->Is(Opcode::GetTupleElement) && x->operand(0)->Is(Opcode::Scatter));
  return leads && FrontOfScatter(i).Fits();
}

}  // namespace

absl::StatusOr<bool> ScatterSliceSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    FrontOfScatter front(i);
    front.Fits();
    return front.Build(i->operand(0));
  });
}

}  // namespace kiln
