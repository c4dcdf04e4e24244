// Both ends of a transfer between devices start before anything waits for either: control edges from the receive to the
// send, from there to the end of the receive, and from there to the end of the send. A scheduler that moved work in
// between could otherwise make two devices wait for each other.
//
// Stays: transfers with the host, and those of which a computation does not have all four parts.
#include <map>

#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

struct Chain {
  std::vector<Instruction*> receives, sends, received, sent;
  bool IsWhole() const { return receives.size() == 1 && sends.size() == 1 && received.size() == 1 && sent.size() == 1; }
};

// The transfers of a computation between devices, by channel.
std::map<int64_t, Chain> ChainsOf(const Computation* c) {
  std::map<int64_t, Chain> out;
  for (Instruction* i : c->PostOrder()) {
    if (!i->attrs().channel_id || i->attrs().is_host_transfer.value_or(false)) continue;
    Chain& chain = out[*i->attrs().channel_id];
    if (i->Is(Opcode::Recv)) chain.receives.push_back(i);
    if (i->Is(Opcode::Send)) chain.sends.push_back(i);
    if (i->Is(Opcode::RecvDone)) chain.received.push_back(i);
    if (i->Is(Opcode::SendDone)) chain.sent.push_back(i);
  }
  return out;
}

// An edge where there is no order yet.
bool Order(Instruction* first, Instruction* then) {
  const Reachability reach(first->parent());
  if (reach.Reaches(first, then) || reach.Reaches(then, first)) return false;
  first->AddControlDependencyTo(then);
  return true;
}

}  // namespace

absl::StatusOr<bool> LatencyHidingSchedulerPreparation(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder()) {
    if (!Reachability::Affordable(c)) continue;
    for (const auto& [channel, chain] : ChainsOf(c)) {
      if (!chain.IsWhole() || ctx.fuel == 0) continue;
      bool did = Order(chain.receives[0], chain.sends[0]);
      did = Order(chain.sends[0], chain.received[0]) || did;
      did = Order(chain.received[0], chain.sent[0]) || did;
      if (did) ctx.Take();
      changed |= did;
    }
  }
  return changed;
}

}  // namespace kiln
