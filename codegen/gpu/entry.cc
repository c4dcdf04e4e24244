#include "codegen/gpu/entry.h"

#include <map>

#include "codegen/gpu/exchange_records.h"
#include "codegen/gpu/library_call.h"
#include "codegen/gpu/tiles.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/trip_count.h"
#include "runtime_min/gpu/abi.h"

namespace kiln::gpu {
namespace {

// Members of kiln_gpu, by place.
enum Field {
  kSelf,
  kWeights,
  kLaunch,
  kCall,
  kCopy,
  kFill,
  kRead,
  kWrite,
  kRecord,
  kLoop,
  kChoose,
  kGather,
  kSend,
  kReceive,
  kExchange,
  kOffer,
  kTake,
  kHostArena
};

class GpuEntry : public HostEntry {
 public:
  GpuEntry(Ir& ir, std::string name, const KernelPlan& plan, const std::vector<Image>& images,
           const LibraryAlgorithms* algorithms, const EntryOptions& options)
      : HostEntry(ir, std::move(name), options),
        plan_(plan),
        images_(images),
        algorithms_(algorithms),
        program_(*images[0].program),
        exchanges_(ir, name_ + "_exchange", options.replicas, options.partitions) {}

  const std::vector<llvm::Constant*>& calls() const { return calls_; }
  int64_t steps() const { return steps_; }
  llvm::Constant* groups() { return exchanges_.Groups(); }

 private:
  llvm::Value* Member(Field f) {
    llvm::Type* ptr = b_.getPtrTy();
    return b_.CreateLoad(ptr, b_.CreateInBoundsGEP(ptr, machine_, ir_.I64(f)));
  }
  void Ask(Field f, std::vector<llvm::Value*> arguments) {
    steps_ += f >= kLaunch && f <= kWrite;
    Checked(Answer(f, std::move(arguments)), KILN_GPU);
  }
  // What runs a part of the entry fails as that does.
  void AskToRun(Field f, std::vector<llvm::Value*> arguments) {
    llvm::Value* code = Answer(f, std::move(arguments));
    for (const kiln_status status : {KILN_TIMEOUT, KILN_COMMUNICATION})
      if (options_.nccl) Checked(b_.CreateZExt(b_.CreateICmpEQ(code, b_.getInt32(status)), b_.getInt32Ty()), status);
    Checked(code, KILN_GPU);
  }
  llvm::Value* Answer(Field f, std::vector<llvm::Value*> arguments) {
    arguments.insert(arguments.begin(), Member(kSelf));
    std::vector<llvm::Type*> types;
    for (llvm::Value* v : arguments) types.push_back(v->getType());
    return b_.CreateCall(llvm::FunctionType::get(b_.getInt32Ty(), types, false), Member(f), arguments);
  }
  llvm::Constant* Record(const std::vector<llvm::Constant*>& fields, const char* name) {
    llvm::Constant* init = llvm::ConstantStruct::getAnon(ir_.ctx, fields);
    return new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                    absl::StrCat(name_, name));
  }
  // Equal lists are one.
  llvm::Constant* Numbers(const std::vector<int64_t>& v) {
    llvm::Constant*& known = lists_[v];
    if (!known) {
      auto* init = llvm::ConstantDataArray::get(ir_.ctx, llvm::ArrayRef<int64_t>(v));
      known = new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                       name_ + "_numbers");
    }
    return known;
  }
  llvm::Constant* Number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  // A kiln_gpu_launch: start `k` of a planned kernel, given the thunk's arrays and scratch.
  llvm::Constant* Start(const Thunk& t, size_t item, size_t k) {
    const Program::Start& s = program_.starts[item][k];
    std::vector<int64_t> grid;
    for (const Image& i : images_) {
      const Launch& l = i.program->starts[item][k].launch;
      grid.insert(grid.end(), {l.blocks, l.threads});
    }
    return Record({Number(static_cast<int64_t>(s.kernel)), Numbers(grid),
                   Number(static_cast<int64_t>(t.reads.size() + t.writes.size() + 1))},
                  "_launch");
  }

