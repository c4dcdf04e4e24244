// The host code of a model: its thunks as one function, for any target.
//
// What: straight-line code over the slices of a plan, with loops, branches, exchanges between devices and the random
//   state. How a kernel is started, bytes are moved and a value is fetched is the target's.
// Guarantees: thunks run in order; a failing function of the host program ends the run with its status.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/host/offers.h"
#include "codegen/llvm/ir.h"
#include "compiler/hlo/exchange.h"
#include "compiler/thunk/thunk.h"
#include "runtime_min/abi.h"

namespace kiln {

struct EntryOptions {
  std::string library;                    // whose weights and runtime the entry uses
  std::vector<int64_t> constant_offsets;  // of each constant in the library's weights
  int threads = 0;            // the most that one run uses; 0: as many as its pool has; 1: kernels are never split
  bool poison_freed = false;  // overwrite the bytes of every arena slice after the last thunk that touches it
  int64_t replicas = 1, partitions = 1;
  bool large_weights = false;      // beyond the reach of 32-bit offsets: their address is loaded
  bool kernels_elsewhere = false;  // in other modules: nothing can be inlined into the entry
  bool nccl = false;               // of a GPU program: devices exchange arrays by NCCL, not through the host
  bool tf32 = false;               // likewise: the library may multiply f32 in TF32
  // The numbers of operations in the library's tables, for code that measures or checks them; null: none does.
  const absl::flat_hash_map<const Instruction*, int64_t>* ops = nullptr;
  int64_t first_op = 0;  // what to add to these
  bool profile = false, check_numerics = false;
};

class HostEntry {
 public:
  HostEntry(Ir& ir, std::string name, const EntryOptions& options)
      : ir_(ir), b_(ir.b), name_(std::move(name)), options_(options) {}
  virtual ~HostEntry() = default;

  // Emits `symbol(ptr arguments, ptr results, ptr arena, ptr machine, ptr comm) -> i32`; `machine` is what the target
  // runs kernels with.
  absl::Status Run(const std::string& symbol, const ThunkSequence& thunks);

  // Gives every function that Run made an attribute.
  void AddAttribute(llvm::StringRef attribute) {
    for (llvm::Function* f : made_) f->addFnAttr(attribute);
  }

  // Functions that the entry has replayed.
  int64_t regions() const { return regions_; }

 protected:
  virtual void KernelCall(const Thunk& t) = 0;
  virtual absl::Status UserCall(const Thunk& t) = 0;
  virtual absl::Status LibraryCall(const Thunk& t) = 0;
  // Bytes between, and within, the target's arrays.
  virtual void Move(llvm::Value* to, llvm::Value* from, int64_t bytes) = 0;
  virtual void Fill(llvm::Value* to, uint8_t value, int64_t bytes) = 0;
  // A scalar in the target's memory.
  virtual llvm::Value* Fetch(llvm::Type* type, llvm::Value* at) = 0;
  virtual void Put(llvm::Value* value, llvm::Value* at) = 0;
  // The first byte of the slow arena: the entry of the table of arguments behind the last, or the target's own.
  virtual llvm::Value* SlowArena(int64_t index);
  // The first byte of the library's constants.
  virtual llvm::Value* Weights() = 0;
  // How often a loop runs, where that is known and the target would rather not ask each time.
  virtual std::optional<int64_t> TripCount(const Thunk&) { return std::nullopt; }
  // The entry's own sequence is not cut: regions are looked for in it, or the last use of every slice.
  virtual bool KeepsEntryWhole() const { return options_.poison_freed; }
  // Thunks from `k` on that go together into a function which the target may record and replay; 0: none.
  virtual size_t RegionAt(const ThunkSequence&, size_t) { return 0; }
  // Runs the function of a region, of the entry's own type.
  virtual void Replay(int64_t, llvm::Function*) {}
  // A loop or a choice whose condition and body, or branches, shall be functions of the entry's own type, which the
  // target runs as values say.
  virtual bool RunsParts(const Thunk&) { return false; }
  virtual void RunParts(const Thunk&, const std::vector<llvm::Function*>&) {}
  // The functions of kiln_comm (runtime_min/abi.h) with the target's arrays: where they are the host's, as they are.
  virtual void Gather(llvm::Value* group, llvm::Value* members, llvm::Value* mine, llvm::Value* all, int64_t bytes);
  // An exchange with other devices by the target's own means; false: it has none for this one.
  virtual absl::StatusOr<bool> TargetExchange(const Thunk&) { return false; }
  // Whether the target makes exchanges of whole blocks: then what ExchangeOf describes is one.
  virtual bool Exchanges() const { return false; }
  // How many exchanges the target keeps under way beside what else it does, each in a place of its own; they read and
  // write where their thunks say, meanwhile. Begins one in a place, and ends what is there.
  virtual int64_t PlacesBeside() const { return 0; }
  virtual bool MayGoBeside(const Thunk&) const { return true; }
  virtual absl::Status BeginBeside(const Thunk&, int64_t) { return absl::OkStatus(); }
  virtual void EndBeside(int64_t) {}
  // The kiln_combination of a reduction.
  virtual llvm::Constant* Combination(const Thunk&) { return nullptr; }
  virtual void Queue(bool send, int64_t channel, llvm::Value* data, int64_t bytes);

