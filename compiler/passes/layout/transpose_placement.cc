// Values around convolutions, and between transposes of rows, are held in the order of dimensions that leaves the
// fewest bytes to transpose.
//
// What: for each order P that convolutions read or write, or that stands on a side of a large transpose of rows, every
//   value that can be computed in either order (elementwise, broadcast, window, pad, slice, concatenate, reduce) is
//   given one: as written, or permuted by P.
// Why: canonical convolutions are channels-last. In a program that was written channels-first, each would otherwise sit
//   between two transposes of whole activations; the parameters and results alone have to be transposed. Attention that
//   is mapped over an axis (jax.vmap) has its scores transposed in front of the softmax and back behind it.
// How: a minimum cut. Source side: as written; sink side: permuted. A value whose users stand on the other side costs
//   its bytes once, however many they are; parameters, results and operations not listed stay as written. A dot takes
//   either order of an operand, at the cost of what has to be transposed for it.
// Guarantees: nothing changes unless fewer bytes are transposed. Sums of a reduction may run in another order.
// Cost: one maximum flow over the values of each computation for each order.
#include <algorithm>
#include <set>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/layout/flow_network.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

Ints Inverse(const Ints& p) {
  Ints inverse(p.size());
  for (size_t k = 0; k < p.size(); ++k) inverse[p[k]] = static_cast<int64_t>(k);
  return inverse;
}

template <typename T>
std::vector<T> Gathered(const std::vector<T>& v, const Ints& order) {
  std::vector<T> out;
  for (const int64_t k : order) out.push_back(v[k]);
  return out;
}

bool TransposesBy(const Instruction* i, const Ints& p) {
  return i->Is(Opcode::Transpose) && *i->attrs().dimensions == p;
}

// Whether transpose `i` leaves its rows whole.
bool MovesRows(const Instruction* i) {
  const Shape& s = i->shape();
  return i->Is(Opcode::Transpose) && i->attrs().dimensions->back() == s.rank() - 1 &&
         s.dim(s.rank() - 1) * ByteWidth(s.type()) >= kShortestRow;
}

// Whether a product of matrices reads an array of `s` as it is: its batch first, then what it keeps and what it
// contracts, in either order. Extents of 1 do not matter.
bool InOrder(const Shape& s, DotSide side) {
  std::sort(side.free.begin(), side.free.end());
  return Ascend(s, {side.batch, side.free, side.contracting}) || Ascend(s, {side.batch, side.contracting, side.free});
}

// The operands [first, last) of `i` that have its order of dimensions; none if `i` has to stay as written.
struct DataOperands {
  int64_t first = 0, last = 0;
};

