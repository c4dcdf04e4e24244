#include "aot/emulator/nccl_world.h"

#include <algorithm>
#include <cstring>

#include "compiler/hlo/types.h"

namespace kiln {
namespace {

constexpr PrimitiveType kTypes[] = {PrimitiveType::S8,  PrimitiveType::U8,  PrimitiveType::S32, PrimitiveType::U32,
                                    PrimitiveType::S64, PrimitiveType::U64, PrimitiveType::F16, PrimitiveType::F32,
                                    PrimitiveType::F64, PrimitiveType::BF16};

template <typename T>
T Combined(int op, T a, T b) {
  switch (op) {
    case kNcclSum:
      return static_cast<T>(a + b);
    case kNcclProd:
      return static_cast<T>(a * b);
    case kNcclMax:
      return b > a ? b : a;
    default:
      return b < a ? b : a;
  }
}

template <typename T>
void CombineAs(int op, void* into, const void* other, size_t count) {
  auto* a = static_cast<T*>(into);
  const auto* b = static_cast<const T*>(other);
  for (size_t k = 0; k < count; ++k) a[k] = Combined(op, a[k], b[k]);
}

void CombineHalves(PrimitiveType type, int op, void* into, const void* other, size_t count) {
  auto* a = static_cast<uint16_t*>(into);
  const auto* b = static_cast<const uint16_t*>(other);
  for (size_t k = 0; k < count; ++k)
    a[k] = static_cast<uint16_t>(
        EncodeFloat(type, Combined<double>(op, DecodeFloat(type, a[k]), DecodeFloat(type, b[k]))));
}

void Combine(int type, int op, void* into, const void* other, size_t count) {
  switch (kTypes[type]) {
    case PrimitiveType::S8:
    case PrimitiveType::U8:
      if (type == kNcclInt8) return CombineAs<int8_t>(op, into, other, count);
      return CombineAs<uint8_t>(op, into, other, count);
    case PrimitiveType::S32:
      // Sums and products of unsigned numbers have the bits of signed ones, and may wrap.
      if (op == kNcclMax || op == kNcclMin) return CombineAs<int32_t>(op, into, other, count);
      return CombineAs<uint32_t>(op, into, other, count);
    case PrimitiveType::U32:
      return CombineAs<uint32_t>(op, into, other, count);
    case PrimitiveType::S64:
      if (op == kNcclMax || op == kNcclMin) return CombineAs<int64_t>(op, into, other, count);
      return CombineAs<uint64_t>(op, into, other, count);
    case PrimitiveType::U64:
      return CombineAs<uint64_t>(op, into, other, count);
    case PrimitiveType::F32:
      return CombineAs<float>(op, into, other, count);
    case PrimitiveType::F64:
      return CombineAs<double>(op, into, other, count);
    default:
      return CombineHalves(kTypes[type], op, into, other, count);
  }
}

// The combination of all ranks, block by block: block k begins with rank k.
std::vector<char> Reduced(const NcclMeeting& m, size_t count) {
  const NcclOp& first = m.ops[0];
  const size_t width = NcclWidth(first.type), size = m.ops.size(), block = (count + size - 1) / size;
  std::vector<char> out(count * width);
  for (size_t b = 0; b < size; ++b) {
    const size_t from = std::min(b * block, count), n = std::min(block, count - from);
    if (n == 0) continue;
    const auto of = [&](size_t r) { return static_cast<const char*>(m.ops[(b + r) % size].from) + from * width; };
    std::memcpy(out.data() + from * width, of(0), n * width);
    for (size_t r = 1; r < size; ++r) Combine(first.type, first.op, out.data() + from * width, of(r), n);
  }
  return out;
}

// Sends that have their receive, in order; the bytes of all are taken before any is given.
std::string PassOn(NcclWorld* w) {
  struct Delivery {
    NcclMessage to;
    std::vector<char> bytes;
  };
  std::vector<Delivery> all;
  for (auto& [pair, sent] : w->sent) {
    auto& wanted = w->wanted[pair];
    while (!sent.empty() && !wanted.empty()) {
      if (sent.front().bytes != wanted.front().bytes || sent.front().type != wanted.front().type)
        return "a message and its receive differ in length or type";
      const auto* data = static_cast<const char*>(sent.front().data);
      all.push_back({wanted.front(), std::vector<char>(data, data + sent.front().bytes)});
      sent.pop_front();
      wanted.pop_front();
    }
  }
  for (const Delivery& d : all) std::memcpy(d.to.data, d.bytes.data(), d.bytes.size());
  return "";
}

// Whether every message that the rank has to do with has gone.
bool Passed(const NcclWorld& w, int rank) {
  for (const auto* queues : {&w.sent, &w.wanted})
    for (const auto& [pair, queue] : *queues) {
      const int owner = queues == &w.sent ? pair.first : pair.second;
      if (owner == rank && !queue.empty()) return false;
    }
  return true;
}

int Broken(NcclWorld* w, const std::string& why) {
  w->failure = kNcclInvalidUsage;
  w->why = why;
  return kNcclBroken;
}

// Messages need nobody but the two ranks of each.
int AttemptMessages(NcclRank* rank, bool first, const NcclOp& op) {
  NcclWorld* w = rank->world.get();
  if (first)
    for (const NcclMessage& m : op.messages) {
      const std::pair<int, int> pair = m.send ? std::pair(rank->rank, m.peer) : std::pair(m.peer, rank->rank);
      (m.send ? w->sent : w->wanted)[pair].push_back(m);
    }
  const std::string wrong = PassOn(w);
  if (!wrong.empty()) return Broken(w, wrong);
  return Passed(*w, rank->rank) ? 0 : kNcclNotYet;
}

}  // namespace

size_t NcclWidth(int type) { return static_cast<size_t>(ByteWidth(kTypes[type])); }

std::string Perform(const NcclMeeting& m) {
  const NcclOp& first = m.ops[0];
  for (const NcclOp& o : m.ops)
    if (o.kind != first.kind || o.count != first.count || o.type != first.type || o.op != first.op ||
        o.root != first.root)
      return "the ranks call different operations, or with different counts, types or roots";
  const size_t width = NcclWidth(first.type), bytes = first.count * width;
  switch (first.kind) {
    case NcclKind::kAllReduce: {
      const std::vector<char> all = Reduced(m, first.count);
      for (const NcclOp& o : m.ops) std::memcpy(o.to, all.data(), all.size());
      return "";
    }
    case NcclKind::kReduceScatter: {
      const std::vector<char> all = Reduced(m, first.count * m.ops.size());
      for (size_t r = 0; r < m.ops.size(); ++r) std::memcpy(m.ops[r].to, all.data() + r * bytes, bytes);
      return "";
    }
    case NcclKind::kAllGather: {
      std::vector<char> all;
      for (const NcclOp& o : m.ops)
        all.insert(all.end(), static_cast<const char*>(o.from), static_cast<const char*>(o.from) + bytes);
      for (const NcclOp& o : m.ops) std::memcpy(o.to, all.data(), all.size());
      return "";
    }
    default: {
      const auto* data = static_cast<const char*>(m.ops[static_cast<size_t>(first.root)].from);
      const std::vector<char> all(data, data + bytes);
      for (const NcclOp& o : m.ops) std::memcpy(o.to, all.data(), all.size());
      return "";
    }
  }
}

int AttemptNccl(const std::shared_ptr<NcclRank>& rank, int64_t* k, const NcclOp& op) {
  NcclWorld* w = rank->world.get();
  if (rank->aborted) return 0;  // its kernels have been told to end
  if (w->failure != kNcclSuccess) return kNcclBroken;
  const bool first = *k < 0, messages = op.kind == NcclKind::kMessages;
  if (first) *k = messages ? 0 : rank->begun++;
  if (messages) {
    const int code = AttemptMessages(rank.get(), first, op);
    if (code == 0) *k = -1;
    return code;
  }
  NcclMeeting& m = w->meetings[*k];
  if (first) {
    m.ops.resize(static_cast<size_t>(w->size));
    m.ops[static_cast<size_t>(rank->rank)] = op;
    ++m.arrived;
  }
  if (m.arrived < w->size) return kNcclNotYet;
  if (!m.done) {
    const std::string wrong = Perform(m);
    if (!wrong.empty()) return Broken(w, wrong);
    m.done = true;
  }
  if (++m.left == w->size) w->meetings.erase(*k);
  *k = -1;
  return 0;
}

}  // namespace kiln
