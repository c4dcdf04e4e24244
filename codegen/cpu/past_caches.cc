#include "codegen/cpu/past_caches.h"

#include <algorithm>

#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kLine = 64;

}  // namespace

void StorePastCaches(Ir& ir, llvm::Value* line, llvm::Value* to) {
  llvm::StoreInst* store = ir.b.CreateAlignedStore(line, to, llvm::Align(kLine));
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(ir.b.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(ir.ctx, one));
}

void FinishPastCaches(Ir& ir) { ir.b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }

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
  constexpr int64_t kLarge = 12 << 20, kShortest = 64;
  const int64_t width = ByteWidth(s.type());
  return !IsComplex(s.type()) && s.ElementCount() * width >= kLarge && row >= kShortest && row * width % kLine == 0 &&
         s.LayoutOrDefault() == shapes_[0].LayoutOrDefault();
}

void PastCaches::Emit(const std::function<void(bool past)>& loops) {
  llvm::IRBuilder<>& b = ir_.b;
  llvm::Value* within = ir_.I64(0);
  for (size_t k = 0; k < buffers_.size(); ++k)
    if (buffers_[k]) within = b.CreateOr(within, b.CreatePtrToInt(fusion_.body.results[k], b.getInt64Ty()));
  llvm::Value* at_lines = b.CreateICmpEQ(b.CreateAnd(within, kLine - 1), ir_.I64(0));
  ir_.If(at_lines, [&] {
    loops(true);
    FinishPastCaches(ir_);
  });
  ir_.If(b.CreateNot(at_lines), [&] { loops(false); });
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
    auto* line = llvm::FixedVectorType::get(ir_.b.getInt64Ty(), kLine / 8);
    llvm::Value* to = ir_.b.CreateInBoundsGEP(element_type, fusion_.body.results[k], first);
    ir_.Loop(ir_.I64(0), ir_.I64(count * width / kLine), 1, [&](llvm::Value* n) {
      llvm::Value* at = ir_.Mul(n, kLine);
      llvm::Value* from = ir_.b.CreateInBoundsGEP(ir_.b.getInt8Ty(), buffers_[k], at);
      StorePastCaches(ir_, ir_.b.CreateAlignedLoad(line, from, llvm::Align(kLine)),
                      ir_.b.CreateInBoundsGEP(ir_.b.getInt8Ty(), to, at));
    });
  }
}

}  // namespace kiln::cpu
