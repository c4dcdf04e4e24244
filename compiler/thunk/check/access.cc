#include "compiler/thunk/check/access.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "compiler/hlo/uses.h"

namespace kiln {
namespace {

// An update and which of its operands it overwrites for a result.
struct Update {
  const Instruction* instruction = nullptr;
  int64_t array = 0;
};

// What makes result `output` of `i`, if that is an update.
Update UpdateOf(const Instruction* i, int64_t output) {
  const Instruction* root = i->Is(Opcode::Fusion) ? (*i->attrs().calls)->root() : i;
  if (i->Is(Opcode::Fusion) && root->Is(Opcode::Tuple)) {
    const Instruction* result = root->operand(output);
    const bool updates = result->Is(Opcode::DynamicUpdateSlice) || result->Is(Opcode::Scatter);
    return updates && result->shape().IsArray() ? Update{result, 0} : Update{};
  }
  if (root->Is(Opcode::DynamicUpdateSlice) && output == 0) return {root, 0};
  if (root->Is(Opcode::Scatter) && output < root->operand_count() / 2) return {root, output};
  return {};
}

// Whether the kernel of `i` copies rows of the array before it overwrites them, and `reader`, beside `update`, reads
// elements of it at a constant distance from the one that is written.
bool ReadsOldRows(const Instruction* i, const Instruction* update, const Instruction* reader) {
  if (!i->attrs().backend_config || !absl::StrContains(i->attrs().backend_config->text, "rows_in_place")) return false;
  const Ints& dims = update->operand(1)->shape().dims();
  const auto in_place = [&](const Instruction* u, const Instruction*) {
    return u->IsElementwise() && u->shape().dims() == dims;
  };
  if (!reader->Is(Opcode::Slice) || reader->shape().dims() != dims) return false;
  for (const SliceDim& d : *reader->attrs().slice)
    if (d.stride != 1) return false;
  return EveryUseKeeps(
      reader, [&](const Instruction* u) { return u == update; }, in_place);
}

bool UpdatesInPlace(const Instruction* i, int64_t k, int64_t output) {
  const auto [update, array] = UpdateOf(i, output);
  if (!update) return false;
  if (update == i) return k == output;
  // From the updated array up to the parameter; nothing else may read what lies on the way.
  const Instruction* v = update->operand(array);
  const Instruction* below = update;
  for (;;) {
    for (const Instruction* u : v->users())
      for (int64_t slot = 0; slot < u->operand_count(); ++slot)
        if (u->operand(slot) == v && (u != below || (u == update && slot != array)) &&
            !(v == update->operand(array) && ReadsOldRows(i, update, u)))
          return false;
    if (!v->Is(Opcode::Bitcast)) break;
    below = v;
    v = v->operand(0);
  }
  return v->Is(Opcode::Parameter) && *v->attrs().parameter_number == k;
}

// How the elements of a fused instruction depend on the elements of one parameter.
enum class Dependence { kNone, kSamePosition, kOther };

class PositionAnalysis {
 public:
  PositionAnalysis(const Instruction* parameter, int64_t elements) : parameter_(parameter), elements_(elements) {}

  Dependence Of(const Instruction* i) {
    if (const auto it = known_.find(i); it != known_.end()) return it->second;
    Dependence d = Dependence::kNone;
    if (i == parameter_) {
      d = Dependence::kSamePosition;
    } else {
      for (const Instruction* o : i->operands()) d = std::max(d, Of(o));
      if (d == Dependence::kSamePosition && !i->IsElementwise() && !i->Is(Opcode::Bitcast)) d = Dependence::kOther;
    }
    const Shape& s = i->shape();
    if (d == Dependence::kSamePosition && !(s.IsArray() && s.ElementCount() == elements_ && s.HasDefaultLayout()))
      d = Dependence::kOther;
    return known_[i] = d;
  }

 private:
  const Instruction* parameter_;
  int64_t elements_;
  absl::flat_hash_map<const Instruction*, Dependence> known_;
};

// Whether results `from` to `to` are made together. Those of equally many elements are, if all are that many; else
// neighbours that are elementwise and of the same extents. Those of transposes and updates are made apart.
bool OneLoop(const Computation* body, const std::vector<Instruction*>& results, size_t from, size_t to) {
  for (const auto& x : body->instructions())
    if (x->Is(Opcode::Transpose)) return false;
  const auto together = [&](const Instruction* r) {
    return !r->Is(Opcode::DynamicUpdateSlice) && r->shape().ElementCount() == results[from]->shape().ElementCount();
  };
  if (std::all_of(results.begin(), results.end(), together)) return true;
  for (size_t k = from; k <= to; ++k)
    if (!results[k]->IsElementwise() || results[k]->shape().dims() != results[from]->shape().dims() ||
        !results[k]->shape().HasDefaultLayout())
      return false;
  return true;
}

bool ReadsWhatItWrites(const Instruction* i, int64_t k, int64_t output) {
  if (!i->Is(Opcode::Fusion)) return false;
  const Computation* body = *i->attrs().calls;
  const Instruction* root = body->root();
  const std::vector<Instruction*> results =
      root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{body->root()};
  if (output >= static_cast<int64_t>(results.size())) return false;
  const Shape& written = results[output]->shape();
  if (!written.IsArray() || ByteWidth(written.type()) != ByteWidth(i->operand(k)->shape().type())) return false;
  // Whoever else reads the array must do so in the same loop, and none may look at another position.
  PositionAnalysis positions(body->parameter(k), written.ElementCount());
  size_t first = static_cast<size_t>(output), last = first;
  for (size_t r = 0; r < results.size(); ++r) {
    const Dependence d = positions.Of(results[r]);
    if (d == Dependence::kOther) return false;
    if (d == Dependence::kNone || results[r] == results[output]) continue;
    first = std::min(first, r);
    last = std::max(last, r);
  }
  return first == last || OneLoop(body, results, first, last);
}

bool WritesRows(const Instruction* i) {
  return i->Is(Opcode::Fusion) && i->attrs().backend_config &&
         absl::StrContains(i->attrs().backend_config->text, "block_level");
}

// How the rows of a fused instruction depend on the rows of one parameter, where a kernel reduces a whole row before it
// writes it. An array of rows is [outer][length][inner], as the first that `reduce` reduces is; a row is what its
// dimensions count.
class RowAnalysis {
 public:
  RowAnalysis(const Instruction* parameter, const Instruction* reduce)
      : parameter_(parameter),
        rows_(reduce->shape().ElementCount()),
        elements_(reduce->operand(0)->shape().ElementCount()) {
    const Shape& in = reduce->operand(0)->shape();
    for (int64_t d = in.rank(); d-- > 0 && (in.dim(d) == 1 || !Among(*reduce->attrs().dimensions, d));)
      inner_ *= in.dim(d);
  }

