// Exchanges between devices that a loop makes in the iteration before or behind, where the devices have longer to come.
//
// An exchange that the iteration begins with, or ends with, makes every device wait for the slowest in every iteration.
// What is gathered from values that are known before (weights of layer i, say) is exchanged by the iteration before, as
// soon as that has used its own; the loop carries it. What is only stored (gradients of layer i) is exchanged and
// stored by the iteration behind, and after the loop; the loop carries what each device gives. Guarantees: the same
// bits. What is carried needs no copies: its last use stands before what makes the next. Cost: memory for what is
// carried, at most a part of the loop's state, and one exchange more of each kind, which is
//   little since the loop has many iterations. Loops stay as they are where an exchange would be left that has no time.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/analysis/cost.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/carried_exchange.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

constexpr int64_t kLeastTrips = 8;
constexpr double kLeastMicroseconds = 50;  // of an iteration
constexpr double kLeastSlack = 0.25;       // of an iteration, for each exchange
constexpr double kEnoughSlack = 0.8;       // for one that stays: the order of the rest need not leave it all
constexpr int64_t kStateParts = 8;         // what is carried is at most one of so many parts of the state

// Of arithmetic alone: what an operation reads and writes before fusion says little.
double Microseconds(const Instruction* i) {
  if (!i->shape().IsArray() || i->Is(Opcode::Parameter) || i->HasTrait(Collective)) return 0;
  Cost cost = CostOfKernel(i);
  cost.bytes_accessed = 0;
  return EstimatedMicroseconds(cost);
}

// How long the computation of a body takes, and what of it stands before or behind an instruction.
class Work {
 public:
  explicit Work(Computation* body) : order_(body->PostOrder()) {
    for (const Instruction* i : order_) all_ += us_[i] = Microseconds(i);
  }

  double all() const { return all_; }

  double Before(const Instruction* i) const {
    return Reached(
        i, [](const Instruction* x) -> const auto& { return x->operands(); });
  }
  double Behind(const Instruction* i) const {
    return Reached(
        i, [](const Instruction* x) -> const auto& { return x->users(); });
  }

 private:
  template <typename Next>
  double Reached(const Instruction* i, const Next& next) const {
    absl::flat_hash_set<const Instruction*> seen;
    double sum = 0;
    std::vector<const Instruction*> work(next(i).begin(), next(i).end());
    while (!work.empty()) {
      const Instruction* x = work.back();
      work.pop_back();
      if (!seen.insert(x).second) continue;
      sum += us_.at(x);
      work.insert(work.end(), next(x).begin(), next(x).end());
    }
    return sum;
  }

  const std::vector<Instruction*> order_;
  absl::flat_hash_map<const Instruction*, double> us_;
  double all_ = 0;
};

enum class Move { kStay, kBefore, kBehind };

// Where an exchange leaves the most time between its beginning and its end.
std::pair<Move, double> BestMove(const Work& work, const CarriedExchange& x) {
  const Instruction* i = x.exchange;
  std::pair<Move, double> best = {Move::kStay, work.all() - work.Before(i) - work.Behind(i)};
  if (!x.before.empty()) {
    double last = 0;
    for (const Instruction* u : i->users()) last = std::max(last, work.Before(u));
    if (work.all() - last > best.second) best = {Move::kBefore, work.all() - last};
  }
  if (x.is_stored && work.Before(i) > (1 - kEnoughSlack) * work.all()) best = {Move::kBehind, work.Before(i)};
  return best;
}

