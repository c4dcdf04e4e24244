// Barriers of optimisation that hold what nobody reads behind them.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

// Whether each element of the barrier is read; empty if something reads the whole.
std::vector<bool> ReadElements(const Instruction* barrier) {
  std::vector<bool> read(barrier->shape().tuple().size());
  for (const Instruction* u : barrier->users()) {
    if (!u->Is(Opcode::GetTupleElement)) return {};
    read[static_cast<size_t>(*u->attrs().tuple_index)] = true;
  }
  return read;
}

// A barrier of the elements that are read, as a tuple with the others beside it. Those of a tuple were made for the
// barrier alone.
Instruction* OfReadElements(Instruction* i) {
  Instruction* tuple = i->operand(0);
  const bool apart = tuple->Is(Opcode::Tuple);
  if (i->IsRoot() || (apart && tuple->users().size() != 1)) return nullptr;
  const std::vector<bool> read = ReadElements(i);
  const auto count = std::count(read.begin(), read.end(), true);
  if (count == 0 || count == static_cast<int64_t>(read.size())) return nullptr;
  std::vector<Instruction*> kept;
  std::vector<Shape> shapes;
  for (size_t k = 0; k < read.size(); ++k) {
    Instruction* o = apart ? tuple->operand(static_cast<int64_t>(k)) : nullptr;
    if (o && !read[k] && (o->users().size() != 1 || o->HasSideEffect())) return nullptr;
    if (!read[k]) continue;
    kept.push_back(o ? o : PartOf(tuple, static_cast<int64_t>(k)).get());
    shapes.push_back(i->shape().tuple()[k]);
  }
  const Shape shape = Shape::Tuple(shapes);
  Instruction* barrier = i->parent()->AddClone(i, shape, {i->parent()->Add(Opcode::Tuple, shape, kept)});
  const auto beside = [&](int64_t k) { return apart ? tuple->operand(k) : PartOf(tuple, k).get(); };
  std::vector<Instruction*> parts;
  int64_t next = 0;
  for (size_t k = 0; k < read.size(); ++k)
    parts.push_back(read[k] ? PartOf(barrier, next++).get() : beside(static_cast<int64_t>(k)));
  return i->parent()->Add(Opcode::Tuple, i->shape(), parts);
}

const Rule kRules[] = {
    {"barrier-of-unread",
     {Opcode::OptimizationBarrier},
     kTuples,
     Numerics::Exact,
     "a = $T[4,6] not(p)\n b = $T[4,6] not(q)\n t = ($T[4,6], $T[4,6]) tuple(a, b)\n"
     " o = ($T[4,6], $T[4,6]) opt-barrier(t)\n ROOT r = $T[4,6] get-tuple-element(o), index=1",
     "a = $T[4,6] not(p)\n t = ($T[4,6], $T[4,6]) tuple(a, q)\n o = ($T[4,6], $T[4,6]) opt-barrier(t)\n"
     " x = $T[4,6] get-tuple-element(o), index=0\n y = $T[4,6] get-tuple-element(o), index=1\n"
     " ROOT r = $T[4,6] add(x, y)",
     OfReadElements},
};

}  // namespace

absl::Span<const Rule> BarrierRules() { return kRules; }

}  // namespace kiln
