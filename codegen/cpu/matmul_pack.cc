#include "codegen/cpu/matmul_pack.h"

#include <algorithm>

#include "codegen/cpu/matmul_micro.h"

namespace kiln::cpu {
namespace {

class GroupPacker {
 public:
  GroupPacker(Ir& ir, const MatmulShape& shape, const SumBlock& block, llvm::Value* b_array, const PanelPlace& to)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        run_(block.run),
        taps_(ElementsOf(block.segments, 1)),
        group_(Group(shape.compute)),
        lanes_(Lanes(ir.level, shape.compute)),
        to_(to),
        held_(HeldType()),
        element_(ir.MemType(held_)),
        word_(ir.b.getInt32Ty()),
        b_array_(b_array) {}

  void Pack(llvm::Value* k, llvm::Value* column, int64_t columns) {
    k_ = k;
    column_ = column;
    // Rows of the taps one after the other, unless each tap's lie apart or backwards.
    const bool in_order = !s_.b_tap_rows && !s_.reverse_b;
    const bool same = s_.b_type == held_ || s_.part_of_b != PartOfB::kAll;
    ir_.Loop(ir_.I64(0), ir_.I64(taps_), 1, [&](llvm::Value* tap) {
      const int64_t whole = run_ / group_, tail = run_ % group_;
      const int64_t in_vectors = same && s_.b_n_stride == 1 ? columns / lanes_ * lanes_ : 0;
      int64_t squares = 0, square_columns = 0;  // of lanes_ x lanes_ words
      if (in_order && same && s_.b_k_stride == 1) {
        squares = whole / lanes_ * lanes_;
        square_columns = columns / lanes_ * lanes_;
        ir_.Loop(ir_.I64(0), ir_.I64(squares), lanes_, [&](llvm::Value* q) {
          ir_.Loop(ir_.I64(0), ir_.I64(square_columns), lanes_, [&](llvm::Value* j) { Square(tap, q, j); });
        });
      }
      const auto rows = [&](int64_t from, int64_t to, int64_t live, int64_t first_column) {
        ir_.Loop(ir_.I64(from), ir_.I64(to), 1, [&](llvm::Value* q) {
          ir_.Loop(ir_.I64(first_column), ir_.I64(in_vectors), lanes_,
                   [&](llvm::Value* j) { Vector(tap, q, j, live); });
          if (std::max(first_column, in_vectors) == columns) return;
          ir_.Loop(ir_.I64(std::max(first_column, in_vectors)), ir_.I64(columns), 1,
                   [&](llvm::Value* j) { Word(tap, q, j, live); });
        });
      };
      rows(0, squares, group_, square_columns);
      rows(squares, whole, group_, 0);
      if (tail) rows(whole, whole + 1, tail, 0);
    });
  }

 private:
  // B's elements in the panel: bytes are signed or not whatever A's are.
  PrimitiveType HeldType() const {
    if (s_.compute == PrimitiveType::BF16) return PrimitiveType::BF16;
    return IsUnsigned(s_.b_type) ? PrimitiveType::U8 : PrimitiveType::S8;
  }

  // Element `e` of group `q` of a tap, of column `j`.
  llvm::Value* PlaceInB(llvm::Value* tap, llvm::Value* q, int64_t e, llvm::Value* j) {
    llvm::Value* row = ir_.Add(ir_.Add(k_, ir_.Mul(tap, s_.run)), ir_.Add(ir_.Mul(q, group_), ir_.I64(e)));
    return ir_.Add(OffsetOfRow(ir_, s_, row), ir_.Mul(ir_.Add(column_, j), s_.b_n_stride));
  }

  // Word `j` of the row of group `q`.
  llvm::Value* PlaceInPanel(llvm::Value* tap, llvm::Value* q, llvm::Value* j) {
    llvm::Value* at = ir_.Mul(ir_.Add(ir_.Mul(tap, PanelRows(s_, run_)), q), to_.width);
    if (to_.distance) {
      at = ir_.Add(at, ir_.Mul(b_.CreateUDiv(j, ir_.I64(to_.width)), to_.distance));
      j = b_.CreateURem(j, ir_.I64(to_.width));
    }
    return b_.CreateInBoundsGEP(word_, to_.panel, ir_.Add(at, j));
  }

  // Bytes with the offset that one operand of their products needs.
  llvm::Value* Offset(llvm::Value* words) {
    if (!OffsetOfB(s_)) return words;
    return b_.CreateXor(words, llvm::ConstantInt::get(words->getType(), kOffsetOfBytes));
  }

  llvm::FixedVectorType* VectorOf(llvm::Type* element, int64_t count) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
  }