// How each exchange of the body moves, in their order; empty: the loop stays as it is.
std::vector<Move> Moves(const Instruction* loop, const Induction& count) {
  Computation* body = *loop->attrs().body;
  const Work work(body);
  std::vector<Move> out;
  int64_t bytes = 0;
  for (const CarriedExchange& x : CarriedExchanges(loop, count)) {
    const auto [move, slack] = BestMove(work, x);
    if (slack < kLeastSlack * work.all()) return {};
    if (move == Move::kBefore) bytes += x.exchange->shape().ByteSize();
    if (move == Move::kBehind)
      for (const Instruction* o : x.exchange->operands()) bytes += o->shape().ByteSize();
    out.push_back(move);
  }
  const bool any = std::any_of(out.begin(), out.end(), [](Move m) { return m != Move::kStay; });
  if (!any || work.all() < kLeastMicroseconds || bytes > loop->shape().ByteSize() / kStateParts) return {};
  return out;
}

// Nothing but exchanges between devices reaches out of the loop, and none does so from within another computation.
bool Served(const Instruction* loop) {
  if (!HasFlatState(loop)) return false;
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  if (!HasNoControlEdges(body, condition)) return false;
  for (const Computation* c : {body, condition})
    for (const auto& i : c->instructions()) {
      const bool plain = !i->Is(Opcode::While) && !i->Is(Opcode::Conditional) && !i->Is(Opcode::Call);
      if (!plain || (i->HasSideEffect() && (!i->HasTrait(Collective) || c == condition))) return false;
    }
  return true;
}

// A loop whose exchanges move, and where in its state what it carries for each begins.
class Mover {
 public:
  Mover(Instruction* loop, const Induction& count, std::vector<Move> moves)
      : loop_(loop), count_(count), moves_(std::move(moves)) {}

  void Run() {
    Extend();
    Computation* body = *loop_->attrs().body;
    next_ = body->root()->operands();
    const Expr ahead = Element(ahead_);
    next_[static_cast<size_t>(ahead_)] = (ahead + IntegerIn(body, ahead.type(), count_.step)).get();
    const std::vector<CarriedExchange> exchanges = CarriedExchanges(loop_, count_);
    for (size_t k = 0; k < exchanges.size(); ++k) {
      if (moves_[k] == Move::kBefore) MakeBefore(exchanges[k], places_[k]);
      if (moves_[k] == Move::kBehind) MakeBehind(exchanges[k], places_[k]);
    }
    Instruction* old = body->root();
    body->set_root(body->Add(Opcode::Tuple, loop_->shape(), next_));
    body->Remove(old);
    for (size_t k = 0; k < exchanges.size(); ++k)
      if (moves_[k] == Move::kBefore) body->Remove(exchanges[k].exchange);
  }

 private:
  Instruction* Element(int64_t k) const { return PartOf((*loop_->attrs().body)->parameter(0), k).get(); }

  // The counter of iteration `k`.
  Instruction* Counter(Computation* c, int64_t k) const {
    const PrimitiveType t = InitOf(loop_, count_.index)->shape().type();
    return IntegerIn(c, t, count_.init + k * count_.step).get();
  }

  // In the body, the counter of the iteration before; in the first one, its own.
  Instruction* Before() const {
    Computation* body = *loop_->attrs().body;
    const Expr counter = Element(count_.index);
    const Expr is_first = CompareExpr(Direction::EQ, counter, Counter(body, 0));
    return SelectExpr(is_first, counter, counter - IntegerIn(body, counter.type(), count_.step)).get();
  }

  // What is carried is part of the state, and forwarded. So is the counter of the next iteration: what it makes begins
  // before the loop's own counter is done with.
  void Extend() {
    Computation* c = loop_->parent();
    ahead_ = static_cast<int64_t>(loop_->shape().tuple().size());
    std::vector<Instruction*> first = {Counter(c, 1)};
    const std::vector<CarriedExchange> exchanges = CarriedExchanges(loop_, count_);
    for (size_t k = 0; k < exchanges.size(); ++k) {
      places_.push_back(ahead_ + static_cast<int64_t>(first.size()));
      if (moves_[k] == Move::kBefore)
        first.push_back(CopyChain(exchanges[k].before, c, [&](int64_t e) { return InitOf(loop_, e); }));
      if (moves_[k] == Move::kBehind)
        for (const Instruction* o : exchanges[k].exchange->operands()) first.push_back(ZeroOf(c, o->shape()));
    }
    loop_ = ExtendLoop(loop_, first);
  }

