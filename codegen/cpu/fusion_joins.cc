// Fusions that read joined arrays, as rolled arrays and those with a neighbour's rows are.
//
// The loop of the minor dimension ends wherever one of the arrays follows another. Between such places each element is
// known to be of one array, comparisons are gone, and loads are of whole vectors.
#include <set>

#include "codegen/cpu/fusion.h"

namespace kiln::cpu {
namespace {

constexpr size_t kMostCuts = 12;  // each is one more loop of code

class Joins {
 public:
  Joins(int64_t minor, int64_t extent) : minor_(minor), extent_(extent) {}

  // Element k of the root along the minor dimension is element k + offset of `i`.
  void Add(const Instruction* i, int64_t offset) {
    if (!seen_.insert({i, offset}).second || seen_.size() > kMostPlaces) return;
    if (i->IsElementwise()) {
      for (const Instruction* o : i->operands())
        if (o->shape().rank() == i->shape().rank()) Add(o, offset);
    } else if (i->Is(Opcode::Slice)) {
      const SliceDim& s = (*i->attrs().slice)[static_cast<size_t>(minor_)];
      if (s.stride == 1) Add(i->operand(0), offset + s.start);
    } else if (i->Is(Opcode::Concatenate)) {
      const bool along = (*i->attrs().dimensions)[0] == minor_;
      int64_t before = 0;
      for (const Instruction* o : i->operands()) {
        if (const int64_t cut = before - offset; along && cut > 0 && cut < extent_) cuts_.insert(cut);
        Add(o, along ? offset - before : offset);
        before += o->shape().dim(minor_);
      }
    }
  }
  const std::set<int64_t>& cuts() const { return cuts_; }

 private:
  static constexpr size_t kMostPlaces = 400;
  const int64_t minor_, extent_;
  std::set<std::pair<const Instruction*, int64_t>> seen_;
  std::set<int64_t> cuts_;
};

}  // namespace

Ints MinorCuts(const Instruction* root) {
  const std::vector<const Instruction*> roots = ResultsOf(root);
  const Shape& s = roots[0]->shape();
  const Ints order = UsefulLoops(s);
  if (order.size() < 2) return {};
  Joins joins(order.back(), s.dim(order.back()));
  for (const Instruction* r : roots) joins.Add(r, 0);
  if (joins.cuts().size() > kMostCuts) return {};
  return Ints(joins.cuts().begin(), joins.cuts().end());
}

absl::StatusOr<int64_t> EmitBetweenJoins(FusionBody& fusion, const Instruction* root, const Ints& cuts) {
  Ir& ir = fusion.ir;
  const std::vector<const Instruction*> roots = ResultsOf(root);
  const Shape& s = roots[0]->shape();
  Ints order = UsefulLoops(s);
  const int64_t minor = order.back();
  order.pop_back();
  RETURN_IF_ERROR(Nest(
      fusion, s.dims(), order,
      [&](std::vector<llvm::Value*> at) -> absl::Status {
        absl::Status status;
        int64_t from = 0;
        const auto range = [&](int64_t to) {
          ir.Loop(
              ir.I64(from), ir.I64(to), 1,
              [&](llvm::Value* k) {
                at[static_cast<size_t>(minor)] = k;
                status.Update(EmitElements(fusion, roots, at));
              },
              true);
          from = to;
        };
        for (int64_t cut : cuts) range(cut);
        range(s.dim(minor));
        return status;
      },
      false));
  return Units(s.dims(), order);
}

}  // namespace kiln::cpu
