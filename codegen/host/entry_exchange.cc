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
    case ThunkKind::LibraryCall:
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

bool HostEntry::MayOffer(const Thunk& t, Offer* offer) {
  if (t.kind != ThunkKind::Exchange && t.kind != ThunkKind::AllGather) return false;
  if (PlacesBeside() > 0) return MayGoBeside(t);
  auto exchange = ExchangeOf(*t.instruction, options_.replicas, options_.partitions);
  if (!exchange.ok() || !*exchange || !IsSmall(t, **exchange)) return false;
  offer->exchange = *std::move(exchange);
  return true;
}

// From behind what writes the operands of thunk `k` to what touches its results. Where the transport does not copy,
// results are written before the thunk's own place, and operands read behind it.
void HostEntry::FindSpan(const ThunkSequence& thunks, size_t k, const std::vector<bool>& in_region,
                         Offer* offer) const {
  const Thunk& t = thunks[k];
  const bool copies = PlacesBeside() == 0;
  for (offer->from = k; offer->from > 0; --offer->from) {
    const size_t before = offer->from - 1;
    std::vector<Slice> written, touched;
    AddTouched(thunks[before], true, &written);
    AddTouched(thunks[before], false, &touched);
    if (in_region[before] || AnyOverlap(written, t.reads) || (!copies && AnyOverlap(touched, t.writes))) break;
  }
  for (offer->to = k + 1; offer->to < thunks.size() && !in_region[offer->to]; ++offer->to) {
    const Thunk& next = thunks[offer->to];
    std::vector<Slice> written, touched;
    AddTouched(next, true, &written);
    AddTouched(next, false, &touched);
    if (!OnlyComputes(next) || AnyOverlap(touched, t.writes) || (!copies && AnyOverlap(written, t.reads))) break;
  }
}

// Each that the target makes beside its other work has a place of its own while it is under way; those that come when
// none is free are not offered.
void HostEntry::KeepPlaces(Offers* offers) const {
  std::vector<size_t> by_begin, free_from(static_cast<size_t>(PlacesBeside()));
  for (const auto& [k, offer] : *offers) by_begin.push_back(k);
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](size_t a, size_t b) { return offers->at(a).from < offers->at(b).from; });
  for (const size_t k : by_begin) {
    Offer& offer = offers->at(k);
    const auto place =
        std::find_if(free_from.begin(), free_from.end(), [&](size_t until) { return until <= offer.from; });
    if (place == free_from.end()) {
      offers->erase(k);
      continue;
    }
    offer.place = place - free_from.begin();
    *place = offer.to;
  }
}

HostEntry::Offers HostEntry::OffersOf(const ThunkSequence& thunks, const std::vector<bool>& in_region) {
  Offers out;
  const bool copies = PlacesBeside() == 0;
  if ((copies ? !Exchanges() : options_.poison_freed) || options_.profile || options_.check_numerics) return out;
  for (size_t k = 0; k < thunks.size(); ++k) {
    Offer offer;
    if (in_region[k] || !MayOffer(thunks[k], &offer)) continue;
    FindSpan(thunks, k, in_region, &offer);
    out.insert({k, std::move(offer)});
  }
  // One that another begins to read must have ended.
  for (auto& [k, offer] : out)
    for (const auto& [other, begins] : out)
      if (begins.from > k && begins.from < offer.to && AnyOverlap(thunks[other].reads, thunks[k].writes))
        offer.to = begins.from;
  for (auto o = out.begin(); o != out.end();) o = o->second.to - o->second.from < 2 ? out.erase(o) : std::next(o);
  if (!copies) KeepPlaces(&out);
  return out;
}

absl::Status HostEntry::EmitOffers(const ThunkSequence& thunks, size_t k, Offers* offers) {
  llvm::Type* ptr = b_.getPtrTy();
  for (auto& [place, offer] : *offers)
    if (offer.to == k) {
      if (!offer.exchange) {
        EndBeside(offer.place);
        continue;
      }
      FillTable(thunks[place]);
      llvm::FunctionCallee take = Runtime("take", b_.getInt32Ty(), {ptr, ptr, ptr, ptr});
      CheckedExchange(b_.CreateCall(take, {Comm(), offer.offered, offer.meeting.record, ResultsOf(thunks[place])}));
    }
  for (auto& [place, offer] : *offers)
    if (offer.from == k) {
      if (!offer.exchange) {
        RETURN_IF_ERROR(BeginBeside(thunks[place], offer.place));
        continue;
      }
      offer.meeting = MeetingOf(thunks[place], *offer.exchange);
      FillTable(thunks[place]);
      llvm::FunctionCallee begin = Runtime("offer", ptr, {ptr, ptr, ptr, ptr});
      offer.offered = b_.CreateCall(begin, {Comm(), offer.meeting.record, offer.meeting.group, table_});
    }
  return absl::OkStatus();
}

void HostEntry::UnlessOffered(const Thunk& t, const Offer& offer) {
  if (!offer.exchange) return;  // it has begun
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
