// Sort: tiles of rows in shared memory, whose runs are merged; stable, whatever the comparator.
//
// A block sorts a tile: as many rows as fit, or a piece of one. Short runs of twice the length come of two by ranks: an
// element's place is its own among its run and how many of the other run go before it, which a search finds. Of longer
// ones each thread has a few neighbouring places, searches once for what goes before them, and goes on step by step.
// Only places move; elements follow once, at the end. Rows of several tiles are merged tile by tile of the result, run
// pair after run pair, between the results and as much scratch. All of that is one launch: blocks take their work in
// order from a counter, and wait until the pass before is done, which blocks that began earlier are at. A first launch
// sets the counters. In a fusion the first pass computes what it reads, and the last goes on with what it writes.
#include "codegen/elemental/element.h"
#include "codegen/gpu/sort_plan.h"
#include "compiler/hlo/sort_key.h"

namespace kiln::gpu {
namespace {

PrimitiveType TypeOf(const Instruction* i, size_t k) { return i->operand(static_cast<int64_t>(k))->shape().type(); }

// One kernel for all passes.
class Sorter {
 public:
  Sorter(Body& body, const Instruction* sort, const SortPlan& plan)
      : body_(body),
        ir_(body.ir),
        b_(body.ir.b),
        sort_(sort),
        p_(plan),
        results_(body.i, sort),
        scratch_(body.i, sort) {
    for (size_t k = 0; k < results_.plain.size(); ++k) compared_.push_back(Compares(sort, k));
    const std::vector<SortKey> keys = KeysOfSort(sort);
    if (keys.size() == 1 && !keys[0].total && IsFloat(keys[0].value->shape().type())) unordered_ = keys[0];
  }

  absl::Status Run() {
    body_.threads = p_.threads();
    body_.blocks = p_.blocks() * (p_.merges + 1);
    thread_ = body_.grid.Thread();
    order_ = body_.grid.Shared(b_.getInt16Ty(), 2 * p_.slots());
    keys_.resize(compared_.size());
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

  llvm::Type* Bits(size_t k) { return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(TypeOf(sort_, k)))); }
  llvm::Align AlignOf(size_t k) {
    return llvm::Align(std::min<uint64_t>(8, static_cast<uint64_t>(ByteWidth(TypeOf(sort_, k)))));
  }
  llvm::Value* Load(size_t k, llvm::Value* array, llvm::Value* at) {
    return b_.CreateAlignedLoad(Bits(k), b_.CreateInBoundsGEP(Bits(k), array, at), AlignOf(k));
  }
  void Store(size_t k, llvm::Value* v, llvm::Value* array, llvm::Value* at) {
    b_.CreateAlignedStore(v, b_.CreateInBoundsGEP(Bits(k), array, at), AlignOf(k));
  }
  // How many blocks have finished pass `k` - 1; before all of them, which work is next.
  llvm::Value* Counter(llvm::Value* k) { return b_.CreateInBoundsGEP(b_.getInt32Ty(), body_.scratch, k); }
  llvm::Value* Scratch(int64_t at) { return b_.CreateInBoundsGEP(b_.getInt8Ty(), body_.scratch, ir_.I64(at)); }
  // Where operand `k` lies between passes: in one place before the last, and in another before that.
  llvm::Value* Copy(size_t k) { return Scratch(scratch_.copies.at(k)); }
  llvm::Value* Other(size_t k) {
    const auto it = scratch_.others.find(k);
    return it != scratch_.others.end() ? Scratch(it->second) : body_.results[static_cast<size_t>(results_.plain[k])];
  }

  // Where operand `k` of the sort lies as it comes; null: loops compute it.
  llvm::Value* Given(size_t k) {
    const Instruction* o = sort_->operand(static_cast<int64_t>(k));
    if (sort_ == body_.i) return body_.operands[k];
    return o->Is(Opcode::Parameter) ? body_.operands[static_cast<size_t>(*o->attrs().parameter_number)] : nullptr;
  }
  Index IndexAt(const Shape& s, llvm::Value* place) {
    return Index{Delinearize(ir_, place, s.dims(), MemoryOrder(s)), place};
  }
  Val Computed(ElementEmitter& elements, const Instruction* i, llvm::Value* place) {
    auto v = elements.Emit(i, IndexAt(i->shape(), place));
    status_.Update(v.status());
    return v.ok() ? *v : ir_.Constant(i->shape().type(), Element());
  }
  Val Operand(size_t k, llvm::Value* place) {
    if (llvm::Value* given = Given(k)) return ir_.Load(TypeOf(sort_, k), given, place);
    ElementEmitter elements(ir_, body_.operands);
    return Computed(elements, sort_->operand(static_cast<int64_t>(k)), place);
  }
  void MoveOperand(size_t k, llvm::Value* place, llvm::Value* to, llvm::Value* at) {
    if (llvm::Value* given = Given(k)) return Store(k, Load(k, given, place), to, at);
    ir_.Store(TypeOf(sort_, k), Operand(k, place), to, at);
  }

