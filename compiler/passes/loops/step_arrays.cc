#include "compiler/passes/loops/step_arrays.h"

#include <algorithm>

#include "compiler/eval/scalar.h"

namespace kiln {
namespace {

constexpr int64_t kMostSteps = 1 << 16;  // of which an index is evaluated
constexpr int kMostTerms = 16;           // of an index

Ints WithSteps(int64_t steps, const Ints& dims) {
  Ints out = {steps};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

// The index as a function of the counter, operands first; empty: it is none that is followed.
std::vector<const Instruction*> IndexTerms(const Instruction* index, const Instruction* state, int64_t counter) {
  std::vector<const Instruction*> out, work = {index};
  while (!work.empty()) {
    const Instruction* i = work.back();
    if (std::find(out.begin(), out.end(), i) != out.end()) {
      work.pop_back();
      continue;
    }
    const bool is_counter = i->Is(Opcode::GetTupleElement) && i->operand(0) == state;
    const bool number =
        i->shape().IsScalar() && (IsIntegral(i->shape().type()) || i->shape().type() == PrimitiveType::Pred);
    if (!number || (is_counter ? *i->attrs().tuple_index != counter : !i->Is(Opcode::Constant) && !i->IsElementwise()))
      return {};
    bool ready = true;
    if (!is_counter)
      for (const Instruction* o : i->operands())
        if (std::find(out.begin(), out.end(), o) == out.end()) {
          work.push_back(o);
          ready = false;
        }
    if (work.size() > kMostTerms || out.size() > kMostTerms) return {};
    if (!ready) continue;
    out.push_back(i);
    work.pop_back();
  }
  return out;
}

bool MovesOnly(const Instruction* i) {
  const bool moves = i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose) || i->Is(Opcode::Slice);
  return (moves || i->Is(Opcode::Convert)) && i->shape().IsArray();
}

}  // namespace

bool IsFixed(const Instruction* loop, const Instruction* i) {
  if (i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose)) return IsFixed(loop, i->operand(0));
  if (!i->Is(Opcode::GetTupleElement)) return i->Is(Opcode::Constant);
  const int64_t k = *i->attrs().tuple_index;
  return i->operand(0)->Is(Opcode::Parameter) && IsInvariant(loop, k) && InitOf(loop, k);
}

Instruction* BeforeLoop(Instruction* loop, const Instruction* i) {
  if (i->Is(Opcode::GetTupleElement)) return InitOf(loop, *i->attrs().tuple_index);
  std::vector<Instruction*> operands;
  for (const Instruction* o : i->operands()) operands.push_back(BeforeLoop(loop, o));
  return loop->parent()->AddClone(i, i->shape(), operands);
}

StepArrays::StepArrays(const Instruction* loop, const Induction& count) : loop_(loop), count_(count) {
  const Computation* body = *loop->attrs().body;
  const Instruction* root = body->root();
  std::map<const Instruction*, std::optional<Walk>> walks;
  const auto walk_of = [&](const Instruction* index) {
    const auto [it, is_new] = walks.try_emplace(index);
    if (is_new) it->second = WalkOf(index);
    return it->second;
  };
  for (Instruction* i : body->PostOrder()) {
    if (i->shape().IsScalar()) continue;  // of which slices have no index
    if (i->Is(Opcode::DynamicSlice)) {
      if (!IsFixed(loop, i->operand(0)) || !i->operand(0)->Is(Opcode::GetTupleElement)) continue;
      if (const auto place = PlaceOf(i->operand(0), i->operand(1), i->shape(), walk_of(i->operand(1))))
        known_[i->id()] = *place;
    } else if (i->Is(Opcode::DynamicUpdateSlice)) {
      const Instruction* array = i->operand(0);
      if (!array->Is(Opcode::GetTupleElement) || array->operand(0) != body->parameter(0)) continue;
      const int64_t k = *array->attrs().tuple_index;
      if (root->operand(k) != i) continue;
      auto place = PlaceOf(array, i->operand(2), i->operand(1)->shape(), walk_of(i->operand(2)));
      if (!place) continue;
      place->is_stored = true;
      if (array->shape().dim(0) == count.trips) filled_.push_back(k);
      const Instruction* stored = i->operand(1);
      while (stored->Is(Opcode::Reshape)) stored = stored->operand(0);
      known_.emplace(stored->id(), *place);
    }
  }
}

// Whole parts of the first dimension, of which each iteration has another.
std::optional<StepArrays::Place> StepArrays::PlaceOf(const Instruction* array, Instruction* index, const Shape& part,
                                                     std::optional<Walk> walk) const {
  const Shape& all = array->shape();
  if (!walk || all.HasDynamic() || part.dim(0) != 1) return std::nullopt;
  for (int64_t d = 1; d < all.rank(); ++d)
    if (part.dim(d) != all.dim(d)) return std::nullopt;
  const int64_t last = walk->first + walk->by * (count_.trips - 1);
  if (std::min(walk->first, last) < 0 || std::max(walk->first, last) >= all.dim(0)) return std::nullopt;
  return Place{*array->attrs().tuple_index, false, *walk, index};
}

