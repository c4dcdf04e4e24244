#include "codegen/cpu/entry.h"

#include <map>

#include "absl/strings/str_join.h"
#include "codegen/cpu/custom_call.h"
#include "compiler/base/text.h"
#include "compiler/hlo/replica_groups.h"
#include "runtime_min/abi.h"

namespace kiln::cpu {
namespace {

std::string CanonicalText(const Computation* c);

std::string ValueText(attr::Comp c) { return CanonicalText(c); }
std::string ValueText(const attr::Comps& v) {
  return absl::StrJoin(v, ";", [](std::string* o, const Computation* c) { *o += CanonicalText(c); });
}
template <typename T>
std::string ValueText(const T& v) {
  return AttrText(v);
}

bool Carried(absl::string_view spelling) {
  return spelling == "metadata" || spelling == "sharding" || spelling == "frontend_attributes" ||
         spelling == "origin" || spelling == "statistics" || spelling == "original_value" ||
         spelling == "backend_config";
}

std::string Body(const Instruction* i) {
  std::string out = absl::StrCat(i->shape().ToString(), TextOf(i->opcode()));
  if (i->Is(Opcode::Constant)) out += i->literal().ToString();
  const Attributes& a = i->attrs();
#define ATTR(field, kind, text) \
  if (a.field && !Carried(text)) absl::StrAppend(&out, ",", #field, "=", ValueText(*a.field));
#include "compiler/hlo/attributes.def"
  return out;
}

std::string CanonicalText(const Computation* c) {
  absl::flat_hash_map<const Instruction*, size_t> number;
  std::string out = "{";
  for (const Instruction* i : c->PostOrder()) {
    number.insert({i, number.size()});
    absl::StrAppend(&out, Body(i), "(");
    for (const Instruction* o : i->operands()) absl::StrAppend(&out, number.at(o), ",");
    out += ")";
    if (i == c->root()) out += "!";
  }
  return out + "}";
}

// Operands whose storage is also a result's: the kernel must not assume that they differ.
std::set<int64_t> Shared(const Thunk& t) {
  std::set<int64_t> out;
  for (size_t k = 0; k < t.reads.size(); ++k)
    for (const Slice& w : t.writes)
      if (t.reads[k] == w && w.size > 0) out.insert(static_cast<int64_t>(k));
  return out;
}

// Two thunks of one key are one kernel.
std::string Key(const Instruction* i, const std::set<int64_t>& shared) {
  std::string key = Body(i);
  for (const Instruction* o : i->operands()) absl::StrAppend(&key, ";", o->shape().ToString());
  for (int64_t s : shared) absl::StrAppend(&key, "~", s);
  return key;
}

int64_t CompileWeight(const Instruction* i) {
  constexpr int64_t kCopy = 10, kLoopNest = 10, kEngine = 60;
  switch (i->opcode()) {
    case Opcode::Fusion:
      return kLoopNest + static_cast<int64_t>((*i->attrs().calls)->instructions().size());
    case Opcode::Copy:
      return kCopy;
    default:
      return kEngine;
  }
}

void AddKernels(const std::string& name, const ThunkSequence& thunks, absl::flat_hash_map<std::string, size_t>* known,
                KernelPlan* plan) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) AddKernels(name, n, known, plan);
    if (t.kind != ThunkKind::Kernel) continue;
    std::set<int64_t> shared = Shared(t);
    const auto [it, fresh] = known->insert({Key(t.instruction, shared), plan->kernels.size()});
    plan->of[t.instruction] = it->second;
    if (fresh)
      plan->kernels.push_back(
          {CIdentifier(absl::StrCat(name, "_k", plan->kernels.size(), "_", TextOf(t.instruction->opcode()))),
           t.instruction, std::move(shared), CompileWeight(t.instruction)});
  }
}

