#include "compiler/sharding/reducer.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/sharding/exact_number.h"
#include "compiler/sharding/op_rule.h"

namespace kiln {
namespace {

using Numbers = std::vector<ExactNumber>;

constexpr int kMostCases = 4096;
constexpr int64_t kWhole = int64_t{1} << 53;  // integers up to here are doubles
constexpr int64_t kMostOperations = 64;
constexpr size_t kMostFacts = 256;

// Operands of the function: the initial values, and any others.
enum Operand { kInit, kFirst, kSecond, kThird };

// Signs of differences, decided one by one; each run of what asks for them is one case.
class Cases {
 public:
  void Begin() {
    at_ = 0;
    facts_.clear();
    truths_.clear();
  }
  // To the next case; false behind the last.
  bool Next() {
    while (!choices_.empty() && choices_.back().first + 1 == choices_.back().second) choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().first;
    return true;
  }
  int SignOf(uint64_t difference) {
    const auto known = facts_.find(difference);
    if (known != facts_.end()) return known->second;
    const int sign = Choose(3) - 1;
    // And what follows: a > b and b >= c, so that a > c.
    std::vector<std::pair<uint64_t, int>> more;
    for (const auto& [other, s] : facts_)
      if (sign * s >= 0 && facts_.size() + more.size() < kMostFacts)
        more.push_back({residue::Add(difference, other, residue::kLarge), sign ? sign : s});
    AddFact(difference, sign);
    for (const auto& [d, s] : more) AddFact(d, s);
    return sign;
  }
  bool IsTrue(uint64_t name) {
    const auto known = truths_.find(name);
    return known != truths_.end() ? known->second : truths_[name] = Choose(2) == 1;
  }
  bool Knows(uint64_t difference) const { return facts_.count(difference) > 0; }
  void AddFact(uint64_t difference, int sign) {
    facts_.insert({difference, sign});
    facts_.insert({residue::Subtract(0, difference, residue::kLarge), -sign});
  }

 private:
  int Choose(int of) {
    if (at_ == choices_.size()) choices_.push_back({0, of});
    return choices_[at_++].first;
  }

  std::vector<std::pair<int, int>> choices_;  // each with how many there are
  size_t at_ = 0;
  std::map<uint64_t, int> facts_;
  std::map<uint64_t, bool> truths_;
};

class Proof {
 public:
  Proof(const Computation& f, std::vector<std::optional<ExactNumber>> init, std::vector<bool> positive)
      : f_(f), init_(std::move(init)), positive_(std::move(positive)) {}

  bool Holds(bool in_any_order);
  bool KeepsInit();

 private:
  template <typename Check>
  bool InEveryCase(std::vector<Operand> elements, const Check& check);
  bool SetOrder(const std::map<size_t, Ints>& ranks);
  bool SetInit(size_t k, const ExactNumber& init, const Ints& ranks);
  void KeepPositive();

  Numbers Apply(const Numbers& a, const Numbers& b);
  Numbers ValuesOf(const Computation& c, const Numbers& arguments);
  ExactNumber ValueOf(const Instruction& i, const Numbers& x);
  ExactNumber RealValueOf(const Instruction& i, const Numbers& x);
  ExactNumber NamedValueOf(const Instruction& i, const Numbers& x);
  ExactNumber Logic(const Instruction& i, const Numbers& x);
  ExactNumber Compared(const Instruction& i, const ExactNumber& a, const ExactNumber& b);
  ExactNumber Converted(const Instruction& i, const ExactNumber& a);
  int Order(const Instruction& i, const ExactNumber& a, const ExactNumber& b);
  ExactNumber GivenUp() {
    failed_ = true;
    return ExactNumber::OfKind(ExactNumber::kUnknown);
  }

