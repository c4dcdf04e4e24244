#include "compiler/passes/sharding/partitioned_op.h"

#include <algorithm>

#include "compiler/passes/sharding/remake.h"
#include "compiler/passes/sharding/sort_exchange.h"

namespace kiln {
namespace {

struct Candidate {
  int agreeing = 0;
  int64_t bytes = 0;
  int factor = -1, axis = -1;
  bool Better(const Candidate& o) const {
    if ((agreeing > 1) != (o.agreeing > 1)) return agreeing > 1;
    return bytes > o.bytes;
  }
};

struct Tensor {
  const OpRule::Tensor* dims;
  std::vector<Axes> has;  // of each factor
  int64_t bytes;
  Ints extents;
  bool result;
};

bool StartsWith(const Axes& a, const Axes& start) {
  return a.size() >= start.size() && std::equal(start.begin(), start.end(), a.begin());
}

std::vector<Shape> Leaves(const Shape& s) {
  std::vector<Shape> out;
  ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) { out.push_back(leaf); });
  return out;
}

bool Fits(const DeviceMesh& mesh, const OpRule& rule, const std::vector<Tensor>& tensors,
          const std::vector<Axes>& axes) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& t) { return TilingOfFactors(mesh, rule, *t.dims, axes).has_value(); });
}

// Whether parts of factor `f` may be of unequal size: it is all of its dimensions, and what fills up the last part
// stays there or is masked.
bool MayBeUneven(const Instruction& op, const OpRule& rule, int f) {
  const OpRule::Kind kind = rule.kinds[static_cast<size_t>(f)];
  if (kind == OpRule::kReduction && !op.Is(Opcode::Dot) && !(op.Is(Opcode::Reduce) && MayBePadded(op))) return false;
  if (kind == OpRule::kUpdates) return false;
  const auto alone = [&](const OpRule::Tensor& t) {
    return std::all_of(t.begin(), t.end(), [&](const std::vector<int>& d) {
      return d.size() < 2 || std::find(d.begin(), d.end(), f) == d.end();
    });
  };
  return std::all_of(rule.operands.begin(), rule.operands.end(), alone) &&
         std::all_of(rule.results.begin(), rule.results.end(), alone);
}

bool Has(const OpRule::Tensor& t, int f) {
  return std::any_of(t.begin(), t.end(),
                     [&](const std::vector<int>& d) { return std::find(d.begin(), d.end(), f) != d.end(); });
}

// Every array has a part for each device along factor `f`, which is as large as the factor says unless a window moves.
bool FillsParts(const OpRule& rule, const std::vector<Tensor>& tensors, int f, int64_t parts) {
  for (const Tensor& t : tensors)
    for (size_t d = 0; d < t.dims->size(); ++d) {
      const auto& of = (*t.dims)[d];
      if (std::find(of.begin(), of.end(), f) == of.end()) continue;
      if (t.extents[d] < parts || (!rule.IsWindow(f) && t.extents[d] != rule.sizes[static_cast<size_t>(f)]))
        return false;
    }
  return true;
}

// Each device's part takes as much as any other's.
bool PartsAreAlike(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule, const std::vector<Axes>& axes) {
  for (size_t k = 0; k < rule.operands.size(); ++k)
    for (size_t d = 0; d < rule.operands[k].size(); ++d)
      for (int f : rule.operands[k][d]) {
        const Axes& of = axes[static_cast<size_t>(f)];
        if (of.empty()) continue;
        const int64_t parts = mesh.SizeOf(of);
        // Values and places of all first are at most half of the array.
        if (op.Is(Opcode::TopK) && rule.kinds[static_cast<size_t>(f)] == OpRule::kReduction &&
            *op.attrs().k * 4 * parts > rule.sizes[static_cast<size_t>(f)])
          return false;
        if (rule.IsWindow(f) && TakesStretch(op, k) && !StretchOf(op, k, d, parts)) return false;
        const bool updated = op.Is(Opcode::DynamicUpdateSlice) && rule.kinds[static_cast<size_t>(f)] == OpRule::kRows;
        if (updated && op.operand(1)->shape().dims()[d] * parts > op.shape().dims()[d]) return false;
      }
  return true;
}

// Uneven parts of factor `f`: an operand has them, or there is none, and results are to have them, or are so small that
// they had better be moved than the operand.
bool IsMadeUneven(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule, const std::vector<Tensor>& tensors,
                  int f, const Axes& axes) {
  if (!MayBeUneven(op, rule, f) || !FillsParts(rule, tensors, f, mesh.SizeOf(axes))) return false;
  int64_t given = 0, moved = 0;
  for (const Tensor& t : tensors) {
    if (!Has(*t.dims, f)) continue;
    const bool cut = StartsWith(t.has[static_cast<size_t>(f)], axes);
    if (t.result && !cut) moved += t.bytes;
    if (!t.result && cut) given += t.bytes;
  }
  return (given > 0 || op.Is(Opcode::Iota)) && moved * 2 <= given;
}

