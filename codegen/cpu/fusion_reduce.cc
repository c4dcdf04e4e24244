// Fusions around a reduction: an accumulator for each result, or a strip of them along the minor dimension, or along
// rows that are short.
#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/cpu/extremes.h"
#include "codegen/cpu/fusion.h"
#include "codegen/cpu/reduce_form.h"
#include "codegen/elemental/reduced.h"
#include "codegen/elemental/search.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

// One or several reductions of the same elements. A part is a reduce instruction with its arrays.
class Reduction {
 public:
  Reduction(FusionBody& fusion, const Instruction* root)
      : body_(fusion.body),
        f_(fusion.f),
        ir_(fusion.ir),
        elements_(fusion.elements),
        in_((root->Is(Opcode::Tuple) ? root->operand(0) : root)->operand(0)->shape()),
        outs_(Leaves(root->shape())),
        at_(in_.rank(), fusion.ir.I64(0)) {
    size_t first = 0;
    for (const Instruction* r :
         root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{fusion.f.root()}) {
      parts_.push_back({r, first, Leaves(r->shape()).size(), ExtremeKeys(**r->attrs().to_apply), ExtremumOf(r)});
      first += parts_.back().arrays;
    }
    const Ints& dims = *parts_[0].reduce->attrs().dimensions;
    for (int64_t d = 0; d < in_.rank(); ++d)
      (std::find(dims.begin(), dims.end(), d) != dims.end() ? reduced_ : kept_).push_back(d);
  }

  absl::StatusOr<int64_t> Emit() {
    constexpr int64_t kNarrow = 4;  // elements of a dimension that gain nothing from a strip
    for (const Part& part : parts_)
      for (size_t k = 0; k < part.arrays; ++k) {
        const Instruction* init = part.reduce->operand(static_cast<int64_t>(part.arrays + k));
        ASSIGN_OR_RETURN(Val v, elements_.Emit(init, Index{}));
        init_.push_back(v);
      }
    const int64_t minor = MinorDim(in_);
    const bool strips =
        !reduced_.empty() && std::find(kept_.begin(), kept_.end(), minor) != kept_.end() && in_.dim(minor) >= kNarrow;
    pairs_ = !strips;  // accumulators in memory are as few as possible
    const int64_t units = Few(minor) ? SideBySide(minor) : strips ? Strips(minor) : OneByOne();
    RETURN_IF_ERROR(status_);
    return units;
  }

 private:
  static constexpr int64_t kBlock = 64;  // results that one thread computes

  struct Part {
    const Instruction* reduce;
    size_t first;   // of its results among all
    size_t arrays;  // reduced together
    ExtremeKeys keys;
    std::optional<Extremum> extremum;
  };

  void Reserve(int64_t count) {
    for (const Part& part : parts_)
      for (size_t k = part.first; k < part.first + part.arrays; ++k) {
        sums_.emplace_back(ir_, part.keys.Apply() ? part.keys.KeyType() : outs_[k].type(), count);
        leasts_.emplace_back(ir_, part.keys.KeyType(), part.keys.Apply() && pairs_ ? count : 1);
      }
  }

  // Of an extreme.
  ExtremeKeys::Pair Get(size_t k, llvm::Value* slot) const { return {sums_[k].Get(slot).re, leasts_[k].Get(slot).re}; }
  void Put(size_t k, llvm::Value* slot, const ExtremeKeys::Pair& pair) {
    sums_[k].Put(slot, {pair.highest});
    leasts_[k].Put(slot, {pair.least});
  }

  // Loops over dimensions of the input from the `k`-th of `order` inwards.
  void NestFrom(const Ints& order, size_t k, const std::function<void()>& inner) {
    if (k == order.size()) return inner();
    const auto step = [&](llvm::Value* i) {
      at_[order[k]] = i;
      NestFrom(order, k + 1, inner);
    };
    // A shorter loop is unrolled, and LLVM makes vectors of the loop around it.
    constexpr int64_t kShortest = 16;
    if (order[k] == MinorDim(in_) && in_.dim(order[k]) >= kShortest)
      ir_.VectorLoop(in_.dim(order[k]), step, false);
    else
      ir_.Loop(ir_.I64(0), ir_.I64(in_.dim(order[k])), 1, step);
  }

