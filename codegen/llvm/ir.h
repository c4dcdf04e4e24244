// The LLVM builder that every emitter shares: types of elements, loops, conversions, calls into the kernel library.
//
// A Val is one element in registers: floats narrower than f32 are held as the f32 of equal value, integers as iN (4-bit
// ones as i4), pred as i1, complex numbers as two parts. In memory sub-byte types take a byte.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "codegen/llvm/cpu_level.h"
#include "compiler/hlo/instruction.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace kiln {

struct Val {
  llvm::Value* re = nullptr;
  llvm::Value* im = nullptr;
};

// Attributes of functions that LLVM's passes leave alone, wholly or in part (object.cc says which): the register tiles
// of products, written as they should run, and the loops around them.
inline constexpr char kWrittenAsRun[] = "kiln-written-as-run";
inline constexpr char kCallsMicroKernels[] = "kiln-calls-micro-kernels";
// Of functions that gather: their loops become vectors where LLVM takes gathers for dear (object.cc).
inline constexpr char kGathers[] = "kiln-gathers";

class DebugInfo;

class Ir {
 public:
  Ir(llvm::LLVMContext& ctx, llvm::Module& module, const CpuLevel& level)
      : ctx(ctx), module(module), level(level), b(ctx) {}

  llvm::LLVMContext& ctx;
  llvm::Module& module;
  const CpuLevel& level;
  llvm::IRBuilder<> b;
  DebugInfo* debug = nullptr;  // lines for debuggers (debug_info.h); null: none

  llvm::Type* RegType(PrimitiveType t);  // of one part of a Val
  llvm::Type* MemType(PrimitiveType t);  // of one part in memory
  llvm::Value* I64(int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }
  llvm::Value* Add(llvm::Value* x, llvm::Value* y) { return b.CreateAdd(x, y, "", true, true); }
  llvm::Value* Mul(llvm::Value* x, int64_t k) { return k == 1 ? x : b.CreateMul(x, I64(k), "", true, true); }

  // An array whose accesses by Load and Store are checked: elements, and what to call it.
  struct Bounds {
    int64_t elements;
    std::string what;
  };
  // By address; filled by kernels of libraries built with bounds_check, whose out-of-bounds function is `on_overrun`.
  absl::flat_hash_map<const llvm::Value*, Bounds> bounds;
  std::string on_overrun;

  Val Constant(PrimitiveType t, const Element& e);
  Val Load(PrimitiveType t, llvm::Value* base, llvm::Value* element);
  void Store(PrimitiveType t, const Val& v, llvm::Value* base, llvm::Value* element);
  // `v` rounded to narrow float type `t`; unchanged for every other type.
  llvm::Value* Round(PrimitiveType t, llvm::Value* v);
  Val Convert(const Val& v, PrimitiveType from, PrimitiveType to);
  llvm::Value* Select(llvm::Value* p, llvm::Value* x, llvm::Value* y) { return b.CreateSelect(p, x, y); }

  // A function of the kernel library (codegen/kernels), linked when the module is finished.
  llvm::Value* CallLibrary(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* CallMath(const std::string& stem, PrimitiveType t, llvm::ArrayRef<llvm::Value*> args);

  // for (i = from; i < to; i += step) body(i). Nothing is emitted for an empty constant range.
  void Loop(llvm::Value* from, llvm::Value* to, int64_t step, const std::function<void(llvm::Value*)>& body,
            bool parallel = false);
  // for (i = 0; i < n; ++i) body(i), as whole vectors and, where the level has masks, one more vector for the rest. An
  // innermost loop of elements; `body` may be called several times. One that is not parallel adds up `sums` numbers,
  // each in as many registers as there is room for.
  void VectorLoop(int64_t n, const std::function<void(llvm::Value*)>& body, bool parallel, int64_t sums = 1);
  // What the innermost loop loads from places apart, LLVM would put into the lanes of wide vectors one by one.
  void LoadsApart(PrimitiveType t) { halves_ = halves_ || ByteWidth(t) < 4; }
  void If(llvm::Value* cond, const std::function<void()>& then);
  llvm::Function* current() { return b.GetInsertBlock()->getParent(); }
  // Brings the cache line at `address`, which need not be memory, into the first cache or only as far as the second.
  enum class Cache { kFirst, kSecond };
  void Prefetch(llvm::Value* address, Cache cache);
  // In the entry block, so that it is one slot a call.
  llvm::AllocaInst* Alloca(llvm::Type* type, int64_t count = 1, int64_t align = 64);
  // Whether vector loops may store under masks. A load from where such a store wrote in part waits until it is in the
  // cache, so kernels that work in place do without.
  bool masked_stores = true;
  // Whether no NaN has bits that bf16 has not, so that rounding one to bf16 cannot carry into its sign.
  bool nans_are_short = false;
  // Whether values of BF16 and F16 keep the digits of an f32 from one operation of a kernel to the next: stores,
  // conversions and operations that jump round them.
  bool keeps_excess = false;
  // Loads and stores emitted while set carry this access group: loop iterations do not depend on each other.
  llvm::MDNode* access_group = nullptr;

 private:
  // Since the innermost loop began F16 was converted, or narrow elements loaded from places apart. LLVM takes wide
  // conversions for dear, and makes vectors of four; of the others it makes too wide ones.
  bool halves_ = false;
  using Hints = std::vector<llvm::Metadata*>;  // of one loop
  llvm::Metadata* Hint(const std::string& name, llvm::Metadata* value = nullptr);
  void LoopWith(Hints hints, llvm::Value* from, llvm::Value* to, int64_t step,
                const std::function<void(llvm::Value*)>& body, bool parallel);
  void Tag(llvm::Instruction* i);
  // Between the bits of f16 and f32.
  llvm::Value* FromHalf(llvm::Value* bits);
  llvm::Value* ToHalf(llvm::Value* x);
  void CheckBounds(llvm::Value* base, llvm::Value* element);
};

}  // namespace kiln
