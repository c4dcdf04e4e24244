#include "codegen/host/entry.h"

#include <algorithm>
#include <utility>

#include "codegen/llvm/debug_info.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

// Thunks that one function holds at most, and how deep they nest there.
constexpr size_t kMostThunks = 128;
constexpr int kMostDepth = 8;

constexpr unsigned kMachine = 3;  // which argument of an entry it is

// Thunks with those nested in them, up to `most` + 1.
size_t Count(const ThunkSequence& thunks, size_t most) {
  size_t n = 0;
  for (const Thunk& t : thunks) {
    if (++n > most) break;
    for (const ThunkSequence& s : t.nested) n += Count(s, most);
  }
  return n;
}

// Entries of the largest argument table.
int64_t WidestTable(const ThunkSequence& thunks) {
  int64_t widest = 1;
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) widest = std::max(widest, WidestTable(n));
    widest = std::max(widest, static_cast<int64_t>(t.reads.size() + t.writes.size() + 1));
  }
  return widest;
}

}  // namespace

absl::Status HostEntry::Run(const std::string& symbol, const ThunkSequence& thunks) {
  b_.setFastMathFlags({});
  RETURN_IF_ERROR(EmitFunction(symbol, thunks, true));
  fn_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return absl::OkStatus();
}

absl::Status HostEntry::EmitFunction(const std::string& symbol, const ThunkSequence& thunks, bool entry) {
  llvm::Type* ptr = b_.getPtrTy();
  DebugInfo::Function debug(ir_, symbol, nullptr);
  fn_ = llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), {ptr, ptr, ptr, ptr, ptr}, false),
                               entry ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage, symbol,
                               ir_.module);
  made_.push_back(fn_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", fn_));
  table_ = ir_.Alloca(ptr, WidestTable(thunks), 16);
  machine_ = fn_->getArg(kMachine);
  if (options_.profile) BeginSampling(entry);
  RETURN_IF_ERROR(thunks.size() > kMostThunks && !(entry && KeepsEntryWhole()) ? EmitInPieces(thunks)
                                                                               : Emit(thunks, entry));
  b_.CreateRet(b_.getInt32(KILN_OK));
  for (const auto& [status, block] : ends_) {
    b_.SetInsertPoint(block);
    b_.CreateRet(b_.getInt32(static_cast<uint32_t>(status)));
  }
  debug.Becomes(fn_);
  return absl::OkStatus();
}

absl::StatusOr<llvm::Function*> HostEntry::EmitPart(const std::string& symbol, const ThunkSequence& thunks) {
  llvm::IRBuilderBase::InsertPointGuard back(b_);
  llvm::Function* outer = fn_;
  llvm::Value *outer_table = table_, *outer_machine = machine_, *outer_sampled = sampled_;
  std::map<kiln_status, llvm::BasicBlock*> outer_ends;
  ends_.swap(outer_ends);
  const int outer_depth = std::exchange(depth_, 0);
  RETURN_IF_ERROR(EmitFunction(symbol, thunks, false));
  depth_ = outer_depth;
  llvm::Function* part = fn_;
  fn_ = outer;
  table_ = outer_table;
  machine_ = outer_machine;
  sampled_ = outer_sampled;
  ends_.swap(outer_ends);
  return part;
}