  void KernelCall(const Thunk& t) override {
    FillTable(t);
    const size_t item = plan_.of.at(t.instruction);
    for (size_t k = 0; k < program_.starts[item].size(); ++k) Ask(kLaunch, {Start(t, item, k), table_});
  }

  // What divides the address of a slice: arguments and results may lie anywhere that `run` takes.
  int64_t Alignment(const Slice& s) const {
    constexpr int64_t kOfMemory = 256, kOfPorts = 16;
    const bool own = s.kind == Slice::kTemp || s.kind == Slice::kConstant;
    int64_t offset = s.offset;
    if (s.kind == Slice::kConstant) offset += options_.constant_offsets[static_cast<size_t>(s.index)];
    int64_t out = own ? kOfMemory : kOfPorts;
    while (offset % out) out /= 2;
    return out;
  }

  // How each image has the library compute `i`.
  llvm::Constant* Algorithms(const Instruction* i) {
    std::vector<llvm::Constant*> out;
    for (const Image& image : images_) {
      const LibraryAlgorithm a = ChosenLibraryAlgorithm(i, image.target, algorithms_);
      llvm::Constant* words = llvm::ConstantPointerNull::get(b_.getPtrTy());
      if (!a.words.empty()) words = Numbers(std::vector<int64_t>(a.words.begin(), a.words.end()));
      out.push_back(llvm::ConstantStruct::getAnon(ir_.ctx, {Number(a.number), Number(a.version), words}));
    }
    auto* type = llvm::ArrayType::get(out[0]->getType(), out.size());
    return new llvm::GlobalVariable(ir_.module, type, true, llvm::GlobalValue::InternalLinkage,
                                    llvm::ConstantArray::get(type, out), name_ + "_algorithms");
  }

