#include "codegen/gpu/emulated.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

namespace kiln::gpu {
namespace {

class HostLowering {
 public:
  HostLowering(Ir& ir, const Program& program, const std::string& library)
      : ir_(ir), b_(ir.b), m_(ir.module), program_(program), library_(library) {
    llvm::Type* i32 = b_.getInt32Ty();
    where_type_ = llvm::StructType::get(ir.ctx, {i32, i32});
    where_ = new llvm::GlobalVariable(m_, where_type_, false, llvm::GlobalValue::InternalLinkage,
                                      llvm::Constant::getNullValue(where_type_), library + "_where");
    auto* hooks_type = llvm::ArrayType::get(b_.getPtrTy(), 5);
    hooks_ = new llvm::GlobalVariable(m_, hooks_type, false, llvm::GlobalValue::InternalLinkage,
                                      llvm::Constant::getNullValue(hooks_type), library + "_hooks");
  }

  absl::Status Run(const std::string& weights_symbol, bool checked) {
    std::vector<bool> meets;
    for (const Program::Kernel& k : program_.kernels) meets.push_back(Meets(*m_.getFunction(k.symbol)));
    if (checked)
      for (const Program::Kernel& k : program_.kernels) Watch(*m_.getFunction(k.symbol));
    Define("kiln_gpu_thread", [&](llvm::Function*) { b_.CreateRet(Place(0)); });
    Define("kiln_gpu_block", [&](llvm::Function*) { b_.CreateRet(Place(1)); });
    Define("kiln_gpu_barrier", [&](llvm::Function* f) {
      Together(b_.CreateCall(f->getFunctionType(), Hook(0), {}));
      b_.CreateRetVoid();
    });
    Define("kiln_gpu_signal", [&](llvm::Function* f) {
      b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), f->getArg(0)), b_.getInt32(1)), f->getArg(0));
      b_.CreateRetVoid();
    });
    Define("kiln_gpu_await", [&](llvm::Function* f) {
      b_.CreateCall(f->getFunctionType(), Hook(4), {f->getArg(0), f->getArg(1)});
      b_.CreateRetVoid();
    });
    Define("kiln_gpu_shuffle_xor", [&](llvm::Function* f) {
      b_.CreateRet(Together(b_.CreateCall(f->getFunctionType(), Hook(1), {f->getArg(0), f->getArg(1)})));
    });
    for (const auto& [name, kind] : {std::pair{"kiln_gpu_mma_f16", kHalves},
                                     {"kiln_gpu_mma_bf16", kBrainHalves},
                                     {"kiln_gpu_mma_s8", kBytes},
                                     {"kiln_gpu_mma_f32", kTf32}})
      Define(name, [&, kind](llvm::Function* f) { Multiply(f, kind); });
    Define("kiln_gpu_round_tf32", [&](llvm::Function* f) {
      constexpr uint32_t kHalf = 1U << 12, kDropped = (1U << 13) - 1, kInfinity = 0x7f800000, kSign = 1U << 31;
      llvm::Value *bits = f->getArg(0), *magnitude = b_.CreateAnd(bits, b_.getInt32(~kSign));
      llvm::Value* rounded = b_.CreateAnd(b_.CreateAdd(bits, b_.getInt32(kHalf)), b_.getInt32(~kDropped));
      b_.CreateRet(b_.CreateSelect(b_.CreateICmpULT(magnitude, b_.getInt32(kInfinity)), rounded, bits));
    });
    std::vector<llvm::Constant*> table;
    for (size_t k = 0; k < program_.kernels.size(); ++k) table.push_back(Describe(program_.kernels[k], meets[k]));
    llvm::Constant* kernels = Array(table, "_kernels");
    llvm::Constant* weights = llvm::ConstantPointerNull::get(b_.getPtrTy());
    if (!weights_symbol.empty()) {
      weights = m_.getOrInsertGlobal(weights_symbol, b_.getInt8Ty());
      llvm::cast<llvm::GlobalVariable>(weights)->setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
    llvm::Constant* init =
        llvm::ConstantStruct::getAnon(ir_.ctx, {b_.getInt64(table.size()), kernels, where_, hooks_, weights});
    new llvm::GlobalVariable(m_, init->getType(), true, llvm::GlobalValue::ExternalLinkage, init,
                             library_ + "_emulated");
    return absl::OkStatus();
  }

 private:
  static bool Meets(const llvm::Function& f) {
    for (const llvm::Instruction& i : llvm::instructions(f))
      if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&i))
        if (const llvm::Function* callee = call->getCalledFunction())
          if (callee->getName() == "kiln_gpu_barrier" || callee->getName() == "kiln_gpu_shuffle_xor" ||
              callee->getName().starts_with("kiln_gpu_mma_"))
            return true;
    return false;
  }

  llvm::Value* Place(unsigned field) {
    return b_.CreateLoad(b_.getInt32Ty(), b_.CreateStructGEP(where_type_, where_, field));
  }
  llvm::Value* Hook(int64_t k) {
    return b_.CreateLoad(b_.getPtrTy(), b_.CreateInBoundsGEP(b_.getPtrTy(), hooks_, ir_.I64(k)));
  }

  // All threads must come to this very call: LLVM may neither copy it nor move it under a condition.
  static llvm::CallInst* Together(llvm::CallInst* call) {
    call->setConvergent();
    call->setCannotDuplicate();
    return call;
  }

  void Define(const char* name, const std::function<void(llvm::Function*)>& fill) {
    llvm::Function* f = m_.getFunction(name);
    if (!f) return;
    f->setLinkage(llvm::GlobalValue::InternalLinkage);
    f->addFnAttr(llvm::Attribute::AlwaysInline);
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f));
    fill(f);
  }

  // Hands the lane's words and sums to the emulator, which leaves the new sums.
  void Multiply(llvm::Function* f, FragmentKind kind) {
    constexpr int64_t kWords = 6, kSums = 4;
    llvm::Type* each = f->getArg(kWords)->getType();
    llvm::Value *words = b_.CreateAlloca(b_.getInt32Ty(), b_.getInt32(kWords)),
                *sums = b_.CreateAlloca(each, b_.getInt32(kSums));
    for (unsigned k = 0; k < kWords; ++k)
      b_.CreateStore(f->getArg(k), b_.CreateConstInBoundsGEP1_32(b_.getInt32Ty(), words, k));
    for (unsigned k = 0; k < kSums; ++k)
      b_.CreateStore(f->getArg(kWords + k), b_.CreateConstInBoundsGEP1_32(each, sums, k));
    llvm::Type* ptr = b_.getPtrTy();
    Together(b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {b_.getInt32Ty(), ptr, ptr}, false), Hook(3),
                           {b_.getInt32(kind), words, sums}));
    llvm::Value* out = llvm::PoisonValue::get(f->getReturnType());
    for (unsigned k = 0; k < kSums; ++k)
      out = b_.CreateInsertValue(out, b_.CreateLoad(each, b_.CreateConstInBoundsGEP1_32(each, sums, k)), k);
    b_.CreateRet(out);
  }

  // Tells the emulator of every access but those of the thread's own variables.
  void Watch(llvm::Function& f) {
    struct Access {
      llvm::Instruction* before;
      llvm::Value* at;
      llvm::Type* type;
      AccessKind kind;
    };
    std::vector<Access> found;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
        found.push_back(
            {&i, load->getPointerOperand(), load->getType(), load->isAtomic() ? kUpdatesAtomically : kReads});
      if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
        found.push_back({&i, store->getPointerOperand(), store->getValueOperand()->getType(), kWrites});
      if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&i))
        found.push_back({&i, update->getPointerOperand(), update->getType(), kUpdatesAtomically});
      if (auto* update = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i))
        found.push_back({&i, update->getPointerOperand(), update->getNewValOperand()->getType(), kUpdatesAtomically});
    }
    for (const Access& a : found) {
      const llvm::Value* object = llvm::getUnderlyingObject(a.at, 0);
      if (llvm::isa<llvm::AllocaInst>(object)) continue;
      const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object);
      if (global && global->isConstant()) continue;
      b_.SetInsertPoint(a.before);
      const auto bytes = static_cast<int64_t>((a.type->getPrimitiveSizeInBits().getFixedValue() + 7) / 8);
      const int64_t all = a.type->isPointerTy() ? 8 : bytes;
      b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt32Ty()}, false),
                    Hook(2), {a.at, ir_.I64(all), b_.getInt32(a.kind)});
    }
  }

  llvm::Constant* Array(const std::vector<llvm::Constant*>& values, const char* name) {
    if (values.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    llvm::Constant* init = llvm::ConstantArray::get(llvm::ArrayType::get(values[0]->getType(), values.size()), values);
    return new llvm::GlobalVariable(m_, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                    library_ + name);
  }

  // Calls the kernel with the addresses in a table.
  void Call(llvm::Function* kernel, llvm::Value* buffers) {
    std::vector<llvm::Value*> arguments;
    for (unsigned k = 0; k < kernel->arg_size(); ++k)
      arguments.push_back(
          b_.CreateLoad(b_.getPtrTy(), b_.CreateInBoundsGEP(b_.getPtrTy(), buffers, ir_.I64(static_cast<int64_t>(k)))));
    b_.CreateCall(kernel, arguments);
  }

  llvm::Constant* Describe(const Program::Kernel& k, bool meets) {
    llvm::Function* kernel = m_.getFunction(k.symbol);
    kernel->setLinkage(llvm::GlobalValue::InternalLinkage);
    llvm::Type *ptr = b_.getPtrTy(), *i64 = b_.getInt64Ty();
    auto* thread = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {ptr}, false),
                                          llvm::GlobalValue::InternalLinkage, k.symbol + "_thread", m_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", thread));
    Call(kernel, thread->getArg(0));
    b_.CreateRetVoid();
    llvm::Constant* grid = llvm::ConstantPointerNull::get(b_.getPtrTy());
    if (!meets) {
      auto* f = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {ptr, i64, i64}, false),
                                       llvm::GlobalValue::InternalLinkage, k.symbol + "_grid", m_);
      kernel->addFnAttr(llvm::Attribute::AlwaysInline);
      b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f));
      ir_.Loop(ir_.I64(0), f->getArg(1), 1, [&](llvm::Value* block) {
        b_.CreateStore(b_.CreateTrunc(block, b_.getInt32Ty()), b_.CreateStructGEP(where_type_, where_, 1));
        ir_.Loop(ir_.I64(0), f->getArg(2), 1, [&](llvm::Value* t) {
          b_.CreateStore(b_.CreateTrunc(t, b_.getInt32Ty()), b_.CreateStructGEP(where_type_, where_, 0));
          Call(kernel, f->getArg(0));
        });
      });
      b_.CreateRetVoid();
      grid = f;
    }
    std::vector<llvm::Constant*> bytes, shared;
    for (int64_t n : k.buffer_bytes) bytes.push_back(b_.getInt64(static_cast<uint64_t>(n)));
    for (llvm::GlobalVariable& g : m_.globals()) {
      if (g.getAddressSpace() != kSharedSpace || !g.getName().starts_with(k.symbol + ".shared")) continue;
      shared.push_back(llvm::ConstantExpr::getAddrSpaceCast(&g, b_.getPtrTy()));
      const auto* array = llvm::cast<llvm::ArrayType>(g.getValueType());
      const uint64_t size = array->getNumElements() * ((array->getElementType()->getScalarSizeInBits() + 7) / 8);
      shared.push_back(llvm::ConstantExpr::getIntToPtr(b_.getInt64(size), b_.getPtrTy()));
    }
    llvm::Constant* name = b_.CreateGlobalString(k.symbol, "name", 0, &m_);
    return llvm::ConstantStruct::getAnon(
        ir_.ctx, {name, thread, grid, Array(bytes, "_bytes"), b_.getInt64(bytes.size()), Array(shared, "_shared"),
                  b_.getInt64(shared.size() / 2)});
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  llvm::Module& m_;
  const Program& program_;
  const std::string& library_;
  llvm::StructType* where_type_;
  llvm::GlobalVariable *where_, *hooks_;
};

}  // namespace

absl::Status LowerToHost(Ir& ir, const Program& program, const std::string& library, const std::string& weights,
                         bool checked) {
  return HostLowering(ir, program, library).Run(weights, checked);
}

}  // namespace kiln::gpu
