#include "codegen/cpu/past_caches.h"

#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::cpu {
namespace {

constexpr char kStoresPastCaches[] = "kiln-stores-past-caches";

}  // namespace

void StorePastCaches(Ir& ir, llvm::Value* line, llvm::Value* to) {
  llvm::StoreInst* store = ir.b.CreateAlignedStore(line, to, llvm::Align(kCacheLine));
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(ir.b.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(ir.ctx, one));
  CallsPastCaches(ir);
}

void CallsPastCaches(Ir& ir) { ir.current()->addFnAttr(kStoresPastCaches); }

void FencePastCaches(Ir& ir) {
  if (ir.current()->hasFnAttribute(kStoresPastCaches)) ir.b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

void EmitPastCaches(Ir& ir, const std::vector<llvm::Value*>& results, const std::function<void(bool past)>& loops) {
  llvm::Value* within = ir.I64(0);
  for (llvm::Value* r : results) within = ir.b.CreateOr(within, ir.b.CreatePtrToInt(r, ir.b.getInt64Ty()));
  llvm::Value* at_lines = ir.b.CreateICmpEQ(ir.b.CreateAnd(within, kCacheLine - 1), ir.I64(0));
  ir.If(at_lines, [&] { loops(true); });
  ir.If(ir.b.CreateNot(at_lines), [&] { loops(false); });
}

PastCaches::PastCaches(FusionBody& fusion, const std::vector<const Instruction*>& results, int64_t row)
    : fusion_(fusion), ir_(fusion.ir) {
  for (const Instruction* r : results) shapes_.push_back(r->shape());
  // Checks of bounds belong to the results' own addresses.
  if (fusion.body.in_place || !ir_.bounds.empty()) return;
  for (const Shape& s : shapes_) {
    const bool past = IsPast(s, row);
    apply_ |= past;
    buffers_.push_back(past ? ir_.Alloca(ir_.MemType(s.type()), kPiece) : nullptr);
  }
}

bool PastCaches::IsPast(const Shape& s, int64_t row) const {
  constexpr int64_t kShortest = 64;
  const int64_t width = ByteWidth(s.type());
  return !IsComplex(s.type()) && s.ElementCount() * width >= kLargeResult && row >= kShortest &&
         row * width % kCacheLine == 0 && s.LayoutOrDefault() == shapes_[0].LayoutOrDefault();
}

void PastCaches::Emit(const std::function<void(bool past)>& loops) {
  std::vector<llvm::Value*> past;
  for (size_t k = 0; k < buffers_.size(); ++k)
    if (buffers_[k]) past.push_back(fusion_.body.results[k]);
  EmitPastCaches(ir_, past, loops);
}

void PastCaches::Piece(llvm::Value* first, int64_t count, const std::function<void(llvm::Value* k)>& element) {
  fusion_.aside = buffers_;
  ir_.VectorLoop(
      count,
      [&](llvm::Value* k) {
        fusion_.aside_at = k;
        element(k);
      },
      true);
  fusion_.aside.clear();
  for (size_t k = 0; k < buffers_.size(); ++k) {
    if (!buffers_[k]) continue;
    const int64_t width = ByteWidth(shapes_[k].type());
    llvm::Type* element_type = ir_.MemType(shapes_[k].type());
    auto* line = llvm::FixedVectorType::get(ir_.b.getInt64Ty(), kCacheLine / 8);
    llvm::Value* to = ir_.b.CreateInBoundsGEP(element_type, fusion_.body.results[k], first);
    ir_.Loop(ir_.I64(0), ir_.I64(count * width / kCacheLine), 1, [&](llvm::Value* n) {
      llvm::Value* at = ir_.Mul(n, kCacheLine);
      llvm::Value* from = ir_.b.CreateInBoundsGEP(ir_.b.getInt8Ty(), buffers_[k], at);
      StorePastCaches(ir_, ir_.b.CreateAlignedLoad(line, from, llvm::Align(kCacheLine)),
                      ir_.b.CreateInBoundsGEP(ir_.b.getInt8Ty(), to, at));
    });
  }
}

}  // namespace kiln::cpu
