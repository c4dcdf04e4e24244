// Sort: tiles of rows in shared memory, whose runs are merged; stable, whatever the comparator.
//
// A block sorts a tile: as many rows as fit, or a piece of one. Runs of twice the length come of two by ranks: an
// element's place is its own among its run and how many of the other run go before it, which a search finds. Only
// places move; elements follow once, at the end. Rows of several tiles are merged tile by tile of the result, run pair
// after run pair, between the results and as much scratch. All of that is one launch: blocks take their work in order
// from a counter, and wait until the pass before is done, which blocks that began earlier are at. A first launch sets
// the counters.
#include <algorithm>

#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"
#include "compiler/hlo/sort_key.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kMostSlots = 4096, kFewestSlots = 256;  // of a tile
constexpr int64_t kMostSharedBytes = 40 << 10;
constexpr int64_t kMostThreads = 512, kSlotsPerThread = 8;
constexpr int64_t kBusy = 256;  // blocks that fill a GPU

// What is sorted: rows of n elements `inner` apart, and how tiles are cut from them.
struct SortPlan {
  int64_t n = 1, outer = 1, inner = 1;
  int64_t room = 1;    // slots that a row has in a tile, a power of two
  int64_t rows = 1;    // that a tile holds
  int64_t tiles = 1;   // of a row
  int64_t merges = 0;  // passes over rows of several tiles

  int64_t slots() const { return room * rows; }
  int64_t blocks() const { return (outer * inner + rows - 1) / rows * tiles; }
  int64_t threads() const { return std::clamp(slots() / kSlotsPerThread, kWarp, kMostThreads); }
  int levels() const {
    int out = 0;
    while (int64_t{1} << out < room) ++out;
    return out;
  }
};

int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

PrimitiveType TypeOf(const Instruction* i, size_t k) { return i->operand(static_cast<int64_t>(k))->shape().type(); }

// Whether the comparator looks at operand `k`.
bool Compared(const Instruction* i, size_t k) {
  const Computation& less = **i->attrs().to_apply;
  for (const int64_t side : {0, 1}) {
    const Instruction* p = less.parameter(2 * static_cast<int64_t>(k) + side);
    if (!p->users().empty() || p == less.root()) return true;
  }
  return false;
}

SortPlan PlanOf(const Instruction* i) {
  const Shape& s = i->operand(0)->shape();
  SortPlan p;
  const int64_t dim = s.rank() ? (i->attrs().dimensions ? (*i->attrs().dimensions)[0] : s.rank() - 1) : 0;
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (d < dim) p.outer *= s.dim(d);
    if (d == dim) p.n = s.dim(d);
    if (d > dim) p.inner *= s.dim(d);
  }
  int64_t bytes = 2 * static_cast<int64_t>(sizeof(uint16_t));
  for (size_t k = 0; k < i->operands().size(); ++k)
    if (Compared(i, k)) bytes += ByteWidth(TypeOf(i, k));
  int64_t most = kMostSlots;
  while (most > 2 && most * bytes > kMostSharedBytes) most /= 2;
  while (p.room < p.n && p.room < most) p.room *= 2;
  while (p.room * p.rows < most && p.rows < p.outer * p.inner) p.rows *= 2;
  while (p.rows > 1 && p.slots() > kFewestSlots && p.blocks() < kBusy) p.rows /= 2;
  p.tiles = (p.n + p.room - 1) / p.room;
  while (p.room << p.merges < p.n) ++p.merges;
  return p;
}

// One kernel for all passes.
class Sorter {
 public:
  Sorter(Body& body, const SortPlan& plan, const std::set<int64_t>& shared)
      : body_(body), ir_(body.ir), b_(body.ir.b), p_(plan), shared_(shared) {
    for (size_t k = 0; k < body.results.size(); ++k) compared_.push_back(Compared(body.i, k));
    const std::vector<SortKey> keys = KeysOfSort(body.i);
    if (keys.size() == 1 && !keys[0].total && IsFloat(keys[0].value->shape().type())) unordered_ = keys[0];
  }

