// Evaluates instructions whose operands are known, constants or what repeats and counts beside one of them; and writes
// into functions what all their callers pass alike.
//
// Limits: results of at most 4,096 elements, with no more steps than a kernel launch is worth; and larger ones that
// take no more bytes than the constants that end with them (weights in another order, with a scale in them, their
// sums), as far as the compile's budget of steps goes. A broadcast or iota stays, since it costs less than its
// elements; but what functions and divisions make of nothing else (angles of positions) is a constant if it takes no
// more bytes than their code, and what sums make (weights of a resize), which are kernels of their own, one of at most
// 8 KiB. Nothing with side effects, of several devices, or ordered by control edges. Source: XLA's
// constant folding for which operations are left alone.
#include <algorithm>

#include "absl/container/node_hash_map.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/call_constants.h"

namespace kiln {
namespace {

constexpr int64_t kMaxElements = 4096;
constexpr int64_t kMaxSteps = 1 << 16;

bool IsRepeatedConstant(const Instruction* i) {
  return i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant);
}

bool IsKnown(const Instruction* i) { return i->Is(Opcode::Constant) || i->Is(Opcode::Iota) || IsRepeatedConstant(i); }

// Whether the operation itself may be evaluated at compile time, wherever it stands.
bool MayFold(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Bitcast:  // a matter of layouts
    case Opcode::Broadcast:
    case Opcode::Iota:
    case Opcode::Fft:
    case Opcode::While:
    case Opcode::CustomCall:
    case Opcode::Fusion:
    case Opcode::Domain:
    case Opcode::AddDependency:
    case Opcode::OptimizationBarrier:
    case Opcode::AfterAll:
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
    case Opcode::Rng:
    case Opcode::RngBitGenerator:
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize:
      return false;
    case Opcode::Pad:
      if (IsRepeatedConstant(i->operand(0)) && i->operand(1)->Is(Opcode::Constant)) return false;
      break;
    default:
      break;
  }
  return !i->HasTrait(Collective) && !i->HasTrait(Async) && !i->HasTrait(SideEffect) && !i->shape().HasDynamic() &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

bool MayFoldWithCallees(const Instruction* i) {
  if (!MayFold(i)) return false;
  for (const Computation* c : i->called())
    for (const auto& inner : c->instructions())
      if (!MayFoldWithCallees(inner.get())) return false;
  return true;
}

int64_t ElementsOf(const Shape& s) {
  int64_t n = 0;
  ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) { n += leaf.IsArray() ? leaf.ElementCount() : 0; });
  return n;
}

// Elements that the evaluator computes, about; most + 1 for all that is more.
int64_t Steps(const Instruction* i, int64_t most) {
  int64_t in = 0;
  for (const Instruction* o : i->operands()) in = std::min(in + std::min(ElementsOf(o->shape()), most + 1), most + 1);
  const int64_t out = std::min(ElementsOf(i->shape()), most + 1);
  int64_t each = 1;
  const auto times = [&](int64_t n) { each = each > most / std::max<int64_t>(n, 1) ? most + 1 : each * n; };
  int64_t called = 0;
  for (const Computation* c : i->called())
    for (const auto& inner : c->instructions())
      if (!inner->Is(Opcode::Parameter)) called = std::min(called + Steps(inner.get(), most), most + 1);
  switch (i->opcode()) {
    case Opcode::Call:
    case Opcode::Conditional:
      return std::max(in, called);
    case Opcode::Reshape:
      return 1;  // the same bytes
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
      return out;
    case Opcode::Dot:
      for (int64_t d : i->attrs().lhs_contracting_dims.value_or(Ints())) times(i->operand(0)->shape().dim(d));
      break;
    case Opcode::Convolution:
    case Opcode::TriangularSolve:
      times(i->operand(1)->shape().ElementCount());
      break;
    case Opcode::Cholesky:
      times(i->shape().dims().back() * i->shape().dims().back());
      break;
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter:
      for (const WindowDim& w : i->attrs().window.value_or(attr::Win())) times(w.size);
      break;
    default:
      break;
  }
  times(std::max<int64_t>(called, 1));
  times(std::max<int64_t>({in, out, 1}));
  return each;
}

// The value of an operand that IsKnown.
absl::StatusOr<Literal> ValueOf(const Instruction* i) {
  if (i->Is(Opcode::Constant)) return i->literal();
  if (i->Is(Opcode::Iota)) return EvaluateInstruction(*i, {});
  return EvaluateInstruction(*i, {&i->operand(0)->literal()});
}

