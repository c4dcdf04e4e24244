#include "compiler/passes/sharding/sort_exchange.h"

#include <algorithm>

#include "compiler/hlo/sort_key.h"
#include "compiler/passes/sharding/remake.h"

namespace kiln {
namespace {

constexpr int64_t kFewest = 64;  // fewer elements are gathered sooner than exchanged four times

class SortExchange {
 public:
  SortExchange(const Instruction& op, const std::vector<Part>& operands, const Tiling& wanted, Resharder* reshard)
      : op_(op),
        operands_(operands),
        target_(wanted),
        reshard_(*reshard),
        along_(static_cast<size_t>((*op.attrs().dimensions)[0])),
        axes_(wanted.dims[along_]),
        devices_(reshard->mesh().SizeOf(axes_)),
        part_(operands[0].whole.dims()[along_] / devices_) {}

  bool Pays() const;
  std::vector<Part> Run();

 private:
  using Arrays = std::vector<Expr>;

  Computation* computation() const { return reshard_.computation(); }
  bool TellsEqualsApart() const;
  std::optional<size_t> Counter() const;
  Computation* With(size_t counter) const;
  Computation* Comparator(size_t counter) const;
  Arrays Sorted(const Arrays& x, Computation* comparator) const;
  Arrays MergedPair(const Arrays& x) const;
  Arrays SortedByColumns(Arrays x, Computation* stable, Computation* comparator);
  Arrays WithNeighbours(const Arrays& x, Computation* comparator);
  Arrays Joined(const Arrays& a, const Arrays& b) const;
  Arrays Half(const Arrays& x, bool second) const;
  Arrays FromNeighbour(const Arrays& x, int64_t hop);
  Arrays ChosenAt(int64_t place, const Arrays& there, const Arrays& elsewhere) const;
  // Devices exchange blocks: of elements that follow each other, or of those that are as far apart as there are
  // devices.
  Arrays Swapped(const Arrays& x, bool apart);

  const Instruction& op_;
  const std::vector<Part>& operands_;
  const Tiling target_;
  Resharder& reshard_;
  const size_t along_;
  const Axes axes_;
  const int64_t devices_, part_;
};

int64_t BytesOfElement(const Part& p) {
  return p.whole.ElementCount() ? p.whole.ByteSize() / p.whole.ElementCount() : 0;
}

// Elements that no key puts before each other may differ.
bool SortExchange::TellsEqualsApart() const {
  std::vector<bool> decides(operands_.size(), false);
  for (const SortKey& k : KeysOfSort(&op_)) decides[static_cast<size_t>(k.operand)] = k.value == k.parameter;
  return std::count(decides.begin(), decides.end(), false) > 0;
}

// An operand that counts elements already.
std::optional<size_t> SortExchange::Counter() const {
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Instruction* i = op_.operand(static_cast<int64_t>(k));
    if (i->Is(Opcode::Iota) && static_cast<size_t>(*i->attrs().iota_dimension) == along_ &&
        i->shape().type() == PrimitiveType::S32)
      return k;
  }
  return std::nullopt;
}

bool SortExchange::Pays() const {
  const DeviceMesh& mesh = reshard_.mesh();
  const Ints& whole = operands_[0].whole.dims();
  if (devices_ < 2 || !CutsEvenly(mesh, whole, target_) || whole[along_] > INT32_MAX) return false;
  for (size_t d = 0; d < whole.size(); ++d)
    if (d != along_ && whole[d] % (mesh.SizeOf(target_.dims[d]) * devices_) == 0) return false;
  const std::vector<SortKey> keys = KeysOfSort(&op_);
  if (keys.empty()) return false;
  for (const SortKey& k : keys)
    if (!k.total && IsFloat(k.value->shape().type())) return false;
  const int64_t fewest = std::max<int64_t>(kFewest, 2 * (devices_ - 1) * (devices_ - 1));
  if (devices_ > 2 && (part_ % (2 * devices_) || part_ < fewest)) return false;
  const std::optional<size_t> counter = Counter();
  int64_t moved = 0, gathered = 0;
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Part& p = operands_[k];
    Tiling together = p.tiling;
    together.dims[along_].clear();
    if (p.tiling.dims[along_] != axes_ && !reshard_.IsFree(p, target_)) return false;
    moved += BytesOfElement(p);
    if (counter != k && !reshard_.IsFree(p, together)) gathered += BytesOfElement(p);
  }
  if (devices_ == 2) return moved <= 2 * gathered;
  if (TellsEqualsApart() && !counter) moved += InfoOf(PrimitiveType::S32).bits / 8;
  return 3 * moved <= devices_ * gathered;
}

// What decides of the operands and operand `counter`, which may be one more.
Computation* SortExchange::With(size_t counter) const {
  Computation* c = computation()->module()->CloneComputation(*op_.attrs().to_apply);
  const auto number = static_cast<int64_t>(2 * counter);
  if (counter < operands_.size()) return c;
  for (const int64_t side : {0, 1}) c->AddParameter(number + side, Shape::Scalar(PrimitiveType::S32), "at");
  return c;
}