  void Begin(llvm::Value* slot) {
    for (const Part& part : parts_)
      for (size_t k = part.first; k < part.first + part.arrays; ++k)
        if (part.keys.Apply() && pairs_)
          Put(k, slot, part.keys.First(ir_, init_[k]));
        else
          sums_[k].Put(slot, part.keys.Apply() ? part.keys.Encode(ir_, init_[k]) : init_[k]);
  }

  // Adds the element at this position.
  void Add(llvm::Value* slot) {
    for (const Part& part : parts_)
      if (status_.ok()) status_ = Combine(part, slot, IndexIn(in_, at_));
  }

  void Store(llvm::Value* slot) {
    Index o;
    for (int64_t d : kept_) o.dims.push_back(at_[d]);
    if (kept_.size() == 1) o.linear = o.dims[0];
    for (const Part& part : parts_)
      for (size_t k = part.first; k < part.first + part.arrays; ++k) {
        Val v = sums_[k].Get(slot);
        if (part.keys.Apply()) v = pairs_ ? part.keys.Result(ir_, Get(k, slot)) : part.keys.Decode(ir_, v);
        ir_.Store(outs_[k].type(), v, body_.results[k], elements_.Offset(outs_[k], o));
      }
  }

  absl::Status Combine(const Part& part, llvm::Value* slot, const Index& x) {
    const size_t n = part.arrays;
    std::vector<Val> args;
    for (size_t k = 0; k < n; ++k) args.push_back(sums_[part.first + k].Get(slot));
    for (size_t k = 0; k < n; ++k) {
      ASSIGN_OR_RETURN(Val v, elements_.Emit(part.reduce->operand(static_cast<int64_t>(k)), x));
      args.push_back(v);
    }
    if (part.keys.Apply()) {
      if (pairs_)
        Put(part.first, slot, part.keys.Next(ir_, Get(part.first, slot), args[1]));
      else
        sums_[part.first].Put(slot, part.keys.Combine(ir_, args[0], part.keys.Encode(ir_, args[1])));
      return absl::OkStatus();
    }
    if (part.extremum) {
      const Found found =
          Choose(ir_, *part.extremum, part.reduce->operand(0)->shape().type(), {args[0], args[1]}, {args[2], args[3]});
      sums_[part.first].Put(slot, found.value);
      sums_[part.first + 1].Put(slot, found.place);
      return absl::OkStatus();
    }
    AllowReassociation(ir_, n == 1);
    // What is there already lies in front of what comes.
    const std::vector<const Instruction*> tests = TestsOfOrder(part.reduce);
    for (const Instruction* test : tests) elements_.Preset(test, Val{ir_.b.getTrue()});
    auto r = kiln::Combine(elements_, part.reduce, args);
    AllowReassociation(ir_, false);
    for (const Instruction* test : tests) elements_.Preset(test, Val{});
    if (!r.ok()) return r.status();
    for (size_t k = 0; k < n; ++k) sums_[part.first + k].Put(slot, (*r)[k]);
    return absl::OkStatus();
  }

  // Whether results of so few columns, as of points in space, are summed along vectors of what is reduced.
  bool Few(int64_t minor) const {
    constexpr int64_t kMost = 3, kLeastReduced = 16;
    return std::find(kept_.begin(), kept_.end(), minor) != kept_.end() && in_.dim(minor) > 1 &&
           in_.dim(minor) <= kMost && !reduced_.empty() && in_.dim(reduced_.back()) >= kLeastReduced;
  }

  // Copies of operands that every row reads again, with each column in one piece: rows read vectors of it without
  // taking them apart.
  void CopyColumns(int64_t along, int64_t minor) {
    for (int64_t k = 0; k < static_cast<int64_t>(body_.operands.size()); ++k) {
      const Instruction* p = f_.parameter(k);
      if (!IsReadByRows(p, in_, along, minor)) continue;
      Shape turned = p->shape();
      turned.set_layout(Layout{{0, 1}});
      llvm::Value* copy = ir_.Alloca(ir_.b.getInt8Ty(), turned.ByteSize());
      const auto row = [&](llvm::Value* i) {
        for (int64_t c = 0; c < in_.dim(minor) && status_.ok(); ++c) {
          const Index x{{i, ir_.I64(c)}};
          auto v = elements_.Emit(p, x);
          if (!v.ok()) return status_.Update(v.status());
          ir_.Store(turned.type(), *v, copy, elements_.Offset(turned, x));
        }
      };
      ir_.VectorLoop(in_.dim(along), row, true);
      elements_.ReadFrom(p, copy, turned);
    }
  }