// Bytes that a device has of the tensor where it is cut as it is, but not along the axes.
int64_t BytesWithout(const DeviceMesh& mesh, const Tensor& t, AxisMask without) {
  int64_t parts = 1;
  for (const Axes& of : t.has)
    for (int a : of) parts *= without >> a & 1 ? 1 : mesh.size(a);
  return t.bytes / parts;
}

// To sum up what is partial along `axes` of factor `f` moves more than to bring operands together, and results are to
// be cut along the last of them elsewhere: an operand that is to be cut there as the result is exchanged, others are
// gathered. `chosen`: axes of factors so far.
bool IsDearerSummed(const DeviceMesh& mesh, const std::vector<Tensor>& tensors, size_t f, const Axes& axes,
                    const std::vector<Axes>& chosen) {
  int64_t summed = 0, gathered = 0;
  std::vector<std::pair<int, Axes>> elsewhere;  // factors, and the axes in front
  for (const Tensor& t : tensors) {
    if (!t.result) continue;
    Tensor computed = t;
    for (size_t k = 0; k < t.has.size(); ++k) {
      const auto first = std::find_if(t.has[k].begin(), t.has[k].end(), [&](int a) { return MaskOf(axes) >> a & 1; });
      if (MaskOf(t.has[k]) >> axes.back() & 1)
        elsewhere.push_back({static_cast<int>(k), Axes(t.has[k].begin(), first)});
      if (!chosen[k].empty() && Has(*t.dims, static_cast<int>(k))) computed.has[k] = chosen[k];
    }
    summed += kExchange + BytesWithout(mesh, computed, MaskOf(axes));
  }
  for (const Tensor& t : tensors) {
    if (t.result || !StartsWith(t.has[f], axes)) continue;
    const bool moves = std::any_of(elsewhere.begin(), elsewhere.end(), [&](const auto& e) {
      return Has(*t.dims, e.first) && t.has[static_cast<size_t>(e.first)] == e.second;
    });
    gathered += kExchange + BytesWithout(mesh, t, moves ? 0 : MaskOf(axes));
  }
  return !elsewhere.empty() && summed > gathered;
}

// To sum up the rows that devices look up moves more than to gather what they are looked up in.
bool IsDearerLookedUp(const DeviceMesh& mesh, const std::vector<Tensor>& tensors, const Axes& axes) {
  int64_t summed = 0;
  for (const Tensor& t : tensors)
    if (t.result) summed += BytesWithout(mesh, t, MaskOf(axes));
  return BytesWithout(mesh, tensors[0], MaskOf(axes)) < summed;
}

// To bring a scatter's updates to the rows that they are for moves more than to sum up what each device's make of an
// array of zeros, or what else is alike everywhere.
bool IsDearerSpread(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule,
                    const std::vector<Part>& operands, const std::vector<Tensor>& tensors, const Axes& axes) {
  if (!op.Is(Opcode::Scatter) || op.operand_count() != 3) return false;
  const Instruction* start = operands[0].value;
  const bool alike = start->Is(Opcode::Constant)
                         ? start->literal().IsSplat()
                         : start->Is(Opcode::Broadcast) && start->operand(0)->shape().IsScalar();
  const Tensor &indices = tensors[1], &updates = tensors[2];
  bool shared = false;
  for (size_t f = 0; f < rule.sizes.size(); ++f)
    shared = shared || (rule.kinds[f] == OpRule::kUpdates && updates.has[f] == axes);
  return alike && shared &&
         BytesWithout(mesh, tensors[3], MaskOf(axes)) <
             kExchange + BytesWithout(mesh, indices, MaskOf(axes)) + BytesWithout(mesh, updates, MaskOf(axes));
}

// Rows of an operand that is cut along `axis` are looked up where they are, although indices or results are cut along
// it: the operand is larger than both.
bool IsLookedUp(const Instruction& op, const OpRule& rule, const std::vector<Tensor>& tensors, int axis) {
  if (!op.Is(Opcode::Gather)) return false;
  bool cuts_rows = false;
  for (size_t f = 0; f < rule.sizes.size(); ++f) {
    const Axes& of = tensors[0].has[f];
    cuts_rows = cuts_rows || (rule.kinds[f] == OpRule::kLookup && std::find(of.begin(), of.end(), axis) != of.end());
  }
  return cuts_rows && tensors[0].bytes > tensors[1].bytes + tensors[2].bytes;
}

