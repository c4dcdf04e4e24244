#include "codegen/cpu/entry.h"

#include <algorithm>

#include "codegen/cpu/convolution_plan.h"
#include "codegen/cpu/dot_plan.h"
#include "codegen/cpu/kernels.h"
#include "codegen/host/custom_call.h"
#include "compiler/analysis/cost.h"

namespace kiln::cpu {
namespace {

class CpuEntry : public HostEntry {
 public:
  CpuEntry(Ir& ir, std::string name, const KernelPlan& plan, const std::vector<int64_t>& units,
           const BorrowedKernels& borrowed, const EntryOptions& options)
      : HostEntry(ir, std::move(name), options), plan_(plan), units_(units), borrowed_(borrowed) {}

 private:
  // How many threads a kernel is worth: forking and joining takes one or two microseconds, and a thread's share shall
  // take some times as long. Where the arrays are large, each thread has parts of them in its cache from kernels before
  // this one, and one thread alone would have to fetch those of the others.
  int64_t ThreadsFor(const Cost& cost, double microseconds, int64_t units) const {
    constexpr double kShareMicroseconds = 5, kShareBytes = 192 << 10;
    if (options_.threads == 1 || units < 2) return 1;
    const double worth =
        std::max(microseconds / kShareMicroseconds, static_cast<double>(cost.bytes_accessed) / kShareBytes);
    const int64_t most = options_.threads ? std::min<int64_t>(options_.threads, units) : units;
    return worth < static_cast<double>(most) ? std::max<int64_t>(static_cast<int64_t>(worth), 1) : most;
  }

  llvm::Function* KernelAt(size_t place) {
    llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
    const bool own = borrowed_.places.empty() || !borrowed_.places[place];
    const std::string& level = own ? ir_.level.name : borrowed_.level;
    auto kernel = ir_.module.getOrInsertFunction(absl::StrCat(plan_.kernels[place].symbol, "_", level),
                                                 llvm::FunctionType::get(b_.getVoidTy(), {ptr, i64, i64}, false));
    auto* function = llvm::cast<llvm::Function>(kernel.getCallee());
    if (function->isDeclaration()) function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return function;
  }

  bool Exchanges() const override { return true; }
  llvm::Constant* Combination(const Thunk& t) override {
    const size_t block = plan_.of.at(t.instruction), one = block + 1;
    const auto number = [&](int64_t n) { return b_.getInt64(static_cast<uint64_t>(n)); };
    llvm::Constant* init = llvm::ConstantStruct::getAnon(
        ir_.ctx,
        {KernelAt(block), number(plan_.kernels[block].instruction->shape().ElementCount()), number(units_[block]),
         KernelAt(one), number(units_[one]), number(ByteWidth(t.instruction->operand(0)->shape().type()))});
    return new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                    name_ + "_combination");
  }

  void KernelCall(const Thunk& t) override {
    const size_t place = plan_.of.at(t.instruction);
    llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
    llvm::Function* function = KernelAt(place);
    const int64_t units = units_[place];
    FillTable(t);
    const Cost cost = CostOfKernel(t.instruction);
    const double microseconds = EstimatedMicroseconds(cost);
    const int64_t threads = ThreadsFor(cost, microseconds, units);
    if (threads == 1) {
      llvm::CallInst* call = b_.CreateCall(function, {table_, ir_.I64(0), ir_.I64(units)});
      // Loops are vectorised better in a function of their own, and a call is nothing beside such a one.
      constexpr double kWorthCalling = 0.2;
      if (microseconds > kWorthCalling) call->setIsNoInline();
      return;
    }
    std::vector<llvm::Type*> types = {ptr, ptr, ptr, i64, i64};
    std::vector<llvm::Value*> arguments = {machine_, function, table_, ir_.I64(units), ir_.I64(threads)};
    if (options_.profile) {
      types.push_back(i64);
      arguments.push_back(ir_.I64(OpOf(t)));
    }
    b_.CreateCall(Runtime(options_.profile ? "profile_parallel" : "parallel", b_.getVoidTy(), types), arguments);
  }

  absl::Status UserCall(const Thunk& t) override {
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

  absl::Status LibraryCall(const Thunk& t) override {
    return ErrorAt(t.instruction, "calls a library of another target", absl::StatusCode::kUnimplemented);
  }

  // The caller's arrays are aligned as their elements are.
  void Move(llvm::Value* to, llvm::Value* from, int64_t bytes) override {
    b_.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), static_cast<uint64_t>(bytes));
  }
  void Fill(llvm::Value* to, uint8_t value, int64_t bytes) override {
    b_.CreateMemSet(to, b_.getInt8(value), static_cast<uint64_t>(bytes), llvm::Align(1));
  }
  llvm::Value* Fetch(llvm::Type* type, llvm::Value* at) override { return b_.CreateLoad(type, at); }
  void Put(llvm::Value* value, llvm::Value* at) override { b_.CreateStore(value, at); }