absl::Status HostEntry::CallPart(const ThunkSequence& thunks) {
  ASSIGN_OR_RETURN(llvm::Function * part, EmitPart(absl::StrCat(name_, "_piece_", pieces_++), thunks));
  part->addFnAttr(llvm::Attribute::NoInline);
  std::vector<llvm::Value*> arguments;
  for (llvm::Argument& a : fn_->args()) arguments.push_back(a.getArgNo() == kMachine ? machine_ : &a);
  llvm::Value* code = b_.CreateCall(part, arguments);
  auto* next = llvm::BasicBlock::Create(ir_.ctx, "next", fn_);
  auto* failed = llvm::BasicBlock::Create(ir_.ctx, "failed", fn_);
  b_.CreateCondBr(b_.CreateICmpEQ(code, b_.getInt32(KILN_OK)), next, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(code);
  b_.SetInsertPoint(next);
  return absl::OkStatus();
}

absl::Status HostEntry::EmitInPieces(const ThunkSequence& thunks) {
  // Pieces of pieces where even the calls would be too many.
  size_t piece = kMostThunks;
  while (thunks.size() / piece > kMostThunks) piece *= kMostThunks;
  for (size_t k = 0; k < thunks.size(); k += piece)
    RETURN_IF_ERROR(
        CallPart(ThunkSequence(thunks.begin() + static_cast<ptrdiff_t>(k),
                               thunks.begin() + static_cast<ptrdiff_t>(std::min(k + piece, thunks.size())))));
  return absl::OkStatus();
}

absl::Status HostEntry::EmitNested(const ThunkSequence& thunks) {
  if (depth_ + 1 >= kMostDepth || Count(thunks, kMostThunks) > kMostThunks) return CallPart(thunks);
  ++depth_;
  const absl::Status status = Emit(thunks);
  --depth_;
  return status;
}

absl::Status HostEntry::EmitParts(const Thunk& t) {
  std::vector<llvm::Function*> parts;
  for (const ThunkSequence& n : t.nested) {
    ASSIGN_OR_RETURN(llvm::Function * part, EmitPart(absl::StrCat(name_, "_part_", parts_++), n));
    parts.push_back(part);
  }
  RunParts(t, parts);
  return absl::OkStatus();
}

llvm::Value* HostEntry::SlowArena(int64_t index) {
  llvm::Type* ptr = b_.getPtrTy();
  return b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, fn_->getArg(0), ir_.I64(index)));
}

llvm::Value* HostEntry::Pointer(const Slice& s) {
  llvm::Type *ptr = b_.getPtrTy(), *byte = b_.getInt8Ty();
  switch (s.kind) {
    case Slice::kTemp:
      return b_.CreateInBoundsGEP(byte, fn_->getArg(2), ir_.I64(s.offset));
    case Slice::kSlow:
      return b_.CreateInBoundsGEP(byte, SlowArena(s.index), ir_.I64(s.offset));
    case Slice::kParameter:
      return b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, fn_->getArg(0), ir_.I64(s.index)));
    case Slice::kResult:
      return b_.CreateInBoundsGEP(byte, b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, fn_->getArg(1), ir_.I64(s.index))),
                                  ir_.I64(s.offset));
    case Slice::kConstant:
      return b_.CreateInBoundsGEP(byte, Weights(), ir_.I64(options_.constant_offsets[s.index]));
  }
  return nullptr;
}

// Arena slices that a thunk touches, nested thunks included.
void HostEntry::Touched(const Thunk& t, std::vector<Slice>* out) {
  for (const auto* list : {&t.reads, &t.writes})
    for (const Slice& s : *list)
      if (s.kind == Slice::kTemp && s.size > 0) out->push_back(s);
  if (!t.nested.empty() && t.predicate.kind == Slice::kTemp) out->push_back(t.predicate);
  for (const ThunkSequence& n : t.nested)
    for (const Thunk& x : n) Touched(x, out);
}

// Slices of the entry that thunk `k` is the last to touch; only whole-entry runs know that.
std::vector<Slice> HostEntry::LastUses(const ThunkSequence& thunks, size_t k) {
  std::vector<Slice> mine, later, out;
  Touched(thunks[k], &mine);
  for (size_t q = k + 1; q < thunks.size(); ++q) Touched(thunks[q], &later);
  for (const Slice& s : mine) {
    bool used = false;
    for (const Slice& l : later) used = used || (s.offset < l.offset + l.size && l.offset < s.offset + s.size);
    if (!used) out.push_back(s);
  }
  return out;
}