  const Computation& f_;
  const std::vector<std::optional<ExactNumber>> init_;  // where they are constants
  std::vector<bool> positive_;                          // elements of the operand
  std::vector<Operand> elements_;
  std::vector<Numbers> values_;  // of elements
  std::set<size_t> compared_;    // results whose elements are compared with each other
  Cases cases_;
  int runs_ = 0;
  bool failed_ = false, again_ = false;
};

bool SameAs(const Numbers& a, const Numbers& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end(), IsSame); }

// Absent where a double does not hold it.
std::optional<ExactNumber> NumberOf(const Literal& l) {
  const PrimitiveType t = l.type();
  const Element e = l.Get(0);
  if (t == PrimitiveType::Pred) return ExactNumber::Pred(e.i != 0);
  if (IsFloat(t)) return ExactNumber::Of(e.re);
  if (!IsIntegral(t) || e.i < (IsUnsigned(t) ? 0 : -kWhole) || e.i > kWhole) return std::nullopt;
  return ExactNumber::Of(static_cast<double>(e.i));
}

// The places that `n` elements may have in an order, ties among them: 0, 1, 0 has the first and third in front.
std::vector<Ints> WeakOrders(size_t n) {
  std::vector<Ints> out;
  Ints ranks(n, 0);
  for (;;) {
    const int64_t most = *std::max_element(ranks.begin(), ranks.end());
    bool all = true;
    for (int64_t r = 0; r < most; ++r) all = all && std::count(ranks.begin(), ranks.end(), r) > 0;
    if (all) out.push_back(ranks);
    size_t k = 0;
    while (k < n && ++ranks[k] == static_cast<int64_t>(n)) ranks[k++] = 0;
    if (k == n) return out;
  }
}

// Values of elements, those of compared results in an order. False where no constant stands so.
bool Proof::SetOrder(const std::map<size_t, Ints>& ranks) {
  cases_.Begin();
  values_.assign(elements_.size(), {});
  for (size_t k = 0; k < init_.size(); ++k) {
    const auto order = ranks.find(k);
    const bool pred = f_.parameter(static_cast<int64_t>(k))->shape().type() == PrimitiveType::Pred;
    for (size_t e = 0; e < elements_.size(); ++e) {
      const uint64_t name = 16 * k + (order == ranks.end() ? static_cast<size_t>(elements_[e])
                                                           : 8 + static_cast<size_t>(order->second[e]));
      values_[e].push_back(pred ? ExactNumber::Pred(cases_.IsTrue(name)) : ExactNumber::Variable(name, positive_[k]));
    }
    if (elements_[0] == kInit && init_[k] && !SetInit(k, *init_[k], order == ranks.end() ? Ints() : order->second))
      return false;
    if (order == ranks.end()) continue;
    for (size_t a = 0; a < elements_.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        if (values_[a][k].IsFinite() && values_[b][k].IsFinite() && order->second[a] != order->second[b])
          cases_.AddFact(residue::Subtract(values_[a][k].large, values_[b][k].large, residue::kLarge),
                         order->second[a] > order->second[b] ? 1 : -1);
  }
  return true;
}

// The first element is a constant; so are those that stand where it does.
bool Proof::SetInit(size_t k, const ExactNumber& init, const Ints& ranks) {
  if (ranks.empty()) {
    values_[0][k] = init;
    return true;
  }
  const bool alone = std::count(ranks.begin(), ranks.end(), ranks[0]) == 1;
  const bool lowest = alone && ranks[0] == 0;
  const bool highest = alone && ranks[0] == *std::max_element(ranks.begin(), ranks.end());
  if (init.kind == ExactNumber::kInfinite && !highest) return false;
  if (init.kind == ExactNumber::kMinusInfinite && !lowest) return false;
  if (positive_[k] && init.IsFinite() && !init.positive && !lowest) return false;
  for (size_t e = 0; e < ranks.size(); ++e)
    if (ranks[e] == ranks[0]) values_[e][k] = init;
  return true;
}

// Whether `check` holds of the elements in every order of those that it compares.
template <typename Check>
bool Proof::InEveryCase(std::vector<Operand> elements, const Check& check) {
  elements_ = std::move(elements);
  const std::vector<Ints> orders = WeakOrders(elements_.size());
  std::vector<size_t> at;
  do {
    again_ = false;
    at.assign(compared_.size(), 0);
    bool more = true;
    while (more && !again_) {
      std::map<size_t, Ints> ranks;
      size_t n = 0;
      for (size_t k : compared_) ranks[k] = orders[at[n++]];
      cases_ = Cases();
      do {
        if (!SetOrder(ranks)) break;
        const bool holds = check();
        if (again_) break;
        if (!holds || failed_ || ++runs_ > kMostCases) return false;
      } while (cases_.Next());
      size_t d = 0;
      while (d < at.size() && ++at[d] == orders.size()) at[d++] = 0;
      more = d < at.size();
    }
  } while (again_);
  return true;
}

// Of results whose elements are all positive those that stay so.
void Proof::KeepPositive() {
  for (bool again = std::count(positive_.begin(), positive_.end(), true) > 0; again;) {
    std::vector<bool> stays = positive_;
    InEveryCase({kInit, kFirst, kSecond}, [&] {
      for (const Numbers& n : {Apply(values_[0], values_[1]), Apply(values_[1], values_[2])})
        for (size_t k = 0; k < n.size() && !again_; ++k) stays[k] = stays[k] && n[k].positive;
      return true;
    });
    again = stays != positive_;
    positive_ = stays;
  }
}

bool Proof::Holds(bool in_any_order) {
  KeepPositive();
  const auto f = [&](const Numbers& a, const Numbers& b) { return Apply(a, b); };
  if (!InEveryCase({kFirst, kSecond, kThird}, [&] {
        const Numbers &a = values_[0], &b = values_[1], &c = values_[2];
        return SameAs(f(f(a, b), c), f(a, f(b, c)));
      }))
    return false;
  if (in_any_order &&
      !InEveryCase({kFirst, kSecond}, [&] { return SameAs(f(values_[0], values_[1]), f(values_[1], values_[0])); }))
    return false;
  return InEveryCase({kInit, kFirst, kSecond}, [&] {
    const Numbers &i = values_[0], &b = values_[2], a = f(i, values_[1]), both = f(a, b);
    return SameAs(both, f(i, f(values_[1], b))) && SameAs(f(i, a), a) && SameAs(f(a, f(i, b)), both);
  });
}

bool Proof::KeepsInit() {
  KeepPositive();
  return InEveryCase({kInit, kFirst}, [&] {
    const Numbers &i = values_[0], a = Apply(i, values_[1]);
    return SameAs(Apply(a, i), a) && SameAs(Apply(i, i), i);
  });
}

Numbers Proof::Apply(const Numbers& a, const Numbers& b) {
  Numbers arguments = a;
  arguments.insert(arguments.end(), b.begin(), b.end());
  return ValuesOf(f_, arguments);
}

// Results of a function: the elements of a tuple, or one.
Numbers Proof::ValuesOf(const Computation& c, const Numbers& arguments) {
  std::map<const Instruction*, ExactNumber> known;
  const Instruction* root = c.root();
  for (const Instruction* i : c.PostOrder()) {
    if (again_ || failed_) break;
    if (i->Is(Opcode::Tuple)) continue;
    Numbers x;
    for (const Instruction* o : i->operands()) x.push_back(known[o]);
    known[i] = i->Is(Opcode::Parameter) ? arguments[static_cast<size_t>(*i->attrs().parameter_number)] : ValueOf(*i, x);
    if (i->shape().type() == PrimitiveType::Pred && !known[i].truth) failed_ = true;
  }
  Numbers out;
  if (!root->Is(Opcode::Tuple)) return {known[root]};
  for (const Instruction* o : root->operands()) out.push_back(known[o]);
  return out;
}

ExactNumber Proof::ValueOf(const Instruction& i, const Numbers& x) {
  if (!i.shape().IsScalar()) return GivenUp();
  switch (i.opcode()) {
    case Opcode::Constant: {
      const auto number = NumberOf(i.literal());
      return number ? *number : GivenUp();
    }
    case Opcode::Call:
      return ValuesOf(**i.attrs().to_apply, x)[0];
    case Opcode::Broadcast:
    case Opcode::Copy:
    case Opcode::Reshape:
    case Opcode::ReducePrecision:
      return x[0];
    case Opcode::Add:
      return Sum(x[0], x[1]);
    case Opcode::Subtract:
      return Sum(x[0], Negated(x[1]));
    case Opcode::Multiply:
      return Product(x[0], x[1]);
    case Opcode::Negate:
      return Negated(x[0]);
    case Opcode::Maximum:
      return Order(i, x[0], x[1]) >= 0 ? x[0] : x[1];
    case Opcode::Minimum:
      return Order(i, x[0], x[1]) <= 0 ? x[0] : x[1];
    case Opcode::Compare:
      return Compared(i, x[0], x[1]);
    case Opcode::Convert:
      return Converted(i, x[0]);
    case Opcode::Select:
      return !x[0].truth ? GivenUp() : *x[0].truth ? x[1] : x[2];
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
      return Logic(i, x);
    default:
      return IsFloat(i.shape().type()) ? RealValueOf(i, x) : NamedValueOf(i, x);
  }
}

ExactNumber Proof::RealValueOf(const Instruction& i, const Numbers& x) {
  const ExactNumber one = ExactNumber::Of(1);
  switch (i.opcode()) {
    case Opcode::Divide:
      return Quotient(x[0], x[1]);
    case Opcode::Abs:
      return Order(i, x[0], ExactNumber::Of(0)) >= 0 ? x[0] : Negated(x[0]);
    case Opcode::Exponential:
      return Exponential(x[0]);
    case Opcode::ExponentialMinusOne:
      return Sum(Exponential(x[0]), Negated(one));
    case Opcode::Log:
      return Logarithm(x[0]);
    case Opcode::LogPlusOne:
      return Logarithm(Sum(one, x[0]));
    default:
      return NamedValueOf(i, x);
  }
}

// Of an operation that is a function of its operands, and nothing else is known of it.
ExactNumber Proof::NamedValueOf(const Instruction& i, const Numbers& x) {
  if (i.Is(Opcode::IsFinite) && x[0].kind != ExactNumber::kUnknown) return ExactNumber::Pred(x[0].IsFinite());
  if (!i.IsElementwise() || i.HasSideEffect() || i.shape().type() == PrimitiveType::Pred) return GivenUp();
  return FunctionOf(64 * (1 + static_cast<uint64_t>(i.opcode())) + static_cast<uint64_t>(i.shape().type()), x);
}

ExactNumber Proof::Logic(const Instruction& i, const Numbers& x) {
  if (i.shape().type() != PrimitiveType::Pred) return NamedValueOf(i, x);
  for (const ExactNumber& a : x)
    if (!a.truth) return GivenUp();
  const bool a = *x[0].truth, b = *x.back().truth;
  return ExactNumber::Pred(i.Is(Opcode::Not) ? !a : i.Is(Opcode::And) ? a && b : i.Is(Opcode::Or) ? a || b : a != b);
}

ExactNumber Proof::Compared(const Instruction& i, const ExactNumber& a, const ExactNumber& b) {
  const Direction direction = *i.attrs().direction;
  const bool total = i.attrs().compare_type == CompareType::TOTALORDER;
  int order = 0;
  if (a.truth && b.truth) {
    order = static_cast<int>(*a.truth) - static_cast<int>(*b.truth);
  } else if (a.kind == ExactNumber::kNotANumber || b.kind == ExactNumber::kNotANumber) {
    return total ? GivenUp() : ExactNumber::Pred(direction == Direction::NE);
  } else {
    order = Order(i, a, b);
  }
  switch (direction) {
    case Direction::EQ:
      return ExactNumber::Pred(order == 0);
    case Direction::NE:
      return ExactNumber::Pred(order != 0);
    case Direction::LT:
      return ExactNumber::Pred(order < 0);
    case Direction::LE:
      return ExactNumber::Pred(order <= 0);
    case Direction::GT:
      return ExactNumber::Pred(order > 0);
    case Direction::GE:
      return ExactNumber::Pred(order >= 0);
  }
}

// Rounding does not count, wrapping does.
ExactNumber Proof::Converted(const Instruction& i, const ExactNumber& a) {
  const PrimitiveType from = i.operand(0)->shape().type(), to = i.shape().type();
  if (from == PrimitiveType::Pred && a.truth && (IsFloat(to) || IsIntegral(to)))
    return ExactNumber::Of(*a.truth ? 1 : 0);
  if (from == to || (IsFloat(from) && IsFloat(to))) return a;
  return NamedValueOf(i, {a});
}

// The sign of a - b. Of integers, which wrap, only those that are compared as they are.
int Proof::Order(const Instruction& i, const ExactNumber& a, const ExactNumber& b) {
  const PrimitiveType t = i.operand(0)->shape().type();
  const auto is_number = [](const ExactNumber& x) {
    return x.kind == ExactNumber::kFinite || x.kind == ExactNumber::kInfinite || x.kind == ExactNumber::kMinusInfinite;
  };
  if (!is_number(a) || !is_number(b) || (!IsFloat(t) && !(IsIntegral(t) && a.given && b.given))) {
    failed_ = true;
    return 0;
  }
  const auto side = [](const ExactNumber& x) {
    return x.kind == ExactNumber::kInfinite ? 1 : x.kind == ExactNumber::kMinusInfinite ? -1 : 0;
  };
  if (!a.IsFinite() || !b.IsFinite()) return side(a) - side(b);
  if (a.constant && b.constant) return *a.constant < *b.constant ? -1 : *a.constant > *b.constant;
  if (a.positive && b.constant && *b.constant <= 0) return 1;
  if (b.positive && a.constant && *a.constant <= 0) return -1;
  const uint64_t difference = residue::Subtract(a.large, b.large, residue::kLarge);
  if (difference == 0) return 0;
  if (cases_.Knows(difference)) return cases_.SignOf(difference);
  for (size_t k = 0; k < init_.size(); ++k)
    for (const Numbers& x : values_)
      for (const Numbers& y : values_)
        if (!compared_.count(k) && x[k].IsFinite() && y[k].IsFinite() &&
            residue::Subtract(x[k].large, y[k].large, residue::kLarge) == difference) {
          compared_.insert(k);
          again_ = true;
          return 0;
        }
  return cases_.SignOf(difference);
}

// A number that all elements are, above 0.
bool IsPositive(const Instruction* i) {
  while (i->Is(Opcode::Broadcast) || i->Is(Opcode::Reshape)) i = i->operand(0);
  return i->Is(Opcode::Constant) && IsFloat(i->shape().type()) && i->literal().size() > 0 && i->literal().IsSplat() &&
         i->literal().Get(0).re > 0;
}

std::optional<Proof> ProofFor(const Instruction& reduce) {
  const Computation& f = **reduce.attrs().to_apply;
  const int64_t n = reduce.operand_count() / 2;
  if (f.parameters().size() != static_cast<size_t>(2 * n) || f.instruction_count() > kMostOperations)
    return std::nullopt;
  std::vector<std::optional<ExactNumber>> init;
  std::vector<bool> positive;
  for (int64_t k = 0; k < n; ++k) {
    const Instruction* i = reduce.operand(n + k);
    init.push_back(i->Is(Opcode::Constant) ? NumberOf(i->literal()) : std::nullopt);
    positive.push_back(init.back() && IsPositive(reduce.operand(k)));
  }
  return Proof(f, std::move(init), std::move(positive));
}

}  // namespace

bool IsReducedByParts(const Instruction& reduce) {
  int64_t gone = 0;
  for (int64_t d : *reduce.attrs().dimensions) gone += reduce.operand(0)->shape().dim(d) > 1;
  std::optional<Proof> proof = ProofFor(reduce);
  return proof && proof->Holds(gone > 1);
}

bool MayBePadded(const Instruction& reduce) {
  if (!CombinersOf(**reduce.attrs().to_apply).empty()) return true;
  std::optional<Proof> proof = ProofFor(reduce);
  return proof && proof->KeepsInit();
}

}  // namespace kiln
