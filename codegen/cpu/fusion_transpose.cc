// Loops over a transposed array, in square blocks: what a block reads and what it writes are whole runs of memory.
//
// A block is turned in registers: as many rows as a register has lanes are loaded, and lanes change places with rows in
// halves, quarters and so on. Operands that are computed are computed into a block on the stack first, and what
// surrounds the transpose reads one. At the end of a dimension the last block begins earlier, so that there are whole
// blocks only; what surrounds the transpose is computed once all the same, since its result may lie where an operand
// lay.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

// The output dimension that walks the operand's minor dimension of `transpose`, or -1 if that is the minor one of both.
int64_t DimAcross(const Instruction* transpose) {
  const Ints& p = *transpose->attrs().dimensions;
  // Extents of 1 do not count as minor.
  for (int64_t d = static_cast<int64_t>(p.size()) - 1; d >= 0; --d) {
    if (transpose->operand(0)->shape().dim(d) == 1) continue;
    const int64_t out = std::find(p.begin(), p.end(), d) - p.begin();
    return out == MinorDim(transpose->shape()) ? -1 : out;
  }
  return -1;
}

class Transpose {
 public:
  Transpose(FusionBody& fusion, const Instruction* root, const Instruction* transpose)
      : body_(fusion.body),
        ir_(fusion.ir),
        b_(fusion.ir.b),
        elements_(fusion.elements),
        root_(root),
        transpose_(transpose),
        s_(root->shape()),
        other_(DimAcross(transpose)),
        minor_(MinorDim(s_)),
        at_(s_.rank(), fusion.ir.I64(0)) {
    ChooseBlock(fusion.f);
  }