  llvm::Value* Pointer(const Slice& s);
  // The table of the thunk's pointers: operands, results, and a kernel's scratch.
  llvm::Value* FillTable(const Thunk& t);
  // Goes on if `code` is 0; else the run ends with `status`.
  void Checked(llvm::Value* code, kiln_status status);
  // The same for what a function of kiln_comm returned.
  void CheckedExchange(llvm::Value* code);
  llvm::Value* Comm() { return fn_->getArg(4); }
  // A function of the library's runtime.
  llvm::FunctionCallee Runtime(const std::string& function, llvm::Type* result, llvm::ArrayRef<llvm::Type*> arguments);
  // The number of the thunk's operation in the library's tables.
  int64_t OpOf(const Thunk& t) const { return options_.first_op + options_.ops->at(t.instruction); }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const std::string name_;
  const EntryOptions& options_;
  llvm::Function* fn_ = nullptr;
  llvm::Value* table_ = nullptr;
  llvm::Value* machine_ = nullptr;  // what the function runs kernels with

 private:
  static void Touched(const Thunk& t, std::vector<Slice>* out);
  static std::vector<Slice> LastUses(const ThunkSequence& thunks, size_t k);
  absl::Status EmitFunction(const std::string& symbol, const ThunkSequence& thunks, bool entry);
  // A function of its own, in the middle of another.
  absl::StatusOr<llvm::Function*> EmitPart(const std::string& symbol, const ThunkSequence& thunks);
  // Those of a loop or a choice, run by the target.
  absl::Status EmitParts(const Thunk& t);
  absl::Status Emit(const ThunkSequence& thunks, bool entry = false);
  absl::Status EmitThunk(const Thunk& t);
  absl::Status EmitWhile(const Thunk& t);
  // The run of a thunk with the calls of the profiler and the numeric check that the options ask for.
  absl::Status EmitWatched(const Thunk& t);
  absl::Status EmitTimed(const Thunk& t);
  // Whether the profiler measures this run: the entry asks, and other functions find it with the machine.
  void BeginSampling(bool entry);
  // The operation as the check knows it, none if it is not looked at, and what its inputs were that it overwrites.
  struct NumericsCheck {
    llvm::Constant* op = nullptr;
    llvm::Value* before = nullptr;
  };
  NumericsCheck BeginNumericsCheck(const Thunk& t);
  // The same in a function of its own if it is long or lies deep in loops, since LLVM's work on one function is not
  // linear in its length and depth.
  absl::Status EmitNested(const ThunkSequence& thunks);
  absl::Status EmitInPieces(const ThunkSequence& thunks);
  absl::Status CallPart(const ThunkSequence& thunks);
  absl::Status EmitConditional(const Thunk& t);
  absl::Status EmitAllGather(const Thunk& t);
  // A group of devices that the running one belongs to, and what they do.
  struct Meeting {
    llvm::Value *record = nullptr, *group = nullptr;
  };
  Meeting MeetingOf(const Thunk& t, const Exchange& x);
  // A kiln_exchange, all but its group.
  llvm::Constant* ExchangeRecord(const Thunk& t, const Exchange& x);
  void EmitExchange(const Thunk& t, const Exchange& x);
  // The results in the table of the thunk's pointers.
  llvm::Value* ResultsOf(const Thunk& t);
  // An exchange that begins early, if the transport or the target is able to: where, and what the beginning made.
  struct Offered {
    Offer where;
    Meeting meeting;
    llvm::Value* offered = nullptr;
  };
  using Offers = std::map<size_t, Offered>;  // by the exchange's own place
  // Those of thunks that belong to no region.
  Offers OffersIn(const ThunkSequence& thunks, std::vector<bool> in_region);
  // Of exchanges that are under way while thunk `k` runs, those around the sequence among them.
  uint64_t PlacesTakenAround(const Offers& offers, size_t k) const;
  // What ends, and what begins, in front of thunk `k`.
  absl::Status EmitOffers(const ThunkSequence& thunks, size_t k, Offers* offers);
  void UnlessOffered(const Thunk& t, const Offered& offer);
  void EmitDeviceId(const Thunk& t);
  void EmitQueue(const Thunk& t);
  void EmitRngState(const Thunk& t);
  llvm::Value* CommField(int64_t k);
  llvm::Value* Device();
  llvm::Constant* Table(const std::vector<int64_t>& values);

  // Where a run goes that a function of the host program failed, by what it returns then.
  std::map<kiln_status, llvm::BasicBlock*> ends_;
  std::vector<llvm::Function*> made_;
  int64_t regions_ = 0, parts_ = 0, pieces_ = 0;  // so far
  uint64_t places_taken_ = 0;                     // bits: by exchanges under way around the sequence that is emitted
  llvm::Value* sampled_ = nullptr;                // in the function that is being emitted: the run is measured
  int depth_ = 0;                                 // of nested thunks in the function that is being emitted
};

}  // namespace kiln
