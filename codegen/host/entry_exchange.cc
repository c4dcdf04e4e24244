// Exchanges between devices: in one piece, or begun early and ended late.
#include <algorithm>

#include "codegen/host/entry.h"
#include "runtime_min/abi.h"

namespace kiln {
namespace {

// What a thunk, or one within it, reads or writes.
void AddTouched(const Thunk& t, bool writes_only, std::vector<Slice>* out) {
  if (!writes_only) out->insert(out->end(), t.reads.begin(), t.reads.end());
  out->insert(out->end(), t.writes.begin(), t.writes.end());
  if (t.scratch.size) out->push_back(t.scratch);
  if (!t.nested.empty()) out->push_back(t.predicate);
  for (const ThunkSequence& n : t.nested)
    for (const Thunk& x : n) AddTouched(x, writes_only, out);
}

bool Overlap(const Slice& a, const Slice& b) {
  const bool one = a.kind == Slice::kTemp || a.kind == Slice::kSlow;  // arena, whatever the index
  return a.kind == b.kind && (one || a.index == b.index) && a.offset < b.offset + b.size &&
         b.offset < a.offset + a.size;
}

bool AnyOverlap(const std::vector<Slice>& a, const std::vector<Slice>& b) {
  for (const Slice& x : a)
    for (const Slice& y : b)
      if (Overlap(x, y)) return true;
  return false;
}

// Kernels and copies, which nobody outside the run sees.
bool OnlyComputes(const Thunk& t) {
  switch (t.kind) {
    case ThunkKind::Kernel:
    case ThunkKind::Copy:
    case ThunkKind::DeviceId:
    case ThunkKind::Exchange:
    case ThunkKind::AllGather:
    case ThunkKind::While:
    case ThunkKind::Conditional:
      return std::all_of(t.nested.begin(), t.nested.end(),
                         [](const ThunkSequence& n) { return std::all_of(n.begin(), n.end(), OnlyComputes); });
    default:
      return false;
  }
}

bool IsSmall(const Thunk& t, const Exchange& x) {
  int64_t bytes = 0;
  for (const Slice& s : t.reads) bytes += s.size;
  return bytes <= KILN_SMALL_EXCHANGE / x.members();
}

}  // namespace

HostEntry::Offers HostEntry::OffersOf(const ThunkSequence& thunks) {
  Offers out;
  if (!Exchanges() || options_.profile || options_.check_numerics) return out;
  for (size_t k = 0; k < thunks.size(); ++k) {
    const Thunk& t = thunks[k];
    if (t.kind != ThunkKind::Exchange && t.kind != ThunkKind::AllGather) continue;
    const auto exchange = ExchangeOf(*t.instruction, options_.replicas, options_.partitions);
    if (!exchange.ok() || !*exchange || !IsSmall(t, **exchange)) continue;
    size_t from = k;
    for (; from > 0; --from) {
      std::vector<Slice> written;
      AddTouched(thunks[from - 1], true, &written);
      if (AnyOverlap(written, t.reads)) break;
    }
    out[k] = {**exchange, from, k + 1, {}, nullptr};
  }
  for (auto& [k, offer] : out) {
    const auto read_at = [&](size_t place) {
      return std::any_of(out.begin(), out.end(), [&](const auto& o) {
        return o.second.from == place && AnyOverlap(thunks[o.first].reads, thunks[k].writes);
      });
    };
    for (; offer.to < thunks.size() && OnlyComputes(thunks[offer.to]) && !read_at(offer.to); ++offer.to) {
      std::vector<Slice> touched;
      AddTouched(thunks[offer.to], false, &touched);
      if (AnyOverlap(touched, thunks[k].writes)) break;
    }
  }
  for (auto o = out.begin(); o != out.end();) o = o->second.to - o->second.from < 2 ? out.erase(o) : std::next(o);
  return out;
}

void HostEntry::EmitOffers(const ThunkSequence& thunks, size_t k, Offers* offers) {
  llvm::Type* ptr = b_.getPtrTy();
  for (auto& [place, offer] : *offers)
    if (offer.to == k) {
      FillTable(thunks[place]);
      llvm::FunctionCallee take = Runtime("take", b_.getInt32Ty(), {ptr, ptr, ptr, ptr});
      CheckedExchange(b_.CreateCall(take, {Comm(), offer.offered, offer.meeting.record, ResultsOf(thunks[place])}));
    }
  for (auto& [place, offer] : *offers)
    if (offer.from == k) {
      offer.meeting = MeetingOf(thunks[place], offer.exchange);
      FillTable(thunks[place]);
      llvm::FunctionCallee begin = Runtime("offer", ptr, {ptr, ptr, ptr, ptr});
      offer.offered = b_.CreateCall(begin, {Comm(), offer.meeting.record, offer.meeting.group, table_});
    }
}

void HostEntry::UnlessOffered(const Thunk& t, const Offer& offer) {
  llvm::Type* ptr = b_.getPtrTy();
  FillTable(t);
  llvm::FunctionCallee exchange = Runtime("unless_offered", b_.getInt32Ty(), {ptr, ptr, ptr, ptr, ptr, ptr});
  CheckedExchange(b_.CreateCall(
      exchange, {Comm(), offer.offered, offer.meeting.record, offer.meeting.group, table_, ResultsOf(t)}));
}

llvm::Constant* HostEntry::ExchangeRecord(const Thunk& t, const Exchange& x) {
  const Opcode op = t.instruction->opcode();
  const kiln_exchange_kind kind = op == Opcode::AllReduce       ? KILN_ALL_REDUCE
                                  : op == Opcode::ReduceScatter ? KILN_REDUCE_SCATTER
                                  : op == Opcode::AllGather     ? KILN_ALL_GATHER
                                  : op == Opcode::AllToAll      ? KILN_ALL_TO_ALL
                                                                : KILN_PERMUTE;
  std::vector<int64_t> bytes;
  for (const Slice& s : t.reads) bytes.push_back(s.size);
  llvm::Type* i64 = b_.getInt64Ty();
  const auto number = [&](int64_t n) { return llvm::ConstantInt::get(i64, static_cast<uint64_t>(n)); };
  llvm::Constant* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
  llvm::Constant *combine = none, *how = none;
  int64_t element_bytes = 0;
  if (t.instruction->attrs().to_apply) {
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), i64}, false);
    auto f = ir_.module.getOrInsertFunction(options_.library + "_combine", type);
    llvm::cast<llvm::Function>(f.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    combine = llvm::cast<llvm::Function>(f.getCallee());
    how = Combination(t);
    element_bytes = ByteWidth(t.instruction->operand(0)->shape().type());
  }
  llvm::Constant* init = llvm::ConstantStruct::getAnon(
      ir_.ctx, {b_.getInt32(kind), number(x.members()), number(static_cast<int64_t>(bytes.size())), Table(bytes),
                x.source.empty() ? none : Table(x.source), number(element_bytes), combine, how});
  return new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                  name_ + "_record");
}

