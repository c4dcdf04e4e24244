// A round of a loop becomes two where its state could not be made in place.
//
// A step may read neighbours of the elements that it writes, or hand one array of the state on as another. What it
// gives cannot lie where the old arrays do, so that each round would copy it there. The second step of a double round
// writes where the first has read: nothing is copied. An exchange that makes a part of the state waits likewise until
// the step has read that part; where little of the step is left then, it gets the memory of the other step's, and takes
// place beside the whole step. Loops whose number of iterations is known, over small bodies without loops or branches
// of their own.
//
// Cost: linear in the bodies of loops; of an exchange, its result once more, at most a part of the loop's state.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/analysis/cost.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/hlo/trip_count.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/run_twice.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

constexpr int64_t kLeastTrips = 4, kMostInstructions = 100, kLeastBytes = 16 << 10;
// Of exchanges: smaller ones are copied when they begin, and wait for nobody. A step that leaves them so much of its
// time, behind what reads what they replace, hides them; what they take twice is at most one of so many parts.
constexpr int64_t kLeastExchange = 64 << 10, kStateParts = 8;
constexpr double kEnoughSlack = 0.25;

bool IsElement(const Instruction* i, const Instruction* state, int64_t k) {
  return i->Is(Opcode::GetTupleElement) && i->operand(0) == state && *i->attrs().tuple_index == k;
}

// Whether element `k` of the state would be copied in each round.
bool IsCopied(const Computation* body, int64_t k) {
  const Instruction *state = body->parameter(0), *next = body->root()->operand(k);
  if (!next->shape().IsArray() || next->shape().ByteSize() < kLeastBytes) return false;
  if (next->Is(Opcode::GetTupleElement) && next->operand(0) == state) return *next->attrs().tuple_index != k;
  const Instruction* maker = next->Is(Opcode::GetTupleElement) ? next->operand(0) : next;
  if (!maker->Is(Opcode::Fusion) || maker->attrs().fusion_kind != FusionKind::kLoop || UpdatesInPlace(maker))
    return false;
  for (int64_t o = 0; o < maker->operand_count(); ++o)
    if (IsElement(maker->operand(o), state, k) && !ReadsAtOwnElement(maker, o)) return true;
  return false;
}

double Microseconds(const Instruction* i) {
  const bool waits = i->Is(Opcode::Parameter) || i->HasTrait(Collective);
  return waits || PassesThrough(i) ? 0 : EstimatedMicroseconds(CostOfKernel(i));
}

// These and all that they are made of.
absl::flat_hash_set<const Instruction*> MadeOf(std::vector<const Instruction*> work) {
  absl::flat_hash_set<const Instruction*> out;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (out.insert(i).second) work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return out;
}

// What reads element `k` of the state.
std::vector<const Instruction*> ReadersOf(const Computation* body, int64_t k) {
  std::vector<const Instruction*> out, names;
  for (const Instruction* e : body->parameter(0)->users())
    if (IsElement(e, body->parameter(0), k)) names.push_back(e);
  while (!names.empty()) {
    const Instruction* name = names.back();
    names.pop_back();
    for (const Instruction* u : name->users()) (u->Is(Opcode::Bitcast) ? names : out).push_back(u);
  }
  return out;
}

// Whether an exchange makes element `k` of the state of other values, and little is left of the step when what reads
// that element is done.
bool IsExchangedLate(const Computation* body, int64_t k) {
  const Instruction* made = body->root()->operand(k);
  while (made->Is(Opcode::Bitcast)) made = made->operand(0);
  if (!made->HasTrait(Collective) || !made->shape().IsArray()) return false;
  const int64_t bytes = made->shape().ByteSize();
  if (bytes < kLeastExchange || bytes > body->parameter(0)->shape().ByteSize() / kStateParts) return false;
  const std::vector<const Instruction*> readers = ReadersOf(body, k);
  const auto needed = MadeOf({made});
  if (readers.empty() || std::any_of(readers.begin(), readers.end(), [&](auto* r) { return needed.contains(r); }))
    return false;
  double all = 0, done = 0;
  for (const auto& i : body->instructions()) all += Microseconds(i.get());
  for (const Instruction* i : MadeOf(readers)) done += Microseconds(i);
  return all - done < kEnoughSlack * all;
}

bool Gains(const Computation* body) {
  if (body->instruction_count() > kMostInstructions) return false;
  for (const auto& i : body->instructions())
    if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call)) return false;
  for (int64_t k = 0; k < body->root()->operand_count(); ++k)
    if (IsCopied(body, k) || IsExchangedLate(body, k)) return true;
  return false;
}

// Exchanges keep the order that they have in every device's program.
bool MayRunTwice(const Computation* body) {
  return std::all_of(body->instructions().begin(), body->instructions().end(), [](const auto& i) {
    return i->control_predecessors().empty() && (!i->HasSideEffect() || i->HasTrait(Collective));
  });
}

}  // namespace

absl::StatusOr<bool> CpuWhileDoubleBuffering(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      const int64_t trips = KnownTripCount(loop).value_or(0);
      if (trips < kLeastTrips || !HasFlatBodies(loop) || !MayRunTwice(*loop->attrs().body) ||
          !Gains(*loop->attrs().body) || !ctx.Take())
        continue;
      RunTwiceARound(loop, trips);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