  // The iteration uses what the one before exchanged, and exchanges what the next one uses. The last exchanges what
  // nobody uses: slices keep within bounds.
  void MakeBefore(const CarriedExchange& x, int64_t place) {
    Computation* body = *loop_->attrs().body;
    x.exchange->ReplaceAllUsesWith(Element(place));
    next_[static_cast<size_t>(place)] =
        CopyChain(x.before, body, [&](int64_t e) { return Element(e == count_.index ? ahead_ : e); });
  }

  // The iteration exchanges and stores what the one before gave. The first one stores zeros where the next one stores
  // its own.
  void MakeBehind(const CarriedExchange& x, int64_t place) {
    Computation *body = *loop_->attrs().body, *c = loop_->parent();
    std::vector<Instruction*> given;
    for (int64_t o = 0; o < x.exchange->operand_count(); ++o) {
      next_[static_cast<size_t>(place + o)] = x.exchange->operand(o);
      given.push_back(PartOf(loop_, place + o).get());
    }
    // Behind the loop, what the last one gave.
    absl::flat_hash_map<const Instruction*, Instruction*> copies;
    copies[x.exchange] = c->AddClone(x.exchange, x.exchange->shape(), given);
    for (Instruction* i : x.tail) {
      std::vector<Instruction*> operands;
      const std::optional<int64_t> stored = StoredElement(loop_, i);
      for (int64_t o = 0; o < i->operand_count(); ++o) {
        const auto known = copies.find(i->operand(o));
        if (known != copies.end())
          operands.push_back(known->second);
        else if (stored && o == 0)
          operands.push_back(PartOf(loop_, *stored).get());
        else
          operands.push_back(CopyChain(*KnownChain(loop_, i->operand(o), count_), c, [&](int64_t e) {
            return e == count_.index ? Counter(c, count_.trips - 1) : PartOf(loop_, e).get();
          }));
      }
      copies[i] = c->AddClone(i, i->shape(), operands);
      if (stored) ReadBehind(*stored, copies[i]);
    }
    // In the body, what the iteration before gave.
    for (int64_t o = 0; o < x.exchange->operand_count(); ++o) x.exchange->ReplaceOperand(o, Element(place + o));
    for (Instruction* i : x.tail)
      for (int64_t o = 0; o < i->operand_count(); ++o) {
        if (copies.contains(i->operand(o)) || (o == 0 && StoredElement(loop_, i))) continue;
        i->ReplaceOperand(o, CopyChain(*KnownChain(loop_, i->operand(o), count_), body,
                                       [&](int64_t e) { return e == count_.index ? Before() : Element(e); }));
      }
  }

  // Who read element `k` of the loop reads `stored`.
  void ReadBehind(int64_t k, Instruction* stored) {
    for (Instruction* r : ElementReaders(loop_, k))
      if (r != stored->operand(0)) r->ReplaceAllUsesWith(stored);
  }

  Instruction* loop_;
  const Induction count_;
  const std::vector<Move> moves_;
  int64_t ahead_ = 0;  // the place of the next iteration's counter
  std::vector<int64_t> places_;
  std::vector<Instruction*> next_;
};

}  // namespace

absl::StatusOr<bool> WhileLoopExchangeMotion(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Instruction*> loops;
  for (Computation* c : m.PostOrder())
    for (Instruction* i : c->PostOrder())
      if (i->Is(Opcode::While) && Served(i)) loops.push_back(i);
  for (Instruction* loop : loops) {
    const std::optional<Induction> count = FindInduction(loop);
    if (!count || count->trips < kLeastTrips) continue;
    std::vector<Move> moves = Moves(loop, *count);
    if (moves.empty() || !ctx.Take()) continue;
    Mover(loop, *count, std::move(moves)).Run();
    changed = true;
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