  // Of kiln_machine (runtime_min/abi.h).
  llvm::Value* SlowArena(int64_t) override {
    return b_.CreateLoad(b_.getPtrTy(), b_.CreateInBoundsGEP(b_.getPtrTy(), machine_, ir_.I64(1)));
  }
  llvm::Value* Weights() override {
    const std::string symbol = options_.library + "_weights";
    const auto constant = [&](const std::string& name, llvm::Type* type) {
      auto* global = llvm::cast<llvm::GlobalVariable>(ir_.module.getOrInsertGlobal(name, type));
      global->setVisibility(llvm::GlobalValue::HiddenVisibility);
      global->setConstant(true);
      return global;
    };
    if (options_.large_weights) return b_.CreateLoad(b_.getPtrTy(), constant(symbol + "_at", b_.getPtrTy()));
    llvm::GlobalVariable* weights = constant(symbol, b_.getInt8Ty());
    weights->setAlignment(llvm::Align(64));
    return weights;
  }

  const KernelPlan& plan_;
  const std::vector<int64_t>& units_;
  const BorrowedKernels& borrowed_;
};

enum class ProductInstructions { kNone, kByteDots, kSumsInF16, kBf16Dots, kTiles };

// What the kernel of a dot or convolution multiplies with at `level`, besides the instructions of x86-64.
ProductInstructions ProductInstructionsOf(const CpuLevel& level, const Instruction* i) {
  const auto of = [](const MatmulShape& product) {
    if (product.tiles) return ProductInstructions::kTiles;
    if (product.compute == PrimitiveType::F16) return ProductInstructions::kSumsInF16;
    if (Group(product.compute) == 1) return ProductInstructions::kNone;
    return IsIntegral(product.compute) ? ProductInstructions::kByteDots : ProductInstructions::kBf16Dots;
  };
  if (i->Is(Opcode::Dot)) {
    const auto plan = PlanDot(level, i);
    if (plan.ok() && plan->algorithm == DotAlgorithm::kProducts) return of(plan->blocked.product);
  } else if (i->Is(Opcode::Convolution)) {
    const auto plan = PlanConvolution(level, i);
    if (plan.ok() && plan->algorithm != ConvolutionAlgorithm::kDirect) return of(plan->product);
  }
  return ProductInstructions::kNone;
}

}  // namespace

bool GainsByLevel(const CpuLevel& level, const CpuLevel& below, const Instruction* i) {
  std::vector<const Instruction*> products = ProductsOf(i);
  if (products.empty()) products = {i};
  return std::any_of(products.begin(), products.end(), [&](const Instruction* product) {
    const ProductInstructions uses = ProductInstructionsOf(level, product);
    return uses != ProductInstructions::kNone && uses != ProductInstructionsOf(below, product);
  });
}

absl::Status EmitKernels(Ir& ir, const KernelPlan& plan, const std::vector<size_t>& which, const KernelLinkage& linkage,
                         std::vector<int64_t>* units) {
  for (size_t k : which) {
    const KernelPlan::Item& item = plan.kernels[k];
    ASSIGN_OR_RETURN(Kernel kernel, EmitKernel(ir, absl::StrCat(item.symbol, "_", ir.level.name), item.label,
                                               item.instruction, item.shared));
    if (linkage.separate) kernel.function->addFnAttr(llvm::Attribute::NoInline);
    if (linkage.internal && (linkage.lent.empty() || !linkage.lent[k])) {
      kernel.function->setVisibility(llvm::GlobalValue::DefaultVisibility);
      kernel.function->setLinkage(llvm::GlobalValue::InternalLinkage);
    }
    (*units)[k] = kernel.units;
  }
  return absl::OkStatus();
}

absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks, const KernelPlan& plan,
                       const std::vector<int64_t>& units, const BorrowedKernels& borrowed,
                       const EntryOptions& options) {
  CpuEntry entry(ir, name, plan, units, borrowed, options);
  RETURN_IF_ERROR(entry.Run(absl::StrCat(name, "_entry_", ir.level.name), thunks));
  if (options.kernels_elsewhere) entry.AddAttribute(kWrittenAsRun);
  return absl::OkStatus();
}

}  // namespace kiln::cpu