absl::Status HostEntry::EmitWhile(const Thunk& t) {
  if (const auto count = TripCount(t)) {
    absl::Status status;
    ir_.Loop(ir_.I64(0), ir_.I64(*count), 1, [&](llvm::Value*) { status = EmitNested(t.nested[1]); });
    return status;
  }
  if (RunsParts(t)) return EmitParts(t);
  auto* head = llvm::BasicBlock::Create(ir_.ctx, "while", fn_);
  auto* body = llvm::BasicBlock::Create(ir_.ctx, "body", fn_);
  auto* done = llvm::BasicBlock::Create(ir_.ctx, "endwhile", fn_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  RETURN_IF_ERROR(EmitNested(t.nested[0]));
  llvm::Value* go = b_.CreateICmpNE(Fetch(b_.getInt8Ty(), Pointer(t.predicate)), b_.getInt8(0));
  b_.CreateCondBr(go, body, done);
  b_.SetInsertPoint(body);
  RETURN_IF_ERROR(EmitNested(t.nested[1]));
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
  return absl::OkStatus();
}

absl::Status HostEntry::EmitThunk(const Thunk& t) {
  switch (t.kind) {
    case ThunkKind::Kernel:
      KernelCall(t);
      break;
    case ThunkKind::Copy:
      Move(Pointer(t.writes[0]), Pointer(t.reads[0]), t.writes[0].size);
      break;
    case ThunkKind::While:
      return EmitWhile(t);
    case ThunkKind::Conditional:
      return RunsParts(t) ? EmitParts(t) : EmitConditional(t);
    case ThunkKind::CustomCall:
      RETURN_IF_ERROR(UserCall(t));
      break;
    case ThunkKind::LibraryCall:
      RETURN_IF_ERROR(LibraryCall(t));
      break;
    case ThunkKind::AllGather:
    case ThunkKind::Exchange: {
      ASSIGN_OR_RETURN(const bool done, TargetExchange(t));
      if (done) break;
      ASSIGN_OR_RETURN(const auto exchange, ExchangeOf(*t.instruction, options_.replicas, options_.partitions));
      if (exchange && Exchanges())
        EmitExchange(t, *exchange);
      else if (t.kind == ThunkKind::AllGather)
        RETURN_IF_ERROR(EmitAllGather(t));
      else
        return ErrorAt(t.instruction, "has not the form of an exchange", absl::StatusCode::kInternal);
      break;
    }
    case ThunkKind::DeviceId:
      EmitDeviceId(t);
      break;
    case ThunkKind::Send:
    case ThunkKind::Receive:
      EmitQueue(t);
      break;
    case ThunkKind::RngState:
      EmitRngState(t);
      break;
  }
  return absl::OkStatus();
}

absl::Status HostEntry::Emit(const ThunkSequence& thunks, bool entry) {
  std::map<size_t, size_t> regions;  // by their first thunk
  std::vector<bool> in_region(thunks.size());
  for (size_t k = 0; k < thunks.size() && entry && !options_.poison_freed; ++k)
    if (const size_t length = RegionAt(thunks, k)) {
      regions[k] = length;
      std::fill_n(in_region.begin() + static_cast<ptrdiff_t>(k), length, true);
      k += length - 1;
    }
  Offers offers = OffersIn(thunks, std::move(in_region));
  for (size_t k = 0; k < thunks.size(); ++k) {
    RETURN_IF_ERROR(EmitOffers(thunks, k, &offers));
    if (const auto region_at = regions.find(k); region_at != regions.end()) {
      const size_t length = region_at->second;
      const int64_t number = regions_++;
      ASSIGN_OR_RETURN(llvm::Function * region,
                       EmitPart(absl::StrCat(name_, "_region_", number),
                                ThunkSequence(thunks.begin() + static_cast<ptrdiff_t>(k),
                                              thunks.begin() + static_cast<ptrdiff_t>(k + length))));
      Replay(number, region);
      k += length - 1;
      continue;
    }
    const Thunk& t = thunks[k];
    const DebugInfo::Line line(ir_, t.instruction);
    const uint64_t around = std::exchange(places_taken_, PlacesTakenAround(offers, k));
    if (const auto offer = offers.find(k); offer != offers.end())
      UnlessOffered(t, offer->second);
    else
      RETURN_IF_ERROR(EmitWatched(t));
    places_taken_ = around;
    if (options_.poison_freed && entry)
      for (const Slice& s : LastUses(thunks, k)) Fill(Pointer(s), 0xa5, s.size);
  }
  return EmitOffers(thunks, thunks.size(), &offers);
}

llvm::Value* HostEntry::FillTable(const Thunk& t) {
  llvm::Type* ptr = b_.getPtrTy();
  int64_t k = 0;
  auto put = [&](llvm::Value* v) { b_.CreateStore(v, b_.CreateInBoundsGEP(ptr, table_, ir_.I64(k++))); };
  for (const Slice& s : t.reads) put(Pointer(s));
  for (const Slice& s : t.writes) put(Pointer(s));
  if (t.kind == ThunkKind::Kernel)
    put(t.scratch.size ? Pointer(t.scratch) : llvm::ConstantPointerNull::get(b_.getPtrTy()));
  return table_;
}

absl::Status HostEntry::EmitConditional(const Thunk& t) {
  const bool pred = t.instruction->operand(0)->shape().type() == PrimitiveType::Pred;
  auto* done = llvm::BasicBlock::Create(ir_.ctx, "endcond", fn_);
  std::vector<llvm::BasicBlock*> blocks;
  for (size_t k = 0; k < t.nested.size(); ++k) blocks.push_back(llvm::BasicBlock::Create(ir_.ctx, "branch", fn_));
  llvm::Value* p = Pointer(t.predicate);
  if (pred) {
    // true picks the first; with one branch there is no choice.
    b_.CreateCondBr(b_.CreateICmpNE(Fetch(b_.getInt8Ty(), p), b_.getInt8(0)), blocks[0], blocks.back());
  } else {
    llvm::SwitchInst* s =
        b_.CreateSwitch(Fetch(b_.getInt32Ty(), p), blocks.back(), static_cast<unsigned>(blocks.size()));
    for (size_t k = 0; k + 1 < blocks.size(); ++k) s->addCase(b_.getInt32(static_cast<uint32_t>(k)), blocks[k]);
  }
  for (size_t k = 0; k < blocks.size(); ++k) {
    b_.SetInsertPoint(blocks[k]);
    RETURN_IF_ERROR(EmitNested(t.nested[k]));
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
  return absl::OkStatus();
}

llvm::Value* HostEntry::CommField(int64_t k) { return b_.CreateInBoundsGEP(b_.getPtrTy(), Comm(), ir_.I64(k)); }

llvm::Value* HostEntry::Device() { return b_.CreateLoad(b_.getInt64Ty(), CommField(1)); }

void HostEntry::Checked(llvm::Value* code, kiln_status status) {
  llvm::BasicBlock*& out = ends_[status];
  if (!out) out = llvm::BasicBlock::Create(ir_.ctx, "cut_off", fn_);
  auto* next = llvm::BasicBlock::Create(ir_.ctx, "next", fn_);
  b_.CreateCondBr(b_.CreateICmpEQ(code, b_.getInt32(0)), next, out);
  b_.SetInsertPoint(next);
}

void HostEntry::CheckedExchange(llvm::Value* code) {
  Checked(b_.CreateZExt(b_.CreateICmpEQ(code, b_.getInt32(KILN_TIMEOUT)), b_.getInt32Ty()), KILN_TIMEOUT);
  Checked(code, KILN_COMMUNICATION);
}

llvm::Constant* HostEntry::Table(const std::vector<int64_t>& values) {
  auto* init = llvm::ConstantDataArray::get(ir_.ctx, llvm::ArrayRef<int64_t>(values));
  return new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                  name_ + "_groups");
}

void HostEntry::Gather(llvm::Value* group, llvm::Value* members, llvm::Value* mine, llvm::Value* all, int64_t bytes) {
  llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr, i64, ptr, i64, ptr, ptr, i64}, false);
  CheckedExchange(
      b_.CreateCall(type, b_.CreateLoad(ptr, CommField(2)),
                    {b_.CreateLoad(ptr, CommField(0)), Device(), group, members, mine, all, ir_.I64(bytes)}));
}