  // A row of few columns, with an accumulator for each, side by side in one loop: what the columns share is computed
  // once, and their elements are read as whole vectors.
  int64_t SideBySide(int64_t minor) {
    const int64_t columns = in_.dim(minor);
    CopyColumns(reduced_.back(), minor);
    Reserve(columns);
    const auto each = [&](const std::function<void(llvm::Value*)>& visit) {
      for (int64_t c = 0; c < columns; ++c) {
        at_[minor] = ir_.I64(c);
        visit(ir_.I64(c));
      }
    };
    const auto row = [&] {
      each([&](llvm::Value* c) { Begin(c); });
      NestFrom(Ints(reduced_.begin(), reduced_.end() - 1), 0, [&] {
        const int64_t along = reduced_.back();
        const auto step = [&](llvm::Value* i) {
          at_[along] = i;
          each([&](llvm::Value* c) { Add(c); });
        };
        ir_.VectorLoop(in_.dim(along), step, false, columns);
      });
      each([&](llvm::Value* c) { Store(c); });
    };
    Ints outer;
    for (int64_t d : kept_)
      if (d != minor && in_.dim(d) != 1) outer.push_back(d);
    if (outer.empty()) {
      row();
      return 1;
    }
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
      at_[outer[0]] = i;
      NestFrom(Ints(outer.begin() + 1, outer.end()), 0, row);
    });
    return in_.dim(outer[0]);
  }

  int64_t OneByOne() {
    const Ints order = UsefulFirst(in_.dims(), kept_);
    if (RowsAreShort(order)) return RowsAbreast(order);
    const int64_t lanes = Lanes();
    Reserve(lanes);
    auto one = [&] {
      if (lanes > 1) {
        ByLanes(lanes);
      } else {
        Begin(ir_.I64(0));
        if (parts_.size() == 1 && IsDecidedEarly(parts_[0].reduce))
          UntilDecided();
        else
          NestFrom(reduced_, 0, [&] { Add(ir_.I64(0)); });
      }
      Store(ir_.I64(0));
    };
    if (order.empty()) {
      one();
      return 1;
    }
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
      at_[order[0]] = i;
      NestFrom(Ints(order.begin() + 1, order.end()), 0, one);
    });
    return in_.dim(order[0]);
  }

  // Whether any element holds, or all do: pieces of the innermost dimension are left out once one has decided it.
  void UntilDecided() {
    constexpr int64_t kPiece = 1024;
    const int64_t d = reduced_.back(), n = in_.dim(d), rest = n % kPiece;
    llvm::Value *zero = ir_.I64(0),
                *deciding = ir_.b.getInt1((**parts_[0].reduce->attrs().to_apply).root()->Is(Opcode::Or));
    const auto piece = [&](llvm::Value* first, int64_t count) {
      ir_.If(ir_.b.CreateICmpNE(sums_[0].Get(zero).re, deciding), [&] {
        const auto add = [&](llvm::Value* k) {
          at_[d] = ir_.Add(first, k);
          Add(zero);
        };
        ir_.VectorLoop(count, add, false);
      });
    };
    NestFrom(Ints(reduced_.begin(), reduced_.end() - 1), 0, [&] {
      ir_.Loop(zero, ir_.I64(n - rest), kPiece, [&](llvm::Value* first) { piece(first, kPiece); });
      if (rest) piece(ir_.I64(n - rest), rest);
    });
  }

  // Whether several arrays are reduced together, along rows of so few elements that combining lanes of one row, as
  // ByLanes does, would take longer than to walk along many rows at once. `order`: of the dimensions that are kept.
  bool RowsAreShort(const Ints& order) const {
    constexpr int64_t kShortest = 16, kLongest = 128, kLeastRows = 16;
    if (order.empty() || reduced_.empty()) return false;
    const int64_t n = in_.dim(MinorDim(in_));
    return parts_.size() == 1 && parts_[0].arrays > 1 && reduced_.back() == MinorDim(in_) &&
           in_.dim(order.back()) >= kLeastRows && n >= kShortest && n <= kLongest;
  }

  // Strips of rows, with an accumulator for each: a vector takes an element of every row.
  int64_t RowsAbreast(const Ints& order) {
    Reserve(kBlock);
    const int64_t last = order.back();
    const auto strips = [&](llvm::Value* begin, llvm::Value* end) {
      ir_.Loop(begin, end, kBlock,
               [&](llvm::Value* from) { StripAlong(last, from, Least(ir_.I64(kBlock), ir_.b.CreateSub(end, from))); });
    };
    if (order.size() == 1) {
      strips(body_.begin, body_.end);
    } else {
      ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
        at_[order[0]] = i;
        NestFrom(Ints(order.begin() + 1, order.end() - 1), 0, [&] { strips(ir_.I64(0), ir_.I64(in_.dim(last))); });
      });
    }
    return in_.dim(order[0]);
  }

  // How many places a search is split among: elements that lie next to each other are then combined in vectors. 1 for
  // anything but a choice between elements by a function of them and of their places along the minor dimension.
  int64_t Lanes() const {
    constexpr int64_t kMost = 64, kLeast = 16, kWorth = 4;  // kWorth: elements of a lane
    if (parts_.size() != 1 || !IsSearch(parts_[0].reduce) || Along() != MinorDim(in_)) return 1;
    const int64_t n = in_.dim(Along());
    return n >= kMost * kWorth ? kMost : n >= kLeast * kWorth ? kLeast : 1;
  }

  // The one dimension that is reduced.
  int64_t Along() const {
    for (int64_t d : reduced_)
      if (in_.dim(d) != 1) return d;
    return -1;
  }

  // Leaves in slot 0 what a walk from the first element to the last would: of two elements that lanes chose, the
  // function is given the one with the lower place first.
  void ByLanes(int64_t lanes) {
    const int64_t d = Along(), n = in_.dim(d), rest = n % lanes;
    const auto row = [&](llvm::Value* first, int64_t count) {
      const auto add = [&](llvm::Value* j) {
        at_[d] = ir_.Add(first, j);
        // Counted in the places' own type: numbers of addresses would take vectors twice as wide.
        llvm::Type* type = ir_.RegType(outs_[1].type());
        llvm::Value* place =
            ir_.b.CreateAdd(ir_.b.CreateIntCast(first, type, true), ir_.b.CreateIntCast(j, type, true));
        elements_.Preset(parts_[0].reduce->operand(1), Val{place});
        Add(j);
      };
      ir_.VectorLoop(count, add, true);
    };
    const auto begin = [&](llvm::Value* j) {
      at_[d] = j;
      for (size_t k = 0; k < 2; ++k) {
        auto v = elements_.Emit(parts_[0].reduce->operand(static_cast<int64_t>(k)), IndexIn(in_, at_));
        if (v.ok())
          sums_[k].Put(j, *v);
        else
          status_.Update(v.status());
      }
    };
    ir_.VectorLoop(lanes, begin, true);
    ir_.Loop(ir_.I64(lanes), ir_.I64(n - rest), lanes, [&](llvm::Value* i) { row(i, lanes); });
    if (rest) row(ir_.I64(n - rest), rest);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      ir_.VectorLoop(
          half,
          [&](llvm::Value* j) {
            Join({sums_[0].Get(j), sums_[1].Get(j)}, ir_.Add(j, ir_.I64(half)), j);
          },
          true);
    Join(init_, ir_.I64(0), ir_.I64(0), /*in_order=*/true);
  }

  // Slot `to` becomes what the function chooses of `x` and slot `other`.
  void Join(const std::vector<Val>& x, llvm::Value* other, llvm::Value* to, bool in_order = false) {
    std::vector<Val> args = x, rest = {sums_[0].Get(other), sums_[1].Get(other)};
    if (!in_order) OrderByPlace(ir_, outs_[1].type(), &args, &rest);
    args.insert(args.end(), rest.begin(), rest.end());
    auto r = elements_.Apply(**parts_[0].reduce->attrs().to_apply, args);
    if (!r.ok()) return status_.Update(r.status());
    for (size_t k = 0; k < 2; ++k) sums_[k].Put(to, (*r)[k]);
  }

  // Columns: a strip of accumulators along the minor dimension.
  int64_t Strips(int64_t minor) {
    constexpr int64_t kWidest = 1024;  // accumulators of a strip: 4 KiB of f32; whole rows are read as one stream
    const int64_t width = in_.dim(minor);
    const int64_t strip = std::min<int64_t>(width, kWidest);
    const int64_t strips = (width + strip - 1) / strip;
    Reserve(strip);
    Ints outer;
    for (int64_t d : kept_)
      if (d != minor && in_.dim(d) != 1) outer.push_back(d);
    if (outer.empty() && width > kBlock) return Blocks(minor, kWidest);
    auto columns = [&](llvm::Value* s) { Strip(minor, strip, s); };
    if (outer.empty()) {
      ir_.Loop(body_.begin, body_.end, 1, columns);
      return strips;
    }
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
      at_[outer[0]] = i;
      NestFrom(Ints(outer.begin() + 1, outer.end()), 0, [&] { ir_.Loop(ir_.I64(0), ir_.I64(strips), 1, columns); });
    });
    return in_.dim(outer[0]);
  }

  // All results lie along the minor dimension: a thread takes blocks of them, as many at a time as a strip may have.
  int64_t Blocks(int64_t minor, int64_t widest) {
    const int64_t width = in_.dim(minor);
    ir_.Loop(body_.begin, body_.end, widest / kBlock, [&](llvm::Value* block) {
      llvm::Value* blocks = Least(ir_.I64(widest / kBlock), ir_.b.CreateSub(body_.end, block));
      llvm::Value* from = ir_.Mul(block, kBlock);
      StripAlong(minor, from, Least(ir_.Mul(blocks, kBlock), ir_.b.CreateSub(ir_.I64(width), from)));
    });
    return (width + kBlock - 1) / kBlock;
  }

  // The `s`-th strip of results, of `strip` elements or what is left of the dimension.
  void Strip(int64_t minor, int64_t strip, llvm::Value* s) {
    const int64_t width = in_.dim(minor);
    llvm::Value* from = ir_.Mul(s, strip);
    llvm::Value* whole = ir_.I64(strip);
    StripAlong(minor, from, width % strip ? Least(whole, ir_.b.CreateSub(ir_.I64(width), from)) : whole);
  }

  llvm::Value* Least(llvm::Value* a, llvm::Value* b) const {
    return ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }

  // The strip of `count` results from `from` on along dimension `d`. Accumulators under a mask would wait for
  // themselves.
  void StripAlong(int64_t d, llvm::Value* from, llvm::Value* count) {
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(count);
    OneStrip([&](const std::function<void(llvm::Value*)>& visit, bool parallel) {
      const auto result = [&](llvm::Value* j) {
        at_[d] = ir_.Add(from, j);
        visit(j);
      };
      if (!known) return ir_.Loop(ir_.I64(0), count, 1, result, parallel);
      const bool masked = std::exchange(ir_.masked_stores, false);
      ir_.VectorLoop(known->getSExtValue(), result, parallel);
      ir_.masked_stores = masked;
    });
  }

  // The results that `columns` visits, each with an accumulator.
  void OneStrip(const std::function<void(const std::function<void(llvm::Value*)>& visit, bool parallel)>& columns) {
    columns([&](llvm::Value* j) { Begin(j); }, false);
    const int64_t along = reduced_.back(), n = in_.dim(along), together = RowsTogether(n);
    NestFrom(Ints(reduced_.begin(), reduced_.end() - 1), 0, [&] {
      ir_.Loop(ir_.I64(0), ir_.I64(n), together, [&](llvm::Value* first) {
        const auto rows = [&](llvm::Value* j) {
          for (int64_t r = 0; r < together; ++r) {
            at_[along] = ir_.Add(first, ir_.I64(r));
            Add(j);
          }
        };
        columns(rows, true);
      });
    });
    columns([&](llvm::Value* j) { Store(j); }, true);
  }

  // Of `n` rows that are reduced: accumulators of several arrays that are stored for every one of them would take
  // longer than its elements do. Those of one array wait for the rows, which then come as one stream.
  int64_t RowsTogether(int64_t n) const {
    constexpr int64_t kRows = 4, kWorth = 1 << 15;  // kWorth: elements
    const bool several = std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.arrays > 1; });
    return several && n % kRows == 0 && in_.ElementCount() >= kWorth ? kRows : 1;
  }

  Body& body_;
  const Computation& f_;
  Ir& ir_;
  ElementEmitter& elements_;
  const Shape& in_;
  const std::vector<Shape> outs_;
  std::vector<Part> parts_;
  std::vector<llvm::Value*> at_;  // of the input
  Ints kept_, reduced_;
  std::vector<Val> init_;
  std::vector<Slots> sums_;
  std::vector<Slots> leasts_;  // of extremes as pairs, beside the highest
  bool pairs_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<int64_t> EmitReduce(FusionBody& fusion, const Instruction* root) {
  if (const auto around = AroundOf(root)) return EmitReduceAround(fusion, root, *around);
  return Reduction(fusion, root).Emit();
}

}  // namespace kiln::cpu