// Whether a constant among what is known of its operands makes it one.
bool IsOfConstants(const Instruction* i) {
  if (i->operands().empty() || i->Is(Opcode::Tuple) || i->Is(Opcode::GetTupleElement)) return false;
  bool constant = false;
  for (const Instruction* o : i->operands()) {
    if (!IsKnown(o) || o->shape().HasDynamic()) return false;
    constant = constant || o->Is(Opcode::Constant);
  }
  return constant && MayFoldWithCallees(i);
}

// Bytes of the constants that end when `i` and what else is made of them are constants themselves, without those that
// the others take.
int64_t BytesThatEnd(const Instruction* i) {
  int64_t bytes = 0;
  absl::flat_hash_set<const Instruction*> seen;
  for (const Instruction* o : i->operands()) {
    if (!o->Is(Opcode::Constant) || o->IsRoot() || !seen.insert(o).second) continue;
    int64_t left = o->shape().ByteSize();
    for (const Instruction* u : o->users()) {
      if (!IsOfConstants(u)) left = 0;
      if (u != i) left -= u->shape().ByteSize();
      if (left <= 0) break;  // a scalar may have very many users
    }
    bytes += std::max<int64_t>(left, 0);
  }
  return bytes;
}

// Takes the steps of a large result from what is left of them.
bool Wanted(const Instruction* i, int64_t* steps_left) {
  if (!IsOfConstants(i)) return false;
  if (ElementsOf(i->shape()) <= kMaxElements && Steps(i, kMaxSteps) <= kMaxSteps) return true;
  if (!i->shape().IsArray() || i->shape().ByteSize() > BytesThatEnd(i)) return false;
  const int64_t steps = Steps(i, *steps_left);
  if (steps > *steps_left) return false;
  *steps_left -= steps;
  return true;
}

Instruction* AddValue(Computation* c, const Shape& shape, const Literal& value) {
  if (!shape.IsTuple()) {
    Instruction* k = c->AddConstant(value);
    k->mutable_shape() = shape;
    return k;
  }
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < shape.tuple().size(); ++k) parts.push_back(AddValue(c, shape.tuple()[k], value.elements()[k]));
  return c->Add(Opcode::Tuple, shape, parts);
}

// The value of `i` as an instruction; null if the evaluator lacks the operation: it stays for code generation.
Instruction* Evaluated(Instruction* i) {
  std::vector<Literal> values;
  for (const Instruction* o : i->operands()) {
    absl::StatusOr<Literal> v = ValueOf(o);
    if (!v.ok()) return nullptr;
    values.push_back(std::move(*v));
  }
  std::vector<const Literal*> operands;
  for (const Literal& v : values) operands.push_back(&v);
  const absl::StatusOr<Literal> result = EvaluateInstruction(*i, operands);
  return result.ok() ? AddValue(i->parent(), i->shape(), *result) : nullptr;
}

// What is computed from constants and iotas alone.
class Closed {
 public:
  explicit Closed(const Computation* c) : order_(c->PostOrder()) {
    for (const Instruction* i : order_) facts_[i] = FactsOf(i);
  }

  // Those that become constants: costly ones that something else reads than further work of the kind.
  std::vector<Instruction*> Ends() const {
    std::vector<Instruction*> out;
    for (Instruction* i : order_) {
      const Facts& f = facts_.at(i);
      if (!Small(i, f) || i->Is(Opcode::Broadcast) || i->Is(Opcode::Reshape)) continue;
      const bool goes_on = !i->IsRoot() && std::all_of(i->users().begin(), i->users().end(), [&](const Instruction* u) {
        return Small(u, facts_.at(u)) && !u->Is(Opcode::Broadcast);
      });
      if (!goes_on) out.push_back(i);
    }
    return out;
  }

  // Null if the evaluator lacks an operation.
  const Literal* ValueOf(const Instruction* i) {
    if (i->Is(Opcode::Constant)) return &i->literal();
    if (const auto it = values_.find(i); it != values_.end()) return &it->second;
    std::vector<const Literal*> operands;
    for (const Instruction* o : i->operands()) {
      operands.push_back(ValueOf(o));
      if (!operands.back()) return nullptr;
    }
    absl::StatusOr<Literal> value = EvaluateInstruction(*i, operands);
    return value.ok() ? &values_.emplace(i, std::move(*value)).first->second : nullptr;
  }

