// Reductions: threads of a warp or a block share an output, or each has its own.
//
// Where the minor dimension is reduced, neighbouring threads read neighbouring elements of one output (rows); where it
// is kept, of neighbouring outputs (columns). Each thread reduces its share, then shares meet: in a warp by shuffles,
// across warps through shared memory. The order is fixed by the shape. Under a plain operation the initial value joins
// once, at the end; under any other every share begins with it, which it takes to be an identity, as HLO demands.
#include <algorithm>

#include "codegen/elemental/element.h"
#include "codegen/elemental/search.h"
#include "codegen/gpu/epilogue.h"
#include "codegen/gpu/kernels.h"
#include "codegen/gpu/shares.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kBlock = 128;  // threads of a block, unless one output takes more
constexpr int64_t kMostPerOutput = 512;
constexpr int64_t kMostShared = 48 << 10;  // bytes that every GPU's block has

int64_t PowerOfTwoUpTo(int64_t n) {
  int64_t p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

class Reduction {
 public:
  Reduction(Body& body, const Outputs& outputs)
      : body_(body), ir_(body.ir), b_(body.ir.b), elements_(body.ir, body.operands), root_(outputs[0]) {
    int64_t result = 0;
    if (outputs.size() == 1) behind_ = ReduceBehind(outputs[0]);
    for (const Instruction* output : outputs) {
      const Instruction* o = behind_ ? behind_ : output;
      if (!o->Is(Opcode::Reduce)) {
        beside_.push_back({o, result++});
        continue;
      }
      const Computation& f = **o->attrs().to_apply;
      Part p{o, result, Plain(f), ChoosesByPlace(f), {}};
      for (int64_t k = 0; k < o->operand_count() / 2; ++k, ++result) {
        const PrimitiveType t = o->operand(k)->shape().type();
        p.slots.push_back(ir_.Alloca(ir_.RegType(t), IsComplex(t) ? 2 : 1, 16));
      }
      parts_.push_back(std::move(p));
    }
    in_ = &parts_[0].reduce->operand(0)->shape();
    const Ints& dims = *parts_[0].reduce->attrs().dimensions;
    for (int64_t d = 0; d < in_->rank(); ++d)
      (std::find(dims.begin(), dims.end(), d) != dims.end() ? reduced_ : kept_).push_back(d);
    for (int64_t d : kept_) outputs_ *= in_->dim(d);
    for (int64_t d : reduced_) length_ *= in_->dim(d);
  }

  absl::Status Run() {
    if (outputs_ == 0) return absl::OkStatus();
    if (length_ == 0) return ForEach(body_, outputs_, [&](llvm::Value* o) { return Finish(o, true); });
    ChooseShape();
    body_.threads = per_output_ * at_once_;
    body_.blocks = (outputs_ + at_once_ - 1) / at_once_;
    llvm::Value* t = body_.grid.Thread();
    llvm::Value* slot = rows_ ? b_.CreateURem(t, ir_.I64(per_output_)) : b_.CreateUDiv(t, ir_.I64(at_once_));
    llvm::Value* column = rows_ ? b_.CreateUDiv(t, ir_.I64(per_output_)) : b_.CreateURem(t, ir_.I64(at_once_));
    llvm::Value* output = ir_.Add(ir_.Mul(body_.grid.Block(), at_once_), column);
    // Threads without an output work on the last one, so that all of a block meet.
    llvm::Value* exists = b_.CreateICmpULT(output, ir_.I64(outputs_));
    const bool all = outputs_ % at_once_ == 0;
    llvm::Value* mine = all ? output : b_.CreateSelect(exists, output, ir_.I64(outputs_ - 1));
    RETURN_IF_ERROR(Share(mine, slot, all ? nullptr : exists));
    Meet(slot, column);
    RETURN_IF_ERROR(status_);
    llvm::Value* writes = per_output_ == 1 ? nullptr : b_.CreateICmpEQ(slot, ir_.I64(0));
    if (!all) writes = writes ? b_.CreateAnd(writes, exists) : exists;
    if (!writes) return Finish(output, false);
    ir_.If(writes, [&] { status_ = Finish(output, false); });
    return status_;
  }

 private:
  struct Part {
    const Instruction* reduce;
    int64_t result;  // the first of its results
    bool plain, by_place;
    std::vector<llvm::Value*> slots;
  };
  struct Beside {
    const Instruction* value;  // an elementwise result of the reduced shape
    int64_t result;
  };

  // One commutative operation on the two values.
  static bool Plain(const Computation& f) {
    const Instruction* r = f.root();
    return r->HasTrait(Commutative) && r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) &&
           r->operand(0) != r->operand(1);
  }

  absl::StatusOr<std::vector<Val>> Initial(const Part& p) {
    const auto n = static_cast<int64_t>(p.slots.size());
    std::vector<Val> out;
    for (int64_t k = 0; k < n; ++k) {
      ASSIGN_OR_RETURN(Val v, elements_.Emit(p.reduce->operand(n + k), Index{}));
      out.push_back(v);
    }
    return out;
  }

  void ChooseShape() {
    const int64_t minor = MinorDim(*in_);
    rows_ = std::find(reduced_.begin(), reduced_.end(), minor) != reduced_.end();
    constexpr int64_t kShort = 16, kManyOutputs = 1 << 15;
    const int64_t most = body_.team ? body_.team : kMostPerOutput;
    if (rows_) {
      per_output_ = length_ < kShort ? 1 : std::min(PowerOfTwoUpTo(length_), most);
      // Long rows: a thread takes four elements or more.
      while (per_output_ > kWarp && per_output_ * 4 > length_) per_output_ /= 2;
    } else if (length_ >= kShort && outputs_ < kManyOutputs) {
      // Few columns, as of a vector times a matrix: narrow blocks of many threads, so that all of a GPU's processors
      // read. A sector of memory, 32 bytes, stays together.
      constexpr int64_t kFewBlocks = 128, kNarrowest = 8, kWidest = 512, kLargest = 1024;
      while (columns_ > kNarrowest && outputs_ < kFewBlocks * columns_) columns_ /= 2;
      const int64_t threads = body_.team ? body_.team : columns_ == kWarp ? kWidest : kLargest;
      per_output_ = std::min(PowerOfTwoUpTo(length_ / 4), threads / columns_);
    }
    ChooseAtOnce();
    while (per_output_ > 1 && body_.grid.shared_bytes() + SharedBytes() > kMostShared) {
      per_output_ /= 2;
      ChooseAtOnce();
    }
  }

  void ChooseAtOnce() {
    at_once_ = std::max<int64_t>(1, kBlock / per_output_);
    if (!rows_ && per_output_ > 1) at_once_ = columns_;
    if (body_.team) at_once_ = body_.team / per_output_;
  }

  // Threads of one output whose shares meet in shared memory.
  int64_t Places() const { return rows_ ? per_output_ / kWarp : per_output_; }

  int64_t SharedBytes() const {
    if (Places() <= 1) return 0;
    int64_t bytes = 0;
    for (const Part& p : parts_)
      for (size_t k = 0; k < p.slots.size(); ++k) bytes += ByteWidth(Held(TypeOf(p, k)));
    return bytes * Places() * at_once_;
  }

  PrimitiveType TypeOf(const Part& p, size_t k) const {
    return p.reduce->operand(static_cast<int64_t>(k))->shape().type();
  }

  Val Get(const Part& p, size_t k) {
    llvm::Type* type = ir_.RegType(TypeOf(p, k));
    Val v{b_.CreateLoad(type, p.slots[k])};
    if (IsComplex(TypeOf(p, k))) v.im = b_.CreateLoad(type, b_.CreateInBoundsGEP(type, p.slots[k], ir_.I64(1)));
    return v;
  }
  void Put(const Part& p, size_t k, const Val& v) {
    b_.CreateStore(v.re, p.slots[k]);
    if (v.im) b_.CreateStore(v.im, b_.CreateInBoundsGEP(ir_.RegType(TypeOf(p, k)), p.slots[k], ir_.I64(1)));
  }

  // A plain sum in a narrow float is accumulated unrounded in f32; anything else keeps its own rounding.
  absl::StatusOr<std::vector<Val>> Apply(const Part& p, const std::vector<Val>& x, const std::vector<Val>& y) {
    const Computation& f = **p.reduce->attrs().to_apply;
    const Instruction* r = f.root();
    if (x.size() == 1 && IsFloat(TypeOf(p, 0)) && InfoOf(TypeOf(p, 0)).bits < 32 && r->Is(Opcode::Add) &&
        r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) && r->operand(0) != r->operand(1))
      return std::vector<Val>{Val{b_.CreateFAdd(x[0].re, y[0].re)}};
    std::vector<Val> all = x;
    all.insert(all.end(), y.begin(), y.end());
    return elements_.Apply(f, all);
  }

  void Combine(const Part& p, const std::vector<Val>& with) {
    std::vector<Val> own;
    for (size_t k = 0; k < p.slots.size(); ++k) own.push_back(Get(p, k));
    auto r = Apply(p, own, with);
    if (!r.ok()) {
      status_ = r.status();
      return;
    }
    for (size_t k = 0; k < p.slots.size(); ++k) Put(p, k, (*r)[k]);
  }

  // Combines what two threads have.
  void Join(const Part& p, std::vector<Val> theirs) {
    if (p.by_place) {
      std::vector<Val> own = {Get(p, 0), Get(p, 1)};
      OrderByPlace(ir_, TypeOf(p, 1), &own, &theirs);
      for (size_t k = 0; k < 2; ++k) Put(p, k, own[k]);
    }
    Combine(p, theirs);
  }

  absl::StatusOr<std::vector<Val>> Elements(const Part& p, const Index& at) {
    std::vector<Val> out;
    for (size_t k = 0; k < p.slots.size(); ++k) {
      ASSIGN_OR_RETURN(Val v, elements_.Emit(p.reduce->operand(static_cast<int64_t>(k)), at));
      out.push_back(v);
    }
    return out;
  }

  // The first element of the thread's.
  absl::Status Begin(const Part& p, std::vector<Val> v) {
    if (!p.plain) {
      ASSIGN_OR_RETURN(std::vector<Val> initial, Initial(p));
      ASSIGN_OR_RETURN(v, Apply(p, initial, v));
    }
    for (size_t k = 0; k < v.size(); ++k) Put(p, k, v[k]);
    return absl::OkStatus();
  }

  // What this thread reduces by itself: elements slot, slot + per_output, ... of the output's.
  absl::Status Share(llvm::Value* output, llvm::Value* slot, llvm::Value* exists) {
    Ints kept_extents, reduced_extents;
    for (int64_t d : kept_) kept_extents.push_back(in_->dim(d));
    for (int64_t d : reduced_) reduced_extents.push_back(in_->dim(d));
    const auto counting = [](const Ints& v) {
      Ints order(v.size());
      for (size_t k = 0; k < v.size(); ++k) order[k] = static_cast<int64_t>(k);
      return order;
    };
    const std::vector<llvm::Value*> o = Delinearize(ir_, output, kept_extents, counting(kept_extents));
    const auto at = [&](llvm::Value* q) {
      Index x{std::vector<llvm::Value*>(in_->rank())};
      const std::vector<llvm::Value*> r = Delinearize(ir_, q, reduced_extents, counting(reduced_extents));
      for (size_t k = 0; k < kept_.size(); ++k) x.dims[kept_[k]] = o[k];
      for (size_t k = 0; k < reduced_.size(); ++k) x.dims[reduced_[k]] = r[k];
      return x;
    };
    const auto beside = [&](const Index& x) {
      if (beside_.empty()) return;
      const auto store = [&] {
        // All are computed before any is stored: a result may lie where an operand lay.
        std::vector<Val> values;
        for (const Beside& e : beside_) {
          auto v = elements_.Emit(e.value, x);
          if (!v.ok()) {
            status_ = v.status();
            return;
          }
          values.push_back(*v);
        }
        for (size_t k = 0; k < beside_.size(); ++k) {
          const Shape& s = beside_[k].value->shape();
          ir_.Store(s.type(), values[k], body_.results[beside_[k].result], elements_.Offset(s, x));
        }
      };
      if (exists)
        ir_.If(exists, store);
      else
        store();
    };
    Outputs computed;
    for (const Part& p : parts_)
      computed.insert(computed.end(), p.reduce->operands().begin(),
                      p.reduce->operands().begin() + static_cast<std::ptrdiff_t>(p.slots.size()));
    // What is stored beside may lie where an element is that comes later.
    const int64_t together = beside_.empty() ? SharesTogether(NeededFor(computed)) : 1;
    const auto reduce = [&](const std::vector<llvm::Value*>& elements, bool begins) -> absl::Status {
      std::vector<std::vector<Val>> values;
      std::vector<Index> places;
      for (llvm::Value* q : elements) {
        places.push_back(at(q));
        for (const Part& p : parts_) {
          ASSIGN_OR_RETURN(std::vector<Val> v, Elements(p, places.back()));
          values.push_back(std::move(v));
        }
      }
      for (size_t k = 0; k < values.size(); ++k) {
        const Part& p = parts_[k % parts_.size()];
        if (begins && k < parts_.size())
          RETURN_IF_ERROR(Begin(p, values[k]));
        else
          Combine(p, values[k]);
      }
      for (const Index& x : places) beside(x);
      return status_;
    };
    const std::vector<llvm::Value*> first = FirstShares(ir_, slot, per_output_, length_, together);
    RETURN_IF_ERROR(reduce(first, true));
    return EachShare(ir_, slot, static_cast<int64_t>(first.size()), per_output_, length_, together,
                     [&](const std::vector<llvm::Value*>& elements) { return reduce(elements, false); });
  }

  // The shares of one output become one, in slot 0.
  void Meet(llvm::Value* slot, llvm::Value* column) {
    if (rows_) {
      for (int64_t mask = std::min(per_output_, kWarp) / 2; mask > 0; mask /= 2)
        for (const Part& p : parts_) {
          std::vector<Val> theirs;
          for (size_t k = 0; k < p.slots.size(); ++k) theirs.push_back(body_.grid.ShuffleXor(Get(p, k), mask));
          Join(p, std::move(theirs));
        }
      if (Places() > 1)
        Through(b_.CreateICmpEQ(b_.CreateURem(slot, ir_.I64(kWarp)), ir_.I64(0)), b_.CreateUDiv(slot, ir_.I64(kWarp)),
                slot, column);
    } else if (Places() > 1) {
      Through(nullptr, slot, slot, column);
    }
  }

  // Through shared memory: threads of which `gives` holds store at `place`. Of rows slot 0 takes the others' in turn;
  // of columns the lower half of the slots takes the upper half's, until one is left.
  void Through(llvm::Value* gives, llvm::Value* place, llvm::Value* slot, llvm::Value* column) {
    struct Array {
      llvm::Type* type;
      llvm::Value *re, *im;
    };
    std::vector<std::vector<Array>> arrays;
    for (const Part& p : parts_) {
      arrays.emplace_back();
      for (size_t k = 0; k < p.slots.size(); ++k) {
        llvm::Type* type = ir_.MemType(Held(TypeOf(p, k)));
        const int64_t n = Places() * at_once_;
        arrays.back().push_back(
            {type, body_.grid.Shared(type, n), IsComplex(TypeOf(p, k)) ? body_.grid.Shared(type, n) : nullptr});
      }
    }
    const auto at = [&](llvm::Value* where) { return ir_.Add(ir_.Mul(where, at_once_), column); };
    const auto give = [&] {
      for (size_t q = 0; q < parts_.size(); ++q)
        for (size_t k = 0; k < parts_[q].slots.size(); ++k) {
          const Val v = Get(parts_[q], k);
          const Array& a = arrays[q][k];
          const auto put = [&](llvm::Value* x, llvm::Value* base) {
            if (x->getType() != a.type) x = b_.CreateZExt(x, a.type);
            b_.CreateStore(x, b_.CreateInBoundsGEP(a.type, base, at(place)));
          };
          put(v.re, a.re);
          if (v.im) put(v.im, a.im);
        }
    };
    if (gives)
      ir_.If(gives, give);
    else
      give();
    const auto take = [&](llvm::Value* from) {
      for (size_t q = 0; q < parts_.size(); ++q) {
        std::vector<Val> theirs;
        for (size_t k = 0; k < parts_[q].slots.size(); ++k) {
          const Array& a = arrays[q][k];
          const auto get = [&](llvm::Value* base) -> llvm::Value* {
            llvm::Value* x = b_.CreateLoad(a.type, b_.CreateInBoundsGEP(a.type, base, at(from)));
            llvm::Type* wanted = ir_.RegType(TypeOf(parts_[q], k));
            return x->getType() == wanted ? x : b_.CreateTrunc(x, wanted);
          };
          theirs.push_back({get(a.re), a.im ? get(a.im) : nullptr});
        }
        Join(parts_[q], std::move(theirs));
      }
    };
    body_.grid.Barrier();
    if (rows_) {
      ir_.If(b_.CreateICmpEQ(slot, ir_.I64(0)), [&] { ir_.Loop(ir_.I64(1), ir_.I64(Places()), 1, take); });
      return;
    }
    for (int64_t half = Places() / 2; half > 0; half /= 2) {
      ir_.If(b_.CreateICmpULT(slot, ir_.I64(half)), [&] {
        take(ir_.Add(slot, ir_.I64(half)));
        if (half > 1) give();
      });
      if (half > 1) body_.grid.Barrier();
    }
  }

  // Narrow floats are held as f32 until they are stored.
  static PrimitiveType Held(PrimitiveType t) { return IsFloat(t) && t != PrimitiveType::F64 ? PrimitiveType::F32 : t; }

  absl::Status Finish(llvm::Value* output, bool only_initial) {
    for (const Part& p : parts_) {
      const int64_t n = static_cast<int64_t>(p.slots.size());
      std::vector<Val> v;
      if (!only_initial)
        for (size_t k = 0; k < p.slots.size(); ++k) v.push_back(Get(p, k));
      if (only_initial || p.plain) {
        ASSIGN_OR_RETURN(std::vector<Val> initial, Initial(p));
        if (only_initial) {
          v = initial;
        } else {
          ASSIGN_OR_RETURN(v, Apply(p, initial, v));
        }
      }
      for (int64_t k = 0; k < n; ++k) {
        const Shape& s = p.reduce->shape().IsTuple() ? p.reduce->shape().tuple()[k] : p.reduce->shape();
        const Ints dims = s.dims();
        Ints order(dims.size());
        for (size_t q = 0; q < order.size(); ++q) order[q] = static_cast<int64_t>(q);
        const Index at{Delinearize(ir_, output, dims, order)};
        if (behind_) return FinishBehind(v[k], at);
        ir_.Store(s.type(), v[k], body_.results[p.result + k], elements_.Offset(s, at));
      }
    }
    return absl::OkStatus();
  }

  // What the fusion makes of an element of the reduction.
  absl::Status FinishBehind(const Val& v, const Index& at) {
    elements_.Preset(behind_, v);
    const Index to = PlaceInRoot(elements_, root_, behind_, at);
    ASSIGN_OR_RETURN(Val out, elements_.Emit(root_, to));
    ir_.Store(root_->shape().type(), out, body_.results[0], elements_.Offset(root_->shape(), to));
    return absl::OkStatus();
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  ElementEmitter elements_;
  const Instruction* root_;              // the first output
  const Instruction* behind_ = nullptr;  // the reduction, where the result is an elementwise function of it
  std::vector<Part> parts_;
  std::vector<Beside> beside_;
  const Shape* in_;
  Ints kept_, reduced_;
  int64_t outputs_ = 1, length_ = 1;
  bool rows_ = false;
  int64_t per_output_ = 1;   // threads that share an output
  int64_t columns_ = kWarp;  // outputs of a block where they are columns
  int64_t at_once_ = 1;      // outputs of a block
  absl::Status status_;
};

}  // namespace

absl::Status EmitReduction(Body& body, const Outputs& outputs) { return Reduction(body, outputs).Run(); }

}  // namespace kiln::gpu
