#include "compiler/thunk/check/access.h"

#include <algorithm>

namespace kiln {
namespace {

// The instruction whose operands the update of result `output` reads, if `i` is an update.
const Instruction* UpdateOf(const Instruction* i, int64_t output) {
  const Instruction* update = i->Is(Opcode::Fusion) ? (*i->attrs().calls)->root() : i;
  if (update->Is(Opcode::DynamicUpdateSlice)) return output == 0 ? update : nullptr;
  if (update->Is(Opcode::Scatter)) return output < update->operand_count() / 2 ? update : nullptr;
  return nullptr;
}

bool UpdatesInPlace(const Instruction* i, int64_t k, int64_t output) {
  const Instruction* update = UpdateOf(i, output);
  if (!update) return false;
  if (update == i) return k == output;
  // From the updated array up to the parameter; nothing else may read what lies on the way.
  const Instruction* v = update->operand(output);
  const Instruction* below = update;
  for (;;) {
    for (const Instruction* u : v->users())
      for (int64_t slot = 0; slot < u->operand_count(); ++slot)
        if (u->operand(slot) == v && (u != below || (u == update && slot != output))) return false;
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

// Results of equally many elements are made together, but those of transposes apart.
bool OneLoop(const Computation* body, const std::vector<Instruction*>& results) {
  for (const Instruction* r : results)
    if (r->shape().ElementCount() != results[0]->shape().ElementCount()) return false;
  for (const auto& i : body->instructions())
    if (i->Is(Opcode::Transpose)) return false;
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
  for (const Instruction* r : results) {
    const Dependence d = positions.Of(r);
    if (d == Dependence::kOther || (d != Dependence::kNone && r != results[output] && !OneLoop(body, results)))
      return false;
  }
  return true;
}

}  // namespace

bool MayOverwrite(const Instruction* i, int64_t k, int64_t output) {
  if (i->Is(Opcode::AllReduce)) return k == output;
  return UpdatesInPlace(i, k, output) || ReadsWhatItWrites(i, k, output);
}

}  // namespace kiln