  // One sorted element of each operand: from array `array` and place `at` of it, or the operand itself.
  struct Sorted {
    llvm::Value *array, *at;
  };
  using From = std::function<Sorted(size_t operand)>;
  void Move(size_t k, const Sorted& from, llvm::Value* to, llvm::Value* place) {
    if (!from.array) return MoveOperand(k, from.at, to, place);
    Store(k, Load(k, from.array, from.at), to, place);
  }
  // The elements of all results at `place`, computed before any is stored.
  void Finish(const From& from, llvm::Value* place) {
    ElementEmitter elements(ir_, body_.operands);
    std::vector<Val> made;
    if (!results_.made.empty()) {
      const auto value = [&](size_t k) {
        const Sorted s = from(k);
        return s.array ? ir_.Load(TypeOf(sort_, k), s.array, s.at) : Operand(k, s.at);
      };
      if (!sort_->shape().IsTuple()) elements.Preset(sort_, value(0));
      for (const Instruction* u : sort_->users())
        if (u->Is(Opcode::GetTupleElement)) elements.Preset(u, value(static_cast<size_t>(*u->attrs().tuple_index)));
      for (const auto& [o, r] : results_.made) made.push_back(Computed(elements, r, place));
    }
    for (size_t k = 0; k < compared_.size(); ++k)
      if (results_.plain[k] >= 0) Move(k, from(k), body_.results[static_cast<size_t>(results_.plain[k])], place);
    for (size_t m = 0; m < made.size(); ++m) {
      const auto& [o, r] = results_.made[m];
      ir_.Store(r->shape().type(), made[m], body_.results[o], place);
    }
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

  llvm::Value* Least(llvm::Value* x, llvm::Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y); }
  llvm::Value* Last(llvm::Value* end) { return b_.CreateSub(end, ir_.I64(1)); }

  // ---- Order ----

  // Whether the first of two elements goes before the second, by what the comparator looks at.
  using Reader = std::function<Val(size_t operand)>;
  llvm::Value* Before(const Reader& x, const Reader& y) {
    ElementEmitter elements(ir_, {});
    std::vector<Val> arguments;
    for (size_t k = 0; k < keys_.size(); ++k) {
      const Val none = ir_.Constant(TypeOf(sort_, k), Element());
      arguments.push_back(compared_[k] ? x(k) : none);
      arguments.push_back(compared_[k] ? y(k) : none);
    }
    auto before = elements.Apply(**sort_->attrs().to_apply, arguments);
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
    return [this, slot](size_t k) { return ir_.Load(TypeOf(sort_, k), keys_[k], slot); };
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

  // How many elements of a first run, [begin, middle), are among the first `all` of what it and a second one, [middle,
  // end), make. Among equals those of the first run go first.
  llvm::Value* OfFirstRun(llvm::Value* begin, llvm::Value* middle, llvm::Value* end, llvm::Value* all,
                          llvm::Value* steps, const std::function<Reader(llvm::Value* place)>& at) {
    llvm::Value *in_first = b_.CreateSub(middle, begin), *in_second = b_.CreateSub(end, middle);
    return Search(b_.CreateSub(all, Least(all, in_second)), Least(all, in_first), steps, [&](llvm::Value* k) {
      llvm::Value* other = Last(b_.CreateSub(ir_.Add(middle, all), k));
      return b_.CreateNot(Before(at(other), at(ir_.Add(begin, k))));
    });
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

  // The same for the thread's own places from `at` on: it finds what of both runs goes before them, and then goes on
  // step by step.
  void MergeOwn(const Runs& r, llvm::Value* at) {
    llvm::Type* i64 = b_.getInt64Ty();
    const auto slot = [&](llvm::Value* place) { return Slot(ir_.Add(r.from, place)); };
    const auto reader = [&](llvm::Value* place) { return InTile(slot(place)); };
    llvm::Value* all = b_.CreateSub(at, r.begin);
    llvm::Value* passed = OfFirstRun(r.begin, r.middle, r.end, all, r.steps, reader);
    llvm::Value *first = ir_.Alloca(i64, 1, 8), *second = ir_.Alloca(i64, 1, 8);
    b_.CreateStore(ir_.Add(r.begin, passed), first);
    b_.CreateStore(b_.CreateSub(ir_.Add(r.middle, all), passed), second);
    llvm::Value* count = Least(b_.CreateSub(r.end, at), ir_.I64(Own()));
    ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* k) {
      llvm::Value *x = b_.CreateLoad(i64, first), *y = b_.CreateLoad(i64, second);
      // No place outside of the runs is read, should the comparator be no order.
      llvm::Value *x_left = b_.CreateICmpULT(x, r.middle), *y_left = b_.CreateICmpULT(y, r.end);
      llvm::Value *x_at = Least(x, Last(r.middle)), *y_at = Least(y, Last(r.end));
      llvm::Value* takes_second =
          b_.CreateAnd(y_left, b_.CreateOr(b_.CreateNot(x_left), Before(reader(y_at), reader(x_at))));
      PutSlot(slot(ir_.Select(takes_second, y_at, x_at)), ir_.Add(r.to, ir_.Add(at, k)));
      b_.CreateStore(ir_.Add(x, b_.CreateZExt(b_.CreateNot(takes_second), i64)), first);
      b_.CreateStore(ir_.Add(y, b_.CreateZExt(takes_second, i64)), second);
    });
  }