HostEntry::Meeting HostEntry::MeetingOf(const Thunk& t, const Exchange& x) {
  std::vector<int64_t> members, at(static_cast<size_t>(options_.replicas * options_.partitions), 0);
  for (const Ints& g : x.groups) {
    for (int64_t d : g) at[static_cast<size_t>(d)] = static_cast<int64_t>(members.size());
    members.insert(members.end(), g.begin(), g.end());
  }
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Value* first = b_.CreateLoad(i64, b_.CreateInBoundsGEP(i64, Table(at), Device()));
  return {ExchangeRecord(t, x), b_.CreateInBoundsGEP(i64, Table(members), first)};
}

llvm::Value* HostEntry::ResultsOf(const Thunk& t) {
  return b_.CreateInBoundsGEP(b_.getPtrTy(), table_, ir_.I64(static_cast<int64_t>(t.reads.size())));
}

void HostEntry::EmitExchange(const Thunk& t, const Exchange& x) {
  llvm::Type* ptr = b_.getPtrTy();
  const Meeting meeting = MeetingOf(t, x);
  FillTable(t);
  llvm::FunctionCallee exchange = Runtime("exchange", b_.getInt32Ty(), {ptr, ptr, ptr, ptr, ptr});
  CheckedExchange(b_.CreateCall(exchange, {Comm(), meeting.record, meeting.group, table_, ResultsOf(t)}));
}

}  // namespace kiln