  void Word(llvm::Value* tap, llvm::Value* q, llvm::Value* j, int64_t live) {
    llvm::Value* word = ir_.b.getInt32(0);
    for (int64_t e = 0; e < live; ++e) {
      Val v = ir_.Load(s_.b_type, b_array_, PlaceInB(tap, q, e, j));
      if (s_.part_of_b == PartOfB::kAll) v = ir_.Convert(v, s_.b_type, held_);
      llvm::Value* bits = s_.part_of_b != PartOfB::kAll  ? b_.CreateZExt(BitsOfPart(ir_, v.re, s_.part_of_b), word_)
                          : held_ == PrimitiveType::BF16 ? b_.CreateLShr(b_.CreateBitCast(v.re, word_), 16)
                                                         : b_.CreateZExt(v.re, word_);
      word = b_.CreateOr(word, b_.CreateShl(bits, static_cast<uint64_t>(e * 8 * ByteWidth(held_))));
    }
    b_.CreateAlignedStore(Offset(word), PlaceInPanel(tap, q, j), llvm::Align(4));
  }

  // `count` elements of B from `place` on, as they are held.
  llvm::Value* Elements(llvm::Value* place, int64_t count) {
    auto* line = VectorOf(element_, count);
    llvm::Value* x = b_.CreateAlignedLoad(line, b_.CreateInBoundsGEP(element_, b_array_, place),
                                          llvm::Align(static_cast<uint64_t>(ByteWidth(held_))));
    if (s_.part_of_b == PartOfB::kAll) return x;
    llvm::Value* halves = b_.CreateBitCast(x, VectorOf(b_.getHalfTy(), count));
    return BitsOfPart(ir_, b_.CreateFPExt(halves, VectorOf(b_.getFloatTy(), count)), s_.part_of_b);
  }

  // The words of as many columns as a vector has, from rows of B that have them side by side.
  void Vector(llvm::Value* tap, llvm::Value* q, llvm::Value* j, int64_t live) {
    auto* line = VectorOf(element_, lanes_);
    std::vector<llvm::Value*> rows;
    for (int64_t e = 0; e < group_; ++e)
      rows.push_back(e < live ? Elements(PlaceInB(tap, q, e, j), lanes_) : llvm::Constant::getNullValue(line));
    // Pairs of neighbours, then pairs of pairs.
    for (unsigned bits = static_cast<unsigned>(8 * ByteWidth(held_)); rows.size() > 1; bits *= 2) {
      std::vector<llvm::Value*> wider;
      for (size_t e = 0; e < rows.size(); e += 2) {
        llvm::Value* both = Interleaved(rows[e], rows[e + 1]);
        wider.push_back(b_.CreateBitCast(both, VectorOf(b_.getIntNTy(2 * bits), lanes_)));
      }
      rows = std::move(wider);
    }
    b_.CreateAlignedStore(Offset(rows[0]), PlaceInPanel(tap, q, j), llvm::Align(4));
  }

  llvm::Value* Interleaved(llvm::Value* x, llvm::Value* y) {
    const int n = static_cast<int>(lanes_);
    std::vector<int> order;
    for (int e = 0; e < n; ++e) {
      order.push_back(e);
      order.push_back(e + n);
    }
    return b_.CreateShuffleVector(x, y, order);
  }