// The same, and among equals the smaller number.
Computation* SortExchange::Comparator(size_t counter) const {
  Computation* c = With(counter);
  const auto number = static_cast<int64_t>(2 * counter);
  Instruction* last = c->root();
  while (last->Is(Opcode::Or)) {
    Instruction* among = last->operand(last->operand(1)->Is(Opcode::And) ? 1 : 0);
    const bool equals_first =
        among->operand(0)->Is(Opcode::Compare) && *among->operand(0)->attrs().direction == Direction::EQ;
    last = among->operand(equals_first ? 1 : 0);
  }
  Instruction* before = c->AddClone(last, last->shape(), last->operands());
  Instruction* equal = c->AddClone(last, last->shape(), last->operands());
  equal->mutable_attrs().direction = Direction::EQ;
  Expr decided = Expr(before) | (Expr(equal) & (Expr(c->parameter(number)) < Expr(c->parameter(number + 1))));
  if (c->root() == last) {
    c->set_root(decided.get());
  } else {
    last->ReplaceAllUsesWith(decided.get());
  }
  return c;
}

SortExchange::Arrays SortExchange::Sorted(const Arrays& x, Computation* comparator) const {
  std::vector<Instruction*> values;
  std::vector<Shape> shapes;
  for (const Expr& e : x) {
    values.push_back(e.get());
    shapes.push_back(Shape::Array(e.type(), e.shape().dims()));
  }
  Instruction* sort = computation()->Add(Opcode::Sort, x.size() > 1 ? Shape::Tuple(shapes) : shapes[0], values);
  sort->mutable_attrs().dimensions = Ints{static_cast<int64_t>(along_)};
  sort->mutable_attrs().is_stable = true;
  sort->mutable_attrs().to_apply = comparator;
  if (x.size() == 1) return {sort};
  Arrays out;
  for (size_t k = 0; k < x.size(); ++k) out.push_back(PartOf(sort, static_cast<int64_t>(k)));
  return out;
}

SortExchange::Arrays SortExchange::Joined(const Arrays& a, const Arrays& b) const {
  Arrays out;
  for (size_t k = 0; k < a.size(); ++k) out.push_back(ConcatOf({a[k], b[k]}, static_cast<int64_t>(along_)));
  return out;
}

SortExchange::Arrays SortExchange::Half(const Arrays& x, bool second) const {
  Arrays out;
  for (const Expr& e : x) {
    Ints from(e.shape().dims().size(), 0), to = e.shape().dims();
    const int64_t half = to[along_] / 2;
    (second ? from : to)[along_] = half;
    out.push_back(SliceOf(e, from, to));
  }
  return out;
}

SortExchange::Arrays SortExchange::FromNeighbour(const Arrays& x, int64_t hop) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Ints& group : reshard_.mesh().Groups(axes_))
    for (int64_t k = 0; k < devices_; ++k)
      if (k + hop >= 0 && k + hop < devices_)
        pairs.push_back({group[static_cast<size_t>(k + hop)], group[static_cast<size_t>(k)]});
  Arrays out;
  for (const Expr& e : x) out.push_back(reshard_.PermuteTo(e, pairs));
  return out;
}

SortExchange::Arrays SortExchange::ChosenAt(int64_t place, const Arrays& there, const Arrays& elsewhere) const {
  Expr here = reshard_.Place(axes_) == static_cast<double>(place);
  Arrays out;
  for (size_t k = 0; k < there.size(); ++k)
    out.push_back(SelectExpr(BroadcastTo(here, there[k].shape().dims()), there[k], elsewhere[k]));
  return out;
}

// The part of the first device comes first on both, so that equals stay in their order.
SortExchange::Arrays SortExchange::MergedPair(const Arrays& x) const {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Ints& group : reshard_.mesh().Groups(axes_))
    pairs.insert(pairs.end(), {{group[0], group[1]}, {group[1], group[0]}});
  Arrays come;
  for (const Expr& e : x) come.push_back(reshard_.PermuteTo(e, pairs));
  const Arrays all = Sorted(Joined(ChosenAt(0, x, come), ChosenAt(0, come, x)), *op_.attrs().to_apply);
  return ChosenAt(0, Half(all, false), Half(all, true));
}

SortExchange::Arrays SortExchange::Swapped(const Arrays& x, bool apart) {
  Arrays out;
  for (const Expr& e : x) {
    const Ints dims = e.shape().dims();
    Ints blocks = dims, order;
    blocks[along_] = apart ? part_ / devices_ : devices_;
    blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(along_) + 1, part_ / blocks[along_]);
    Expr come = reshard_.SwapBlocks(ReshapeTo(e, blocks), along_ + apart, axes_);
    for (size_t d = 0; d < blocks.size(); ++d) order.push_back(static_cast<int64_t>(d));
    if (apart) std::swap(order[along_], order[along_ + 1]);
    out.push_back(ReshapeTo(apart ? TransposeBy(come, order) : come, dims));
  }
  return out;
}

