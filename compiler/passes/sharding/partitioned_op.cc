#include "compiler/passes/sharding/partitioned_op.h"

#include <algorithm>

#include "compiler/analysis/cost.h"
#include "compiler/passes/sharding/remake.h"
#include "compiler/passes/sharding/sort_exchange.h"

namespace kiln {
namespace {

constexpr int64_t kMostWays = 512;

struct Candidate {
  int agreeing = 0;
  int64_t bytes = 0;
  int factor = -1, axis = -1;
  bool of_whole = false;  // uneven parts that no operand has, where nothing else takes the axis
  bool Better(const Candidate& o) const {
    if (of_whole != o.of_whole) return o.of_whole;
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

std::vector<Tensor> TensorsOf(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule,
                              const std::vector<Part>& operands, const std::vector<Tiling>& wanted) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < rule.operands.size(); ++k)
    out.push_back({&rule.operands[k], AxesOfFactors(mesh, rule, rule.operands[k], operands[k].tiling),
                   operands[k].whole.ByteSize(), operands[k].whole.dims(), false});
  const std::vector<Shape> leaves = Leaves(op.shape());
  for (size_t k = 0; k < rule.results.size(); ++k)
    out.push_back({&rule.results[k], AxesOfFactors(mesh, rule, rule.results[k], wanted[k]), leaves[k].ByteSize(),
                   leaves[k].dims(), true});
  return out;
}

bool Fits(const DeviceMesh& mesh, const OpRule& rule, const std::vector<Tensor>& tensors,
          const std::vector<Axes>& axes) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& t) { return TilingOfFactors(mesh, rule, *t.dims, axes).has_value(); });
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

// A part takes less work than the whole; what only moves elements may as well be cut by who takes them.
bool IsLessInParts(const Instruction& op) {
  return op.IsElementwise() || op.Is(Opcode::Dot) || op.Is(Opcode::Convolution) || op.Is(Opcode::Reduce) ||
         op.Is(Opcode::ReduceWindow) || op.Is(Opcode::Broadcast) || op.Is(Opcode::Iota);
}

