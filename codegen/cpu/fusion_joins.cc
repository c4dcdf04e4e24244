// Fusions that read joined arrays, as rolled arrays and those with a neighbour's rows are.
//
// Loops end wherever one of the arrays follows another. Between such places each element is known to be of one array,
// comparisons are gone, and loads are of whole vectors.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "codegen/cpu/fusion.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

constexpr size_t kMostCuts = 12;   // along the minor dimension: each is one more loop of code
constexpr size_t kMostBoxes = 24;  // loops in all

// Where a dimension of a value lies in the loops: at place k of loop `dim` its place is scale * k + offset.
struct Axis {
  int64_t dim = -1, scale = 1, offset = 0;  // -1: its place does not follow one loop
  bool operator<(const Axis& o) const { return std::tie(dim, scale, offset) < std::tie(o.dim, o.scale, o.offset); }
};
using Axes = std::vector<Axis>;

class Joins {
 public:
  Joins(const Shape& s, bool moves)
      : dims_(s.dims()),
        minor_(MinorDim(s)),
        short_rows_(minor_ >= 0 && dims_[static_cast<size_t>(minor_)] < kShort),
        moves_(moves),
        cuts_(dims_.size()) {}

  void Add(const Instruction* i, const Axes& axes) {
    if (seen_.size() >= kMostPlaces || !seen_.insert({i, axes}).second) return;
    if (i->IsElementwise()) {
      for (const Instruction* o : i->operands())
        if (o->shape().rank() == i->shape().rank()) Add(o, axes);
      return;
    }
    switch (i->opcode()) {
      case Opcode::Slice:
        return Add(i->operand(0), OfSlice(i, axes));
      case Opcode::Reverse:
        return Add(i->operand(0), OfReverse(i, axes));
      case Opcode::Pad:
        return Add(i->operand(0), OfPad(i, axes));
      case Opcode::Broadcast:
        return Add(i->operand(0), OfBroadcast(i, axes));
      case Opcode::DynamicSlice:
        return Add(i->operand(0), OfDynamicSlice(i, axes));
      case Opcode::Transpose:
        return WalksAlong(i) ? Add(i->operand(0), OfTranspose(i, axes)) : void();
      case Opcode::Concatenate:
        return AddJoined(i, axes);
      case Opcode::Gather:
        return Add(i->operand(0), OfGather(i, axes));
      case Opcode::Bitcast:
      case Opcode::Reshape:
        return Add(i->operand(0), OfReshape(i, axes));
      default:
        return;
    }
  }
  std::vector<std::set<int64_t>>& cuts() { return cuts_; }

 private:
  static constexpr size_t kMostPlaces = 400;
  static constexpr int64_t kShort = 16;

  static Axes OfSlice(const Instruction* i, Axes axes) {
    for (size_t d = 0; d < axes.size(); ++d) {
      const SliceDim& s = (*i->attrs().slice)[d];
      axes[d] = {axes[d].dim, axes[d].scale * s.stride, axes[d].offset * s.stride + s.start};
    }
    return axes;
  }

  static Axes OfReverse(const Instruction* i, Axes axes) {
    for (int64_t d : *i->attrs().dimensions) {
      Axis& a = axes[static_cast<size_t>(d)];
      a = {a.dim, -a.scale, i->shape().dim(d) - 1 - a.offset};
    }
    return axes;
  }

  // Edges are cuts of loops that compute nothing, and short rows have those of their own: what is padded elsewhere is
  // read under masks, of which complex numbers have none.
  Axes OfPad(const Instruction* i, Axes axes) {
    for (size_t d = 0; d < axes.size(); ++d) {
      const PadDim& p = (*i->attrs().padding)[d];
      const int64_t dim = axes[d].dim;
      if (short_rows_ ? dim == minor_ : moves_) {
        Cut(axes[d], p.low);
        Cut(axes[d], i->shape().dim(static_cast<int64_t>(d)) - p.high);
      }
      axes[d].offset -= p.low;
      if (p.interior) axes[d].dim = -1;
    }
    return axes;
  }

  // Whether the innermost dimension stays where it is: others are turned in blocks.
  static bool WalksAlong(const Instruction* i) {
    const int64_t from = MinorDim(i->operand(0)->shape()), to = MinorDim(i->shape());
    return to >= 0 && (*i->attrs().dimensions)[static_cast<size_t>(to)] == from;
  }

  static Axes OfTranspose(const Instruction* i, const Axes& axes) {
    Axes in(axes.size());
    for (size_t d = 0; d < axes.size(); ++d) in[static_cast<size_t>((*i->attrs().dimensions)[d])] = axes[d];
    return in;
  }

  static Axes OfBroadcast(const Instruction* i, const Axes& axes) {
    Axes in;
    for (int64_t d : *i->attrs().dimensions) in.push_back(axes[static_cast<size_t>(d)]);
    return in;
  }

  // A slice as long as the operand begins where it does.
  static Axes OfDynamicSlice(const Instruction* i, Axes axes) {
    for (size_t d = 0; d < axes.size(); ++d) {
      const auto dim = static_cast<int64_t>(d);
      if (i->shape().dim(dim) != i->operand(0)->shape().dim(dim)) axes[d] = {};
    }
    return axes;
  }