std::optional<Walk> StepArrays::WalkOf(const Instruction* index) const {
  if (count_.trips < 2 || count_.trips > kMostSteps) return std::nullopt;
  const std::vector<const Instruction*> terms = IndexTerms(index, (*loop_->attrs().body)->parameter(0), count_.index);
  if (terms.empty()) return std::nullopt;
  std::map<const Instruction*, size_t> at;
  std::vector<std::vector<size_t>> operands;
  for (size_t n = 0; n < terms.size(); ++n) {
    at[terms[n]] = n;
    operands.emplace_back();
    if (!terms[n]->Is(Opcode::GetTupleElement))
      for (const Instruction* o : terms[n]->operands()) operands.back().push_back(at.at(o));
  }
  std::vector<Element> values(terms.size()), given(kMostTerms);
  Walk walk;
  for (int64_t t = 0; t < count_.trips; ++t) {
    for (size_t n = 0; n < terms.size(); ++n) {
      const Instruction* i = terms[n];
      if (i->Is(Opcode::GetTupleElement)) {
        values[n].i = count_.init + t * count_.step;
        continue;
      }
      if (i->Is(Opcode::Constant)) {
        if (t == 0) values[n] = i->literal().Get(0);
        continue;
      }
      for (size_t o = 0; o < operands[n].size(); ++o) given[o] = values[operands[n][o]];
      const absl::StatusOr<Element> value = EvaluateScalar(*i, given.data());
      if (!value.ok()) return std::nullopt;
      values[n] = *value;
      values[n].i = i->shape().type() == PrimitiveType::Pred ? (value->i != 0) : WrapInt(i->shape().type(), value->i);
    }
    const int64_t here = values.back().i;
    if (t == 0) walk.first = here;
    if (t == 1) walk.by = here - walk.first;
    if (here != walk.first + t * walk.by) return std::nullopt;
  }
  return walk.by == 1 || walk.by == -1 ? std::optional(walk) : std::nullopt;
}

std::optional<StepArrays::Place> StepArrays::Find(const Instruction* base) const {
  const auto it = known_.find(base->id());
  return it == known_.end() ? std::nullopt : std::optional(it->second);
}

Instruction* StepArrays::BaseOf(Instruction* v) const {
  Instruction* smallest = v;
  for (Instruction* i = v;; i = i->operand(0)) {
    if (IsKnown(i)) return i;
    // A part of what a step has may be kept alone, but not what it is a part of.
    if (i->shape().ByteSize() < smallest->shape().ByteSize()) smallest = i;
    if (!MovesOnly(i)) return smallest;
  }
}

int64_t StepArrays::known_bytes() const {
  std::map<int64_t, int64_t> bytes;
  for (const auto& [id, place] : known_)
    bytes[place.element] = loop_->shape().tuple()[static_cast<size_t>(place.element)].ByteSize();
  int64_t sum = 0;
  for (const auto& [element, b] : bytes) sum += b;
  return sum;
}

Shape StepArrays::ShapeOf(const Instruction* base) const {
  return Shape::Array(base->shape().type(), WithSteps(count_.trips, base->shape().dims()));
}

// Where an iteration writes: an index that is there anyway, or the number of the iteration.
Instruction* StepArrays::Index() const {
  const int64_t first = down() ? count_.trips - 1 : 0;
  for (const auto& [id, place] : known_)
    if (place.walk.first == first && (place.walk.by < 0) == down()) return place.index;
  const Expr counter = PartOf((*loop_->attrs().body)->parameter(0), count_.index);
  const auto number = [&](int64_t value) { return IntegerIn(counter.computation(), counter.type(), value); };
  const Expr step = (counter - number(count_.init)) / number(count_.step);
  return (down() ? number(first) - step : step).get();
}

void StepArrays::Keep(Instruction* base, int64_t k) {
  Computation* body = base->parent();
  const Expr index = Index(), zero = IntegerIn(body, index.type(), 0);
  std::vector<Expr> starts(static_cast<size_t>(base->shape().rank()) + 1, zero);
  starts[0] = index;
  const Expr update =
      UpdateOf(PartOf(body->parameter(0), k), ReshapeTo(base, WithSteps(1, base->shape().dims())), starts);
  body->root()->ReplaceOperand(k, update.get());
  known_[base->id()] = Place{k, true, {down() ? count_.trips - 1 : 0, down() ? -1 : 1}, index.get()};
}

Expr StepArrays::Base(const Instruction* base, Instruction* loop) const {
  const Place place = *Find(base);
  const Expr whole = place.is_stored ? PartOf(loop, place.element) : Expr(InitOf(loop, place.element));
  Ints from(static_cast<size_t>(whole.shape().rank()), 0), to = whole.shape().dims();
  from[0] = place.walk.by > 0 ? place.walk.first : place.walk.first - count_.trips + 1;
  to[0] = from[0] + count_.trips;
  Expr used = SliceOf(whole, from, to);
  if ((place.walk.by < 0) != down()) {
    Instruction* turned = loop->parent()->Add(Opcode::Reverse, used.shape(), {used.get()});
    turned->mutable_attrs().dimensions = Ints{0};
    used = turned;
  }
  return ReshapeTo(used, WithSteps(count_.trips, base->shape().dims()));
}

Expr StepArrays::All(Instruction* v, Instruction* loop) const {
  if (IsKnown(v)) return Base(v, loop);
  const Expr of = All(v->operand(0), loop);
  Instruction* all = loop->parent()->AddClone(
      v, Shape::Array(v->shape().type(), WithSteps(count_.trips, v->shape().dims())), {of.get()});
  if (v->Is(Opcode::Transpose)) {
    Ints permutation = {0};
    for (const int64_t d : *v->attrs().dimensions) permutation.push_back(d + 1);
    all->mutable_attrs().dimensions = permutation;
  }
  if (v->Is(Opcode::Slice)) {
    attr::Slices ranges = *v->attrs().slice;
    ranges.insert(ranges.begin(), {0, count_.trips, 1});
    all->mutable_attrs().slice = ranges;
  }
  return all;
}

}  // namespace kiln