// What cuts a dimension that has to be whole cuts another instead.
void MoveAxes(const DeviceMesh& mesh, const OpRule& rule, const std::vector<Part>& operands,
              const std::vector<Tensor>& tensors, AxisMask used, std::vector<Axes>* chosen) {
  for (size_t k = 0; k < rule.operands.size(); ++k)
    for (size_t d = 0; d < rule.operands[k].size(); ++d) {
      const Axes& freed = operands[k].tiling.dims[d];
      bool placed = freed.empty() || !rule.operands[k][d].empty() || (MaskOf(freed) & used);
      for (size_t f = 0; f < rule.sizes.size() && !placed; ++f) {
        std::vector<Axes> with = *chosen;
        with[f].insert(with[f].end(), freed.begin(), freed.end());
        placed = rule.kinds[f] == OpRule::kPass && Has(rule.operands[k], static_cast<int>(f)) &&
                 rule.sizes[f] % mesh.SizeOf(with[f]) == 0 && Fits(mesh, rule, tensors, with);
        if (!placed) continue;
        *chosen = with;
        used |= MaskOf(freed);
      }
    }
}

Tiling Whole(const Shape& s, AxisMask manual) {
  Tiling t;
  t.dims.resize(static_cast<size_t>(s.rank()));
  t.manual = manual;
  return t;
}

AxisMask ManualOf(const std::vector<Part>& parts) {
  AxisMask out = 0;
  for (const Part& p : parts) out |= p.tiling.manual;
  return out;
}

// Every device computes all of it.
std::vector<Part> ComputeWhole(const Instruction& op, const std::vector<Part>& operands, AxisMask manual,
                               Resharder* reshard) {
  std::vector<Instruction*> values;
  for (const Part& p : operands) values.push_back(reshard->To(p, Whole(p.whole, 0)).value);
  Computation* c = reshard->computation();
  Instruction* i = c->AddClone(&op, op.shape(), values);
  if (i->attrs().sharding) i->mutable_attrs().sharding.reset();
  std::vector<Part> out;
  if (!op.shape().IsTuple()) return {{i, Whole(op.shape(), manual), op.shape()}};
  for (size_t k = 0; k < op.shape().tuple().size(); ++k) {
    Instruction* part = PartOf(i, static_cast<int64_t>(k)).get();
    const std::vector<Shape> leaves = Leaves(part->shape());
    if (!part->shape().IsTuple()) {
      out.push_back({part, Whole(part->shape(), manual), part->shape()});
      continue;
    }
    ForEachLeaf(part->shape(), [&](const ShapeIndex& index, const Shape& leaf) {
      Expr e = part;
      for (int64_t n : index) e = PartOf(e, n);
      out.push_back({e.get(), Whole(leaf, manual), leaf});
    });
  }
  return out;
}

}  // namespace

Tiling Settled(const DeviceMesh& mesh, const Part& part, const Tiling& wanted, bool exactly) {
  Tiling out = wanted;
  for (size_t d = 0; d < out.dims.size(); ++d) {
    for (size_t k = 0; k < out.dims[d].size(); ++k)
      if (part.tiling.manual >> out.dims[d][k] & 1) out.dims[d].resize(k);
    while (!exactly && out.dims[d] != part.tiling.dims[d] && !out.dims[d].empty() &&
           part.whole.dims()[d] % mesh.SizeOf(out.dims[d]))
      out.dims[d].pop_back();
  }
  return out;
}