  absl::Status Run() {
    body_.threads = p_.threads();
    body_.blocks = p_.blocks() * (p_.merges + 1);
    thread_ = body_.grid.Thread();
    order_ = body_.grid.Shared(b_.getInt16Ty(), 2 * p_.slots());
    keys_.resize(body_.results.size());
    for (size_t k = 0; k < keys_.size(); ++k)
      if (compared_[k]) keys_[k] = body_.grid.Shared(Bits(k), p_.slots());
    if (p_.merges == 0) {
      Tile(body_.grid.Block());
      return status_;
    }
    llvm::Value *mine = body_.grid.Shared(b_.getInt32Ty(), 1), *first = b_.CreateICmpEQ(thread_, ir_.I64(0));
    splits_ = body_.grid.Shared(b_.getInt64Ty(), 2);
    ir_.If(first, [&] {
      b_.CreateStore(b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, body_.scratch, b_.getInt32(1), llvm::MaybeAlign(4),
                                        llvm::AtomicOrdering::Monotonic),
                     mine);
    });
    body_.grid.Barrier();
    llvm::Value* ticket = b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), mine), b_.getInt64Ty());
    llvm::Value *pass = b_.CreateUDiv(ticket, ir_.I64(p_.blocks())),
                *tile = b_.CreateURem(ticket, ir_.I64(p_.blocks()));
    llvm::Value* merges = b_.CreateICmpNE(pass, ir_.I64(0));
    ir_.If(b_.CreateNot(merges), [&] { Tile(tile); });
    ir_.If(merges, [&] {
      ir_.If(first, [&] { body_.grid.AwaitSignals(Counter(pass), p_.blocks()); });
      body_.grid.Barrier();
      Merge(pass, tile);
    });
    body_.grid.Barrier();
    ir_.If(first, [&] { body_.grid.Signal(Counter(ir_.Add(pass, ir_.I64(1)))); });
    return status_;
  }

 private:
  // ---- Memory ----

  llvm::Type* Bits(size_t k) { return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(TypeOf(body_.i, k)))); }
  llvm::Align AlignOf(size_t k) {
    return llvm::Align(std::min<uint64_t>(8, static_cast<uint64_t>(ByteWidth(TypeOf(body_.i, k)))));
  }
  llvm::Value* Load(size_t k, llvm::Value* array, llvm::Value* at) {
    return b_.CreateAlignedLoad(Bits(k), b_.CreateInBoundsGEP(Bits(k), array, at), AlignOf(k));
  }
  void Store(size_t k, llvm::Value* v, llvm::Value* array, llvm::Value* at) {
    b_.CreateAlignedStore(v, b_.CreateInBoundsGEP(Bits(k), array, at), AlignOf(k));
  }
  // How many blocks have finished pass `k` - 1; before all of them, which work is next.
  llvm::Value* Counter(llvm::Value* k) { return b_.CreateInBoundsGEP(b_.getInt32Ty(), body_.scratch, k); }
  // The other copies of the operands, after the counters.
  llvm::Value* Copy(size_t k) {
    int64_t at = Aligned(4 * (p_.merges + 2));
    for (size_t o = 0; o < k; ++o) at += Aligned(body_.i->operand(static_cast<int64_t>(o))->shape().ByteSize());
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), body_.scratch, ir_.I64(at));
  }
  // Where element `k` of row `row` lies.
  llvm::Value* Place(llvm::Value* row, llvm::Value* k) {
    llvm::Value* base =
        ir_.Add(ir_.Mul(b_.CreateUDiv(row, ir_.I64(p_.inner)), p_.n * p_.inner), b_.CreateURem(row, ir_.I64(p_.inner)));
    return ir_.Add(base, ir_.Mul(k, p_.inner));
  }
  llvm::Value* Slot(llvm::Value* at) {
    return b_.CreateZExt(b_.CreateLoad(b_.getInt16Ty(), b_.CreateInBoundsGEP(b_.getInt16Ty(), order_, at)),
                         b_.getInt64Ty());
  }
  void PutSlot(llvm::Value* slot, llvm::Value* at) {
    b_.CreateStore(b_.CreateTrunc(slot, b_.getInt16Ty()), b_.CreateInBoundsGEP(b_.getInt16Ty(), order_, at));
  }

  // ---- Order ----

  // Whether the first of two elements goes before the second, by what the comparator looks at.
  using Reader = std::function<Val(size_t operand)>;
  llvm::Value* Before(const Reader& x, const Reader& y) {
    ElementEmitter elements(ir_, {});
    std::vector<Val> arguments;
    for (size_t k = 0; k < keys_.size(); ++k) {
      const Val none = ir_.Constant(TypeOf(body_.i, k), Element());
      arguments.push_back(compared_[k] ? x(k) : none);
      arguments.push_back(compared_[k] ? y(k) : none);
    }
    auto before = elements.Apply(**body_.i->attrs().to_apply, arguments);
    if (!before.ok()) {
      status_.Update(before.status());
      return b_.getFalse();
    }
    if (!unordered_) return (*before)[0].re;
    // NaNs, which have no place of their own, go last.
    const auto nan = [&](const Val& v) -> llvm::Value* {
      ElementEmitter e(ir_, {});
      e.Preset(unordered_->parameter, v);
      auto key = e.Emit(unordered_->value, Index{});
      status_.Update(key.status());
      return key.ok() ? b_.CreateFCmpUNO(key->re, key->re) : b_.getFalse();
    };
    const auto k = static_cast<size_t>(2 * unordered_->operand);
    return b_.CreateOr((*before)[0].re, b_.CreateAnd(nan(arguments[k + 1]), b_.CreateNot(nan(arguments[k]))));
  }
  Reader InTile(llvm::Value* slot) {
    return [this, slot](size_t k) { return ir_.Load(TypeOf(body_.i, k), keys_[k], slot); };
  }

  // How many of the numbers below `count` `test` holds for, which holds for the first ones only.
  llvm::Value* Search(llvm::Value* from, llvm::Value* count, llvm::Value* steps,
                      const std::function<llvm::Value*(llvm::Value*)>& test) {
    llvm::Type* i64 = b_.getInt64Ty();
    llvm::Value *low = ir_.Alloca(i64, 1, 8), *high = ir_.Alloca(i64, 1, 8);
    b_.CreateStore(from, low);
    b_.CreateStore(count, high);
    ir_.Loop(ir_.I64(0), steps, 1, [&](llvm::Value*) {
      llvm::Value *l = b_.CreateLoad(i64, low), *h = b_.CreateLoad(i64, high);
      ir_.If(b_.CreateICmpULT(l, h), [&] {
        llvm::Value *middle = b_.CreateLShr(ir_.Add(l, h), 1), *holds = test(middle);
        b_.CreateStore(ir_.Select(holds, ir_.Add(middle, ir_.I64(1)), l), low);
        b_.CreateStore(ir_.Select(holds, h, middle), high);
      });
    });
    return b_.CreateLoad(i64, low);
  }

  // Two neighbouring runs of the tile, [begin, middle) and [middle, end) of the places at `from`, as one at `to`: the
  // element at place `at` of them.
  struct Runs {
    llvm::Value *begin, *middle, *end, *from, *to, *steps;
  };
  void Rank(const Runs& r, llvm::Value* at) {
    llvm::Value *own = Slot(ir_.Add(r.from, at)), *in_first = b_.CreateICmpULT(at, r.middle);
    llvm::Value *begin = ir_.Select(in_first, r.middle, r.begin), *end = ir_.Select(in_first, r.end, r.middle);
    llvm::Value* passed = Search(begin, end, r.steps, [&](llvm::Value* k) {
      llvm::Value* other = Slot(ir_.Add(r.from, k));
      llvm::Value *first = ir_.Select(in_first, own, other), *second = ir_.Select(in_first, other, own);
      // Among equals those of the first run go first.
      return b_.CreateXor(Before(InTile(second), InTile(first)), b_.CreateNot(in_first));
    });
    // What is before it of its own run, and of the other.
    llvm::Value* before = b_.CreateSub(at, ir_.Select(in_first, r.begin, r.middle));
    llvm::Value* place = ir_.Add(ir_.Add(r.begin, before), b_.CreateSub(passed, begin));
    PutSlot(own, ir_.Add(r.to, place));
  }

  // ---- Passes ----

  void EachSlot(const std::function<void(llvm::Value*)>& visit) {
    ir_.Loop(thread_, ir_.I64(p_.slots()), p_.threads(), visit);
  }
  // The elements of a tile as they lie in `place`, with what the comparator looks at in shared memory.
  using Placer = std::function<llvm::Value*(llvm::Value* slot)>;
  void Fetch(const std::vector<llvm::Value*>& arrays, llvm::Value* slot, llvm::Value* place) {
    for (size_t k = 0; k < keys_.size(); ++k)
      if (compared_[k]) Store(k, Load(k, arrays[k], place), keys_[k], slot);
    PutSlot(slot, slot);
    PutSlot(slot, ir_.Add(slot, ir_.I64(p_.slots())));
  }

  // A slot that holds an element, the number of the loop that found it, and where the element lies.
  using Visit = std::function<void(llvm::Value* number, llvm::Value* slot, llvm::Value* place)>;
  // Rows, or a piece of one, from the operands.
  void Tile(llvm::Value* tile) {
    const int levels = p_.levels();
    llvm::Value *row = ir_.Mul(b_.CreateUDiv(tile, ir_.I64(p_.tiles)), p_.rows),
                *piece = b_.CreateURem(tile, ir_.I64(p_.tiles));
    llvm::Value* start = ir_.Mul(piece, p_.room);
    llvm::Value* length =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSub(ir_.I64(p_.n), start), ir_.I64(p_.room));
    // Slots that hold an element, those of neighbours in memory by neighbouring threads.
    const auto each = [&](const Visit& visit) {
      EachSlot([&](llvm::Value* q) {
        llvm::Value *r = b_.CreateLShr(q, static_cast<uint64_t>(levels)), *k = b_.CreateAnd(q, ir_.I64(p_.room - 1));
        if (p_.inner > 1) {
          r = b_.CreateURem(q, ir_.I64(p_.rows));
          k = b_.CreateUDiv(q, ir_.I64(p_.rows));
        }
        llvm::Value* of = ir_.Add(row, r);
        ir_.If(b_.CreateAnd(b_.CreateICmpULT(of, ir_.I64(p_.outer * p_.inner)), b_.CreateICmpULT(k, length)),
               [&] { visit(q, ir_.Add(ir_.Mul(r, p_.room), k), Place(of, ir_.Add(start, k))); });
      });
    };
    each([&](llvm::Value*, llvm::Value* slot, llvm::Value* place) { Fetch(body_.operands, slot, place); });
    body_.grid.Barrier();
    ir_.Loop(ir_.I64(0), ir_.I64(levels), 1, [&](llvm::Value* level) {
      llvm::Value *run = b_.CreateShl(ir_.I64(1), level), *odd = b_.CreateAnd(level, ir_.I64(1));
      llvm::Value *from = ir_.Mul(odd, p_.slots()), *to = b_.CreateSub(ir_.I64(p_.slots()), from);
      EachSlot([&](llvm::Value* slot) {
        llvm::Value* r = b_.CreateLShr(slot, static_cast<uint64_t>(levels));
        llvm::Value *k = b_.CreateAnd(slot, ir_.I64(p_.room - 1)), *first = ir_.Mul(r, p_.room);
        llvm::Value* valid =
            b_.CreateAnd(b_.CreateICmpULT(ir_.Add(row, r), ir_.I64(p_.outer * p_.inner)), b_.CreateICmpULT(k, length));
        const auto most = [&](llvm::Value* x) {
          return ir_.Add(first, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, length));
        };
        llvm::Value* begin = b_.CreateAnd(k, b_.CreateNot(b_.CreateSub(b_.CreateShl(run, 1), ir_.I64(1))));
        ir_.If(valid, [&] {
          Rank({ir_.Add(first, begin), most(ir_.Add(begin, run)), most(ir_.Add(begin, b_.CreateShl(run, 1))), from, to,
                ir_.Add(level, ir_.I64(1))},
               slot);
        });
      });
      body_.grid.Barrier();
    });
    const int64_t sorted = levels % 2 * p_.slots();
    const auto source = [&](llvm::Value* slot) {
      llvm::Value* own = Slot(ir_.Add(slot, ir_.I64(sorted)));
      return Place(ir_.Add(row, b_.CreateLShr(own, static_cast<uint64_t>(levels))),
                   ir_.Add(start, b_.CreateAnd(own, ir_.I64(p_.room - 1))));
    };
    const bool to_results = p_.merges % 2 == 0;
    for (size_t k = 0; k < keys_.size(); ++k) {
      llvm::Value* to = to_results ? body_.results[k] : Copy(k);
      if (compared_[k])
        each([&](llvm::Value*, llvm::Value* slot, llvm::Value* place) {
          Store(k, Load(k, keys_[k], Slot(ir_.Add(slot, ir_.I64(sorted)))), to, place);
        });
      else if (to_results && shared_.count(static_cast<int64_t>(k)))
        InPlace(k, each, source);
      else
        each([&](llvm::Value*, llvm::Value* slot, llvm::Value* place) {
          Store(k, Load(k, body_.operands[k], source(slot)), to, place);
        });
    }
  }

  // Operand `k` where it lies: all of the tile is read before any is written.
  void InPlace(size_t k, const std::function<void(const Visit&)>& each,
               const std::function<llvm::Value*(llvm::Value*)>& source) {
    const int64_t own = (p_.slots() + p_.threads() - 1) / p_.threads();
    llvm::Value* held = ir_.Alloca(Bits(k), own, 16);
    const auto turn = [&](llvm::Value* number) { return b_.CreateUDiv(number, ir_.I64(p_.threads())); };
    each([&](llvm::Value* number, llvm::Value* slot, llvm::Value*) {
      Store(k, Load(k, body_.operands[k], source(slot)), held, turn(number));
    });
    body_.grid.Barrier();
    each([&](llvm::Value* number, llvm::Value*, llvm::Value* place) {
      Store(k, Load(k, held, turn(number)), body_.results[k], place);
    });
  }

  // A tile of what two neighbouring runs of a row make, each of room * 2^(pass - 1) elements or what there is.
  void Merge(llvm::Value* pass, llvm::Value* tile) {
    const auto least = [&](llvm::Value* x, llvm::Value* y) {
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y);
    };
    llvm::Value *row = b_.CreateUDiv(tile, ir_.I64(p_.tiles)), *n = ir_.I64(p_.n);
    llvm::Value *start = ir_.Mul(b_.CreateURem(tile, ir_.I64(p_.tiles)), p_.room),
                *both = b_.CreateShl(ir_.I64(p_.room), pass);
    llvm::Value *begin = b_.CreateAnd(start, b_.CreateNeg(both)),
                *middle = least(ir_.Add(begin, b_.CreateLShr(both, 1)), n);
    llvm::Value *end = least(ir_.Add(begin, both), n), *count = least(b_.CreateSub(end, start), ir_.I64(p_.room));
    llvm::Value *in_first = b_.CreateSub(middle, begin), *in_second = b_.CreateSub(end, middle);
    llvm::Value* from_results =
        b_.CreateTrunc(b_.CreateXor(b_.CreateAnd(pass, ir_.I64(1)), ir_.I64(p_.merges % 2)), b_.getInt1Ty());
    std::vector<llvm::Value*> from, to;
    for (size_t k = 0; k < keys_.size(); ++k) {
      from.push_back(ir_.Select(from_results, body_.results[k], Copy(k)));
      to.push_back(ir_.Select(from_results, Copy(k), body_.results[k]));
    }
    // How many elements of the first run are among so many of the result: at the tile's start, and at its end.
    ir_.If(b_.CreateICmpULT(thread_, ir_.I64(2)), [&] {
      llvm::Value* all = ir_.Add(b_.CreateSub(start, begin), b_.CreateMul(thread_, count));
      llvm::Value* fewest = b_.CreateSub(all, least(all, in_second));
      const auto at = [&](llvm::Value* k) -> Reader {
        llvm::Value* place = Place(row, k);
        return [this, place, &from](size_t o) { return ir_.Load(TypeOf(body_.i, o), from[o], place); };
      };
      int64_t steps = 1;
      while (int64_t{1} << steps <= p_.n) ++steps;
      llvm::Value* found = Search(fewest, least(all, in_first), ir_.I64(steps), [&](llvm::Value* k) {
        llvm::Value* other = b_.CreateSub(b_.CreateSub(ir_.Add(middle, all), k), ir_.I64(1));
        return b_.CreateNot(Before(at(other), at(ir_.Add(begin, k))));
      });
      b_.CreateStore(found, b_.CreateInBoundsGEP(b_.getInt64Ty(), splits_, thread_));
    });
    body_.grid.Barrier();
    const auto split = [&](int64_t k) {
      return b_.CreateLoad(b_.getInt64Ty(), b_.CreateInBoundsGEP(b_.getInt64Ty(), splits_, ir_.I64(k)));
    };
    llvm::Value* passed = split(0);
    // No more than there are, should the comparator be no order.
    llvm::Value* firsts = least(b_.CreateSub(split(1), passed), count);
    llvm::Value* seconds = b_.CreateSub(ir_.Add(b_.CreateSub(start, begin), middle), ir_.Add(passed, firsts));
    const auto source = [&](llvm::Value* slot) {
      llvm::Value* k = ir_.Add(slot, ir_.Select(b_.CreateICmpULT(slot, firsts), ir_.Add(begin, passed), seconds));
      return Place(row, least(k, ir_.I64(p_.n - 1)));
    };
    const auto each = [&](const std::function<void(llvm::Value*)>& visit) {
      EachSlot([&](llvm::Value* slot) { ir_.If(b_.CreateICmpULT(slot, count), [&] { visit(slot); }); });
    };
    each([&](llvm::Value* slot) { Fetch(from, slot, source(slot)); });
    body_.grid.Barrier();
    const Runs runs{ir_.I64(0), firsts, count, ir_.I64(0), ir_.I64(p_.slots()), ir_.I64(p_.levels() + 1)};
    each([&](llvm::Value* slot) { Rank(runs, slot); });
    body_.grid.Barrier();
    each([&](llvm::Value* slot) {
      llvm::Value* own = Slot(ir_.Add(slot, ir_.I64(p_.slots())));
      llvm::Value *place = Place(row, ir_.Add(start, slot)), *at = source(own);
      for (size_t k = 0; k < keys_.size(); ++k)
        Store(k, compared_[k] ? Load(k, keys_[k], own) : Load(k, from[k], at), to[k], place);
    });
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const SortPlan& p_;
  const std::set<int64_t>& shared_;
  std::vector<bool> compared_;
  std::optional<SortKey> unordered_;
  absl::Status status_;
  llvm::Value *thread_ = nullptr, *splits_ = nullptr;
  llvm::Value* order_ = nullptr;    // twice, for what is read and what is written: which slot is where
  std::vector<llvm::Value*> keys_;  // of each slot, by operand; null where the comparator does not look
};