  absl::StatusOr<int64_t> Emit() {
    // Units: the blocks of `other` where it is the only outer dimension, else the first outer dimension.
    Ints outer;
    for (int64_t d = 0; d < s_.rank(); ++d)
      if (d != other_ && d != minor_ && s_.dim(d) != 1) outer.push_back(d);
    const int64_t blocks = (s_.dim(other_) + block_ - 1) / block_;
    if (outer.empty()) {
      ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* k) { BlocksOfMinor(k); });
      RETURN_IF_ERROR(status_);
      return blocks;
    }
    std::function<void(size_t)> level = [&](size_t k) {
      if (k == outer.size()) return ir_.Loop(ir_.I64(0), ir_.I64(blocks), 1, [&](llvm::Value* o) { BlocksOfMinor(o); });
      ir_.Loop(k == 0 ? body_.begin : ir_.I64(0), k == 0 ? body_.end : ir_.I64(s_.dim(outer[k])), 1,
               [&](llvm::Value* i) {
                 at_[outer[k]] = i;
                 level(k + 1);
               });
    };
    level(0);
    RETURN_IF_ERROR(status_);
    return s_.dim(outer[0]);
  }

 private:
  // A part of a dimension: [from, to) is computed, a whole block from `start` may be read.
  struct Part {
    llvm::Value *start, *from, *to;
  };

  void ChooseBlock(const Computation& f) {
    constexpr int64_t kLargest = 16;  // elements: a cache line of f32 both ways
    const Shape& array = transpose_->operand(0)->shape();
    const auto turned = std::count_if(f.instructions().begin(), f.instructions().end(),
                                      [](const auto& i) { return i->Is(Opcode::Transpose); });
    constexpr int64_t kWidest = 8;  // bytes
    in_registers_ =
        turned == 1 && array.HasDefaultLayout() && ByteWidth(array.type()) <= kWidest && ir_.on_overrun.empty();
    if (!in_registers_) return;
    const int64_t lanes = std::min<int64_t>(kLargest, ir_.level.vector_bytes / ByteWidth(array.type()));
    int64_t n = 1;
    while (2 * n <= std::min({lanes, s_.dim(other_), s_.dim(minor_)})) n *= 2;
    constexpr int64_t kSmallest = 4;
    in_registers_ = n >= kSmallest;
    if (in_registers_) block_ = n;
    if (!in_registers_) return;
    if (!transpose_->operand(0)->Is(Opcode::Parameter)) computed_ = ir_.Alloca(Word(), n * n);
    if (root_ != transpose_) tile_ = ir_.Alloca(Word(), n * n);
  }

  // Bits of an element of the transposed array.
  llvm::Type* Word() const {
    return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(transpose_->operand(0)->shape().type())));
  }

  Part PartAt(int64_t d, llvm::Value* k) const {
    llvm::Value* from = ir_.Mul(k, block_);
    llvm::Value* extent = ir_.I64(s_.dim(d));
    if (s_.dim(d) % block_ == 0) return {from, from, ir_.Add(from, ir_.I64(block_))};
    const auto least = [&](llvm::Value* x, llvm::Value* y) {
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
    };
    return {in_registers_ ? least(from, ir_.I64(s_.dim(d) - block_)) : from, from,
            least(ir_.Add(from, ir_.I64(block_)), extent)};
  }

  void BlocksOfMinor(llvm::Value* k) {
    const Part o = PartAt(other_, k);
    ir_.Loop(ir_.I64(0), ir_.I64((s_.dim(minor_) + block_ - 1) / block_), 1, [&](llvm::Value* i) {
      const Part m = PartAt(minor_, i);
      if (in_registers_) Turn(o, m);
      if (!in_registers_ || tile_) Elements(o, m);
    });
  }

  // Loads a block, turns it and stores it: to the result where that is all, else to the tile.
  void Turn(const Part& o, const Part& m) {
    const Instruction* array = transpose_->operand(0);
    at_[other_] = o.start;
    at_[minor_] = m.start;
    llvm::Value* from = computed_;
    int64_t row = block_;
    if (computed_) {
      Compute(o, m);
    } else {
      from = b_.CreateInBoundsGEP(Word(), elements_.Address(array), elements_.Offset(array->shape(), OperandIndex()));
      row = array->shape().Strides()[(*transpose_->attrs().dimensions)[minor_]];
    }
    auto* vector = llvm::FixedVectorType::get(Word(), static_cast<unsigned>(block_));
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(array->shape().type())));
    std::vector<llvm::Value*> rows;
    for (int64_t r = 0; r < block_; ++r)
      rows.push_back(b_.CreateAlignedLoad(vector, b_.CreateInBoundsGEP(Word(), from, ir_.I64(r * row)), align));
    TurnRows(rows);
    llvm::Value* to = tile_;
    int64_t line = block_;
    if (!tile_) {
      to = b_.CreateInBoundsGEP(Word(), body_.results[0], elements_.Offset(s_, Index{at_}));
      line = s_.Strides()[other_];
    }
    for (int64_t r = 0; r < block_; ++r)
      b_.CreateAlignedStore(rows[static_cast<size_t>(r)], b_.CreateInBoundsGEP(Word(), to, ir_.I64(r * line)), align);
  }

  // The place of the operand that `at_` of the transpose reads.
  Index OperandIndex() const {
    const Ints& p = *transpose_->attrs().dimensions;
    Index in;
    in.dims.resize(at_.size());
    for (size_t d = 0; d < at_.size(); ++d) in.dims[static_cast<size_t>(p[d])] = at_[d];
    return in;
  }

  // A block of the operand, as it lies.
  void Compute(const Part& o, const Part& m) {
    const Instruction* array = transpose_->operand(0);
    ir_.Loop(ir_.I64(0), ir_.I64(block_), 1, [&](llvm::Value* r) {
      const auto element = [&](llvm::Value* k) {
        at_[minor_] = ir_.Add(m.start, r);
        at_[other_] = ir_.Add(o.start, k);
        auto v = elements_.Emit(array, OperandIndex());
        if (v.ok())
          ir_.Store(array->shape().type(), *v, computed_, ir_.Add(ir_.Mul(r, block_), k));
        else
          status_.Update(v.status());
      };
      ir_.VectorLoop(block_, element, true);
    });
    at_[other_] = o.start;
    at_[minor_] = m.start;
  }

  void TurnRows(std::vector<llvm::Value*>& rows) {
    const auto n = static_cast<int>(block_);
    for (int half = n / 2; half > 0; half /= 2) {
      std::vector<int> low, high;
      for (int lane = 0; lane < n; ++lane) {
        const bool second = (lane & half) != 0;
        low.push_back(second ? n + lane - half : lane);
        high.push_back(second ? n + lane : lane + half);
      }
      for (int r = 0; r < n; ++r) {
        if (r & half) continue;
        llvm::Value *a = rows[static_cast<size_t>(r)], *c = rows[static_cast<size_t>(r + half)];
        rows[static_cast<size_t>(r)] = b_.CreateShuffleVector(a, c, low);
        rows[static_cast<size_t>(r + half)] = b_.CreateShuffleVector(a, c, high);
      }
    }
  }

  void Elements(const Part& o, const Part& m) {
    ir_.Loop(o.from, o.to, 1, [&](llvm::Value* i) {
      at_[other_] = i;
      llvm::Value* line = ir_.Mul(b_.CreateSub(i, o.start), block_);
      if (in_registers_ && s_.dim(minor_) % block_ == 0) {
        ir_.VectorLoop(
            block_, [&](llvm::Value* j) { Element(ir_.Add(m.from, j), ir_.Add(line, j)); }, true);
        return;
      }
      const auto element = [&](llvm::Value* j) { Element(j, ir_.Add(line, b_.CreateSub(j, m.start))); };
      ir_.Loop(m.from, m.to, 1, element, true);
    });
  }

  // At `j` of the minor dimension; `k`: of the tile.
  void Element(llvm::Value* j, llvm::Value* k) {
    at_[minor_] = j;
    if (tile_) elements_.Preset(transpose_, ir_.Load(transpose_->shape().type(), tile_, k));
    const Index x = IndexIn(s_, at_);
    auto v = elements_.Emit(root_, x);
    if (v.ok())
      ir_.Store(s_.type(), *v, body_.results[0], elements_.Offset(s_, x));
    else
      status_.Update(v.status());
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  ElementEmitter& elements_;
  const Instruction *const root_, *const transpose_;
  const Shape& s_;
  const int64_t other_, minor_;
  std::vector<llvm::Value*> at_;
  int64_t block_ = 16;
  bool in_registers_ = false;
  llvm::Value* computed_ = nullptr;  // a block of the operand, where that is not in memory
  llvm::Value* tile_ = nullptr;      // a block of the transpose, where that is not the result
  absl::Status status_;
};

}  // namespace

const Instruction* TransposeAcross(const Computation& f, const Instruction* root) {
  constexpr int64_t kWorthBlocks = 4096;  // elements
  const Shape& s = root->shape();
  if (!s.HasDefaultLayout() || s.rank() < 2 || s.ElementCount() < kWorthBlocks) return nullptr;
  for (const auto& i : f.instructions())
    if (i->Is(Opcode::Transpose) && i->shape().dims() == s.dims()) return DimAcross(i.get()) < 0 ? nullptr : i.get();
  return nullptr;
}

absl::StatusOr<int64_t> EmitTranspose(FusionBody& fusion, const Instruction* root, const Instruction* transpose) {
  return Transpose(fusion, root, transpose).Emit();
}

}  // namespace kiln::cpu