  // Windows that are as long as the operand begin where it does.
  static Axes OfGather(const Instruction* i, const Axes& axes) {
    const Attributes& a = i->attrs();
    const Shape& from = i->operand(0)->shape();
    const auto none = [](const std::optional<Ints>& dims, int64_t d) {
      return !dims || std::find(dims->begin(), dims->end(), d) == dims->end();
    };
    Axes in(static_cast<size_t>(from.rank()));
    size_t window = 0;
    for (int64_t d = 0; d < from.rank(); ++d) {
      if (!none(a.collapsed_slice_dims, d) || !none(a.operand_batching_dims, d)) continue;
      const int64_t at = (*a.offset_dims)[window++];
      if ((*a.slice_sizes)[d] == from.dim(d)) in[static_cast<size_t>(d)] = axes[static_cast<size_t>(at)];
    }
    return in;
  }

  // Where extents of 1 alone differ, the others are the same dimensions.
  static Axes OfReshape(const Instruction* i, const Axes& axes) {
    const Shape &from = i->operand(0)->shape(), &to = i->shape();
    Axes in(static_cast<size_t>(from.rank()));
    if (!from.HasDefaultLayout() || !to.HasDefaultLayout()) return in;
    int64_t t = 0;
    for (int64_t d = 0; d < from.rank(); ++d) {
      if (from.dim(d) == 1) continue;
      while (t < to.rank() && to.dim(t) == 1) ++t;
      if (t == to.rank() || to.dim(t) != from.dim(d)) return Axes(in.size());
      in[static_cast<size_t>(d)] = axes[static_cast<size_t>(t++)];
    }
    return in;
  }

  void AddJoined(const Instruction* i, const Axes& axes) {
    const int64_t d = (*i->attrs().dimensions)[0];
    const Axis& a = axes[static_cast<size_t>(d)];
    int64_t before = 0;
    for (const Instruction* o : i->operands()) {
      if (before > 0) Cut(a, before);
      Axes in = axes;
      in[static_cast<size_t>(d)].offset -= before;
      Add(o, in);
      before += o->shape().dim(d);
    }
  }

  // Between loop places where the axis is before `place` and those where it is not.
  void Cut(const Axis& a, int64_t place) {
    if (a.dim < 0) return;
    const int64_t step = std::abs(a.scale), far = a.scale > 0 ? place - a.offset : a.offset - place + 1;
    const int64_t cut = far <= 0 ? 0 : (far + step - 1) / step;
    if (cut > 0 && cut < dims_[static_cast<size_t>(a.dim)]) cuts_[static_cast<size_t>(a.dim)].insert(cut);
  }

  const Ints dims_;
  const int64_t minor_;
  const bool short_rows_;
  const bool moves_;  // whether all that the loops do is to move elements
  std::set<std::pair<const Instruction*, Axes>> seen_;
  std::vector<std::set<int64_t>> cuts_;
};

// Whether loops over `result` compute nothing but places to read.
bool OnlyMoves(const Computation& f, const Shape& result) {
  constexpr int64_t kFew = 16;  // elements of the result for one that is computed
  const auto& all = f.instructions();
  return std::none_of(all.begin(), all.end(), [&](const auto& i) {
    return i->IsElementwise() && i->shape().ElementCount() * kFew > result.ElementCount();
  });
}

}  // namespace

Cuts CutsOf(const Computation& f, const std::vector<const Instruction*>& roots) {
  const Shape& s = roots[0]->shape();
  Joins joins(s, OnlyMoves(f, s));
  Axes axes;
  for (int64_t d = 0; d < s.rank(); ++d) axes.push_back({d});
  for (const Instruction* r : roots) joins.Add(r, axes);
  Cuts cuts(s.dims().size());
  // Inner loops run most often: where there are too many it is outer ones that compare.
  size_t boxes = 1;
  const Ints order = UsefulLoops(s);
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    const std::set<int64_t>& at = joins.cuts()[static_cast<size_t>(*d)];
    if (at.size() > kMostCuts || boxes * (at.size() + 1) > kMostBoxes) continue;
    boxes *= at.size() + 1;
    cuts[static_cast<size_t>(*d)].assign(at.begin(), at.end());
  }
  if (boxes == 1) cuts.clear();
  return cuts;
}

absl::Status NestBetween(FusionBody& fusion, const Ints& dims, const Ints& order, const Cuts& cuts,
                         const std::function<absl::Status(std::vector<llvm::Value*>)>& visit, bool units) {
  Ir& ir = fusion.ir;
  absl::Status status;
  std::vector<llvm::Value*> at(dims.size(), ir.I64(0));
  const auto limit = [&](llvm::Intrinsic::ID which, llvm::Value* x, int64_t y) {
    return ir.b.CreateBinaryIntrinsic(which, x, ir.I64(y));
  };
  std::function<void(size_t)> level = [&](size_t k) {
    if (!status.ok()) return;
    if (k == order.size()) return status.Update(visit(at));
    const auto d = static_cast<size_t>(order[k]);
    const auto range = [&](int64_t from, int64_t to) {
      const auto step = [&](llvm::Value* i) {
        at[d] = i;
        level(k + 1);
      };
      const bool inner = k + 1 == order.size();
      if (k == 0 && units)
        ir.Loop(limit(llvm::Intrinsic::smax, fusion.body.begin, from),
                limit(llvm::Intrinsic::smin, fusion.body.end, to), 1, step, inner);
      else if (inner)
        ir.VectorLoop(
            to - from, [&](llvm::Value* i) { step(ir.Add(ir.I64(from), i)); }, true);
      else
        ir.Loop(ir.I64(from), ir.I64(to), 1, step);
    };
    int64_t from = 0;
    if (!cuts.empty())
      for (int64_t cut : cuts[d]) range(std::exchange(from, cut), cut);
    range(from, dims[d]);
  };
  level(0);
  return status;
}

}  // namespace kiln::cpu
