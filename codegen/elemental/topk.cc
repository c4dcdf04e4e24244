// Top-k of rows: a few of short rows by insertion into an ordered list, others by keys, of which the better half is
// kept time and again and what comes after is compared as vectors.
#include <algorithm>

#include "codegen/elemental/callbacks.h"
#include "codegen/elemental/library.h"

namespace kiln {
namespace {

// From so many on an insertion moves more than a selection does.
constexpr int64_t kMany = 8, kLong = 256;

bool ByKey(const Instruction* i) {
  constexpr int64_t kPlaces = int64_t{1} << 32;  // that a word holds beside a key
  const Shape& s = i->operand(0)->shape();
  const int64_t n = s.dims().back(), k = *i->attrs().k;
  return (k >= kMany || (n >= kLong && k > 0)) && n < kPlaces && InfoOf(s.type()).bits <= 32;
}

bool Largest(const Instruction* i) { return i->attrs().largest.value_or(true); }

// What orders an element: floats by their bits, so that the order is total.
struct Key {
  llvm::Value* value;
  bool is_signed;
};

Key KeyOf(Ir& ir, PrimitiveType t, llvm::Value* array, llvm::Value* place) {
  llvm::IRBuilder<>& b = ir.b;
  llvm::Value* v = ir.Load(t, array, place).re;
  if (!IsFloat(t)) return {v, IsSigned(t)};
  const unsigned width = v->getType()->isDoubleTy() ? 64 : 32;
  llvm::Value* bits = b.CreateBitCast(v, b.getIntNTy(width));
  return {b.CreateXor(bits, b.CreateLShr(b.CreateAShr(bits, width - 1), 1)), true};
}

// Whether one element comes before another.
llvm::Function* Less(Ir& ir, const Instruction* i, absl::Status* status) {
  llvm::IRBuilder<>& b = ir.b;
  llvm::Type *p = b.getPtrTy(), *n = b.getInt64Ty();
  return Callback(
      ir, "less", b.getInt32Ty(), {p, n, p, n},
      [&](llvm::Function* f) -> absl::Status {
        const auto key = [&](unsigned side) {
          return KeyOf(ir, i->operand(0)->shape().type(), b.CreateLoad(p, f->getArg(2 * side)),
                       f->getArg(2 * side + 1));
        };
        const Key x = key(0), y = key(1);
        using P = llvm::CmpInst;
        llvm::Value* c = b.CreateICmp(
            Largest(i) ? (x.is_signed ? P::ICMP_SGT : P::ICMP_UGT) : (x.is_signed ? P::ICMP_SLT : P::ICMP_ULT), x.value,
            y.value);
        b.CreateRet(b.CreateZExt(c, b.getInt32Ty()));
        return absl::OkStatus();
      },
      status);
}

// The element's key as an unsigned number, the first one's the least.
llvm::Function* Word(Ir& ir, const Instruction* i, absl::Status* status) {
  llvm::IRBuilder<>& b = ir.b;
  return Callback(
      ir, "key", b.getInt32Ty(), {b.getPtrTy(), b.getInt64Ty()},
      [&](llvm::Function* f) -> absl::Status {
        const Key key =
            KeyOf(ir, i->operand(0)->shape().type(), b.CreateLoad(b.getPtrTy(), f->getArg(0)), f->getArg(1));
        llvm::Value* v = b.CreateIntCast(key.value, b.getInt32Ty(), key.is_signed);
        if (key.is_signed) v = b.CreateXor(v, b.getInt32(0x80000000u));
        b.CreateRet(Largest(i) ? b.CreateNot(v) : v);
        return absl::OkStatus();
      },
      status);
}

}  // namespace

int64_t TopKScratchBytes(const Instruction* i) { return ByKey(i) ? 16 * *i->attrs().k : 0; }

absl::StatusOr<int64_t> EmitTopKRows(Body& body, int64_t stack_bytes) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Instruction* i = body.i;
  const Shape& s = i->operand(0)->shape();
  const int64_t n = s.dims().back(), k = *i->attrs().k, rows = n ? s.ElementCount() / n : 0;
  const int64_t bytes = TopKScratchBytes(i);
  const bool units = bytes <= stack_bytes;
  absl::Status status;
  llvm::Function* order = bytes ? Word(ir, i, &status) : Less(ir, i, &status);
  RETURN_IF_ERROR(status);
  llvm::Value* work = !units ? body.scratch : bytes ? ir.Alloca(b.getInt64Ty(), bytes / 8) : nullptr;
  llvm::Type* mem = b.getIntNTy(static_cast<unsigned>(8 * ByteWidth(s.type())));
  ir.Loop(units ? body.begin : ir.I64(0), units ? body.end : ir.I64(rows), 1, [&](llvm::Value* r) {
    llvm::Value* in = b.CreateInBoundsGEP(mem, body.operands[0], ir.Mul(r, n));
    llvm::Value* idx = b.CreateInBoundsGEP(b.getInt32Ty(), body.results[1], ir.Mul(r, k));
    std::vector<llvm::Value*> arguments = {TableOf(ir, {in}), ir.I64(n), ir.I64(k), idx, order};
    if (bytes) arguments.push_back(work);
    ir.CallLibrary(bytes ? "kiln_topk_by_key" : "kiln_topk", b.getVoidTy(), arguments);
    ir.Loop(ir.I64(0), ir.I64(k), 1, [&](llvm::Value* q) {
      llvm::Value* at =
          b.CreateSExt(b.CreateLoad(b.getInt32Ty(), b.CreateInBoundsGEP(b.getInt32Ty(), idx, q)), b.getInt64Ty());
      b.CreateStore(b.CreateLoad(mem, b.CreateInBoundsGEP(mem, in, at)),
                    b.CreateInBoundsGEP(mem, body.results[0], ir.Add(ir.Mul(r, k), q)));
    });
  });
  return units ? rows : 1;
}

}  // namespace kiln
