// Shardings pass from the values that a user wrote them on to all others, along the factors that dimensions share.
//
// In rounds: first through operations that only name, move or combine elements, then through all but broadcasts to more
// elements, then from these to their operands, then through everything, and last where dimensions are cut unevenly. In
// a round every operation is looked at in order and in reverse until nothing changes; what loops, branches and calls
// compute stands in this order where they do. A value's tiling only grows: axes are added behind those that it has,
// where they divide the dimension and cut nothing else of the value. What a user wrote stays.
//
// Where two operations would cut a value along other axes, the order decides: the program is partitioned for each of a
// few orders, and the one whose partition costs least is kept.
#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>

#include "compiler/pass/pass.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/sharding/partition_cost.h"
#include "compiler/passes/sharding/shardings.h"

namespace kiln {
namespace {

enum Round { kNames, kMost, kBroadcastOperands, kAll, kUneven, kRounds };

// Where operations disagree about a value, the first that is looked at decides. None of the orders is the best for all
// programs.
struct Way {
  bool names_last = false;   // tuples, loops, branches, calls and constraints are looked at after all operations
  bool backwards = false;    // from the results, first
  bool last_factor = false;  // of factors of equal size an operation's last one decides
};
constexpr Way kWays[] = {{}, {.names_last = true}, {.backwards = true}, {.last_factor = true}};

// What another order has to save.
constexpr double kGain = 0.95;

struct Item {
  LeafSharding* leaf;
  OpRule::Tensor dims;
  Round from;  // the first round in which it may change
};

// Arrays whose dimensions correspond.
struct Relation {
  OpRule rule;
  std::vector<Item> items;
  bool even = false;  // takes no part where dimensions are cut unevenly
  int changes = -1;   // of its items, when it was last looked at in this round