  Dependence Of(const Instruction* i) {
    if (const auto it = known_.find(i); it != known_.end()) return it->second;
    Dependence d = Dependence::kNone;
    if (i == parameter_)
      d = Dependence::kSamePosition;
    else
      for (const Instruction* o : i->operands()) d = std::max(d, Of(o));
    const Shape& s = i->shape();
    if (d == Dependence::kSamePosition && !(s.IsArray() && s.HasDefaultLayout() && KeepsRows(i)))
      d = Dependence::kOther;
    return known_[i] = d;
  }

 private:
  static bool Among(const Ints& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

  // Whether `dims` of `s` count the elements of a row: neighbours, with `inner_` elements behind them. Dimensions of
  // one element may be among them or not.
  bool CountRows(const Shape& s, const Ints& dims) const {
    int64_t behind = 1, along = 1;
    for (int64_t d = s.rank(); d-- > 0;) {
      int64_t& n = behind < inner_ ? behind : along;
      const bool of_row = &n == &along && along < elements_ / rows_;
      if (s.dim(d) != 1 && of_row != Among(dims, d)) return false;
      if (&n == &behind || of_row) n *= s.dim(d);
    }
    return behind == inner_ && along == elements_ / rows_;
  }

  bool KeepsRows(const Instruction* i) const {
    const Shape& s = i->shape();
    const int64_t n = s.ElementCount();
    if (i == parameter_) return n == elements_;
    if (i->IsElementwise() || i->Is(Opcode::Bitcast)) return n == elements_ || n == rows_;
    if (i->Is(Opcode::Reduce)) {
      const Shape& in = i->operand(0)->shape();
      return in.ElementCount() == elements_ && n == rows_ && CountRows(in, *i->attrs().dimensions);
    }
    if (!i->Is(Opcode::Broadcast) || n != elements_ || i->operand(0)->shape().ElementCount() != rows_) return false;
    const Ints& dims = *i->attrs().dimensions;
    Ints repeated;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (!Among(dims, d)) repeated.push_back(d);
    return std::is_sorted(dims.begin(), dims.end()) && CountRows(s, repeated);
  }

  const Instruction* parameter_;
  const int64_t rows_, elements_;
  int64_t inner_ = 1;
  absl::flat_hash_map<const Instruction*, Dependence> known_;
};

bool ReadsTheRowItWrites(const Instruction* i, int64_t k, int64_t output) {
  if (!WritesRows(i)) return false;
  const Computation* body = *i->attrs().calls;
  const Instruction* root = body->root();
  const std::vector<Instruction*> results =
      root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{body->root()};
  if (output >= static_cast<int64_t>(results.size())) return false;
  const Shape &written = results[output]->shape(), &read = i->operand(k)->shape();
  if (!written.IsArray() || !read.IsArray() || written.ElementCount() != read.ElementCount() ||
      ByteWidth(written.type()) != ByteWidth(read.type()))
    return false;
  for (const auto& x : body->instructions())
    if (x->Is(Opcode::Reduce)) {
      RowAnalysis rows(body->parameter(k), x.get());
      return x->operand(0)->shape().ElementCount() == read.ElementCount() &&
             std::all_of(results.begin(), results.end(),
                         [&](const Instruction* r) { return rows.Of(r) != Dependence::kOther; });
    }
  return false;
}

}  // namespace

bool MayOverwrite(const Instruction* i, int64_t k, int64_t output) {
  if (i->Is(Opcode::AllReduce)) return k == output;
  if (i->Is(Opcode::Fusion)) {  // what lies in the result between a transform's axes
    const auto& inside = (*i->attrs().calls)->instructions();
    if (std::any_of(inside.begin(), inside.end(), [](const auto& o) { return o->Is(Opcode::Fft); })) return false;
  }
  return UpdatesInPlace(i, k, output) || ReadsWhatItWrites(i, k, output) || ReadsTheRowItWrites(i, k, output);
}

}  // namespace kiln
