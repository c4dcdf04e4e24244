// Values around convolutions are held in the order of dimensions that leaves the fewest bytes to transpose.
//
// What: for each order P that convolutions read or write, every value between them that can be computed in either order
//   (elementwise, broadcast, window, pad, slice, concatenate, reduce) is given one: as written, or permuted by P.
// Why: canonical convolutions are channels-last. In a program that was written channels-first, each would otherwise sit
//   between two transposes of whole activations; the parameters and results alone have to be transposed.
// How: a minimum cut. Source side: as written; sink side: permuted. A value whose users stand on the other side costs
//   its bytes once, however many they are; parameters, results and operations not listed stay as written.
// Guarantees: nothing changes unless fewer bytes are transposed. Sums of a reduction may run in another order.
// Cost: one maximum flow over the values of each computation for each order.
#include <algorithm>
#include <limits>
#include <queue>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

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

// Flow network with integer capacities: Dinic's algorithm.
class FlowNetwork {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

  int AddNode() {
    edges_.emplace_back();
    return static_cast<int>(edges_.size()) - 1;
  }
  void AddEdge(int from, int to, int64_t capacity) {
    edges_[from].push_back({to, static_cast<int>(edges_[to].size()), capacity});
    edges_[to].push_back({from, static_cast<int>(edges_[from].size()) - 1, 0});
  }
  int64_t MaximumFlow(int source, int sink) {
    int64_t flow = 0;
    while (FindLevels(source, sink)) {
      next_.assign(edges_.size(), 0);
      while (const int64_t pushed = Push(source, sink)) flow += pushed;
    }
    return flow;
  }
  // After MaximumFlow: the smallest sink side of a minimum cut.
  std::vector<bool> ReachesSink(int sink) const {
    std::vector<bool> reaches(edges_.size());
    std::vector<int> stack = {sink};
    reaches[sink] = true;
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      for (const Edge& e : edges_[n])
        if (!reaches[e.to] && edges_[e.to][e.back].capacity > 0) {
          reaches[e.to] = true;
          stack.push_back(e.to);
        }
    }
    return reaches;
  }

 private:
  struct Edge {
    int to, back;
    int64_t capacity;
  };

  bool FindLevels(int source, int sink) {
    level_.assign(edges_.size(), -1);
    level_[source] = 0;
    std::queue<int> queue({source});
    while (!queue.empty()) {
      const int n = queue.front();
      queue.pop();
      for (const Edge& e : edges_[n])
        if (e.capacity > 0 && level_[e.to] < 0) {
          level_[e.to] = level_[n] + 1;
          queue.push(e.to);
        }
    }
    return level_[sink] >= 0;
  }

  // One augmenting path along rising levels, without recursion: programs are deep. 0 if there is none.
  int64_t Push(int source, int sink) {
    std::vector<Edge*> path;
    int n = source;
    while (n != sink) {
      Edge* step = nullptr;
      for (size_t& k = next_[n]; k < edges_[n].size(); ++k) {
        Edge& e = edges_[n][k];
        if (e.capacity > 0 && level_[e.to] == level_[n] + 1) {
          step = &e;
          break;
        }
      }
      if (step) {
        path.push_back(step);
        n = step->to;
        continue;
      }
      if (path.empty()) return 0;
      n = edges_[path.back()->to][path.back()->back].to;
      path.pop_back();
      ++next_[n];
    }
    int64_t pushed = kUnlimited;
    for (const Edge* e : path) pushed = std::min(pushed, e->capacity);
    for (Edge* e : path) {
      e->capacity -= pushed;
      edges_[e->to][e->back].capacity += pushed;
    }
    return pushed;
  }

  std::vector<std::vector<Edge>> edges_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

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
    for (const Instruction* u : i->users()) {
      if (ToPermuted(u)) {
        wanted_permuted = true;
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
    return available ? (wanted_as_written ? bytes : 0) : wanted_permuted ? bytes : 0;
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
      if (!ToPermuted(u)) continue;
      u->ReplaceAllUsesWith(moved);
      c_->Remove(u);
    }
    if (i->IsRoot() || !i->users().empty()) i->ReplaceAllUsesWith(TransposeBy(moved, inverse_).get());
    c_->Remove(i);
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
// transposed back.
std::vector<Ints> OrdersOfConvolutions(const Computation& c) {
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
  return orders;
}

}  // namespace

absl::StatusOr<bool> TransposePlacement(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (const Ints& order : OrdersOfConvolutions(*c)) {
      if (!ctx.Take()) return changed;
      changed |= Placement(c.get(), order).Run();
    }
  return changed;
}

}  // namespace kiln