absl::Status EmitCounters(Body& body, int64_t count) {
  return ForEach(body, count, [&](llvm::Value* k) {
    body.ir.b.CreateStore(body.ir.b.getInt32(0), body.ir.b.CreateInBoundsGEP(body.ir.b.getInt32Ty(), body.scratch, k));
    return absl::OkStatus();
  });
}

}  // namespace

int64_t MergeScratchBytes(const Instruction* i) {
  const SortPlan plan = PlanOf(i);
  if (plan.merges == 0) return 0;
  int64_t bytes = Aligned(4 * (plan.merges + 2));
  for (const Instruction* o : i->operands()) bytes += Aligned(o->shape().ByteSize());
  return bytes;
}

absl::StatusOr<std::vector<Launch>> EmitSort(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                             const Instruction* i, const std::set<int64_t>& shared) {
  std::vector<Launch> out;
  if (i->operand(0)->shape().ElementCount() == 0) return out;
  const SortPlan plan = PlanOf(i);
  const auto add = [&](const std::string& name, const std::function<absl::Status(Body&)>& emit) -> absl::Status {
    ASSIGN_OR_RETURN(out.emplace_back(), EmitFunction(ir, target, name, i, shared, emit));
    return absl::OkStatus();
  };
  if (plan.merges > 0)
    RETURN_IF_ERROR(add(symbol + "_counters", [&](Body& body) { return EmitCounters(body, plan.merges + 2); }));
  RETURN_IF_ERROR(add(symbol, [&](Body& body) { return Sorter(body, plan, shared).Run(); }));
  return out;
}

}  // namespace kiln::gpu
