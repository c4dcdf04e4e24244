// Dots as matrix products: a unit is a block of rows of A, or part of its columns. Several products of one A take their
// turns within its blocks of rows, which are packed once for all.
#include <algorithm>

#include "codegen/cpu/contractions.h"
#include "codegen/cpu/matmul.h"
#include "codegen/cpu/matmul_pack.h"
#include "codegen/cpu/past_caches.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class BlockedDot {
 public:
  BlockedDot(Body& body, const DotPlan& plan, const Epilogue& epilogue, const Copies& copies)
      : body_(body),
        epilogue_(epilogue),
        copies_(copies),
        ir_(body.ir),
        b_(body.ir.b),
        s_(plan.shape),
        p_(plan.blocked) {}

  void Emit() {
    slab_ = p_.pack_a ? ir_.Alloca(ir_.MemType(p_.held), Parts() * p_.rows.size * p_.slab_stride) : nullptr;
    tile_ = p_.via_tile ? ir_.Alloca(ir_.MemType(p_.tile_type), Parts() * p_.rows.size * p_.columns.size) : nullptr;
    const auto units = [&](bool past) {
      past_caches_ = past;
      ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* unit) { Unit(unit); });
    };
    // Of products beside each other each has a result of its own.
    if (!p_.past_caches || copies_.count > 1) return units(false);
    CallsPastCaches(ir_);
    EmitPastCaches(ir_, {body_.results[0]}, units);
  }

 private:
  llvm::Value* At(PrimitiveType t, llvm::Value* array, llvm::Value* element) {
    return b_.CreateInBoundsGEP(ir_.MemType(t), array, ir_.Mul(element, Parts()));
  }

  // Whether the code that is being emitted multiplies parts of F16, or sums in F16.
  bool InParts() const { return p_.parts_of_f16 && !again_; }
  bool InPairs() const { return p_.pairs_of_f16 && !again_; }

  // Numbers that an element of the operands and of the result has.
  int64_t Parts() const { return IsComplex(s_.c) ? 2 : 1; }

  // What a unit computes: the results of `rows` rows of A from `first` and `width` columns from `column`.
  struct Part {
    llvm::Value *batch, *first, *column;
    int64_t rows, width;
  };

  void Unit(llvm::Value* unit) {
    const int64_t blocks = p_.rows.count;
    // Products beside each other are parts of one whole: all read the slab.
    unit_ = SplitUnit(ir_, unit, body_.begin, p_.parts.count * copies_.count);
    unit = unit_.whole;
    if (copies_.count > 1) {
      copies_.pick(b_.CreateUDiv(unit_.part, ir_.I64(p_.parts.count)));
      unit_.part = b_.CreateURem(unit_.part, ir_.I64(p_.parts.count));
    }
    const bool one_batch = s_.batch == 1;
    llvm::Value* batch = one_batch ? ir_.I64(0) : blocks == 1 ? unit : b_.CreateUDiv(unit, ir_.I64(blocks));
    llvm::Value* block = blocks == 1 ? ir_.I64(0) : one_batch ? unit : b_.CreateURem(unit, ir_.I64(blocks));
    VisitPiece(ir_, p_.rows, block, [&](llvm::Value* first, int64_t rows) {
      VisitPiece(ir_, p_.parts, unit_.part, [&](llvm::Value* column, int64_t width) {
        Rows({batch, first, column, rows, width});
      });
    });
  }

  void Rows(const Part& part) {
    llvm::Value* a =
        At(s_.a, body_.operands[0], ir_.Add(ir_.Mul(part.batch, s_.m * s_.k), ir_.Mul(part.first, s_.a_m)));
    if (p_.pack_a && WholeDepth()) PrepareWhole(ir_, unit_, [&] { Pack(a, part.rows, p_.depth.size); });
    llvm::Value* row = ir_.Add(ir_.Mul(part.batch, s_.m), part.first);
    const int64_t size = std::min(p_.columns.size, part.width), whole = part.width / size * size;
    const auto columns = [&](llvm::Value* from, int64_t count) {
      Columns(part.batch, a, {s_.n, row, ir_.I64(part.rows), ir_.Add(part.column, from), ir_.I64(count)}, part.rows,
              count);
    };
    ir_.Loop(ir_.I64(0), ir_.I64(whole), size, [&](llvm::Value* from) { columns(from, size); });
    if (whole < part.width) columns(ir_.I64(whole), part.width - whole);
  }

  bool WholeDepth() const { return p_.depth.count == 1 && p_.depth.tail == 0; }

  // The results of `block`, which has `rows` rows and `columns` columns.
  void Columns(llvm::Value* batch, llvm::Value* a, ResultBlock block, int64_t rows, int64_t columns) {
    llvm::Value* c = At(s_.c, body_.results[0], ir_.Add(ir_.Mul(block.row, s_.n), block.column));
    const auto sum = [&] {
      const auto part = [&](llvm::Value* k0, int64_t depth, bool accumulate) {
        Multiply(batch, a, p_.via_tile ? tile_ : c, block.column, rows, columns, k0, depth, accumulate);
      };
      const int64_t piece = p_.depth.size, pieces = p_.depth.count;
      part(ir_.I64(0), piece, false);
      ir_.Loop(ir_.I64(1), ir_.I64(pieces), 1, [&](llvm::Value* q) { part(ir_.Mul(q, piece), piece, true); });
      if (p_.depth.tail) part(ir_.I64(pieces * piece), p_.depth.tail, true);
    };
    sum();
    // A part of an infinite number times one that is zero is no number, where the product may be one, and sums of F16
    // overflow on the way: the sums are made again in F32, and the slab is left as the next columns want it.
    if (InParts() || InPairs())
      ir_.If(Failed(rows, columns), [&] {
        again_ = true;
        if (WholeDepth()) Pack(a, rows, p_.depth.size);
        sum();
        again_ = false;
        if (WholeDepth()) Pack(a, rows, p_.depth.size);
      });
    if (p_.via_tile) {
      block.tile = tile_;
      block.tile_stride = p_.columns.size;
      block.tile_type = p_.tile_type;
    }
    if (epilogue_) return epilogue_(block);
    if (p_.via_tile) Convert(c, rows, columns);
  }

  // Whether a sum of the tile is a NaN, or infinite where pairs overflow.
  llvm::Value* Failed(int64_t rows, int64_t columns) {
    constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
    llvm::Type* word = b_.getInt32Ty();
    llvm::Value* greatest = ir_.Alloca(word);
    b_.CreateStore(b_.getInt32(0), greatest);
    ir_.Loop(ir_.I64(0), ir_.I64(rows), 1, [&](llvm::Value* m) {
      llvm::Value* row = b_.CreateInBoundsGEP(word, tile_, ir_.Mul(m, p_.columns.size));
      ir_.VectorLoop(
          columns,
          [&](llvm::Value* j) {
            llvm::Value* x = b_.CreateAnd(b_.CreateLoad(word, b_.CreateInBoundsGEP(word, row, j)), kMagnitude);
            llvm::Value* before = b_.CreateLoad(word, greatest);
            b_.CreateStore(b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, before, x), greatest);
          },
          false);
    });
    llvm::Value* bits = b_.CreateLoad(word, greatest);
    return InPairs() ? b_.CreateICmpUGE(bits, b_.getInt32(kInfinity)) : b_.CreateICmpUGT(bits, b_.getInt32(kInfinity));
  }

  // Stores the tile's sums as the result's type from `c` on.
  void Convert(llvm::Value* c, int64_t rows, int64_t columns) {
    ir_.Loop(ir_.I64(0), ir_.I64(rows), 1, [&](llvm::Value* m) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(columns), 1,
          [&](llvm::Value* j) {
            const Val sum = ir_.Load(p_.tile_type, tile_, ir_.Add(ir_.Mul(m, p_.columns.size), j));
            ir_.Store(s_.c, ir_.Convert(sum, p_.tile_type, s_.c), c, ir_.Add(ir_.Mul(m, s_.n), j));
          },
          true);
    });
  }

  // Products of `rows` rows of A from `a0` with rows [k0, k0 + depth) of B and `columns` columns from `column`.
  void Multiply(llvm::Value* batch, llvm::Value* a0, llvm::Value* out, llvm::Value* column, int64_t rows,
                int64_t columns, llvm::Value* k0, int64_t depth, bool accumulate) {
    llvm::Value* a = At(s_.a, a0, ir_.Mul(k0, s_.a_k));
    if (p_.pack_a) {
      if (!WholeDepth()) Pack(a, rows, depth);
      a = slab_;
    }
    MatmulShape shape = p_.product;
    shape.run = Parts() * depth;
    shape.n = Parts() * columns;
    shape.accumulate = accumulate;
    shape.past_caches = past_caches_;
    llvm::Value* at = ir_.Add(ir_.Mul(k0, s_.b_k), ir_.Mul(column, s_.b_n));
    llvm::Value* b = At(s_.b, body_.operands[1], ir_.Add(ir_.Mul(batch, s_.b_batch), at));
    if (InParts()) return MultiplyParts(shape, b, out, rows);
    if (again_) {
      shape.compute = Held();
      shape.tiles = false;
      shape.a_stride = SlabStride();
    }
    EmitMatmul(ir_, shape, rows, b, ir_.I64(1), [&](llvm::Value*) { return RowRange{a, out}; });
  }

  // Both parts of A's elements times both parts of B's. Each part of B is read once for both of A.
  void MultiplyParts(MatmulShape shape, llvm::Value* b, llvm::Value* out, int64_t rows) {
    if (!shape.accumulate)
      b_.CreateMemSet(out, b_.getInt8(0), static_cast<uint64_t>(rows * p_.columns.size * ByteWidth(p_.tile_type)),
                      llvm::Align(4));
    shape.accumulate = true;
    for (const PartOfB part : {PartOfB::kHigh, PartOfB::kLow}) {
      shape.part_of_b = part;
      EmitMatmul(ir_, shape, rows, b, ir_.I64(2), [&](llvm::Value* part_of_a) {
        return RowRange{At(p_.held, slab_, ir_.Mul(part_of_a, p_.depth.size)), out};
      });
    }
  }

  // What the slab holds now, and elements of that between its rows: parts take as many bytes as what they are parts of.
  PrimitiveType Held() const { return again_ ? PrimitiveType::F32 : p_.held; }
  int64_t SlabStride() const { return p_.slab_stride * ByteWidth(p_.held) / ByteWidth(Held()); }

  // `x`, elements of 16 bits, side by side with themselves.
  llvm::Value* Twice(llvm::Value* x) {
    llvm::Type* wide = x->getType()->getWithNewType(b_.getInt32Ty());
    x = b_.CreateZExt(x, wide);
    return b_.CreateOr(x, b_.CreateShl(x, 16));
  }

  // Copies `rows` rows and `depth` elements of each from `a` to the slab.
  void Pack(llvm::Value* a, int64_t rows, int64_t depth) {
    const PrimitiveType held = Held();
    auto move = [&](llvm::Value* x, llvm::Value* q) {
      if (InPairs()) {
        llvm::Value* from = ir_.Add(ir_.Mul(x, s_.a_m), ir_.Mul(q, s_.a_k));
        llvm::Value* pair = Twice(ir_.Load(PrimitiveType::U16, a, from).re);
        return ir_.Store(PrimitiveType::U32, {pair}, slab_, ir_.Add(ir_.Mul(x, SlabStride()), q));
      }
      const Val v = ir_.Load(s_.a, a, ir_.Add(ir_.Mul(x, s_.a_m), ir_.Mul(q, s_.a_k)));
      llvm::Value* to = ir_.Add(ir_.Mul(x, SlabStride()), q);
      if (!InParts()) return ir_.Store(held, ir_.Convert(v, s_.a, held), slab_, to);
      llvm::Type* half = b_.getInt16Ty();
      b_.CreateAlignedStore(BitsOfPart(ir_, v.re, PartOfB::kHigh), b_.CreateInBoundsGEP(half, slab_, to),
                            llvm::Align(2));
      to = ir_.Add(to, ir_.I64(p_.depth.size));
      b_.CreateAlignedStore(BitsOfPart(ir_, v.re, PartOfB::kLow), b_.CreateInBoundsGEP(half, slab_, to),
                            llvm::Align(2));
    };
    if (s_.a_k == 1) {
      ir_.Loop(ir_.I64(0), ir_.I64(rows), 1, [&](llvm::Value* x) {
        ir_.Loop(
            ir_.I64(0), ir_.I64(depth), 1, [&](llvm::Value* q) { move(x, q); }, true);
      });
      return;
    }
    if (const int64_t side = SquareSide(rows, depth)) {
      // The last square of a row of squares begins where it ends with the others.
      const auto place = [&](llvm::Value* at, int64_t extent) {
        return extent % side ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at, ir_.I64(extent - side)) : at;
      };
      ir_.Loop(ir_.I64(0), ir_.I64(rows), side, [&](llvm::Value* x) {
        ir_.Loop(ir_.I64(0), ir_.I64(depth), side,
                 [&](llvm::Value* q) { PackSquare(a, place(x, rows), place(q, depth), side); });
      });
      return;
    }
    constexpr int64_t kTransposed = 16;  // columns of a transposed A together, which fill a cache line of f32
    ir_.Loop(ir_.I64(0), ir_.I64(rows), kTransposed, [&](llvm::Value* x0) {
      llvm::Value* x1 =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(x0, ir_.I64(kTransposed)), ir_.I64(rows));
      ir_.Loop(ir_.I64(0), ir_.I64(depth), 1, [&](llvm::Value* q) {
        ir_.Loop(
            x0, x1, 1, [&](llvm::Value* x) { move(x, q); }, true);
      });
    });
  }

  // What squares of a transposed A turn into before they are stored.
  PrimitiveType Computed() const { return InParts() ? PrimitiveType::F32 : Held(); }

  // Elements of a side of the squares in which a transposed A is copied; 0: element by element.
  int64_t SquareSide(int64_t rows, int64_t depth) const {
    constexpr int64_t kMost = 16, kLeast = 4;
    if (s_.a_m != 1 || !HasVectorsAs(ir_.level, s_.a, Computed())) return 0;
    int64_t side = std::min<int64_t>(kMost, ir_.level.vector_bytes / ByteWidth(Computed()));
    while (side > std::min(rows, depth)) side /= 2;
    return side < kLeast ? 0 : side;
  }

  // Copies `side` rows of the slab from `x` on, `side` elements of each from `q` on, of A's lines that are columns.
  void PackSquare(llvm::Value* a, llvm::Value* x, llvm::Value* q, int64_t side) {
    std::vector<llvm::Value*> lines;
    for (int64_t e = 0; e < side; ++e) {
      llvm::Value* at = ir_.Add(x, ir_.Mul(ir_.Add(q, ir_.I64(e)), s_.a_k));
      llvm::Value* from = b_.CreateInBoundsGEP(ir_.MemType(s_.a), a, at);
      lines.push_back(InPairs() ? Twice(LoadComputed(ir_, s_.a, s_.a, side, from))
                                : LoadComputed(ir_, s_.a, Computed(), side, from));
    }
    const auto store = [&](std::vector<llvm::Value*> square, int64_t offset) {
      square = Transposed(b_, std::move(square));
      llvm::Type* held = llvm::cast<llvm::FixedVectorType>(square[0]->getType())->getElementType();
      for (int64_t e = 0; e < side; ++e) {
        llvm::Value* at = ir_.Add(ir_.Mul(ir_.Add(x, ir_.I64(e)), SlabStride()), ir_.Add(q, ir_.I64(offset)));
        b_.CreateAlignedStore(square[e], b_.CreateInBoundsGEP(held, slab_, at),
                              llvm::Align(static_cast<uint64_t>(ByteWidth(Held()))));
      }
    };
    if (!InParts()) return store(std::move(lines), 0);
    for (const PartOfB part : {PartOfB::kHigh, PartOfB::kLow}) {
      std::vector<llvm::Value*> parts;
      for (llvm::Value* line : lines) parts.push_back(BitsOfPart(ir_, line, part));
      store(std::move(parts), part == PartOfB::kHigh ? 0 : p_.depth.size);
    }
  }

  Body& body_;
  const Epilogue& epilogue_;
  const Copies& copies_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const DotShape& s_;
  const BlockedDotPlan& p_;
  llvm::Value *slab_ = nullptr, *tile_ = nullptr;
  bool past_caches_ = false;
  bool again_ = false;  // the code that is being emitted multiplies in F32 where numbers of F16 failed
  PartOfUnit unit_ = {};
};

}  // namespace

void EmitDotAsProducts(Body& body, const DotPlan& plan, const Epilogue& epilogue, const Copies& copies) {
  BlockedDot(body, plan, epilogue, copies).Emit();
}

}  // namespace kiln::cpu
