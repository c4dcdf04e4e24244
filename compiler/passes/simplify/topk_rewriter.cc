// The first k of a descending sort of f32 or bf16, with or without the places they came from, is topk; what of the k is
// used may start further on. Columns of a matrix are rows of its transpose.
//
// The comparator must order the values alone: greater than, by total order, or by bits that are in total order. Equal
// values keep the lower place first.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

bool IsConstant(const Instruction* i, int64_t value) {
  if (i->Is(Opcode::Convert)) i = i->operand(0);
  return i->Is(Opcode::Constant) && i->shape().IsScalar() && IsIntegral(i->shape().type()) &&
         i->literal().Get(0).i == value;
}

// The bits of `p` as `t`.
bool IsBits(const Instruction* i, const Instruction* p, PrimitiveType t) {
  return i->Is(Opcode::BitcastConvert) && i->shape().type() == t && i->operand(0) == p;
}

// The bits of f32 `p` as a number in total order: x < 0 ? 0x7fffffff - x : x.
bool IsOrderKey(const Instruction* i, const Instruction* p) {
  constexpr int64_t kMost = 0x7fffffff;
  if (!i->Is(Opcode::Select) || p->shape().type() != PrimitiveType::F32) return false;
  const Instruction *negative = i->operand(0), *mirrored = i->operand(1);
  return negative->Is(Opcode::Compare) && *negative->attrs().direction == Direction::LT &&
         IsBits(negative->operand(0), p, PrimitiveType::S32) && IsConstant(negative->operand(1), 0) &&
         mirrored->Is(Opcode::BitcastConvert) && mirrored->shape().type() == PrimitiveType::S32 &&
         mirrored->operand(0)->Is(Opcode::Subtract) && IsConstant(mirrored->operand(0)->operand(0), kMost) &&
         IsBits(mirrored->operand(0)->operand(1), p, PrimitiveType::U32) &&
         IsBits(i->operand(2), p, PrimitiveType::S32);
}

bool Descending(const Computation* less) {
  const Instruction* r = less->root();
  if (!r->Is(Opcode::Compare) || *r->attrs().direction != Direction::GT) return false;
  const Instruction *a = less->parameter(0), *b = less->parameter(1);
  return (r->operand(0) == a && r->operand(1) == b) || (IsOrderKey(r->operand(0), a) && IsOrderKey(r->operand(1), b));
}

bool PlainIota(const Instruction* i, int64_t dim) {
  if (i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Iota))
    return i->operand(0)->shape().rank() == 1 && *i->attrs().dimensions == Ints{dim};
  return i->Is(Opcode::Iota) && i->attrs().iota_dimension.value_or(0) == dim;
}

// The limit in the sorted dimension of the slice that an output goes through; 0: it is used some other way.
int64_t SliceLimit(const Instruction* i, int64_t dim) {
  if (!i->Is(Opcode::Slice)) return 0;
  const auto& slices = *i->attrs().slice;
  for (size_t d = 0; d < slices.size(); ++d) {
    if (slices[d].stride != 1) return 0;
    if (static_cast<int64_t>(d) != dim &&
        (slices[d].start != 0 || slices[d].limit != i->operand(0)->shape().dim(static_cast<int64_t>(d))))
      return 0;
  }
  return slices[static_cast<size_t>(dim)].limit;
}

struct Match {
  std::vector<Instruction*> values, places;  // slices to replace
  int64_t k = 0, dim = 0;
};

std::optional<Match> MatchSort(const Instruction* sort) {
  if (!sort->Is(Opcode::Sort) || sort->operand_count() > 2 || sort->IsRoot()) return std::nullopt;
  const Shape& s = sort->operand(0)->shape();
  const bool number = s.type() == PrimitiveType::F32 || s.type() == PrimitiveType::BF16;
  if (!number || s.rank() < 1 || s.HasDynamic() || !Descending(*sort->attrs().to_apply)) return std::nullopt;
  const int64_t dim = sort->attrs().dimensions ? (*sort->attrs().dimensions)[0] : s.rank() - 1;
  if (dim != s.rank() - 1 && s.rank() != 2) return std::nullopt;
  Match match;
  match.dim = dim;
  const auto take = [&](Instruction* slice, bool is_place) {
    const int64_t k = SliceLimit(slice, dim);
    if (k == 0 || (match.k && match.k != k)) return false;
    match.k = k;
    (is_place ? match.places : match.values).push_back(slice);
    return true;
  };
  if (sort->operand_count() == 1) {
    for (Instruction* u : sort->users())
      if (!take(u, false)) return std::nullopt;
    return match.k ? std::optional(match) : std::nullopt;
  }
  // Where the sort leaves the order of equal values open, that of their places is one of its orders.
  if (!PlainIota(sort->operand(1), dim) || sort->operand(1)->shape().type() != PrimitiveType::S32) return std::nullopt;
  for (const Instruction* u : sort->users()) {
    if (!u->Is(Opcode::GetTupleElement) || u->IsRoot()) return std::nullopt;
    for (Instruction* slice : u->users())
      if (!take(slice, *u->attrs().tuple_index == 1)) return std::nullopt;
  }
  return match.k ? std::optional(match) : std::nullopt;
}

}  // namespace

absl::StatusOr<bool> TopkRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* sort : c->PostOrder()) {
      const std::optional<Match> match = MatchSort(sort);
      if (!match || !ctx.Take()) continue;
      const auto dim = static_cast<size_t>(match->dim);
      Ints dims = sort->operand(0)->shape().dims();
      dims[dim] = match->k;
      const bool columns = dim + 1 != dims.size();
      const auto turned = [&](Expr x) { return columns ? TransposeBy(x, {1, 0}) : x; };
      const Ints rows = columns ? Ints{dims[1], dims[0]} : dims;
      const Shape values = Shape::Array(sort->operand(0)->shape().type(), rows);
      const Shape places = Shape::Array(PrimitiveType::S32, rows);
      Instruction* top = c->Add(Opcode::TopK, Shape::Tuple({values, places}), {turned(sort->operand(0)).get()});
      top->mutable_attrs().k = match->k;
      top->mutable_attrs().largest = true;
      const auto put = [&](const std::vector<Instruction*>& slices, int64_t index) {
        for (Instruction* old : slices) {
          Expr part = turned(PartOf(top, index));
          Ints start(dims.size(), 0);
          start[dim] = (*old->attrs().slice)[dim].start;
          old->ReplaceAllUsesWith(SliceOf(part, start, dims).get());
        }
      };
      put(match->values, 0);
      put(match->places, 1);
      changed = true;
    }
  }
  return changed ? Dce(m, ctx) : absl::StatusOr<bool>(false);
}

}  // namespace kiln