// Entries of the largest argument table.
int64_t WidestTable(const ThunkSequence& thunks) {
  int64_t widest = 1;
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) widest = std::max(widest, WidestTable(n));
    const int64_t arrays = static_cast<int64_t>(t.reads.size() + t.writes.size());
    if (t.kind == ThunkKind::CustomCall) widest = std::max(widest, arrays);
    if (t.kind == ThunkKind::Kernel) widest = std::max(widest, arrays + 1);
  }
  return widest;
}

class EntryEmitter {
 public:
  EntryEmitter(Ir& ir, std::string name, const std::vector<int64_t>& offsets, const KernelPlan& plan,
               const std::vector<int64_t>& units, const EntryOptions& options)
      : ir_(ir), b_(ir.b), name_(std::move(name)), offsets_(offsets), plan_(plan), units_(units), options_(options) {}

  absl::Status Run(const ThunkSequence& thunks) {
    llvm::Type* ptr = b_.getPtrTy();
    fn_ = llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), {ptr, ptr, ptr, ptr, ptr}, false),
                                 llvm::Function::ExternalLinkage, absl::StrCat(name_, "_entry_", ir_.level.name),
                                 ir_.module);
    fn_->setVisibility(llvm::GlobalValue::HiddenVisibility);
    if (options_.kernels_elsewhere) fn_->addFnAttr(kWrittenAsRun);
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", fn_));
    b_.setFastMathFlags({});
    table_ = ir_.Alloca(ptr, WidestTable(thunks), 16);
    RETURN_IF_ERROR(Emit(thunks, true));
    b_.CreateRet(b_.getInt32(KILN_OK));
    for (const auto& [status, block] : ends_) {
      b_.SetInsertPoint(block);
      b_.CreateRet(b_.getInt32(static_cast<uint32_t>(status)));
    }
    return absl::OkStatus();
  }

 private:
  llvm::Value* Pointer(const Slice& s) {
    llvm::Type *ptr = b_.getPtrTy(), *byte = b_.getInt8Ty();
    switch (s.kind) {
      case Slice::kTemp:
        return b_.CreateInBoundsGEP(byte, fn_->getArg(2), ir_.I64(s.offset));
      case Slice::kSlow:
        return b_.CreateInBoundsGEP(
            byte, b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, fn_->getArg(0), ir_.I64(s.index))), ir_.I64(s.offset));
      case Slice::kParameter:
        return b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, fn_->getArg(0), ir_.I64(s.index)));
      case Slice::kResult:
        return b_.CreateInBoundsGEP(
            byte, b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, fn_->getArg(1), ir_.I64(s.index))), ir_.I64(s.offset));
      case Slice::kConstant: {
        llvm::Constant* w = ir_.module.getOrInsertGlobal(absl::StrCat(options_.library, "_weights"), byte);
        llvm::cast<llvm::GlobalVariable>(w)->setVisibility(llvm::GlobalValue::HiddenVisibility);
        llvm::cast<llvm::GlobalVariable>(w)->setConstant(true);
        llvm::cast<llvm::GlobalVariable>(w)->setAlignment(llvm::Align(64));
        return b_.CreateInBoundsGEP(byte, w, ir_.I64(offsets_[s.index]));
      }
    }
    return nullptr;
  }

  // Arena slices that a thunk touches, nested thunks included.
  static void Touched(const Thunk& t, std::vector<Slice>* out) {
    for (const auto* list : {&t.reads, &t.writes})
      for (const Slice& s : *list)
        if (s.kind == Slice::kTemp && s.size > 0) out->push_back(s);
    if (!t.nested.empty() && t.predicate.kind == Slice::kTemp) out->push_back(t.predicate);
    for (const ThunkSequence& n : t.nested)
      for (const Thunk& x : n) Touched(x, out);
  }

  // Slices of the entry that thunk `k` is the last to touch; only whole-entry runs know that.
  std::vector<Slice> LastUses(const ThunkSequence& thunks, size_t k) {
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

  absl::Status Emit(const ThunkSequence& thunks, bool entry = false) {
    for (size_t k = 0; k < thunks.size(); ++k) {
      const Thunk& t = thunks[k];
      switch (t.kind) {
        case ThunkKind::Kernel:
          EmitKernelCall(t);
          break;
        case ThunkKind::Copy:
          b_.CreateMemCpy(Pointer(t.writes[0]), llvm::Align(16), Pointer(t.reads[0]), llvm::Align(16),
                          static_cast<uint64_t>(t.writes[0].size));
          break;
        case ThunkKind::While: {
          auto* head = llvm::BasicBlock::Create(ir_.ctx, "while", fn_);
          auto* body = llvm::BasicBlock::Create(ir_.ctx, "body", fn_);
          auto* done = llvm::BasicBlock::Create(ir_.ctx, "endwhile", fn_);
          b_.CreateBr(head);
          b_.SetInsertPoint(head);
          RETURN_IF_ERROR(Emit(t.nested[0]));
          llvm::Value* go = b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), Pointer(t.predicate)), b_.getInt8(0));
          b_.CreateCondBr(go, body, done);
          b_.SetInsertPoint(body);
          RETURN_IF_ERROR(Emit(t.nested[1]));
          b_.CreateBr(head);
          b_.SetInsertPoint(done);
          break;
        }
        case ThunkKind::Conditional:
          RETURN_IF_ERROR(EmitConditional(t));
          break;
        case ThunkKind::CustomCall:
          RETURN_IF_ERROR(EmitUserCall(t));
          break;
        case ThunkKind::AllGather:
          RETURN_IF_ERROR(EmitAllGather(t));
          break;
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
      if (options_.poison_freed && entry)
        for (const Slice& s : LastUses(thunks, k))
          b_.CreateMemSet(Pointer(s), b_.getInt8(0xa5), static_cast<uint64_t>(s.size), llvm::MaybeAlign(16));
    }
    return absl::OkStatus();
  }

  llvm::Value* FillTable(const Thunk& t) {
    llvm::Type* ptr = b_.getPtrTy();
    int64_t k = 0;
    auto put = [&](llvm::Value* v) { b_.CreateStore(v, b_.CreateInBoundsGEP(ptr, table_, ir_.I64(k++))); };
    for (const Slice& s : t.reads) put(Pointer(s));
    for (const Slice& s : t.writes) put(Pointer(s));
    if (t.kind == ThunkKind::Kernel)
      put(t.scratch.size ? Pointer(t.scratch) : llvm::ConstantPointerNull::get(b_.getPtrTy()));
    return table_;
  }

  // Bytes that the kernel touches, as a measure of whether waking other threads pays.
  static int64_t Work(const Thunk& t) {
    int64_t n = 0;
    for (const Slice& s : t.reads) n += s.size;
    for (const Slice& s : t.writes) n += s.size;
    if (t.instruction->Is(Opcode::Dot) || t.instruction->Is(Opcode::Convolution)) n *= 8;
    return n;
  }

  void EmitKernelCall(const Thunk& t) {
    const size_t place = plan_.of.at(t.instruction);
    llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
    auto kernel = ir_.module.getOrInsertFunction(absl::StrCat(plan_.kernels[place].symbol, "_", ir_.level.name),
                                                 llvm::FunctionType::get(b_.getVoidTy(), {ptr, i64, i64}, false));
    auto* function = llvm::cast<llvm::Function>(kernel.getCallee());
    if (function->isDeclaration()) function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    const int64_t units = units_[place];
    FillTable(t);
    constexpr int64_t kWorthSplitting = 64 << 10;
    if (options_.threads == 1 || units < 2 || Work(t) < kWorthSplitting) {
      b_.CreateCall(function, {table_, ir_.I64(0), ir_.I64(units)});
      return;
    }
    auto split =
        ir_.module.getOrInsertFunction(absl::StrCat(options_.library, "_parallel"),
                                       llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr, i64, i64}, false));
    llvm::cast<llvm::Function>(split.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    b_.CreateCall(split, {fn_->getArg(3), function, table_, ir_.I64(units), ir_.I64(options_.threads)});
  }

  absl::Status EmitConditional(const Thunk& t) {
    const bool pred = t.instruction->operand(0)->shape().type() == PrimitiveType::Pred;
    auto* done = llvm::BasicBlock::Create(ir_.ctx, "endcond", fn_);
    std::vector<llvm::BasicBlock*> blocks;
    for (size_t k = 0; k < t.nested.size(); ++k) blocks.push_back(llvm::BasicBlock::Create(ir_.ctx, "branch", fn_));
    llvm::Value* p = Pointer(t.predicate);
    if (pred) {
      // true picks the first; with one branch there is no choice.
      b_.CreateCondBr(b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), p), b_.getInt8(0)), blocks[0], blocks.back());
    } else {
      llvm::SwitchInst* s =
          b_.CreateSwitch(b_.CreateLoad(b_.getInt32Ty(), p), blocks.back(), static_cast<unsigned>(blocks.size()));
      for (size_t k = 0; k + 1 < blocks.size(); ++k) s->addCase(b_.getInt32(static_cast<uint32_t>(k)), blocks[k]);
    }
    for (size_t k = 0; k < blocks.size(); ++k) {
      b_.SetInsertPoint(blocks[k]);
      RETURN_IF_ERROR(Emit(t.nested[k]));
      b_.CreateBr(done);
    }
    b_.SetInsertPoint(done);
    return absl::OkStatus();
  }

  absl::Status EmitUserCall(const Thunk& t) {
    const Instruction* i = t.instruction;
    ASSIGN_OR_RETURN(CustomCallSignature signature, SignatureOf(i));
    std::vector<CallBuffer> operands, results;
    const auto add = [&](const Shape& s, const std::vector<Slice>& slices, std::vector<CallBuffer>* list) {
      ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) {
        if (leaf.IsArray() && list->size() < slices.size()) list->push_back({Pointer(slices[list->size()]), leaf});
      });
    };
    for (const Instruction* o : i->operands()) add(o->shape(), t.reads, &operands);
    add(i->shape(), t.writes, &results);
    FillTable(t);
    llvm::Value* outs = b_.CreateInBoundsGEP(b_.getPtrTy(), table_, ir_.I64(static_cast<int64_t>(t.reads.size())));
    if (llvm::Value* code = EmitCustomCall(ir_, signature, operands, results, i->shape().IsTuple(), table_, outs))
      Checked(code, KILN_CUSTOM_CALL);
    return absl::OkStatus();
  }

  llvm::Value* CommField(int64_t k) { return b_.CreateInBoundsGEP(b_.getPtrTy(), fn_->getArg(4), ir_.I64(k)); }

  llvm::Value* Device() { return b_.CreateLoad(b_.getInt64Ty(), CommField(1)); }

  // Goes on if a function of the host program returned 0; else the run ends with `status`.
  void Checked(llvm::Value* code, kiln_status status) {
    llvm::BasicBlock*& out = ends_[status];
    if (!out) out = llvm::BasicBlock::Create(ir_.ctx, "cut_off", fn_);
    auto* next = llvm::BasicBlock::Create(ir_.ctx, "next", fn_);
    b_.CreateCondBr(b_.CreateICmpEQ(code, b_.getInt32(0)), next, out);
    b_.SetInsertPoint(next);
  }

  llvm::Constant* Table(const std::vector<int64_t>& values) {
    auto* init = llvm::ConstantDataArray::get(ir_.ctx, llvm::ArrayRef<int64_t>(values));
    return new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                    name_ + "_groups");
  }

  // comm->gather(self, device, group, members, mine, all, bytes); a device outside every group gets zeros.
  absl::Status EmitAllGather(const Thunk& t) {
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
    llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
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
    b_.CreateMemSet(Pointer(t.writes[0]), b_.getInt8(0), static_cast<uint64_t>(t.writes[0].size), llvm::MaybeAlign(16));
    b_.CreateBr(done);
    b_.SetInsertPoint(meet);
    llvm::Value* group = b_.CreateInBoundsGEP(i64, Table(members), entry(at));
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr, i64, ptr, i64, ptr, ptr, i64}, false);
    Checked(b_.CreateCall(type, b_.CreateLoad(ptr, CommField(2)),
                          {b_.CreateLoad(ptr, CommField(0)), device, group, count, Pointer(t.reads[0]),
                           Pointer(t.writes[0]), ir_.I64(t.reads[0].size)}),
            KILN_COMMUNICATION);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    return absl::OkStatus();
  }

  void EmitDeviceId(const Thunk& t) {
    llvm::Value* id = ir_.I64(0);
    if (options_.replicas * options_.partitions > 1) {
      llvm::Value* partitions = ir_.I64(options_.partitions);
      id = t.instruction->Is(Opcode::ReplicaId) ? b_.CreateUDiv(Device(), partitions)
                                                : b_.CreateURem(Device(), partitions);
    }
    b_.CreateStore(b_.CreateTrunc(id, b_.getInt32Ty()), Pointer(t.writes[0]));
  }

  // Every array that goes in or comes out is a message of its own, in order.
  void EmitQueue(const Thunk& t) {
    const Instruction* i = t.instruction;
    const bool send = t.kind == ThunkKind::Send;
    const int64_t channel = i->Is(Opcode::Infeed)    ? KILN_INFEED
                            : i->Is(Opcode::Outfeed) ? KILN_OUTFEED
                                                     : i->attrs().channel_id.value_or(0);
    llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr, i64, i64, ptr, i64}, false);
    std::vector<Slice> slices = send ? t.reads : t.writes;
    if (i->Is(Opcode::Recv)) slices.resize(1);  // the data, not the context beside it
    for (const Slice& s : slices)
      Checked(
          b_.CreateCall(type, b_.CreateLoad(ptr, CommField(send ? 3 : 4)),
                        {b_.CreateLoad(ptr, CommField(0)), Device(), ir_.I64(channel), Pointer(s), ir_.I64(s.size)}),
          KILN_COMMUNICATION);
  }

  // The library's only state: a counter of the random blocks that all runs have taken, beside a fixed key.
  void EmitRngState(const Thunk& t) {
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
    b_.CreateStore(ir_.I64(kKey), out);
    b_.CreateStore(old, b_.CreateInBoundsGEP(i64, out, ir_.I64(1)));
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  std::string name_;
  const std::vector<int64_t>& offsets_;
  const KernelPlan& plan_;
  const std::vector<int64_t>& units_;
  const EntryOptions& options_;
  // Where a run goes that a function of the host program failed, by what it returns then.
  std::map<kiln_status, llvm::BasicBlock*> ends_;
  llvm::Function* fn_ = nullptr;
  llvm::Value* table_ = nullptr;
};

}  // namespace

KernelPlan PlanKernels(const std::string& name, const ThunkSequence& thunks) {
  KernelPlan plan;
  absl::flat_hash_map<std::string, size_t> known;
  AddKernels(name, thunks, &known, &plan);
  return plan;
}

absl::Status EmitKernels(Ir& ir, const KernelPlan& plan, const std::vector<size_t>& which, bool internal,
                         std::vector<int64_t>* units) {
  for (size_t k : which) {
    const KernelPlan::Item& item = plan.kernels[k];
    ASSIGN_OR_RETURN(Kernel kernel,
                     EmitKernel(ir, absl::StrCat(item.symbol, "_", ir.level.name), item.instruction, item.shared));
    if (internal) {
      kernel.function->setVisibility(llvm::GlobalValue::DefaultVisibility);
      kernel.function->setLinkage(llvm::GlobalValue::InternalLinkage);
    }
    (*units)[k] = kernel.units;
  }
  return absl::OkStatus();
}

absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks,
                       const std::vector<int64_t>& offsets, const KernelPlan& plan, const std::vector<int64_t>& units,
                       const EntryOptions& options) {
  return EntryEmitter(ir, name, offsets, plan, units, options).Run(thunks);
}

}  // namespace kiln::cpu