  // ---- Passes ----

  // Neighbouring slots that a thread merges to; 1: a row has fewer.
  int64_t Own() const {
    const int64_t each = p_.slots() / p_.threads();
    return each >= kFewestOwn && each <= p_.room ? each : 1;
  }
  void EachSlot(const std::function<void(llvm::Value*)>& visit) {
    ir_.Loop(thread_, ir_.I64(p_.slots()), p_.threads(), visit);
  }
  // Slot `slot` of a tile is that element, of which what the comparator looks at is in shared memory.
  void Fetch(llvm::Value* slot, const From& from) {
    for (size_t k = 0; k < keys_.size(); ++k)
      if (compared_[k]) Move(k, from(k), keys_[k], slot);
    PutSlot(slot, slot);
    PutSlot(slot, ir_.Add(slot, ir_.I64(p_.slots())));
  }

  // A slot that holds an element, and where the element lies.
  using Visit = std::function<void(llvm::Value* slot, llvm::Value* place)>;
  // Rows, or a piece of one, from the operands.
  void Tile(llvm::Value* tile) {
    const int levels = p_.levels();
    llvm::Value *row = ir_.Mul(b_.CreateUDiv(tile, ir_.I64(p_.tiles)), p_.rows),
                *piece = b_.CreateURem(tile, ir_.I64(p_.tiles));
    llvm::Value* start = ir_.Mul(piece, p_.room);
    llvm::Value* length = Least(b_.CreateSub(ir_.I64(p_.n), start), ir_.I64(p_.room));
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
               [&] { visit(ir_.Add(ir_.Mul(r, p_.room), k), Place(of, ir_.Add(start, k))); });
      });
    };
    each([&](llvm::Value* slot, llvm::Value* place) { Fetch(slot, [&](size_t) { return Sorted{nullptr, place}; }); });
    body_.grid.Barrier();
    const auto merge = [&](llvm::Value* level, bool own) {
      llvm::Value *run = b_.CreateShl(ir_.I64(1), level), *odd = b_.CreateAnd(level, ir_.I64(1));
      llvm::Value *from = ir_.Mul(odd, p_.slots()), *to = b_.CreateSub(ir_.I64(p_.slots()), from);
      const auto visit = [&](llvm::Value* slot) {
        llvm::Value* r = b_.CreateLShr(slot, static_cast<uint64_t>(levels));
        llvm::Value *k = b_.CreateAnd(slot, ir_.I64(p_.room - 1)), *first = ir_.Mul(r, p_.room);
        llvm::Value* valid =
            b_.CreateAnd(b_.CreateICmpULT(ir_.Add(row, r), ir_.I64(p_.outer * p_.inner)), b_.CreateICmpULT(k, length));
        const auto most = [&](llvm::Value* x) { return ir_.Add(first, Least(x, length)); };
        llvm::Value* begin = b_.CreateAnd(k, b_.CreateNot(b_.CreateSub(b_.CreateShl(run, 1), ir_.I64(1))));
        ir_.If(valid, [&] {
          const Runs runs{ir_.Add(first, begin),
                          most(ir_.Add(begin, run)),
                          most(ir_.Add(begin, b_.CreateShl(run, 1))),
                          from,
                          to,
                          ir_.Add(level, ir_.I64(1))};
          if (own)
            MergeOwn(runs, slot);
          else
            Rank(runs, slot);
        });
      };
      if (own)
        visit(ir_.Mul(thread_, Own()));
      else
        EachSlot(visit);
      body_.grid.Barrier();
    };
    // Runs of which a thread's slots are a part are merged by threads, shorter ones by slots.
    int64_t by_slots = levels;
    while (Own() > 1 && by_slots > 0 && int64_t{1} << by_slots >= Own()) --by_slots;
    ir_.Loop(ir_.I64(0), ir_.I64(by_slots), 1, [&](llvm::Value* level) { merge(level, false); });
    ir_.Loop(ir_.I64(by_slots), ir_.I64(levels), 1, [&](llvm::Value* level) { merge(level, true); });
    const int64_t sorted = levels % 2 * p_.slots();
    each([&](llvm::Value* slot, llvm::Value* place) {
      llvm::Value* own = Slot(ir_.Add(slot, ir_.I64(sorted)));
      llvm::Value* source = Place(ir_.Add(row, b_.CreateLShr(own, static_cast<uint64_t>(levels))),
                                  ir_.Add(start, b_.CreateAnd(own, ir_.I64(p_.room - 1))));
      const From from = [&](size_t k) { return compared_[k] ? Sorted{keys_[k], own} : Sorted{nullptr, source}; };
      if (p_.merges == 0) return Finish(from, place);
      for (size_t k = 0; k < keys_.size(); ++k) Move(k, from(k), p_.merges % 2 ? Copy(k) : Other(k), place);
    });
  }

  // A tile of what two neighbouring runs of a row make, each of room * 2^(pass - 1) elements or what there is.
  void Merge(llvm::Value* pass, llvm::Value* tile) {
    llvm::Value *row = b_.CreateUDiv(tile, ir_.I64(p_.tiles)), *n = ir_.I64(p_.n);
    llvm::Value *start = ir_.Mul(b_.CreateURem(tile, ir_.I64(p_.tiles)), p_.room),
                *both = b_.CreateShl(ir_.I64(p_.room), pass);
    llvm::Value *begin = b_.CreateAnd(start, b_.CreateNeg(both)),
                *middle = Least(ir_.Add(begin, b_.CreateLShr(both, 1)), n);
    llvm::Value *end = Least(ir_.Add(begin, both), n), *count = Least(b_.CreateSub(end, start), ir_.I64(p_.room));
    std::vector<llvm::Value*> arrays, next;
    llvm::Value* odd = b_.CreateTrunc(b_.CreateXor(pass, ir_.I64(p_.merges)), b_.getInt1Ty());
    for (size_t k = 0; k < keys_.size(); ++k) {
      arrays.push_back(p_.merges == 1 ? Copy(k) : ir_.Select(odd, Other(k), Copy(k)));
      next.push_back(p_.merges == 1 ? nullptr : ir_.Select(odd, Copy(k), Other(k)));
    }
    // How many elements of the first run are among so many of the result: at the tile's start, and at its end.
    ir_.If(b_.CreateICmpULT(thread_, ir_.I64(2)), [&] {
      llvm::Value* all = ir_.Add(b_.CreateSub(start, begin), b_.CreateMul(thread_, count));
      const auto at = [&](llvm::Value* k) -> Reader {
        llvm::Value* place = Place(row, k);
        return [this, place, &arrays](size_t o) { return ir_.Load(TypeOf(sort_, o), arrays[o], place); };
      };
      int64_t steps = 1;
      while (int64_t{1} << steps <= p_.n) ++steps;
      llvm::Value* found = OfFirstRun(begin, middle, end, all, ir_.I64(steps), at);
      b_.CreateStore(found, b_.CreateInBoundsGEP(b_.getInt64Ty(), splits_, thread_));
    });
    body_.grid.Barrier();
    const auto split = [&](int64_t k) {
      return b_.CreateLoad(b_.getInt64Ty(), b_.CreateInBoundsGEP(b_.getInt64Ty(), splits_, ir_.I64(k)));
    };
    llvm::Value* passed = split(0);
    // No more than there are, should the comparator be no order.
    llvm::Value* firsts = Least(b_.CreateSub(split(1), passed), count);
    llvm::Value* seconds = b_.CreateSub(ir_.Add(b_.CreateSub(start, begin), middle), ir_.Add(passed, firsts));
    const auto source = [&](llvm::Value* slot) {
      llvm::Value* k = ir_.Add(slot, ir_.Select(b_.CreateICmpULT(slot, firsts), ir_.Add(begin, passed), seconds));
      return Place(row, Least(k, ir_.I64(p_.n - 1)));
    };
    const auto each = [&](const std::function<void(llvm::Value*)>& visit) {
      EachSlot([&](llvm::Value* slot) { ir_.If(b_.CreateICmpULT(slot, count), [&] { visit(slot); }); });
    };
    each([&](llvm::Value* slot) {
      llvm::Value* at = source(slot);
      Fetch(slot, [&](size_t k) { return Sorted{arrays[k], at}; });
    });
    body_.grid.Barrier();
    const Runs runs{ir_.I64(0), firsts, count, ir_.I64(0), ir_.I64(p_.slots()), ir_.I64(p_.levels() + 1)};
    llvm::Value* own = ir_.Mul(thread_, Own());
    if (Own() > 1)
      ir_.If(b_.CreateICmpULT(own, count), [&] { MergeOwn(runs, own); });
    else
      each([&](llvm::Value* slot) { Rank(runs, slot); });
    body_.grid.Barrier();
    each([&](llvm::Value* slot) {
      llvm::Value* own = Slot(ir_.Add(slot, ir_.I64(p_.slots())));
      llvm::Value *place = Place(row, ir_.Add(start, slot)), *at = source(own);
      const From from = [&](size_t k) { return compared_[k] ? Sorted{keys_[k], own} : Sorted{arrays[k], at}; };
      if (p_.merges == 1) return Finish(from, place);
      llvm::Value* last = b_.CreateICmpEQ(pass, ir_.I64(p_.merges));
      ir_.If(last, [&] { Finish(from, place); });
      ir_.If(b_.CreateNot(last), [&] {
        for (size_t k = 0; k < keys_.size(); ++k) Move(k, from(k), next[k], place);
      });
    });
  }

  static constexpr int64_t kFewestOwn = 4;

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Instruction* sort_;
  const SortPlan& p_;
  const SortResults results_;
  const SortScratch scratch_;
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