void HostEntry::Queue(bool send, int64_t channel, llvm::Value* data, int64_t bytes) {
  llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr, i64, i64, ptr, i64}, false);
  CheckedExchange(b_.CreateCall(type, b_.CreateLoad(ptr, CommField(send ? 3 : 4)),
                                {b_.CreateLoad(ptr, CommField(0)), Device(), ir_.I64(channel), data, ir_.I64(bytes)}));
}

// A device outside every group gets zeros.
absl::Status HostEntry::EmitAllGather(const Thunk& t) {
  auto groups = DeviceGroups(*t.instruction, options_.replicas, options_.partitions);
  if (!groups.ok()) return ErrorAt(t.instruction, groups.status().message());
  std::vector<int64_t> members, at(options_.replicas * options_.partitions, 0), size(at.size(), 0);
  for (const Ints& g : *groups) {
    for (int64_t d : g) {
      at[d] = static_cast<int64_t>(members.size());
      size[d] = static_cast<int64_t>(g.size());
    }
    members.insert(members.end(), g.begin(), g.end());
  }
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Value* device = Device();
  auto entry = [&](const std::vector<int64_t>& table) {
    return b_.CreateLoad(i64, b_.CreateInBoundsGEP(i64, Table(table), device));
  };
  llvm::Value* count = entry(size);
  auto* meet = llvm::BasicBlock::Create(ir_.ctx, "meet", fn_);
  auto* outside = llvm::BasicBlock::Create(ir_.ctx, "outside", fn_);
  auto* done = llvm::BasicBlock::Create(ir_.ctx, "gathered", fn_);
  b_.CreateCondBr(b_.CreateICmpEQ(count, ir_.I64(0)), outside, meet);
  b_.SetInsertPoint(outside);
  Fill(Pointer(t.writes[0]), 0, t.writes[0].size);
  b_.CreateBr(done);
  b_.SetInsertPoint(meet);
  llvm::Value* group = b_.CreateInBoundsGEP(i64, Table(members), entry(at));
  Gather(group, count, Pointer(t.reads[0]), Pointer(t.writes[0]), t.reads[0].size);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return absl::OkStatus();
}