  // As many columns as a vector has words, of as many words of each, which lie side by side in B.
  void Square(llvm::Value* tap, llvm::Value* q, llvm::Value* j) {
    auto* line = VectorOf(word_, lanes_);
    std::vector<llvm::Value*> rows;
    for (int64_t e = 0; e < lanes_; ++e)
      rows.push_back(b_.CreateBitCast(Elements(PlaceInB(tap, q, 0, ir_.Add(j, ir_.I64(e))), lanes_ * group_), line));
    rows = Transposed(b_, std::move(rows));
    for (int64_t e = 0; e < lanes_; ++e)
      b_.CreateAlignedStore(Offset(rows[e]), PlaceInPanel(tap, ir_.Add(q, ir_.I64(e)), j), llvm::Align(4));
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const int64_t run_, taps_, group_, lanes_;
  const PanelPlace to_;
  const PrimitiveType held_;
  llvm::Type *const element_, *const word_;
  llvm::Value* const b_array_;
  llvm::Value *k_ = nullptr, *column_ = nullptr;  // of the first row and column
};

}  // namespace

std::vector<llvm::Value*> Transposed(llvm::IRBuilder<>& b, std::vector<llvm::Value*> rows) {
  // Rounds of interleaving the first half with the second.
  const int n = static_cast<int>(rows.size());
  std::vector<int> low, high;
  for (int e = 0; e < n; ++e) {
    low.push_back(e / 2 + (e % 2 ? n : 0));
    high.push_back(low.back() + n / 2);
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<llvm::Value*> next;
    for (int k = 0; k < n / 2; ++k) {
      next.push_back(b.CreateShuffleVector(rows[k], rows[k + n / 2], low));
      next.push_back(b.CreateShuffleVector(rows[k], rows[k + n / 2], high));
    }
    rows = std::move(next);
  }
  return rows;
}

bool HasVectorsAs(const CpuLevel& level, PrimitiveType type, PrimitiveType compute) {
  using P = PrimitiveType;
  if (type == compute) return !IsComplex(compute);
  return compute == P::F32 && (type == P::S8 || type == P::U8 || type == P::BF16 || (type == P::F16 && level.f16c));
}

llvm::Value* AsComputed(Ir& ir, PrimitiveType type, PrimitiveType compute, llvm::Value* v) {
  if (type == compute) return v;
  llvm::IRBuilder<>& b = ir.b;
  const auto of = [&](llvm::Type* t) { return v->getType()->getWithNewType(t); };
  llvm::Type* wide = of(ir.RegType(compute));
  if (type == PrimitiveType::F16) return b.CreateFPExt(b.CreateBitCast(v, of(b.getHalfTy())), wide);
  if (type == PrimitiveType::BF16) return b.CreateBitCast(b.CreateShl(b.CreateZExt(v, of(b.getInt32Ty())), 16), wide);
  return IsSigned(type) ? b.CreateSIToFP(v, wide) : b.CreateUIToFP(v, wide);
}

llvm::Value* LoadComputed(Ir& ir, PrimitiveType type, PrimitiveType compute, int64_t lanes, llvm::Value* address) {
  auto* many = llvm::FixedVectorType::get(ir.MemType(type), static_cast<unsigned>(lanes));
  const llvm::Align align(static_cast<uint64_t>(ByteWidth(type)));
  return AsComputed(ir, type, compute, ir.b.CreateAlignedLoad(many, address, align));
}

llvm::Value* PanelStack(Ir& ir, int64_t bytes) {
  constexpr char kMark[] = "kiln.panels";
  for (llvm::Instruction& i : ir.current()->getEntryBlock()) {
    auto* a = llvm::dyn_cast<llvm::AllocaInst>(&i);
    if (!a || !a->getMetadata(kMark)) continue;
    const uint64_t there = llvm::cast<llvm::ConstantInt>(a->getArraySize())->getZExtValue();
    a->setOperand(0, ir.b.getInt64(std::max(there, static_cast<uint64_t>(bytes))));
    return a;
  }
  llvm::AllocaInst* a = ir.Alloca(ir.b.getInt8Ty(), bytes);
  a->setMetadata(kMark, llvm::MDNode::get(ir.ctx, {}));
  return a;
}

llvm::Value* BitsOfPart(Ir& ir, llvm::Value* x, PartOfB part) {
  llvm::IRBuilder<>& b = ir.b;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const auto of = [&](llvm::Type* t) -> llvm::Type* {
    return vector ? llvm::FixedVectorType::get(t, vector->getNumElements()) : t;
  };
  llvm::Type *word = of(b.getInt32Ty()), *half = of(b.getInt16Ty());
  llvm::Value* bits = b.CreateBitCast(x, word);
  if (part == PartOfB::kLow) {
    llvm::Value* high = b.CreateAnd(bits, llvm::ConstantInt::get(word, 0xffff0000));
    bits = b.CreateBitCast(b.CreateFSub(x, b.CreateBitCast(high, x->getType())), word);
  }
  return b.CreateTrunc(b.CreateLShr(bits, 16), half);
}

void PackGroups(Ir& ir, const MatmulShape& shape, const SumBlock& block, llvm::Value* b_array, llvm::Value* k,
                llvm::Value* column, int64_t columns, const PanelPlace& to) {
  GroupPacker(ir, shape, block, b_array, to).Pack(k, column, columns);
}

void PackComplex(Ir& ir, const MatmulShape& s, int64_t depth, llvm::Value* b_array, llvm::Value* k, llvm::Value* column,
                 int64_t columns, llvm::Value* panel, int64_t width) {
  llvm::IRBuilder<>& b = ir.b;
  llvm::Value *row = b.CreateLShr(k, 1), *first = b.CreateLShr(column, 1);
  const auto pair = [&](llvm::Value* i, llvm::Value* j, const Val& v) {
    llvm::Value* at = ir.Add(ir.Mul(i, 2 * width), ir.Mul(j, 2));
    const auto put = [&](llvm::Value* x, int64_t offset) {
      ir.Store(s.compute, Val{x}, panel, ir.Add(at, ir.I64(offset)));
    };
    put(v.re, 0);
    put(v.im, 1);
    put(b.CreateFNeg(v.im), width);
    put(v.re, width + 1);
  };
  const auto copy = [&](llvm::Value* i, llvm::Value* j) {
    llvm::Value* from = ir.Add(ir.Mul(ir.Add(row, i), s.b_k_stride), ir.Mul(ir.Add(first, j), s.b_n_stride));
    pair(i, j, ir.Load(s.b_type, b_array, from));
  };
  // Along B's rows or its columns, as they lie in memory.
  const bool by_row = s.b_n_stride == 1;
  ir.Loop(ir.I64(0), ir.I64((by_row ? depth : columns) / 2), 1, [&](llvm::Value* outer) {
    ir.Loop(
        ir.I64(0), ir.I64((by_row ? columns : depth) / 2), 1,
        [&](llvm::Value* inner) { by_row ? copy(outer, inner) : copy(inner, outer); }, true);
  });
  if (columns == width) return;
  const Val zero{llvm::Constant::getNullValue(ir.RegType(s.compute)),
                 llvm::Constant::getNullValue(ir.RegType(s.compute))};
  ir.Loop(ir.I64(0), ir.I64(depth / 2), 1, [&](llvm::Value* i) {
    for (int64_t j = columns / 2; j < width / 2; ++j) pair(i, ir.I64(j), zero);
  });
}

}  // namespace kiln::cpu
