// A send and a receive of one channel that say which devices send to which (_xla_send_recv_source_target_pairs) are a
// permutation, which no device has to wait for in the middle: sends and receives one after the other could wait for
// each other in a circle, and a queue does not know who a message is for. What is sent may not depend on what is
// received.
#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// "{{0,1},{1,0}}"; empty: it says nothing, or the other side is the host program.
std::string PairsOf(const Instruction* i) {
  constexpr absl::string_view kKey = "_xla_send_recv_source_target_pairs";
  if (!i->attrs().frontend_attributes || i->attrs().is_host_transfer.value_or(false)) return "";
  const absl::string_view text = i->attrs().frontend_attributes->text;
  const size_t key = text.find(kKey);
  if (key == text.npos) return "";
  const size_t from = text.find("{{", key), to = text.find("}}", key);
  if (from == text.npos || to == text.npos) return "";
  return std::string(text.substr(from, to + 2 - from));
}

bool DependsOn(const Instruction* i, const Instruction* on, absl::flat_hash_set<const Instruction*>* seen) {
  if (i == on) return true;
  if (!seen->insert(i).second) return false;
  return std::any_of(i->operands().begin(), i->operands().end(),
                     [&](const Instruction* o) { return DependsOn(o, on, seen); });
}

// The only send of the receive's channel; null: there is none that it could meet.
Instruction* SendFor(const Instruction* receive) {
  const std::string pairs = PairsOf(receive);
  if (pairs.empty() || !receive->attrs().channel_id) return nullptr;
  Instruction* out = nullptr;
  for (Instruction* i : receive->parent()->PostOrder()) {
    if (!i->Is(Opcode::Send) || i->attrs().channel_id != receive->attrs().channel_id) continue;
    if (out || PairsOf(i) != pairs || i->operand(0)->shape() != receive->shape().tuple()[0]) return nullptr;
    out = i;
  }
  absl::flat_hash_set<const Instruction*> seen;
  return out && !DependsOn(out, receive, &seen) ? out : nullptr;
}

// (data, context, token), as both give.
Instruction* Halves(const Instruction* i, Instruction* data, Instruction* token) {
  Computation* c = i->parent();
  Instruction* context = IntegerIn(c, PrimitiveType::U32, 0).get();
  return c->Add(Opcode::Tuple, i->shape(), {data, context, token});
}

}  // namespace

absl::StatusOr<bool> SendRecvJoiner(Module& m, PassContext& ctx) {
  absl::flat_hash_set<const Instruction*> joined;
  ASSIGN_OR_RETURN(const bool received,
                   ExpandEach(
                       m, ctx, [](const Instruction* i) { return i->Is(Opcode::Recv) && SendFor(i); },
                       [&](Instruction* i) -> absl::StatusOr<Instruction*> {
                         Instruction* send = SendFor(i);
                         joined.insert(send);
                         Instruction* moved =
                             i->parent()->Add(Opcode::CollectivePermute, i->shape().tuple()[0], {send->operand(0)});
                         moved->mutable_attrs().source_target_pairs = attr::Raw(PairsOf(i));
                         // Channel 0 leads between replicas, others between partitions.
                         if (*i->attrs().channel_id > 0) moved->mutable_attrs().channel_id = i->attrs().channel_id;
                         moved->set_loc(i->loc());
                         return Halves(i, moved, i->operand(0));
                       }));
  ASSIGN_OR_RETURN(const bool sent, ExpandEach(
                                        m, ctx, [&](const Instruction* i) { return joined.contains(i); },
                                        [](Instruction* i) -> absl::StatusOr<Instruction*> {
                                          return Halves(i, i->operand(0), i->operand(1));
                                        }));
  return received || sent;
}

}  // namespace kiln
