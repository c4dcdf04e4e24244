#include "codegen/gpu/lower_device.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

namespace kiln::gpu {

void LowerToDevice(Ir& ir, const std::vector<Program>& programs) {
  llvm::IRBuilder<>& b = ir.b;
  const auto define = [&](const char* name, const std::function<llvm::Value*(llvm::Function*)>& value) {
    llvm::Function* f = ir.module.getFunction(name);
    if (!f) return;
    f->setLinkage(llvm::GlobalValue::InternalLinkage);
    f->addFnAttr(llvm::Attribute::AlwaysInline);
    b.SetInsertPoint(llvm::BasicBlock::Create(ir.ctx, "entry", f));
    llvm::Value* v = value(f);
    if (f->getReturnType()->isVoidTy())
      b.CreateRetVoid();
    else
      b.CreateRet(v);
  };
  const auto place = [&](llvm::Intrinsic::ID id) {
    return [&b, id](llvm::Function*) { return b.CreateIntrinsic(id, {}, {}); };
  };
  define("kiln_gpu_thread", place(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
  define("kiln_gpu_block", place(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
  define("kiln_gpu_barrier", place(llvm::Intrinsic::nvvm_barrier0));
  define("kiln_gpu_shuffle_xor", [&](llvm::Function* f) {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                             {b.getInt32(~0U), f->getArg(0), f->getArg(1), b.getInt32(kWarp - 1)});
  });
  const auto fence = [&] { b.CreateIntrinsic(llvm::Intrinsic::nvvm_membar_gl, {}, {}); };
  define("kiln_gpu_signal", [&](llvm::Function* f) -> llvm::Value* {
    fence();
    b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, f->getArg(0), b.getInt32(1), llvm::MaybeAlign(4),
                      llvm::AtomicOrdering::Monotonic);
    return nullptr;
  });
  define("kiln_gpu_await", [&](llvm::Function* f) -> llvm::Value* {
    llvm::BasicBlock *look = llvm::BasicBlock::Create(ir.ctx, "look", f),
                     *done = llvm::BasicBlock::Create(ir.ctx, "done", f);
    b.CreateBr(look);
    b.SetInsertPoint(look);
    llvm::Value* seen = b.CreateAlignedLoad(b.getInt32Ty(), f->getArg(0), llvm::Align(4), /*isVolatile=*/true);
    b.CreateCondBr(b.CreateICmpUGE(seen, f->getArg(1)), done, look);
    b.SetInsertPoint(done);
    fence();
    return nullptr;
  });
  const auto multiply = [&](llvm::Intrinsic::ID id, llvm::Type* operand) {
    return [&b, id, operand](llvm::Function* f) {
      std::vector<llvm::Value*> arguments;
      for (llvm::Argument& a : f->args())
        arguments.push_back(a.getArgNo() < 6 && operand ? b.CreateBitCast(&a, operand) : static_cast<llvm::Value*>(&a));
      return b.CreateIntrinsic(id, {}, arguments);
    };
  };
  define("kiln_gpu_mma_f16",
         multiply(llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32, llvm::FixedVectorType::get(b.getHalfTy(), 2)));
  define("kiln_gpu_mma_bf16", multiply(llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16, nullptr));
  define("kiln_gpu_mma_f32", multiply(llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32, nullptr));
  define("kiln_gpu_round_tf32", [&](llvm::Function* f) {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_f2tf32_rna, {}, {b.CreateBitCast(f->getArg(0), b.getFloatTy())});
  });
  define("kiln_gpu_mma_s8", multiply(llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8, nullptr));
  llvm::NamedMDNode* annotations = ir.module.getOrInsertNamedMetadata("nvvm.annotations");
  const auto note = [&](llvm::Function* f, const char* key, uint32_t value) {
    annotations->addOperand(llvm::MDNode::get(ir.ctx, {llvm::ValueAsMetadata::get(f), llvm::MDString::get(ir.ctx, key),
                                                       llvm::ConstantAsMetadata::get(b.getInt32(value))}));
  };
  for (const Program& program : programs)
    for (const Program::Kernel& k : program.kernels) {
      llvm::Function* f = ir.module.getFunction(k.symbol);
      note(f, "kernel", 1);
      note(f, "maxntidx", static_cast<uint32_t>(std::stoul(f->getFnAttribute(kKernel).getValueAsString().str())));
    }
}

}  // namespace kiln::gpu