void HostEntry::EmitDeviceId(const Thunk& t) {
  llvm::Value* id = ir_.I64(0);
  if (options_.replicas * options_.partitions > 1) {
    llvm::Value* partitions = ir_.I64(options_.partitions);
    id = t.instruction->Is(Opcode::ReplicaId) ? b_.CreateUDiv(Device(), partitions)
                                              : b_.CreateURem(Device(), partitions);
  }
  Put(b_.CreateTrunc(id, b_.getInt32Ty()), Pointer(t.writes[0]));
}

// Every array that goes in or comes out is a message of its own, in order.
void HostEntry::EmitQueue(const Thunk& t) {
  const Instruction* i = t.instruction;
  const bool send = t.kind == ThunkKind::Send;
  const int64_t channel = i->Is(Opcode::Infeed)    ? KILN_INFEED
                          : i->Is(Opcode::Outfeed) ? KILN_OUTFEED
                                                   : i->attrs().channel_id.value_or(0);
  std::vector<Slice> slices = send ? t.reads : t.writes;
  if (i->Is(Opcode::Recv)) slices.resize(1);  // the data, not the context beside it
  for (const Slice& s : slices) Queue(send, channel, Pointer(s), s.size);
}

// The library's only state: a counter of the random blocks that all runs have taken, beside a fixed key.
void HostEntry::EmitRngState(const Thunk& t) {
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::GlobalVariable* state = ir_.module.getGlobalVariable(name_ + "_rng_state", true);
  if (!state)
    state = new llvm::GlobalVariable(ir_.module, i64, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::ConstantInt::get(i64, 0), name_ + "_rng_state");
  llvm::Value* old =
      b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, state, ir_.I64(t.instruction->attrs().delta.value_or(1)),
                         llvm::MaybeAlign(8), llvm::AtomicOrdering::Monotonic);
  constexpr int64_t kKey = 0x5eed0fc0ffee1234;
  llvm::Value* out = Pointer(t.writes[0]);
  Put(ir_.I64(kKey), out);
  Put(old, b_.CreateInBoundsGEP(i64, out, ir_.I64(1)));
}

}  // namespace kiln