// Uneven parts of factor `f`: an operand has them and results are to have them, or are so small that they had better be
// moved than the operand; or all results are to have them, and a device takes its part of operands that are whole.
bool IsMadeUneven(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule, const std::vector<Tensor>& tensors,
                  int f, const Axes& axes) {
  if (!MayBeUneven(op, rule, f) || !FillsParts(rule, tensors, f, mesh.SizeOf(axes))) return false;
  int64_t given = 0, moved = 0;
  bool whole = true;
  for (const Tensor& t : tensors) {
    if (!Has(*t.dims, f)) continue;
    whole = whole && (t.result || t.has[static_cast<size_t>(f)].empty());
    const bool cut = StartsWith(t.has[static_cast<size_t>(f)], axes);
    if (t.result && !cut) moved += t.bytes;
    if (!t.result && cut) given += t.bytes;
  }
  return whole ? moved == 0 && IsLessInParts(op) : given > 0 && moved * 2 <= given;
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

// Stretches of an operand that is whole along a dimension, or was, are slices of it.
std::optional<Tiling> TilingOfOperand(const Instruction& op, const OpRule& rule, size_t k, const Part& p,
                                      const std::vector<Axes>& axes, const Resharder& reshard) {
  auto t = TilingOfFactors(reshard.mesh(), rule, rule.operands[k], axes);
  if (!t || !TakesStretch(op, k) || PlacedOf(op)) return t;
  for (size_t d = 0; d < t->dims.size(); ++d) {
    if (rule.operands[k][d].empty() || !rule.IsWindow(rule.operands[k][d][0]) || t->dims[d].empty()) continue;
    Tiling whole = *t;
    whole.dims[d].clear();
    if (reshard.IsFree(p, whole)) t = whole;
  }
  return t;
}

// A part of it is made, not moved.
bool IsSplat(const Instruction& i) {
  if (i.Is(Opcode::Constant)) return i.literal().IsSplat();
  return i.Is(Opcode::Broadcast) && i.operand(0)->shape().IsScalar();
}

// What an operation over parts costs, in bytes of exchanges.
class AxesCost {
 public:
  AxesCost(const Instruction& op, const OpRule& rule, const std::vector<Part>& operands,
           const std::vector<Tiling>& wanted, const Resharder& reshard)
      : op_(op), rule_(rule), operands_(operands), wanted_(wanted), reshard_(reshard), mesh_(reshard.mesh()) {
    flops_ = op.Is(Opcode::Dot) || op.Is(Opcode::Convolution) ? CostOfKernel(&op).flops : 0;
  }

  int64_t Exchanged(const std::vector<Axes>& axes) const {
    int64_t sum = 0;
    for (size_t k = 0; k < operands_.size(); ++k) {
      const Part& p = operands_[k];
      const auto t = TilingOfOperand(op_, rule_, k, p, axes, reshard_);
      if (!IsSplat(*p.value) && !reshard_.Known(p, *t)) sum += reshard_.BytesTo(p, *t);
      for (size_t d = 0; d < t->dims.size(); ++d) sum += Fetched(k, d, LocalShape(mesh_, p.whole, *t), axes);
    }
    const std::vector<Shape> leaves = Leaves(op_.shape());
    for (size_t k = 0; k < leaves.size(); ++k)
      sum += OfResult({nullptr, *TilingOfFactors(mesh_, rule_, rule_.results[k], axes), leaves[k]}, wanted_[k], axes);
    return sum;
  }

  // What a device computes and writes counts as little beside what it exchanges.
  int64_t All(const std::vector<Axes>& axes) const {
    int64_t parts = 1, written = 0;
    for (const Axes& of : axes) parts *= mesh_.SizeOf(of);
    const std::vector<Shape> leaves = Leaves(op_.shape());
    for (size_t k = 0; k < leaves.size(); ++k)
      written += LocalShape(mesh_, leaves[k], *TilingOfFactors(mesh_, rule_, rule_.results[k], axes)).ByteSize();
    return Exchanged(axes) + flops_ / parts / kFlopsOfByte + written / kWrittenOfByte;
  }

 private:
  static constexpr int64_t kFlopsOfByte = 64, kWrittenOfByte = 8;

  // What a part of window takes of neighbours' parts along dimension `d` of operand `k`, of the shape `local`.
  int64_t Fetched(size_t k, size_t d, const Shape& local, const std::vector<Axes>& axes) const {
    const std::vector<int>& of = rule_.operands[k][d];
    const int64_t extent = operands_[k].whole.dims()[d], part = local.dims()[d];
    if (of.empty() || !rule_.IsWindow(of[0]) || part == extent || !TakesStretch(op_, k)) return 0;
    const int64_t parts = mesh_.SizeOf(axes[static_cast<size_t>(of[0])]);
    const auto s = StretchOf(op_, k, d, parts);
    if (!s) return 0;
    int64_t most = 0;
    for (int64_t i = 0; i < parts; ++i) {
      int64_t first = s->first + (s->shift + i * s->step) / s->over, end = first + s->count;
      if (!RotationOf(op_)) first = std::clamp<int64_t>(first, 0, extent), end = std::clamp<int64_t>(end, 0, extent);
      const int64_t own = std::max<int64_t>(0, std::min(end, (i + 1) * part) - std::max(first, i * part));
      most = std::max(most, end - first - own);
    }
    return most == 0 ? 0 : kPathExchange + most * (local.ByteSize() / std::max<int64_t>(1, part));
  }

  int64_t OfResult(Part p, const Tiling& wanted, const std::vector<Axes>& axes) const {
    const Tiling target = Settled(mesh_, p, wanted);
    Axes partial;
    for (size_t f = 0; f < axes.size(); ++f)
      if (const auto kind = rule_.kinds[f]; kind == OpRule::kReduction || kind == OpRule::kLookup ||
                                            kind == OpRule::kUpdates || kind == OpRule::kWindowSum)
        partial.insert(partial.end(), axes[f].begin(), axes[f].end());
    int64_t sum = 0;
    // As the resharder combines them: what the target cuts along these axes is scattered.
    for (size_t d = 0; d < target.dims.size(); ++d) {
      Axes& has = p.tiling.dims[d];
      const int64_t before = LocalShape(mesh_, p.whole, p.tiling).ByteSize();
      const size_t cut = has.size();
      while (StartsWith(target.dims[d], has) && has.size() < target.dims[d].size()) {
        const auto at = std::find(partial.begin(), partial.end(), target.dims[d][has.size()]);
        if (at == partial.end()) break;
        has.push_back(*at);
        partial.erase(at);
      }
      if (has.size() > cut) sum += kPathExchange + before;
    }
    const int64_t bytes = LocalShape(mesh_, p.whole, p.tiling).ByteSize();
    if (!partial.empty()) sum += kPathExchange + bytes;
    const auto path = CheapestPath(mesh_, p.whole, p.tiling, target);
    return sum + (path ? path->cost : std::max(bytes, LocalShape(mesh_, p.whole, target).ByteSize()));
  }

  const Instruction& op_;
  const OpRule& rule_;
  const std::vector<Part>& operands_;
  const std::vector<Tiling>& wanted_;
  const Resharder& reshard_;
  const DeviceMesh& mesh_;
  int64_t flops_;
};

// Of the axes that operands have and results are to have of each factor, those with the cheapest exchanges.
std::vector<Axes> CheaperAxes(const Instruction& op, const OpRule& rule, const std::vector<Part>& operands,
                              const std::vector<Tiling>& wanted, AxisMask manual, const std::vector<Axes>& chosen,
                              const Resharder& reshard) {
  const DeviceMesh& mesh = reshard.mesh();
  const std::vector<Tensor> tensors = TensorsOf(mesh, op, rule, operands, wanted);
  bool even = !manual && !IsOfBatches(op) && !op.Is(Opcode::TopK) &&
              !(op.Is(Opcode::Reduce) && CombinersOf(**op.attrs().to_apply).empty());
  for (const Part& p : operands) even = even && CutsEvenly(mesh, p.whole.dims(), p.tiling);
  for (size_t k = 0; k < wanted.size(); ++k)
    even = even && CutsEvenly(mesh, tensors[operands.size() + k].extents, wanted[k]);
  if (!even) return chosen;
  const AxesCost cost(op, rule, operands, wanted, reshard);
  if (cost.Exchanged(chosen) < kPathExchange) return chosen;
  std::vector<std::vector<Axes>> options(rule.sizes.size());
  int64_t ways = 1;
  for (size_t f = 0; f < options.size(); ++f) {
    options[f].push_back(chosen[f]);
    for (const Tensor& t : tensors)
      for (size_t n = 0; n <= t.has[f].size(); ++n) {
        const Axes axes(t.has[f].begin(), t.has[f].begin() + static_cast<std::ptrdiff_t>(n));
        const bool fits = rule.sizes[f] % mesh.SizeOf(axes) == 0;
        if (fits && std::find(options[f].begin(), options[f].end(), axes) == options[f].end())
          options[f].push_back(axes);
      }
    ways *= static_cast<int64_t>(options[f].size());
    if (ways > kMostWays) return chosen;
  }
  std::vector<Axes> best = chosen;
  int64_t least = cost.All(chosen);
  for (int64_t way = 1; way < ways; ++way) {
    std::vector<Axes> axes(options.size());
    AxisMask used = 0;
    bool fits = true;
    int64_t rest = way;
    for (size_t f = 0; f < options.size(); ++f) {
      const auto n = static_cast<int64_t>(options[f].size());
      axes[f] = options[f][static_cast<size_t>(rest % n)];
      rest /= n;
      fits = fits && !(used & MaskOf(axes[f]));
      used |= MaskOf(axes[f]);
    }
    if (!fits || !Fits(mesh, rule, tensors, axes) || !PartsAreAlike(mesh, op, rule, axes)) continue;
    if (const int64_t c = cost.All(axes); c < least) {
      least = c;
      best = std::move(axes);
    }
  }
  return best;
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

// Every dimension is cut along the axes of `t`, and maybe further.
bool IsFiner(const Tiling& than, const Tiling& t) {
  for (size_t d = 0; d < t.dims.size(); ++d)
    if (!StartsWith(than.dims[d], t.dims[d])) return false;
  return true;
}

}  // namespace

std::vector<Axes> ChooseAxes(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule,
                             const std::vector<Part>& operands, const std::vector<Tiling>& wanted, AxisMask manual) {
  const std::vector<Tensor> tensors = TensorsOf(mesh, op, rule, operands, wanted);
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
        if (rule.kinds[f] != OpRule::kLookup && IsLookedUp(op, rule, tensors, next.back())) continue;
        Candidate c;
        c.of_whole = rule.sizes[f] % mesh.SizeOf(next) != 0;
        if (c.of_whole && !IsMadeUneven(mesh, op, rule, tensors, static_cast<int>(f), next)) continue;
        c.factor = static_cast<int>(f);
        c.axis = next.back();
        for (const Tensor& t : tensors)
          if (StartsWith(t.has[f], next)) {
            c.of_whole = c.of_whole && t.result;
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
    const std::vector<Axes> axes = CheaperAxes(op, *rule, operands, wanted, manual,
                                               ChooseAxes(mesh, op, *rule, operands, wanted, manual), *reshard);
    LocalOp local{op, *rule, axes, *reshard, {}, {}, {}};
    for (size_t k = 0; k < operands.size(); ++k) {
      const auto t = TilingOfOperand(op, *rule, k, operands[k], axes, *reshard);
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
    if (out[k].whole.IsArray() && !(IsOfBatches(op) && IsFiner(out[k].tiling, wanted[k])))
      out[k] = BringResult(op, out[k], Settled(mesh, out[k], wanted[k]), reshard);
  return out;
}

}  // namespace kiln