const Instruction* SortOf(const Instruction* i) {
  if (i->Is(Opcode::Sort)) return i;
  if (!i->Is(Opcode::Fusion) || i->attrs().fusion_kind != FusionKind::kCustom) return nullptr;
  for (const auto& x : (*i->attrs().calls)->instructions())
    if (x->Is(Opcode::Sort)) return x.get();
  return nullptr;
}

int64_t MergeScratchBytes(const Instruction* i) { return SortScratch(i, SortOf(i)).bytes; }

absl::StatusOr<std::vector<Launch>> EmitSort(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                             const Instruction* i, const std::set<int64_t>& shared) {
  std::vector<Launch> out;
  const Instruction* sort = SortOf(i);
  if (sort->operand(0)->shape().ElementCount() == 0) return out;
  const SortPlan plan(sort);
  const auto add = [&](const std::string& name, const std::function<absl::Status(Body&)>& emit) -> absl::Status {
    ASSIGN_OR_RETURN(out.emplace_back(), EmitFunction(ir, target, name, i, shared, emit));
    return absl::OkStatus();
  };
  if (plan.merges > 0)
    RETURN_IF_ERROR(add(symbol + "_counters", [&](Body& body) { return EmitCounters(body, plan.merges + 2); }));
  RETURN_IF_ERROR(add(symbol, [&](Body& body) { return Sorter(body, sort, plan).Run(); }));
  return out;
}

}  // namespace kiln::gpu
