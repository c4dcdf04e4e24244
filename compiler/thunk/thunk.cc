#include "compiler/thunk/thunk.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/lapack.h"
#include "compiler/hlo/library_calls.h"

namespace kiln {
namespace {

const char* Name(ThunkKind k) {
  static const char* const kNames[] = {
#define THUNK(e, text, what) text,
#include "compiler/thunk/thunks.def"
  };
  return kNames[static_cast<int>(k)];
}

std::string SliceText(const Slice& s) {
  static const char* const kKinds[] = {"temp", "arg", "result", "const", "slow"};
  if (s.kind == Slice::kTemp) return absl::StrCat("temp[", s.offset, "+", s.size, "]");
  const std::string place = s.offset ? absl::StrCat("[", s.offset, "+", s.size, "]") : "";
  return absl::StrCat(kKinds[s.kind], s.index, place);
}

// Operations that are a thunk of their own rather than a kernel.
std::optional<ThunkKind> OwnKind(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::CustomCall:
      if (LapackOf(i)) return std::nullopt;  // a kernel of the library
      return IsLibraryCall(i) ? ThunkKind::LibraryCall : ThunkKind::CustomCall;
    case Opcode::AllGather:
      return ThunkKind::AllGather;
    case Opcode::AllReduce:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter:
      return ThunkKind::Exchange;
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      return ThunkKind::DeviceId;
    case Opcode::Outfeed:
    case Opcode::Send:
      return ThunkKind::Send;
    case Opcode::Infeed:
    case Opcode::Recv:
      return ThunkKind::Receive;
    case Opcode::RngGetAndUpdateState:
      return ThunkKind::RngState;
    default:
      return std::nullopt;
  }
}

// Memory whose contents do not matter: nothing runs for it.
bool IsAllocation(const Instruction* i) {
  return i->Is(Opcode::CustomCall) && i->operand_count() == 0 && i->attrs().custom_call_target &&
         i->attrs().custom_call_target->text == "AllocateBuffer";
}

class Builder {
 public:
  Builder(const Schedule& s, const BufferAssignment& b) : schedule_(s), buffers_(b) {}

  absl::StatusOr<ThunkSequence> Run(const Computation* c) {
    ThunkSequence out;
    for (const Instruction* i : schedule_.at(c)) {
      if (InfoOf(i->opcode()).lowering == Lowering::Free || IsAllocation(i)) continue;
      Thunk t;
      t.instruction = i;
      if (i->Is(Opcode::While)) {
        t.kind = ThunkKind::While;
        ASSIGN_OR_RETURN(ThunkSequence cond, Run(*i->attrs().condition));
        ASSIGN_OR_RETURN(ThunkSequence body, Run(*i->attrs().body));
        t.nested = {std::move(cond), std::move(body)};
        t.predicate = buffers_.Get((*i->attrs().condition)->root());
      } else if (i->Is(Opcode::Conditional)) {
        t.kind = ThunkKind::Conditional;
        t.predicate = buffers_.Get(i->operand(0));
        for (const Computation* b : i->called()) {
          ASSIGN_OR_RETURN(ThunkSequence branch, Run(b));
          t.nested.push_back(std::move(branch));
        }
      } else {
        for (const Instruction* o : i->operands()) Leaves(o, &t.reads);
        Leaves(i, &t.writes);
        if (buffers_.HasScratch(i)) t.scratch = buffers_.Scratch(i);
        if (std::optional<ThunkKind> kind = OwnKind(i)) {
          t.kind = *kind;
        } else if (i->Is(Opcode::Copy) && i->shape().LayoutOrDefault().minor_to_major ==
                                              i->operand(0)->shape().LayoutOrDefault().minor_to_major) {
          t.kind = ThunkKind::Copy;
          if (t.reads[0] == t.writes[0] || i->shape().ByteSize() == 0) continue;
        } else {
          t.kind = ThunkKind::Kernel;
        }
      }
      out.push_back(std::move(t));
    }
    return out;
  }

 private:
  void Leaves(const Instruction* i, std::vector<Slice>* out) {
    ForEachLeaf(i->shape(), [&](const ShapeIndex& idx, const Shape& s) {
      if (s.IsArray()) out->push_back(buffers_.Get(i, idx));
    });
  }

  const Schedule& schedule_;
  const BufferAssignment& buffers_;
};

}  // namespace

absl::StatusOr<ThunkSequence> BuildThunks(const Module& m, const Schedule& s, const BufferAssignment& b) {
  return Builder(s, b).Run(m.entry());
}

std::string ToText(const ThunkSequence& thunks, int indent) {
  std::string out;
  for (const Thunk& t : thunks) {
    absl::StrAppend(&out, std::string(indent, ' '), Name(t.kind), " ", t.instruction->name(), " reads(");
    for (size_t k = 0; k < t.reads.size(); ++k) absl::StrAppend(&out, k ? ", " : "", SliceText(t.reads[k]));
    out += ") writes(";
    for (size_t k = 0; k < t.writes.size(); ++k) absl::StrAppend(&out, k ? ", " : "", SliceText(t.writes[k]));
    out += ")";
    if (t.scratch.size) absl::StrAppend(&out, " scratch(", SliceText(t.scratch), ")");
    if (!t.nested.empty()) absl::StrAppend(&out, " on(", SliceText(t.predicate), ")");
    out += "\n";
    for (size_t k = 0; k < t.nested.size(); ++k)
      absl::StrAppend(&out, std::string(indent + 2, ' '), k, ":\n", ToText(t.nested[k], indent + 4));
  }
  return out;
}

bool Communicates(const ThunkSequence& thunks) {
  for (const Thunk& t : thunks) {
    if (t.kind == ThunkKind::AllGather || t.kind == ThunkKind::Exchange || t.kind == ThunkKind::Send ||
        t.kind == ThunkKind::Receive)
      return true;
    for (const ThunkSequence& n : t.nested)
      if (Communicates(n)) return true;
  }
  return false;
}

int64_t LargestExchange(const ThunkSequence& thunks, bool gathers) {
  int64_t most = 0;
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) most = std::max(most, LargestExchange(n, gathers));
    if (gathers && t.kind == ThunkKind::AllGather) most = std::max(most, t.reads[0].size + t.writes[0].size);
    if (t.kind == ThunkKind::Send)
      for (const Slice& s : t.reads) most = std::max(most, s.size);
    if (t.kind == ThunkKind::Receive)
      for (const Slice& s : t.writes) most = std::max(most, s.size);
  }
  return most;
}

int64_t CountThunks(const ThunkSequence& thunks) {
  int64_t n = 0;
  for (const Thunk& t : thunks) {
    ++n;
    for (const ThunkSequence& s : t.nested) n += CountThunks(s);
  }
  return n;
}

}  // namespace kiln