  absl::Status LibraryCall(const Thunk& t) override {
    ASSIGN_OR_RETURN(RoutineCall call, RoutineOf(t.instruction, options_.tf32));
    FillTable(t);
    const auto buffers = static_cast<int64_t>(t.reads.size() + t.writes.size());
    llvm::Constant* kernel = llvm::ConstantPointerNull::get(b_.getPtrTy());
    if (const auto stand_in = plan_.of.find(t.instruction); stand_in != plan_.of.end()) {
      kernel = Start(t, stand_in->second, 0);
      llvm::Type* ptr = b_.getPtrTy();
      b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()),
                     b_.CreateInBoundsGEP(ptr, table_, ir_.I64(buffers)));  // its scratch
    }
    std::vector<int64_t> alignment;
    for (const auto* slices : {&t.reads, &t.writes})
      for (const Slice& s : *slices) alignment.push_back(Alignment(s));
    calls_.push_back(Record({Number(call.routine), Number(buffers), Number(static_cast<int64_t>(call.numbers.size())),
                             Numbers(call.numbers), Algorithms(t.instruction), Numbers(alignment), kernel},
                            "_call"));
    Ask(kCall, {calls_.back(), table_});
    return absl::OkStatus();
  }

  absl::Status UserCall(const Thunk& t) override {
    return ErrorAt(t.instruction, "calls a function of the host program, which a GPU program cannot",
                   absl::StatusCode::kUnimplemented);
  }

  void Move(llvm::Value* to, llvm::Value* from, int64_t bytes) override { Ask(kCopy, {to, from, ir_.I64(bytes)}); }
  void Fill(llvm::Value* to, uint8_t value, int64_t bytes) override {
    Ask(kFill, {to, b_.getInt32(value), ir_.I64(bytes)});
  }
  llvm::Value* Fetch(llvm::Type* type, llvm::Value* at) override {
    llvm::Value* slot = ir_.Alloca(type, 1, 8);
    Ask(kRead, {slot, at, ir_.I64(type->getScalarSizeInBits() / 8)});
    return b_.CreateLoad(type, slot);
  }
  void Put(llvm::Value* value, llvm::Value* at) override {
    llvm::Value* slot = ir_.Alloca(value->getType(), 1, 8);
    b_.CreateStore(value, slot);
    Ask(kWrite, {at, slot, ir_.I64(value->getType()->getScalarSizeInBits() / 8)});
  }
  llvm::Value* SlowArena(int64_t) override { return Member(kHostArena); }
  llvm::Value* Weights() override { return Member(kWeights); }

  std::optional<int64_t> TripCount(const Thunk& t) override { return KnownTripCount(t.instruction); }

  // What starting the thunk puts on the stream; -1 where the host must wait for something.
  int64_t Nodes(const Thunk& t) {
    switch (t.kind) {
      case ThunkKind::Kernel:
        return static_cast<int64_t>(program_.starts[plan_.of.at(t.instruction)].size());
      case ThunkKind::Copy:
      case ThunkKind::LibraryCall:
        return 1;
      case ThunkKind::AllGather:
      case ThunkKind::Exchange:
        return options_.nccl && !t.instruction->Is(Opcode::RaggedAllToAll) ? 1 : -1;
      case ThunkKind::While: {
        const auto trips = TripCount(t);
        const int64_t body = Nodes(t.nested[1]), condition = trips ? 0 : Nodes(t.nested[0]);
        constexpr int64_t kDecisions = 3;  // nodes of a loop besides
        if (body < 0 || condition < 0) return -1;
        // What values decide in a graph may hold kernels and copies, and no calls of NCCL.
        if (!trips && (Communicates(t.nested[0]) || Communicates(t.nested[1]))) return -1;
        return trips ? *trips * body : body + 2 * condition + kDecisions;
      }
      case ThunkKind::Conditional: {
        int64_t all = 0;
        for (const ThunkSequence& branch : t.nested) {
          const int64_t n = Nodes(branch);
          if (n < 0 || Communicates(branch)) return -1;
          all += n + 2;
        }
        return all;
      }
      default:
        return -1;
    }
  }

  int64_t Nodes(const ThunkSequence& thunks) {
    int64_t all = 0;
    for (const Thunk& t : thunks) {
      const int64_t n = Nodes(t);
      if (n < 0) return -1;
      all += n;
    }
    return all;
  }

  bool KeepsEntryWhole() const override { return true; }

  size_t RegionAt(const ThunkSequence& thunks, size_t k) override {
    constexpr int64_t kFewest = 5, kMost = 4096;  // nodes of a graph
    int64_t nodes = 0;
    size_t length = 0;
    for (; k + length < thunks.size(); ++length) {
      const int64_t n = Nodes(thunks[k + length]);
      if (n < 0 || nodes + n > kMost) break;
      nodes += n;
    }
    return nodes >= kFewest ? length : 0;
  }

  void Replay(int64_t number, llvm::Function* region) override {
    AskToRun(kRecord, {ir_.I64(number), region, fn_->getArg(0), fn_->getArg(1), fn_->getArg(2), Comm()});
  }
  bool RunsParts(const Thunk& t) override { return Nodes(t) >= 0; }
  void RunParts(const Thunk& t, const std::vector<llvm::Function*>& parts) override {
    llvm::Value *arguments = fn_->getArg(0), *results = fn_->getArg(1), *arena = fn_->getArg(2);
    if (t.kind == ThunkKind::While) {
      AskToRun(kLoop, {parts[0], parts[1], arguments, results, arena, Comm(), Pointer(t.predicate)});
      return;
    }
    std::vector<llvm::Constant*> branches(parts.begin(), parts.end());
    auto* type = llvm::ArrayType::get(b_.getPtrTy(), branches.size());
    auto* table = new llvm::GlobalVariable(ir_.module, type, true, llvm::GlobalValue::InternalLinkage,
                                           llvm::ConstantArray::get(type, branches), name_ + "_branches");
    const bool predicate = t.instruction->operand(0)->shape().type() == PrimitiveType::Pred;
    AskToRun(kChoose, {ir_.I64(static_cast<int64_t>(branches.size())), table, arguments, results, arena, Comm(),
                       Pointer(t.predicate), b_.getInt32(predicate)});
  }
  absl::StatusOr<bool> TargetExchange(const Thunk& t) override {
    if (!options_.nccl) return false;
    ASSIGN_OR_RETURN(llvm::Constant * what, exchanges_.Of(t));
    FillTable(t);
    if (t.scratch.size > 0)
      b_.CreateStore(
          Pointer(t.scratch),
          b_.CreateInBoundsGEP(b_.getPtrTy(), table_, ir_.I64(static_cast<int64_t>(t.reads.size() + t.writes.size()))));
    CheckedExchange(Answer(kExchange, {what, table_}));
    return true;
  }
  int64_t PlacesBeside() const override { return options_.nccl ? KILN_GPU_MOST_OFFERS : 0; }
  // The host reads sizes.
  bool MayGoBeside(const Thunk& t) const override { return !t.instruction->Is(Opcode::RaggedAllToAll); }
  absl::Status BeginBeside(const Thunk& t, int64_t place) override {
    ASSIGN_OR_RETURN(llvm::Constant * what, exchanges_.Of(t));
    CheckedExchange(Answer(kOffer, {ir_.I64(place), what, FillTable(t)}));
    return absl::OkStatus();
  }
  void EndBeside(int64_t place) override { CheckedExchange(Answer(kTake, {ir_.I64(place)})); }
  void Gather(llvm::Value* group, llvm::Value* members, llvm::Value* mine, llvm::Value* all, int64_t bytes) override {
    CheckedExchange(Answer(kGather, {Comm(), group, members, mine, all, ir_.I64(bytes)}));
  }
  void Queue(bool send, int64_t channel, llvm::Value* data, int64_t bytes) override {
    CheckedExchange(Answer(send ? kSend : kReceive, {Comm(), ir_.I64(channel), data, ir_.I64(bytes)}));
  }

  const KernelPlan& plan_;
  const std::vector<Image>& images_;
  const LibraryAlgorithms* algorithms_;
  const Program& program_;  // of the first; the others have the same kernels and starts
  std::map<std::vector<int64_t>, llvm::Constant*> lists_;
  std::vector<llvm::Constant*> calls_;
  ExchangeRecords exchanges_;
  int64_t steps_ = 0;
};

}  // namespace

