// Running reductions along the minor dimension: as many lines as a vector has lanes go together.
//
// Each result waits for the one before, so only other lines fill the time, and lines are far apart in memory. Square
// blocks of the operand are turned in registers; a step of all lines is then one vector. Each line sums in its own
// order, so results are those of one line alone.
#include "codegen/cpu/fusion.h"
#include "codegen/llvm/lanes.h"

namespace kiln::cpu {
namespace {

class ScanLines {
 public:
  ScanLines(FusionBody& fusion, const Instruction* root, const ScanOfLines& scan)
      : ir_(fusion.ir),
        b_(fusion.ir.b),
        elements_(fusion.elements),
        root_(root),
        scan_(scan),
        s_(root->shape()),
        result_(fusion.body.results[0]),
        lanes_(LinesTogether(fusion.ir.level, s_, scan.line_dim, scan.dim)),
        word_(b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(s_.type())))),
        sums_(fusion.ir, s_.type(), lanes_),
        lines_(fusion.ir.Alloca(word_, lanes_ * lanes_)),
        steps_(fusion.ir.Alloca(word_, lanes_ * lanes_)) {}

  // Lines `lanes_` from `first` of the line dimension, at `at` of the others.
  absl::Status Emit(llvm::Value* first, std::vector<llvm::Value*> at) {
    first_ = first;
    at_ = std::move(at);
    const int64_t extent = s_.dim(scan_.dim), whole = extent / lanes_ * lanes_;
    ir_.Loop(
        ir_.I64(0), ir_.I64(lanes_), 1, [&](llvm::Value* j) { sums_.Put(j, scan_.init); }, true);
    ir_.Loop(ir_.I64(0), ir_.I64(whole), lanes_, [&](llvm::Value* k) { Block(k); });
    // What is left of each line.
    ir_.Loop(ir_.I64(0), ir_.I64(lanes_), 1, [&](llvm::Value* j) {
      at_[scan_.line_dim] = ir_.Add(first_, j);
      ir_.Loop(ir_.I64(whole), ir_.I64(extent), 1, [&](llvm::Value* k) {
        at_[scan_.dim] = scan_.backward ? b_.CreateSub(ir_.I64(extent - 1), k) : k;
        const Index x{at_};
        const auto v = elements_.Emit(root_->operand(0), x);
        if (v.ok()) ir_.Store(s_.type(), Step(j, *v), result_, elements_.Offset(s_, x));
        status_.Update(v.status());
      });
    });
    return status_;
  }

 private:
  // A square block, `k` steps from where lines begin.
  void Block(llvm::Value* k) {
    llvm::Value* column = scan_.backward ? b_.CreateSub(ir_.I64(s_.dim(scan_.dim) - lanes_), k) : k;
    ir_.Loop(ir_.I64(0), ir_.I64(lanes_), 1, [&](llvm::Value* j) {
      at_[scan_.line_dim] = ir_.Add(first_, j);
      const auto element = [&](llvm::Value* c) {
        at_[scan_.dim] = ir_.Add(column, c);
        const auto v = elements_.Emit(root_->operand(0), Index{at_});
        if (v.ok()) ir_.Store(s_.type(), *v, lines_, ir_.Add(ir_.Mul(j, lanes_), c));
        status_.Update(v.status());
      };
      ir_.VectorLoop(lanes_, element, true);
    });
    Turn(lines_, lanes_, steps_, lanes_);
    ir_.Loop(ir_.I64(0), ir_.I64(lanes_), 1, [&](llvm::Value* c) {
      llvm::Value* row = ir_.Mul(scan_.backward ? b_.CreateSub(ir_.I64(lanes_ - 1), c) : c, lanes_);
      const auto step = [&](llvm::Value* j) {
        llvm::Value* place = ir_.Add(row, j);
        ir_.Store(s_.type(), Step(j, ir_.Load(s_.type(), steps_, place)), steps_, place);
      };
      ir_.VectorLoop(lanes_, step, true);
    });
    at_[scan_.line_dim] = first_;
    at_[scan_.dim] = column;
    Turn(steps_, lanes_, b_.CreateInBoundsGEP(word_, result_, elements_.Offset(s_, Index{at_})),
         s_.Strides()[scan_.line_dim]);
  }

  // The next result of line `j`.
  Val Step(llvm::Value* j, const Val& element) {
    auto r = elements_.Apply(**root_->attrs().to_apply, {sums_.Get(j), element});
    if (!r.ok()) {
      status_.Update(r.status());
      return element;
    }
    sums_.Put(j, (*r)[0]);
    return (*r)[0];
  }

  void Turn(llvm::Value* from, int64_t row, llvm::Value* to, int64_t line) {
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(s_.type())));
    auto* vector = llvm::FixedVectorType::get(word_, static_cast<unsigned>(lanes_));
    const auto place = [&](llvm::Value* base, int64_t at) { return b_.CreateInBoundsGEP(word_, base, ir_.I64(at)); };
    std::vector<llvm::Value*> rows;
    for (int64_t r = 0; r < lanes_; ++r) rows.push_back(b_.CreateAlignedLoad(vector, place(from, r * row), align));
    TurnBlocks(b_, rows);
    for (int64_t r = 0; r < lanes_; ++r)
      b_.CreateAlignedStore(rows[static_cast<size_t>(r)], place(to, r * line), align);
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  ElementEmitter& elements_;
  const Instruction* const root_;
  const ScanOfLines& scan_;
  const Shape& s_;
  llvm::Value* const result_;
  const int64_t lanes_;
  llvm::Type* const word_;
  const Slots sums_;                         // of each line
  llvm::Value *const lines_, *const steps_;  // a block by lines, and by steps
  llvm::Value* first_ = nullptr;
  std::vector<llvm::Value*> at_;
  absl::Status status_;
};

}  // namespace

int64_t LinesTogether(const CpuLevel& level, const Shape& s, int64_t line_dim, int64_t dim) {
  constexpr int64_t kNarrowest = 4, kWidest = 8;  // bytes of an element
  const int64_t width = ByteWidth(s.type());
  if (IsComplex(s.type()) || width < kNarrowest || width > kWidest || !s.HasDefaultLayout()) return 0;
  const int64_t lanes = level.vector_bytes / width;
  return lanes > 2 && s.dim(line_dim) >= lanes && s.dim(dim) >= 2 * lanes ? lanes : 0;
}

absl::Status EmitScanOfLines(FusionBody& fusion, const Instruction* root, const ScanOfLines& scan, llvm::Value* first,
                             std::vector<llvm::Value*> at) {
  return ScanLines(fusion, root, scan).Emit(first, std::move(at));
}

}  // namespace kiln::cpu
