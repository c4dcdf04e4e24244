// Loops over a transposed array, in square blocks: what a block reads and what it writes are whole runs of memory.
//
// A block is turned in registers: as many rows as a register has lanes are loaded, and lanes change places with rows in
// halves, quarters and so on. Operands that are computed are computed into a block on the stack first, and what
// surrounds the transpose reads one, unless it reads elements of other places, as a reversal does: it then reads them
// from the operand, block by block. At the end of a dimension the last block begins earlier, so that there are whole
// blocks only; what surrounds the transpose is computed once all the same, since its result may lie where an operand
// lay. Where one of the two dimensions has but two or three elements, as channels of images, a block is a long vector
// that is taken apart, or put together.
//
// Where there are many rows, a block of narrow elements has but a part of each line of the caches, and lines of rows
// that lie a power of two apart drive each other out before the next block: blocks that share lines follow one another.
//
// Lines of large results go past the caches, which would read each of them first and keep none until it is read again:
// a block is put together in the first cache, and its lines are stored whole. Only from an address on that begins a
// line, so that there is code for both. Very large arrays are walked along rows of the operand, as a prefetcher does.
#include <algorithm>

#include "codegen/cpu/past_caches.h"
#include "codegen/elemental/own_place.h"
#include "codegen/llvm/lanes.h"
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
        array_(transpose->operand(0)),
        s_(root->shape()),
        other_(DimAcross(transpose)),
        minor_(MinorDim(s_)),
        at_(s_.rank(), fusion.ir.I64(0)) {
    ChooseBlock(fusion.f);
  }

  absl::StatusOr<int64_t> Emit() {
    if (!MayStream()) return Loops();
    if (root_ != transpose_) out_ = ir_.Alloca(Word(s_), block_.other * block_.minor);
    absl::StatusOr<int64_t> units = 0;
    absl::Status status;
    EmitPastCaches(ir_, {body_.results[0]}, [&](bool past) {
      streams_ = past;
      units = Loops();
      status.Update(units.status());
    });
    RETURN_IF_ERROR(status);
    return units;
  }

 private:
  // A part of a dimension: [from, to) is computed, a whole block from `start` may be read.
  struct Part {
    llvm::Value *start, *from, *to;
  };

  int64_t Bytes() const { return s_.ElementCount() * ByteWidth(s_.type()); }

  // Whether a block's lines are those of the caches, and the result is larger than what is found there again.
  bool MayStream() const {
    const int64_t width = ByteWidth(s_.type());
    if (!in_registers_ || block_.other != block_.minor || block_.minor * width != kCacheLine || Bytes() < kLargeResult)
      return false;
    return s_.dim(other_) % block_.other == 0 && s_.dim(minor_) % block_.minor == 0 && !IsComplex(s_.type());
  }

  absl::StatusOr<int64_t> Loops() {
    // Units: the blocks of `other` where it is the only outer dimension, else the first outer dimension.
    constexpr int64_t kAlongRows = 15 << 20;
    Ints outer;
    for (int64_t d = 0; d < s_.rank(); ++d)
      if (d != other_ && d != minor_ && s_.dim(d) != 1) outer.push_back(d);
    const int64_t groups = GroupsOf(other_), minor_groups = GroupsOf(minor_);
    if (outer.empty() && in_registers_ && Bytes() >= kAlongRows) {
      ir_.Loop(body_.begin, body_.end, 1,
               [&](llvm::Value* m) { ir_.Loop(ir_.I64(0), ir_.I64(groups), 1, [&](llvm::Value* o) { Group(o, m); }); });
      RETURN_IF_ERROR(status_);
      return minor_groups;
    }
    const auto line = [&](llvm::Value* o) {
      ir_.Loop(ir_.I64(0), ir_.I64(minor_groups), 1, [&](llvm::Value* m) { Group(o, m); });
    };
    if (outer.empty()) {
      ir_.Loop(body_.begin, body_.end, 1, line);
      RETURN_IF_ERROR(status_);
      return groups;
    }
    std::function<void(size_t)> level = [&](size_t k) {
      if (k == outer.size()) return ir_.Loop(ir_.I64(0), ir_.I64(groups), 1, line);
      const int64_t step = StepOf(outer[k]);
      ir_.Loop(k == 0 ? body_.begin : ir_.I64(0), k == 0 ? body_.end : ir_.I64(s_.dim(outer[k]) / step), 1,
               [&](llvm::Value* i) {
                 at_[outer[k]] = ir_.Mul(i, step);
                 level(k + 1);
               });
    };
    level(0);
    RETURN_IF_ERROR(status_);
    return s_.dim(outer[0]) / StepOf(outer[0]);
  }

  // How many places of an outer dimension a block takes.
  int64_t StepOf(int64_t d) const { return d == beside_ ? block_.minor / s_.dim(minor_) : 1; }

  int64_t BlocksOf(int64_t d) const {
    const int64_t block = d == other_ ? block_.other : block_.minor;
    return (s_.dim(d) + block - 1) / block;
  }

  void ChooseBlock(const Computation& f) {
    constexpr int64_t kLargest = 16;  // elements: a cache line of f32 both ways
    const Shape& array = array_->shape();
    const auto turned = std::count_if(f.instructions().begin(), f.instructions().end(),
                                      [](const auto& i) { return i->Is(Opcode::Transpose); });
    constexpr int64_t kWidest = 8;  // bytes
    in_registers_ = turned == 1 && array.HasDefaultLayout() && ByteWidth(array.type()) <= kWidest &&
                    ir_.on_overrun.empty() && ReadsAtOwnPlaceOnly(root_, transpose_);
    if (!in_registers_) return;
    const int64_t lanes = ir_.level.vector_bytes / ByteWidth(array.type());
    const auto within = [](int64_t most) {
      int64_t n = 1;
      while (2 * n <= most) n *= 2;
      return n;
    };
    const bool computes = !array_->Is(Opcode::Parameter);
    const int64_t other = s_.dim(other_), minor = s_.dim(minor_);
    constexpr int64_t kSmallest = 4;
    if (other < kSmallest && minor >= lanes && (computes || StrideOf(minor_) == other))
      block_ = {other, within(std::min(lanes, minor))};
    else if (minor < kSmallest && other >= lanes && (root_ != transpose_ || s_.Strides()[other_] == minor))
      block_ = {within(std::min(lanes, other)), minor};
    else
      block_.other = block_.minor = within(std::min({kLargest, lanes, other, minor}));
    if (const int64_t line = within(std::min({kLargest, lanes, other})); root_ == transpose_ && !computes)
      TakeBeside(minor, line);
    in_registers_ = std::max(block_.other, block_.minor) >= kSmallest;
    if (!in_registers_) block_ = {};
    if (!in_registers_) return;
    constexpr int64_t kManyRows = 512;  // of rows of fewer, lines wait in the first cache
    if (block_.other == block_.minor && std::min(other, minor) >= kManyRows)
      group_ = std::max<int64_t>(1, kCacheLine / (block_.minor * ByteWidth(array.type())));
    if (computes) computed_ = ir_.Alloca(Word(array_->shape()), block_.other * block_.minor);
    if (root_ != transpose_) tile_ = ir_.Alloca(Word(array_->shape()), block_.other * block_.minor);
  }

  // A few elements of the minor dimension are a part of a line: the dimension outside it gives what makes it one of
  // `line` elements. Parts would come one after the other to lines that share a place of the first cache.
  void TakeBeside(int64_t minor, int64_t line) {
    constexpr int64_t kSmallest = 4;
    if (minor < kSmallest || minor >= line || line % minor != 0 || !s_.HasDefaultLayout()) return;
    int64_t d = minor_ - 1;
    while (d >= 0 && s_.dim(d) == 1) --d;
    if (d < 0 || d == other_ || s_.dim(d) % (line / minor) != 0) return;
    beside_ = d;
    block_.other = block_.minor = line;
  }

  // Elements between what neighbours of dimension `d` read.
  int64_t StrideOf(int64_t d) const {
    return array_->shape().Strides()[(*transpose_->attrs().dimensions)[static_cast<size_t>(d)]];
  }

  // Bits of an element.
  llvm::Type* Word(const Shape& s) const { return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(s.type()))); }

  Part PartAt(int64_t d, llvm::Value* k) const {
    const int64_t block = d == other_ ? block_.other : block_.minor;
    llvm::Value* from = ir_.Mul(k, block);
    llvm::Value* extent = ir_.I64(s_.dim(d));
    if (s_.dim(d) % block == 0 || (d == minor_ && beside_ >= 0)) return {from, from, ir_.Add(from, ir_.I64(block))};
    const auto least = [&](llvm::Value* x, llvm::Value* y) {
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
    };
    return {in_registers_ ? least(from, ir_.I64(s_.dim(d) - block)) : from, from,
            least(ir_.Add(from, ir_.I64(block)), extent)};
  }

  int64_t GroupsOf(int64_t d) const { return (BlocksOf(d) + group_ - 1) / group_; }

  // The blocks of a group, row by row of the operand.
  void Group(llvm::Value* o, llvm::Value* m) {
    if (group_ == 1) return OneBlock(PartAt(other_, o), PartAt(minor_, m));
    const auto each = [&](int64_t d, llvm::Value* k, const std::function<void(const Part&)>& visit) {
      llvm::Value *from = ir_.Mul(k, group_), *to = ir_.Add(from, ir_.I64(group_));
      if (BlocksOf(d) % group_ != 0) to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, to, ir_.I64(BlocksOf(d)));
      ir_.Loop(from, to, 1, [&](llvm::Value* i) { visit(PartAt(d, i)); });
    };
    each(minor_, m, [&](const Part& rows) { each(other_, o, [&](const Part& columns) { OneBlock(columns, rows); }); });
  }

  void OneBlock(const Part& o, const Part& m) {
    if (in_registers_) Turn(o, m);
    if (!in_registers_ || tile_) Elements(o, m);
    if (streams_ && out_) StoreLines();
  }

  // The block of results that was put together.
  void StoreLines() {
    auto* line = llvm::FixedVectorType::get(Word(s_), static_cast<unsigned>(block_.minor));
    const llvm::Align align(64);
    for (int64_t r = 0; r < block_.other; ++r) {
      llvm::Value* from = b_.CreateInBoundsGEP(Word(s_), out_, ir_.I64(r * block_.minor));
      llvm::Value* to = b_.CreateInBoundsGEP(Word(s_), result_, ir_.I64(r * s_.Strides()[other_]));
      StorePastCaches(ir_, b_.CreateAlignedLoad(line, from, align), to);
    }
  }

  // Loads a block, turns it and stores it: to the result where that is all, else to the tile.
  void Turn(const Part& o, const Part& m) {
    llvm::Type* word = Word(array_->shape());
    at_[other_] = o.start;
    at_[minor_] = m.start;
    if (streams_) result_ = b_.CreateInBoundsGEP(Word(s_), body_.results[0], elements_.Offset(s_, Index{at_}));
    llvm::Value* from = computed_;
    int64_t row = block_.other;
    if (computed_) {
      Compute(o, m);
    } else {
      from = b_.CreateInBoundsGEP(word, elements_.Address(array_), elements_.Offset(array_->shape(), OperandIndex()));
      row = StrideOf(minor_);
    }
    llvm::Value* to = tile_;
    int64_t line = block_.minor;
    if (!tile_) {
      to = b_.CreateInBoundsGEP(word, body_.results[0], elements_.Offset(s_, Index{at_}));
      line = s_.Strides()[other_];
    }
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(array_->shape().type())));
    const auto load = [&](int64_t at, int64_t lanes) {
      auto* vector = llvm::FixedVectorType::get(word, static_cast<unsigned>(lanes));
      return b_.CreateAlignedLoad(vector, b_.CreateInBoundsGEP(word, from, ir_.I64(at)), align);
    };
    const auto store = [&](llvm::Value* x, int64_t at) {
      llvm::Value* address = b_.CreateInBoundsGEP(word, to, ir_.I64(at));
      if (streams_ && !tile_)
        StorePastCaches(ir_, x, address);
      else
        b_.CreateAlignedStore(x, address, align);
    };
    if (block_.other < block_.minor) {
      llvm::Value* all = load(0, block_.other * block_.minor);
      for (int64_t k = 0; k < block_.other; ++k)
        store(b_.CreateShuffleVector(all, Every(block_.other, k, block_.minor)), k * line);
      return;
    }
    std::vector<llvm::Value*> rows;
    const int64_t few = beside_ < 0 ? block_.minor : s_.dim(minor_), far = beside_ < 0 ? 0 : StrideOf(beside_);
    for (int64_t r = 0; r < block_.minor; ++r) rows.push_back(load(r / few * far + r % few * row, block_.other));
    if (block_.minor < block_.other) return store(Interleaved(rows), 0);
    TurnBlocks(b_, rows);
    for (int64_t r = 0; r < block_.other; ++r) store(rows[static_cast<size_t>(r)], r * line);
  }

  // The lanes `first`, `first` + `step` and so on, `count` of them.
  static std::vector<int> Every(int64_t step, int64_t first, int64_t count) {
    std::vector<int> lanes;
    for (int64_t k = 0; k < count; ++k) lanes.push_back(static_cast<int>(first + k * step));
    return lanes;
  }

  // The first lanes of two or three vectors, then their second ones, and so on.
  llvm::Value* Interleaved(const std::vector<llvm::Value*>& rows) {
    const int64_t n = block_.other, count = static_cast<int64_t>(rows.size());
    llvm::Value* all = b_.CreateShuffleVector(rows[0], rows[1], Every(1, 0, 2 * n));
    if (count > 2) {
      std::vector<int> wide = Every(1, 0, n);
      wide.resize(static_cast<size_t>(2 * n), -1);
      all = b_.CreateShuffleVector(all, b_.CreateShuffleVector(rows[2], wide), Every(1, 0, count * n));
    }
    std::vector<int> lanes;
    for (int64_t k = 0; k < n; ++k)
      for (int64_t r = 0; r < count; ++r) lanes.push_back(static_cast<int>(r * n + k));
    return b_.CreateShuffleVector(all, lanes);
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
    ir_.Loop(ir_.I64(0), ir_.I64(block_.minor), 1, [&](llvm::Value* r) {
      const auto element = [&](llvm::Value* k) {
        at_[minor_] = ir_.Add(m.start, r);
        at_[other_] = ir_.Add(o.start, k);
        auto v = elements_.Emit(array_, OperandIndex());
        if (v.ok())
          ir_.Store(array_->shape().type(), *v, computed_, ir_.Add(ir_.Mul(r, block_.other), k));
        else
          status_.Update(v.status());
      };
      ir_.VectorLoop(block_.other, element, true);
    });
    at_[other_] = o.start;
    at_[minor_] = m.start;
  }

  void Elements(const Part& o, const Part& m) {
    ir_.Loop(o.from, o.to, 1, [&](llvm::Value* i) {
      at_[other_] = i;
      llvm::Value* line = ir_.Mul(b_.CreateSub(i, o.start), block_.minor);
      if (in_registers_ && s_.dim(minor_) % block_.minor == 0) {
        ir_.VectorLoop(
            block_.minor, [&](llvm::Value* j) { Element(ir_.Add(m.from, j), ir_.Add(line, j)); }, true);
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
    if (v.ok() && streams_)
      ir_.Store(s_.type(), *v, out_, k);
    else if (v.ok())
      ir_.Store(s_.type(), *v, body_.results[0], elements_.Offset(s_, x));
    else
      status_.Update(v.status());
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  ElementEmitter& elements_;
  const Instruction *const root_, *const transpose_, *const array_;
  const Shape& s_;
  const int64_t other_, minor_;
  int64_t beside_ = -1;  // what makes lines together with the minor dimension; -1: nothing
  std::vector<llvm::Value*> at_;
  struct {
    int64_t other = 16, minor = 16;
  } block_;
  int64_t group_ = 1;  // blocks each way that share lines of a cache
  bool in_registers_ = false;
  llvm::Value* computed_ = nullptr;  // a block of the operand, where that is not in memory
  llvm::Value* tile_ = nullptr;      // a block of the transpose, where that is not the result
  llvm::Value* out_ = nullptr;       // a block of the result, where it is computed and then stored past the caches
  llvm::Value* result_ = nullptr;    // where it goes
  bool streams_ = false;             // lines are stored so in what is emitted now
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