std::optional<DataOperands> Movable(const Instruction* i, int64_t rank) {
  if (!i->control_predecessors().empty() || !i->control_successors().empty() || i->shape().HasDynamic() ||
      !i->shape().IsArray() || i->HasSideEffect())
    return std::nullopt;
  for (const Instruction* o : i->operands())
    if (o->shape().HasDynamic()) return std::nullopt;
  if (i->Is(Opcode::Reduce) && i->operand_count() == 2 && i->operand(0)->shape().rank() == rank &&
      !i->attrs().dimensions->empty())
    return DataOperands{0, 1};
  if (i->shape().rank() != rank) return std::nullopt;
  if (i->IsElementwise()) return DataOperands{0, i->operand_count()};
  switch (i->opcode()) {
    case Opcode::Broadcast:
      return DataOperands{};
    case Opcode::Concatenate:
      return DataOperands{0, i->operand_count()};
    case Opcode::DynamicUpdateSlice:
    case Opcode::SelectAndScatter:
      return DataOperands{0, 2};
    case Opcode::DynamicSlice:
    case Opcode::Pad:
    case Opcode::Reverse:
    case Opcode::Slice:
      return DataOperands{0, 1};
    case Opcode::ReduceWindow:
      return i->operand_count() == 2 ? std::optional(DataOperands{0, 1}) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// Where the dimensions of a broadcast's operand lie in the permuted result, and the order that makes this ascend.
struct PermutedBroadcast {
  Ints order, dims;
  PermutedBroadcast(const Ints& dims_as_written, const Ints& inverse) {
    std::vector<std::pair<int64_t, int64_t>> at;
    for (size_t k = 0; k < dims_as_written.size(); ++k)
      at.emplace_back(inverse[dims_as_written[k]], static_cast<int64_t>(k));
    std::sort(at.begin(), at.end());
    for (const auto& [position, k] : at) {
      dims.push_back(position);
      order.push_back(k);
    }
  }
  bool Ascends() const { return std::is_sorted(order.begin(), order.end()); }
};

// The orders of one computation's values with respect to one permutation.
class Placement {
 public:
  Placement(Computation* c, Ints permutation)
      : c_(c),
        p_(std::move(permutation)),
        inverse_(Inverse(p_)),
        rank_(static_cast<int64_t>(p_.size())),
        order_(c->PostOrder()) {}

  // True if the computation changed.
  bool Run() {
    const int64_t cost_as_written = Build();
    if (cost_as_written == 0 || flow_.MaximumFlow(kSource, kSink) >= cost_as_written) return false;
    const std::vector<bool> permuted = flow_.ReachesSink(kSink);
    std::vector<Instruction*> moved;
    for (Instruction* i : order_)
      if (const auto n = nodes_.find(i); n != nodes_.end() && permuted[n->second]) moved.push_back(i);
    if (moved.empty()) return false;
    for (Instruction* i : moved) Move(i);
    for (auto i = moved.rbegin(); i != moved.rend(); ++i) Retire(*i);
    for (Instruction* i : transposes_passed_)
      if (i->users().empty() && !i->IsRoot()) c_->Remove(i);
    return true;
  }

 private:
  static constexpr int kSource = 0, kSink = 1;

  // Whether `i` is the permuted form of its operand, or its operand the permuted form of `i`. Where both could be said,
  // what a convolution gives is permuted.
  bool ToPermuted(const Instruction* i) const { return TransposesBy(i, p_) && !(p_ == inverse_ && OfConvolution(i)); }
  bool FromPermuted(const Instruction* i) const {
    return TransposesBy(i, inverse_) && (p_ != inverse_ || OfConvolution(i));
  }
  static bool OfConvolution(const Instruction* i) { return i->operand(0)->Is(Opcode::Convolution); }

  bool IsData(const Instruction* user, int64_t operand) const {
    const auto m = Movable(user, rank_);
    return m && operand >= m->first && operand < m->last;
  }

  // Fills the network; the bytes that are transposed if every value stays as written.
  int64_t Build() {
    flow_.AddNode();
    flow_.AddNode();
    for (Instruction* i : order_)
      if (Movable(i, rank_)) nodes_[i] = flow_.AddNode();
    int64_t cost = 0;
    for (const Instruction* i : order_) {
      if (!i->shape().IsArray() || i->shape().rank() != rank_) continue;
      if (i->Is(Opcode::Broadcast) && i->operand(0)->shape().IsScalar()) continue;  // free in either order
      cost += AddValue(i);
    }
    for (const auto& i : order_) AddOwnCost(i);
    return cost;
  }

  // Edges of a value whose users may want it in both orders.
  int64_t AddValue(const Instruction* i) {
    const bool available = FromPermuted(i);
    const auto node = nodes_.find(i);
    const int own = available ? kSink : node == nodes_.end() ? kSource : node->second;
    const int64_t bytes = i->shape().ByteSize();
    const int to_permuted = own == kSink ? -1 : flow_.AddNode(), to_written = own == kSource ? -1 : flow_.AddNode();
    if (to_permuted >= 0) flow_.AddEdge(own, to_permuted, bytes);
    if (to_written >= 0) flow_.AddEdge(to_written, own, bytes);
    bool wanted_as_written = i->IsRoot(), wanted_permuted = false;
    auto use_by = [&](int user) {
      if (to_permuted >= 0) flow_.AddEdge(to_permuted, user, FlowNetwork::kUnlimited);
      if (to_written >= 0) flow_.AddEdge(user, to_written, FlowNetwork::kUnlimited);
    };
    int64_t cost = 0;
    for (const Instruction* u : i->users()) {
      if (ToPermuted(u)) {
        wanted_permuted = true;
        continue;
      }
      if (node != nodes_.end() && TakesEither(i, u)) {
        if (!u->Is(Opcode::Dot)) continue;
        const DotCosts costs = CostsInDot(u, u->OperandIndex(i));
        flow_.AddEdge(own, kSink, costs.written);
        flow_.AddEdge(kSource, own, costs.permuted);
        cost += costs.written;
        continue;
      }
      for (int64_t k = 0; k < u->operand_count(); ++k) {
        if (u->operand(k) != i) continue;
        const auto user = nodes_.find(u);
        wanted_as_written = true;
        use_by(user != nodes_.end() && IsData(u, k) ? user->second : kSource);
      }
    }
    if (i->IsRoot()) use_by(kSource);
    if (wanted_permuted) use_by(kSink);
    return cost + (available ? (wanted_as_written ? bytes : 0) : wanted_permuted ? bytes : 0);
  }

  // The dimensions of a dot's operand by where the permuted form has them.
  DotSide PermutedSide(DotSide side) const {
    for (Ints* dims : {&side.batch, &side.contracting, &side.free})
      for (int64_t& d : *dims) d = inverse_[d];
    return side;
  }

  // What a dot has transposed for an operand in either order.
  struct DotCosts {
    int64_t written = 0, permuted = 0;
  };
  DotCosts CostsInDot(const Instruction* dot, int64_t k) const {
    const Shape& s = dot->operand(k)->shape();
    const DotSide written = SideOf(dot, k), permuted = PermutedSide(written);
    const bool reordered = !std::is_sorted(permuted.free.begin(), permuted.free.end());
    return {InOrder(s, written) ? 0 : s.ByteSize(),
            (InOrder(PermutedShape(s), permuted) ? 0 : s.ByteSize()) + (reordered ? dot->shape().ByteSize() : 0)};
  }

  // Whether either order of `i` serves `user`: a dot by its dimension numbers, with a transpose of its result where
  // that is smaller; a transpose of rows, which becomes one with what is in front of it.
  bool TakesEither(const Instruction* i, const Instruction* user) const {
    if (user->Is(Opcode::Transpose)) return MovesRows(user);
    if (!IsPlainDot(user) || user->operand(0) == user->operand(1) || !user->control_predecessors().empty() ||
        !user->control_successors().empty())
      return false;
    const DotCosts costs = CostsInDot(user, user->OperandIndex(i));
    return costs.permuted <= costs.written + i->shape().ByteSize();
  }

  // What an operation costs by itself on the permuted side.
  void AddOwnCost(const Instruction* i) {
    const auto node = nodes_.find(i);
    if (node == nodes_.end()) return;
    if (i->Is(Opcode::Broadcast) && !PermutedBroadcast(*i->attrs().dimensions, inverse_).Ascends())
      flow_.AddEdge(kSource, node->second, i->operand(0)->shape().ByteSize());
    if (!i->Is(Opcode::Reduce)) return;
    const Ints kept = Kept(i);
    if (!std::is_sorted(kept.begin(), kept.end())) flow_.AddEdge(kSource, node->second, i->shape().ByteSize());
  }

  // The dimensions of its operand that a reduction keeps, in the permuted order.
  Ints Kept(const Instruction* reduce) const {
    Ints kept;
    for (const int64_t d : p_)
      if (const Ints& r = *reduce->attrs().dimensions; std::find(r.begin(), r.end(), d) == r.end()) kept.push_back(d);
    return kept;
  }

  Instruction* Permuted(Instruction* i) {
    if (FromPermuted(i)) {
      if (std::find(transposes_passed_.begin(), transposes_passed_.end(), i) == transposes_passed_.end())
        transposes_passed_.push_back(i);
      return i->operand(0);
    }
    Instruction*& at = permuted_[i];
    if (!at && i->Is(Opcode::Broadcast) && i->operand(0)->shape().IsScalar())
      at = c_->AddClone(i, PermutedShape(i->shape()), {i->operand(0)});
    if (!at) at = TransposeBy(i, p_).get();
    return at;
  }

  Shape PermutedShape(const Shape& s) const { return Shape::Array(s.type(), Gathered(s.dims(), p_)); }

  void Move(Instruction* i) {
    const DataOperands data = *Movable(i, rank_);
    std::vector<Instruction*> operands = i->operands();
    for (int64_t k = data.first; k < data.last; ++k)
      if (operands[k]->shape().rank() == rank_) operands[k] = Permuted(operands[k]);
    if (i->Is(Opcode::Reduce)) return MoveReduce(i, std::move(operands));
    // Start indices follow the dimensions.
    if (i->Is(Opcode::DynamicSlice) || i->Is(Opcode::DynamicUpdateSlice)) {
      const std::vector<Instruction*> starts(operands.end() - rank_, operands.end()), follow = Gathered(starts, p_);
      std::copy(follow.begin(), follow.end(), operands.end() - rank_);
    }
    if (i->Is(Opcode::Broadcast)) {
      const PermutedBroadcast b(*i->attrs().dimensions, inverse_);
      if (!b.Ascends()) operands[0] = TransposeBy(operands[0], b.order).get();
    }
    Instruction* const moved = c_->AddClone(i, PermutedShape(i->shape()), std::move(operands));
    PermuteAttributes(*moved);
    permuted_[i] = moved;
  }

  void PermuteAttributes(Instruction& i) const {
    if (const auto& dims = i.attrs().dimensions) {
      if (i.Is(Opcode::Broadcast)) {
        i.mutable_attrs().dimensions = PermutedBroadcast(*dims, inverse_).dims;
      } else if (i.Is(Opcode::Concatenate) || i.Is(Opcode::Reverse)) {
        Ints at;
        for (const int64_t d : *dims) at.push_back(inverse_[d]);
        std::sort(at.begin(), at.end());
        i.mutable_attrs().dimensions = at;
      }
    }
    if (i.attrs().window) i.mutable_attrs().window = Gathered(*i.attrs().window, p_);
    if (i.attrs().padding) i.mutable_attrs().padding = Gathered(*i.attrs().padding, p_);
    if (i.attrs().slice) i.mutable_attrs().slice = Gathered(*i.attrs().slice, p_);
    if (i.attrs().dynamic_slice_sizes)
      i.mutable_attrs().dynamic_slice_sizes = Gathered(*i.attrs().dynamic_slice_sizes, p_);
  }

  // Its result has another rank: it is given back as written at once.
  void MoveReduce(Instruction* i, std::vector<Instruction*> operands) {
    const Ints kept = Kept(i);
    Ints dims, extents, rank_of(rank_, -1), sorted = kept;
    for (const int64_t d : *i->attrs().dimensions) dims.push_back(inverse_[d]);
    std::sort(dims.begin(), dims.end());
    std::sort(sorted.begin(), sorted.end());
    for (const int64_t d : kept) extents.push_back(i->operand(0)->shape().dim(d));
    Instruction* moved = c_->AddClone(i, Shape::Array(i->shape().type(), extents), std::move(operands));
    moved->mutable_attrs().dimensions = dims;
    if (kept != sorted) {
      for (size_t k = 0; k < kept.size(); ++k) rank_of[kept[k]] = static_cast<int64_t>(k);
      moved = TransposeBy(moved, Gathered(rank_of, sorted)).get();
    }
    i->ReplaceAllUsesWith(moved);
  }

  // Gives the users that want it as written a transpose; the others are gone by now, or take the permuted form.
  void Retire(Instruction* i) {
    if (i->Is(Opcode::Reduce)) return c_->Remove(i);
    Instruction* const moved = permuted_[i];
    for (Instruction* u : std::vector<Instruction*>(i->users())) {
      if (ToPermuted(u))
        u->ReplaceAllUsesWith(moved);
      else if (u->Is(Opcode::Dot) && TakesEither(i, u))
        u->ReplaceAllUsesWith(DotOfPermuted(u, u->OperandIndex(i), moved));
      else
        continue;
      c_->Remove(u);
    }
    if (i->IsRoot() || !i->users().empty()) i->ReplaceAllUsesWith(TransposeBy(moved, inverse_).get());
    c_->Remove(i);
  }

  // `dot` with `moved` for operand `k`.
  Instruction* DotOfPermuted(Instruction* dot, int64_t k, Instruction* moved) const {
    DotSide sides[] = {SideOf(dot, 0), SideOf(dot, 1)};
    sides[k] = PermutedSide(sides[k]);
    std::vector<Instruction*> operands = dot->operands();
    operands[static_cast<size_t>(k)] = moved;
    // Where the result has the dimensions that the operand keeps.
    const Ints& free = sides[k].free;
    Ints sorted = free, order;
    std::sort(sorted.begin(), sorted.end());
    const auto first = static_cast<int64_t>(sides[0].batch.size() + (k ? sides[0].free.size() : 0));
    for (int64_t d = 0; d < dot->shape().rank(); ++d) {
      const bool kept = d >= first && d < first + static_cast<int64_t>(free.size());
      order.push_back(kept ? first + (std::find(sorted.begin(), sorted.end(), free[d - first]) - sorted.begin()) : d);
    }
    const Expr moved_dot = DotLike(dot, operands[0], sides[0], operands[1], sides[1]);
    return std::is_sorted(order.begin(), order.end()) ? moved_dot.get() : TransposeBy(moved_dot, order).get();
  }

  Computation* const c_;
  const Ints p_, inverse_;
  const int64_t rank_;
  const std::vector<Instruction*> order_;
  FlowNetwork flow_;
  absl::flat_hash_map<const Instruction*, int> nodes_;
  absl::flat_hash_map<const Instruction*, Instruction*> permuted_;
  std::vector<Instruction*> transposes_passed_;  // from the permuted order, by users that read it directly now
};

// The orders, other than that of the program, in which convolutions read what was transposed for them, or write what is
// transposed back; and a few of those on both sides of large transposes of rows, and of two that undo each other.
std::vector<Ints> Orders(const Computation& c) {
  constexpr int64_t kLarge = 32 << 10;
  constexpr size_t kMostOthers = 8;
  std::vector<Ints> orders;
  auto add = [&](Ints p) {
    if (std::find(orders.begin(), orders.end(), p) == orders.end()) orders.push_back(std::move(p));
  };
  for (const Instruction* i : c.PostOrder()) {
    if (!i->Is(Opcode::Convolution)) continue;
    for (const Instruction* o : i->operands())
      if (o->Is(Opcode::Transpose)) add(*o->attrs().dimensions);
    for (const Instruction* u : i->users())
      if (u->Is(Opcode::Transpose)) add(Inverse(*u->attrs().dimensions));
  }
  const size_t most = orders.size() + kMostOthers;
  std::vector<const Instruction*> transposes;
  std::set<Ints> permutations;
  for (const Instruction* i : c.PostOrder()) {
    if (!i->Is(Opcode::Transpose) || i->shape().HasDynamic()) continue;
    transposes.push_back(i);
    permutations.insert(*i->attrs().dimensions);
  }
  for (const Instruction* i : transposes) {
    const Ints &p = *i->attrs().dimensions, inverse = Inverse(p);
    const bool large = MovesRows(i) && i->shape().ByteSize() >= kLarge;
    if (orders.size() >= most || !(large || (p != inverse && permutations.count(inverse)))) continue;
    add(p);
    add(inverse);
  }
  return orders;
}

}  // namespace

absl::StatusOr<bool> TransposePlacement(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    std::set<Ints> tried;
    std::vector<Ints> orders = Orders(*c);
    for (size_t k = 0; k < orders.size(); ++k) {
      if (!tried.insert(orders[k]).second) continue;
      if (!ctx.Take()) return changed;
      if (!Placement(c.get(), orders[k]).Run()) continue;
      changed = true;
      // What is moved may be transposed for its readers, and back behind them.
      const std::vector<Ints> more = Orders(*c);
      orders.insert(orders.end(), more.begin(), more.end());
    }
  }
  return changed;
}

}  // namespace kiln