 private:
  struct Facts {
    bool closed = false, costly = false, sums = false;
    int64_t steps = 0;
  };

  // Of what is worth a constant.
  static bool Small(const Instruction* i, const Facts& f) {
    constexpr int64_t kMostOfFunctions = 512, kMostOfSums = 8 << 10;  // bytes
    return f.closed && f.costly && i->shape().ByteSize() <= (f.sums ? kMostOfSums : kMostOfFunctions);
  }

  Facts FactsOf(const Instruction* i) const {
    if (!i->shape().IsArray() || i->shape().HasDynamic() || i->shape().ElementCount() > kMaxSteps) return {};
    if (i->Is(Opcode::Constant)) return {true, false, false, 0};
    if (!i->Is(Opcode::Iota) && !i->Is(Opcode::Broadcast) && !MayFoldWithCallees(i)) return {};
    if (i->operands().empty() && !i->Is(Opcode::Iota)) return {};
    const bool sums = i->Is(Opcode::Reduce) || i->Is(Opcode::ReduceWindow) || i->Is(Opcode::Dot);
    Facts f{true, sums || i->HasTrait(Transcendental) || i->HasTrait(Costly), sums, Steps(i, kMaxSteps)};
    for (const Instruction* o : i->operands()) {
      const Facts& of = facts_.at(o);
      f.closed = f.closed && of.closed;
      f.costly = f.costly || of.costly;
      f.sums = f.sums || of.sums;
      f.steps += of.steps;
    }
    f.closed = f.closed && f.steps <= kMaxSteps;
    return f;
  }

  std::vector<Instruction*> order_;
  absl::flat_hash_map<const Instruction*, Facts> facts_;
  absl::node_hash_map<const Instruction*, Literal> values_;
};

// Windows over one value everywhere, none of which reaches beyond it, give one value everywhere: that of one window.
Instruction* OfEqualWindows(Instruction* i) {
  if (!i->Is(Opcode::ReduceWindow) || i->operand_count() != 2 || !i->shape().IsArray() || !i->attrs().window ||
      !IsRepeatedConstant(i->operand(0)) || !i->operand(0)->operand(0)->shape().IsScalar() ||
      !i->operand(1)->Is(Opcode::Constant) || i->shape().ElementCount() < 2 || !MayFoldWithCallees(i))
    return nullptr;
  Ints extents;
  for (const WindowDim& w : *i->attrs().window) {
    if (w.pad_low > 0 || w.pad_high > 0 || w.lhs_dilate != 1) return nullptr;
    extents.push_back(w.DilatedSize());
  }
  Computation* c = i->parent();
  Instruction* window = BroadcastTo(i->operand(0)->operand(0), extents).get();
  Shape one = Shape::Array(i->shape().type(), Ints(extents.size(), 1));
  Instruction* part = c->AddClone(i, one, {window, i->operand(1)});
  for (WindowDim& w : *part->mutable_attrs().window) w.pad_low = w.pad_high = 0;
  Instruction* value = Steps(part, kMaxSteps) <= kMaxSteps ? Evaluated(part) : nullptr;
  Instruction* out = nullptr;
  if (value) {
    Instruction* scalar = c->AddConstant(value->literal().Reshaped(Shape::Scalar(one.type())));
    out = c->Add(Opcode::Broadcast, i->shape(), {scalar});
    out->mutable_attrs().dimensions = Ints();
    c->Remove(value);
  }
  c->Remove(part);
  c->Remove(window);
  return out;
}

}  // namespace

absl::StatusOr<bool> ConstantFolding(Module& m, PassContext& ctx) {
  bool changed = FoldCallArguments(m, ctx);
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (ctx.fuel == 0) return changed;
      if (i->users().empty() && !i->IsRoot()) continue;
      Instruction* value = Wanted(i, &ctx.folding_steps) ? Evaluated(i) : OfEqualWindows(i);
      if (!value) continue;
      ctx.Take();
      value->set_loc(i->loc());
      i->ReplaceAllUsesWith(value);
      c->Remove(i);
      changed = true;
    }
    Closed closed(c.get());
    for (Instruction* i : closed.Ends()) {
      const Literal* value = ctx.fuel == 0 ? nullptr : closed.ValueOf(i);
      if (!value || !ctx.Take()) continue;
      Instruction* constant = AddValue(c.get(), i->shape(), *value);
      constant->set_loc(i->loc());
      i->ReplaceAllUsesWith(constant);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