std::vector<Axes> ChooseAxes(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule,
                             const std::vector<Part>& operands, const std::vector<Tiling>& wanted, AxisMask manual) {
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < rule.operands.size(); ++k)
    tensors.push_back({&rule.operands[k], AxesOfFactors(mesh, rule, rule.operands[k], operands[k].tiling),
                       operands[k].whole.ByteSize(), operands[k].whole.dims(), false});
  const std::vector<Shape> leaves = Leaves(op.shape());
  for (size_t k = 0; k < rule.results.size(); ++k)
    tensors.push_back({&rule.results[k], AxesOfFactors(mesh, rule, rule.results[k], wanted[k]), leaves[k].ByteSize(),
                       leaves[k].dims(), true});
  std::vector<Axes> chosen(rule.sizes.size());
  AxisMask used = manual;
  for (;;) {
    Candidate best;
    for (size_t f = 0; f < rule.sizes.size(); ++f)
      for (const Tensor& from : tensors) {
        const Axes& has = from.has[f];
        if (has.size() <= chosen[f].size() || !StartsWith(has, chosen[f])) continue;
        Axes next = chosen[f];
        next.push_back(has[chosen[f].size()]);
        if (used >> next.back() & 1) continue;
        if (rule.kinds[f] == OpRule::kReduction && IsDearerSummed(mesh, tensors, f, has, chosen)) continue;
        if (rule.kinds[f] == OpRule::kLookup && IsDearerLookedUp(mesh, tensors, has)) continue;
        if (rule.kinds[f] == OpRule::kRows && IsDearerSpread(mesh, op, rule, operands, tensors, has)) continue;
        if (rule.kinds[f] != OpRule::kLookup && IsLookedUp(op, rule, tensors, next.back())) continue;
        if (rule.sizes[f] % mesh.SizeOf(next) && !IsMadeUneven(mesh, op, rule, tensors, static_cast<int>(f), next))
          continue;
        Candidate c;
        c.factor = static_cast<int>(f);
        c.axis = next.back();
        for (const Tensor& t : tensors)
          if (StartsWith(t.has[f], next)) {
            ++c.agreeing;
            c.bytes += t.bytes;
          }
        std::vector<Axes> with = chosen;
        with[f] = next;
        if ((best.factor < 0 || c.Better(best)) && Fits(mesh, rule, tensors, with) &&
            PartsAreAlike(mesh, op, rule, with))
          best = c;
      }
    if (best.factor < 0) break;
    chosen[static_cast<size_t>(best.factor)].push_back(best.axis);
    used |= AxisMask{1} << best.axis;
  }
  if (IsOfBatches(op)) MoveAxes(mesh, rule, operands, tensors, used, &chosen);
  return chosen;
}

absl::StatusOr<std::vector<Part>> PartitionOp(const Instruction& op, std::vector<Part> operands,
                                              const std::vector<Tiling>& wanted, Resharder* reshard) {
  const DeviceMesh& mesh = reshard->mesh();
  const AxisMask manual = ManualOf(operands) | (op.Is(Opcode::PartitionId) ? mesh.all_axes() : 0);
  std::optional<OpRule> rule = RuleOf(op);
  if (!rule && manual) rule = WrittenCollectiveRule(op, mesh, manual);
  std::vector<Part> out;
  if (!rule) {
    out = ComputeWhole(op, operands, manual, reshard);
  } else if (auto sorted = SortByExchange(op, operands, wanted, reshard)) {
    out = *std::move(sorted);
  } else {
    const std::vector<Axes> axes = ChooseAxes(mesh, op, *rule, operands, wanted, manual);
    LocalOp local{op, *rule, axes, *reshard, {}, {}, {}};
    for (size_t k = 0; k < operands.size(); ++k) {
      const auto t = TilingOfFactors(mesh, *rule, rule->operands[k], axes);
      if (!t) return ErrorAt(&op, "an operand cannot be cut as its rule says", absl::StatusCode::kInternal);
      local.parts.push_back(Bring(operands[k], *t, reshard));
      local.operands.push_back(local.parts.back().value);
    }
    const std::vector<Shape> leaves = Leaves(op.shape());
    std::vector<Tiling> tilings;
    for (size_t k = 0; k < leaves.size(); ++k) {
      auto t = TilingOfFactors(mesh, *rule, rule->results[k], axes);
      if (!t) return ErrorAt(&op, "the result cannot be cut as its rule says", absl::StatusCode::kInternal);
      t->manual = manual;
      tilings.push_back(*t);
      local.shapes.push_back(LocalShape(mesh, leaves[k], *t));
    }
    const std::vector<Instruction*> values = local.Emit();
    const Axes partial = local.PartialAxes();
    for (size_t k = 0; k < leaves.size(); ++k) out.push_back({values[k], tilings[k], leaves[k]});
    if (!partial.empty() && local.TakesAll()) {
      out = local.OfAll(out, wanted);
    } else if (!partial.empty()) {
      for (size_t k = 0; k < out.size(); ++k)
        out[k] = reshard->Combine(out[k], partial, local.Combiner(k), Settled(mesh, out[k], wanted[k]));
    }
    if (partial.empty()) RememberRecipe(op, local.parts, out[0], reshard);
  }
  for (size_t k = 0; k < out.size(); ++k)
    if (out[k].whole.IsArray() && !(IsOfBatches(op) && wanted[k].IsWhole()))
      out[k] = Bring(out[k], Settled(mesh, out[k], wanted[k]), reshard);
  return out;
}

}  // namespace kiln
