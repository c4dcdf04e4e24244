// Exchanges between devices: in one piece, or begun early and ended late.
#include "codegen/host/entry.h"
#include "runtime_min/abi.h"

namespace kiln {

HostEntry::Offers HostEntry::OffersIn(const ThunkSequence& thunks, std::vector<bool> in_region) {
  Offers out;
  OfferRules rules = {options_.replicas, options_.partitions};
  rules.places = PlacesBeside();
  rules.taken = places_taken_;
  rules.target_makes = [&](const Thunk& t) { return MayGoBeside(t); };
  rules.closed = std::move(in_region);
  // What is filled after its last use would be read by others.
  rules.large = !options_.poison_freed;
  const bool able = rules.places > 0 ? !options_.poison_freed : Exchanges();
  if (!able || options_.profile || options_.check_numerics) return out;
  for (auto& [k, offer] : OffersOf(thunks, rules)) out[k] = {std::move(offer), {}, nullptr};
  return out;
}

uint64_t HostEntry::PlacesTakenAround(const Offers& offers, size_t k) const {
  uint64_t taken = places_taken_;
  for (const auto& [own, offer] : offers)
    if (!offer.where.exchange && offer.where.from <= k && k < offer.where.to) taken |= uint64_t{1} << offer.where.place;
  return taken;
}

absl::Status HostEntry::EmitOffers(const ThunkSequence& thunks, size_t k, Offers* offers) {
  llvm::Type* ptr = b_.getPtrTy();
  for (auto& [place, offer] : *offers)
    if (offer.where.to == k) {
      if (!offer.where.exchange) {
        EndBeside(offer.where.place);
        continue;
      }
      FillTable(thunks[place]);
      llvm::FunctionCallee take = Runtime("take", b_.getInt32Ty(), {ptr, ptr, ptr, ptr});
      CheckedExchange(b_.CreateCall(take, {Comm(), offer.offered, offer.meeting.record, ResultsOf(thunks[place])}));
    }
  for (auto& [place, offer] : *offers)
    if (offer.where.from == k) {
      if (!offer.where.exchange) {
        RETURN_IF_ERROR(BeginBeside(thunks[place], offer.where.place));
        continue;
      }
      offer.meeting = MeetingOf(thunks[place], *offer.where.exchange);
      FillTable(thunks[place]);
      llvm::FunctionCallee begin = Runtime("offer", ptr, {ptr, ptr, ptr, ptr, ptr});
      llvm::Value* results =
          offer.where.beside ? ResultsOf(thunks[place]) : llvm::ConstantPointerNull::get(b_.getPtrTy());
      offer.offered = b_.CreateCall(begin, {Comm(), offer.meeting.record, offer.meeting.group, table_, results});
    }
  return absl::OkStatus();
}

void HostEntry::UnlessOffered(const Thunk& t, const Offered& offer) {
  if (!offer.where.exchange) return;  // it has begun
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