bool SameKernels(const KernelPlan& plan, const GpuTarget& a, const GpuTarget& b) {
  if (a.llvm_cpu != b.llvm_cpu || a.llvm_features != b.llvm_features) return false;
  for (const KernelPlan::Item& item : plan.kernels) {
    const auto products = ProductsOf(item.instruction);
    if (!products.ok() || products->empty()) continue;
    const auto on_a = TileOf(item.instruction, *products, a), on_b = TileOf(item.instruction, *products, b);
    if (!on_a.ok() || !on_b.ok() || !(*on_a == *on_b)) return false;
  }
  return true;
}

absl::StatusOr<Program> EmitKernels(Ir& ir, const KernelPlan& plan, const GpuTarget& target) {
  Program out;
  absl::flat_hash_map<std::string, size_t> known;
  for (const KernelPlan::Item& item : plan.kernels) {
    ASSIGN_OR_RETURN(std::vector<Launch> launches, EmitKernel(ir, target, item.symbol, item.instruction, item.shared));
    out.starts.emplace_back();
    for (const Launch& l : launches) {
      const auto [it, fresh] = known.insert({l.symbol, out.kernels.size()});
      if (fresh) {
        std::vector<int64_t> bytes;
        const auto add = [&](const Shape& s) {
          ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) {
            if (leaf.IsArray()) bytes.push_back(leaf.ByteSize());
          });
        };
        for (const Instruction* o : item.instruction->operands()) add(o->shape());
        add(item.instruction->shape());
        bytes.push_back(ScratchBytes(item.instruction));
        out.kernels.push_back({l.symbol, item.instruction, std::move(bytes)});
      }
      out.starts.back().push_back({it->second, l});
    }
  }
  return out;
}

absl::StatusOr<EntryUse> EmitEntry(Ir& ir, const std::string& symbol, const ThunkSequence& thunks,
                                   const KernelPlan& plan, const std::vector<Image>& images,
                                   const LibraryAlgorithms* algorithms, const EntryOptions& options) {
  GpuEntry entry(ir, symbol, plan, images, algorithms, options);
  RETURN_IF_ERROR(entry.Run(symbol, thunks));
  return EntryUse{entry.regions(), entry.steps(), entry.calls(), entry.groups()};
}

}  // namespace kiln::gpu