  // Whether there is something to look at.
  bool HasChanged() {
    const int before = changes;
    changes = 0;
    for (const Item& i : items) changes += i.leaf->changes;
    return changes != before;
  }
};

// To more elements: what is cut of the result need not be of the operand.
bool Repeats(const Instruction& i) {
  return i.Is(Opcode::Broadcast) && i.shape().ElementCount() > i.operand(0)->shape().ElementCount();
}

bool OnlyMoves(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Broadcast:
      return !Repeats(i);
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
      return true;
    default:
      return i.IsElementwise();
  }
}

Relation Same(const LeafEdge& e) {
  Relation r;
  OpRule::Tensor t;
  for (int64_t n : e.to->shape.dims()) t.push_back({r.rule.Add(n)});
  r.items = {{e.from, t, kNames}, {e.to, t, kNames}};
  return r;
}

Relation Across(const LeafBoundary& b) {
  Relation r;
  r.rule = BoundaryRule(b.outside->shape.dims(), b.inside->shape.dims());
  r.items = {{b.outside, r.rule.operands[0], kNames}, {b.inside, r.rule.results[0], kNames}};
  return r;
}

Relation RelationOf(const Instruction& i, const OpRule& rule, ModuleShardings* all) {
  Relation r;
  r.rule = rule;
  const Round round = OnlyMoves(i) ? kNames : kMost;
  const bool broadcast = Repeats(i);
  const std::vector<const Instruction*> operands = RuleOperands(i);
  for (size_t k = 0; k < operands.size(); ++k)
    r.items.push_back({&all->Of(operands[k])[0], rule.operands[k], broadcast ? kBroadcastOperands : round});
  for (size_t k = 0; k < rule.results.size(); ++k)
    r.items.push_back({&all->Of(&i)[k], rule.results[k], broadcast ? kAll : round});
  return r;
}

// What cuts a dimension of an operand that has to be whole, cuts another of the results.
void AddMoves(const Instruction& i, const OpRule& rule, ModuleShardings* all, std::vector<Relation>* out) {
  for (size_t k = 0; k < rule.operands.size(); ++k)
    for (size_t d = 0; d < rule.operands[k].size(); ++d)
      for (size_t e = 0; e < rule.operands[k].size() && rule.operands[k][d].empty(); ++e) {
        const std::vector<int>& to = rule.operands[k][e];
        if (to.size() != 1) continue;
        Relation r;
        r.even = true;
        const int f = r.rule.Add(rule.sizes[static_cast<size_t>(to[0])]);
        OpRule::Tensor operand(rule.operands[k].size());
        operand[d] = {f};
        r.items.push_back({&all->Of(i.operand(static_cast<int64_t>(k)))[0], operand, kRounds});
        for (size_t n = 0; n < rule.results.size(); ++n) {
          OpRule::Tensor result(rule.results[n].size());
          for (size_t dim = 0; dim < result.size(); ++dim)
            if (rule.results[n][dim] == to) result[dim] = {f};
          r.items.push_back({&all->Of(&i)[n], result, kMost});
        }
        out->push_back(std::move(r));
      }
}

// No device is without a part of a dimension of factor `f`.
bool HasPartForEach(const DeviceMesh& mesh, const Item& item, int f, const Axes& axes) {
  for (size_t d = 0; d < item.dims.size(); ++d)
    if (std::find(item.dims[d].begin(), item.dims[d].end(), f) != item.dims[d].end() &&
        item.leaf->shape.dims()[d] < mesh.SizeOf(axes))
      return false;
  return true;
}

// Appends axes of `better` to what the item has of factor `f`, as far as they fit. True if any did.
bool Extend(const DeviceMesh& mesh, Round round, const OpRule& rule, int f, const Axes& better, Item* item) {
  LeafSharding& leaf = *item->leaf;
  std::vector<Axes> axes = AxesOfFactors(mesh, rule, item->dims, leaf.tiling);
  Axes& own = axes[static_cast<size_t>(f)];
  // A factor among several of a dimension is cut evenly in every round.
  bool even = round != kUneven || leaf.even;
  for (const auto& d : item->dims) even = even || (d.size() > 1 && std::find(d.begin(), d.end(), f) != d.end());
  const bool has_factor = std::any_of(item->dims.begin(), item->dims.end(), [&](const std::vector<int>& d) {
    return std::find(d.begin(), d.end(), f) != d.end();
  });
  if (!has_factor || own.size() >= better.size() || !std::equal(own.begin(), own.end(), better.begin())) return false;
  bool any = false;
  for (size_t k = own.size(); k < better.size(); ++k) {
    if (leaf.tiling.Used() >> better[k] & 1) break;
    own.push_back(better[k]);
    if (even && rule.sizes[static_cast<size_t>(f)] % mesh.SizeOf(own)) break;
    if (!even && !HasPartForEach(mesh, *item, f, own)) break;
    auto next = TilingOfFactors(mesh, rule, item->dims, axes);
    if (!next) break;
    next->manual = leaf.tiling.manual;
    bool grows = true;
    for (size_t d = 0; d < next->dims.size(); ++d) {
      const Axes &before = leaf.tiling.dims[d], &after = next->dims[d];
      grows = grows && after.size() >= before.size() && std::equal(before.begin(), before.end(), after.begin()) &&
              (after.size() == before.size() || !leaf.closed[d]);
    }
    if (!grows) break;
    leaf.tiling = *next;
    ++leaf.changes;
    any = true;
  }
  return any;
}

bool Visit(const DeviceMesh& mesh, Round round, const Way& way, Relation* r) {
  std::vector<std::vector<Axes>> has;
  bool any = false;
  for (const Item& i : r->items) {
    has.push_back(AxesOfFactors(mesh, r->rule, i.dims, i.leaf->tiling));
    any = any || !i.leaf->tiling.IsWhole();
  }
  if (!any) return false;
  // Of each factor, the longest list of axes; of equals that of the largest array.
  struct Best {
    int factor;
    Axes axes;
    int64_t bytes;
  };
  std::vector<Best> best;
  for (size_t f = 0; f < r->rule.sizes.size(); ++f) {
    Best b{static_cast<int>(f), {}, -1};
    for (size_t k = 0; k < r->items.size(); ++k) {
      const int64_t bytes = r->items[k].leaf->shape.ByteSize();
      const int64_t n = mesh.SizeOf(has[k][f]), m = mesh.SizeOf(b.axes);
      if (n > m || (n == m && n > 1 && bytes > b.bytes)) b = {static_cast<int>(f), has[k][f], bytes};
    }
    if (!b.axes.empty()) best.push_back(std::move(b));
  }
  if (way.last_factor) std::reverse(best.begin(), best.end());
  std::stable_sort(best.begin(), best.end(), [](const Best& a, const Best& b) { return a.bytes > b.bytes; });
  bool changed = false;
  for (const Best& b : best)
    for (Item& i : r->items)
      if (i.from <= round) changed = Extend(mesh, round, r->rule, b.factor, b.axes, &i) || changed;
  return changed;
}

// Instructions as a run comes to them: what they call is before them.
void InOrder(const Computation* c, std::vector<const Instruction*>* out) {
  for (const Instruction* i : c->PostOrder()) {
    if (i->Is(Opcode::While)) InOrder(*i->attrs().condition, out), InOrder(*i->attrs().body, out);
    if (i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
      for (const Computation* callee : i->called()) InOrder(callee, out);
    out->push_back(i);
  }
}

std::vector<Relation> RelationsOf(const Module& m, const Way& way, ModuleShardings* all) {
  std::vector<const Instruction*> order;
  InOrder(m.entry(), &order);
  std::map<const LeafSharding*, size_t> places;
  std::vector<std::vector<Relation>> at(order.size() + 1);
  for (size_t k = 0; k < order.size(); ++k) {
    std::vector<LeafSharding>& leaves = all->Of(order[k]);
    for (const LeafSharding& leaf : leaves) places[&leaf] = k;
    const AxisMask manual = leaves.empty() ? 0 : leaves[0].tiling.manual;
    std::optional<OpRule> rule = RuleOf(*order[k]);
    if (!rule && manual) rule = WrittenCollectiveRule(*order[k], all->mesh(), manual);
    if (!rule) continue;
    at[k].push_back(RelationOf(*order[k], *rule, all));
    if (IsOfBatches(*order[k])) AddMoves(*order[k], *rule, all, &at[k]);
  }
  // Beside the leaf that takes the value; what a manual region takes is no instruction's, and stands beside its source.
  const auto place = [&](const LeafSharding* to, const LeafSharding* from) {
    if (way.names_last) return order.size();
    const auto found = places.find(to);
    return found != places.end() ? found->second : places.at(from);
  };
  for (const LeafBoundary& b : all->boundaries()) at[place(b.inside, b.outside)].push_back(Across(b));
  for (const LeafEdge& e : all->edges())
    if (e.from->shape.IsArray() && e.from->shape.dims() == e.to->shape.dims())
      at[place(e.to, e.from)].push_back(Same(e));
  std::vector<Relation> out;
  for (std::vector<Relation>& r : at) std::move(r.begin(), r.end(), std::back_inserter(out));
  return out;
}

// What only the caller takes is put together from uneven parts, unless it asks for these: values that are larger than
// what they are made of are not cut so.
void KeepEven(const Module& m, ModuleShardings* all) {
  const Instruction* root = m.entry()->root();
  if (!root->Is(Opcode::Tuple) || all->Of(root).size() != static_cast<size_t>(root->operand_count())) return;
  for (int64_t k = 0; k < root->operand_count(); ++k) {
    const Instruction* i = root->operand(k);
    LeafSharding& leaf = all->Of(i)[0];
    if (i->users().size() != 1 || leaf.written || all->Of(root)[static_cast<size_t>(k)].written) continue;
    int64_t taken = 0;
    const std::vector<const Instruction*> operands = RuleOperands(*i);
    for (auto o = operands.begin(); o != operands.end(); ++o)
      if (std::find(operands.begin(), o, *o) == o) taken += (*o)->shape().ByteSize();
    leaf.even = taken > 0 && leaf.shape.ByteSize() > taken;
  }
}

void Spread(const Module& m, const Way& way, ModuleShardings* all) {
  KeepEven(m, all);
  std::vector<Relation> relations = RelationsOf(m, way, all);
  for (int round = kNames; round < kRounds; ++round) {
    for (Relation& r : relations) r.changes = -1;
    const auto look = [&](Relation* r) {
      return (round != kUneven || !r->even) && r->HasChanged() && Visit(all->mesh(), static_cast<Round>(round), way, r);
    };
    const auto back = [&] {
      bool any = false;
      for (size_t k = relations.size(); k-- > 0;) any = look(&relations[k]) || any;
      return any;
    };
    if (way.backwards) back();
    for (bool again = true; again;) {
      again = false;
      for (Relation& r : relations) again = look(&r) || again;
      again = back() || again;
    }
  }
}

std::vector<Tiling> TilingsOf(ModuleShardings* all) {
  std::vector<Tiling> out;
  for (const Computation* c : all->computations())
    for (const Instruction* i : c->PostOrder())
      for (const LeafSharding& leaf : all->Of(i)) out.push_back(leaf.tiling);
  return out;
}

double CostWith(const std::vector<Tiling>& tilings, const Module& m) {
  const std::unique_ptr<Module> copy = m.Clone();
  PassContext ctx;
  ModuleShardings all;
  if (!all.Read(copy.get()).ok()) return HUGE_VAL;
  size_t k = 0;
  for (const Computation* c : all.computations())
    for (const Instruction* i : c->PostOrder())
      for (LeafSharding& leaf : all.Of(i)) {
        if (leaf.tiling != tilings[k]) ++leaf.changes;
        leaf.tiling = tilings[k++];
      }
  all.Write();
  return SpmdPartitioner(*copy, ctx).ok() ? CostOfPartition(*copy) : HUGE_VAL;
}

// What partitions cost is looked at where they differ.
size_t BestOf(const Module& m, std::deque<ModuleShardings>* spread) {
  std::vector<std::vector<Tiling>> seen;
  size_t best = 0;
  double least = 0;
  for (size_t k = 0; k < spread->size(); ++k) {
    seen.push_back(TilingsOf(&(*spread)[k]));
    if (k == 0 || std::find(seen.begin(), seen.end() - 1, seen[k]) != seen.end() - 1) continue;
    if (least == 0) least = CostWith(seen[0], m) * kGain;
    if (const double c = CostWith(seen[k], m); c < least) {
      least = c;
      best = k;
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<bool> ShardingPropagation(Module& m, PassContext& ctx) {
  if (ctx.fuel == 0) return false;
  std::deque<ModuleShardings> spread;
  for (const Way& way : kWays) {
    ModuleShardings& all = spread.emplace_back();
    RETURN_IF_ERROR(all.Read(&m));
    if (!all.cuts_anything() || all.mesh().axis_count() == 0) return all.separated();
    Spread(m, way, &all);
  }
  const bool changed = spread[BestOf(m, &spread)].Write();
  if (changed) ctx.Take();
  return changed || spread[0].separated();
}

}  // namespace kiln