// A part's second half and the first of the one behind it may still have to change places.
SortExchange::Arrays SortExchange::WithNeighbours(const Arrays& x, Computation* comparator) {
  const Arrays first = Half(x, false), second = Half(x, true);
  const Arrays met = Sorted(Joined(FromNeighbour(second, -1), first), comparator);
  const Arrays back = FromNeighbour(Half(met, false), 1);
  return Joined(ChosenAt(0, first, Half(met, true)), ChosenAt(devices_ - 1, second, back));
}

// What a device takes of each other comes in the devices' order, so that a stable sort keeps that of equals once; then
// rows of different columns meet.
SortExchange::Arrays SortExchange::SortedByColumns(Arrays x, Computation* stable, Computation* comparator) {
  x = Swapped(Sorted(x, stable), true);
  x = Swapped(Sorted(x, stable), false);
  return WithNeighbours(Sorted(x, comparator), comparator);
}

std::vector<Part> SortExchange::Run() {
  Arrays x;
  for (const Part& p : operands_) x.push_back(Bring(p, target_, &reshard_).value);
  if (devices_ == 2) {
    x = MergedPair(x);
  } else if (!TellsEqualsApart()) {
    x = SortedByColumns(x, *op_.attrs().to_apply, *op_.attrs().to_apply);
  } else {
    const std::optional<size_t> counter = Counter();
    if (!counter) {
      const Ints dims = x[0].shape().dims();
      Expr first = reshard_.Place(axes_) * static_cast<double>(part_);
      x.push_back(IotaOf(computation(), PrimitiveType::S32, dims, static_cast<int64_t>(along_)) +
                  BroadcastTo(first, dims));
    }
    const size_t number = counter ? *counter : operands_.size();
    x = SortedByColumns(x, With(number), Comparator(number));
  }
  std::vector<Part> out;
  for (size_t k = 0; k < operands_.size(); ++k) out.push_back({x[k].get(), target_, operands_[k].whole});
  return out;
}

// Who reads result `k`; of what the caller reads, itself.
std::vector<const Instruction*> ReadersOf(const Instruction& op, size_t k) {
  std::vector<const Instruction*> out;
  for (const Instruction* u : op.users()) {
    if (!op.shape().IsTuple() || !u->Is(Opcode::GetTupleElement)) {
      out.push_back(u);
    } else if (static_cast<size_t>(*u->attrs().tuple_index) == k) {
      out.insert(out.end(), u->users().begin(), u->users().end());
      if (u->IsRoot()) out.push_back(u);
    }
  }
  if (op.IsRoot()) out.push_back(&op);
  return out;
}

// Few elements of `x` are looked up, wherever they are.
bool TakesFew(const Instruction* i, const Shape& x) {
  constexpr int64_t kFew = 8;
  const bool looks_up = i->Is(Opcode::Gather) || i->Is(Opcode::DynamicSlice) || i->Is(Opcode::Slice);
  return looks_up && i->shape().ElementCount() * kFew <= x.ElementCount();
}

// How results are cut: as they are wanted, or as operands are where they are wanted whole, but for few elements.
std::optional<Tiling> TargetOf(const Instruction& op, const std::vector<Part>& operands,
                               const std::vector<Tiling>& wanted) {
  const auto along = static_cast<size_t>((*op.attrs().dimensions)[0]);
  const auto is_cut = [&](const Tiling& t) { return !t.dims[along].empty(); };
  std::optional<Tiling> out;
  for (const Tiling& t : wanted)
    if (!out && is_cut(t)) out = t;
  for (const Part& p : operands)
    if (!out && is_cut(p.tiling)) out = p.tiling;
  if (!out) return std::nullopt;
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k].dims == out->dims) continue;
    for (const Instruction* reader : ReadersOf(op, k))
      if (!TakesFew(reader, operands[k].whole)) return std::nullopt;
  }
  for (const Part& p : operands) out->manual |= p.tiling.manual;
  return out->Used() & out->manual ? std::nullopt : out;
}

}  // namespace

std::optional<std::vector<Part>> SortByExchange(const Instruction& op, const std::vector<Part>& operands,
                                                const std::vector<Tiling>& wanted, Resharder* reshard) {
  if (!op.Is(Opcode::Sort)) return std::nullopt;
  const std::optional<Tiling> target = TargetOf(op, operands, wanted);
  if (!target) return std::nullopt;
  SortExchange sort(op, operands, *target, reshard);
  if (!sort.Pays()) return std::nullopt;
  return sort.Run();
}

}  // namespace kiln
