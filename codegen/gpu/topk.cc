// topk: a block for each row finds the k-th element digit by digit, collects what is not below it and sorts that. Few
// long rows are cut into pieces of which a block selects k each, and a second launch selects from what those found.
//
// Elements are ordered by an unsigned key that grows as they do, and among equals by their distance from the row's end,
// so that no two are alike and exactly k are collected, whatever the row holds. The row is read once for each digit of
// eight bits; between readings the block counts in shared memory.
#include <algorithm>
#include <cmath>

#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kDigit = 8, kDigits = 1 << kDigit;
constexpr int64_t kMostThreads = 1024, kPerThread = 4;
constexpr int64_t kBusy = 256;       // blocks that fill a GPU
constexpr int64_t kLong = 8192;      // shorter rows are a block's, however few they are
constexpr int64_t kShortest = 1024;  // piece

// Rows, and how they are cut.
struct TopKPlan {
  int64_t n, k, rows, pieces = 1;
  int64_t candidates() const { return pieces * k; }  // of a row
};

TopKPlan PlanOf(const Instruction* i) {
  const Shape& s = i->operand(0)->shape();
  TopKPlan p{s.dims().back(), *i->attrs().k, s.ElementCount() / s.dims().back()};
  if (p.n <= kLong || 2 * p.rows > kBusy) return p;
  // The pieces and what they leave take as long at about the root.
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(p.n) / static_cast<double>(p.k)));
  p.pieces = std::max<int64_t>(1, std::min({kBusy / p.rows, root, p.n / std::max(kShortest, 4 * p.k)}));
  return p;
}

int64_t ThreadsFor(int64_t n) {
  int64_t threads = kDigits;
  while (threads < kMostThreads && threads * kPerThread < n) threads *= 2;
  return threads;
}

// What a block selects from, and where to.
enum class Pass { kRows, kPieces, kCandidates };

class TopK {
 public:
  TopK(Body& body, const TopKPlan& plan, Pass pass)
      : body_(body),
        ir_(body.ir),
        b_(body.ir.b),
        type_(body.i->operand(0)->shape().type()),
        p_(plan),
        pass_(pass),
        n_(plan.n),
        k_(plan.k) {}

  void Run() {
    llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
    int64_t room = 1;
    while (room < k_) room *= 2;
    body_.threads = ThreadsFor(pass_ == Pass::kPieces       ? (n_ + p_.pieces - 1) / p_.pieces
                               : pass_ == Pass::kCandidates ? p_.candidates()
                                                            : n_);
    body_.blocks = pass_ == Pass::kPieces ? p_.rows * p_.pieces : p_.rows;
    thread_ = body_.grid.Thread();
    row_ = body_.grid.Block();
    Range();
    counts_ = body_.grid.Shared(i32, kDigits);
    found_ =
        body_.grid.Shared(i32, 2);  // a digit and how many of its elements are wanted; later, how many are collected
    keys_ = body_.grid.Shared(i64, room);
    places_ = body_.grid.Shared(i32, room);
    for (llvm::Value** v : {&prefix_, &mask_, &place_prefix_, &place_mask_}) {
      *v = ir_.Alloca(i64, 1, 8);
      b_.CreateStore(ir_.I64(0), *v);
    }
    wanted_ = ir_.Alloca(i32, 1, 8);
    b_.CreateStore(b_.getInt32(static_cast<uint32_t>(k_)), wanted_);
    Digits(KeyDigits(), prefix_, mask_, [&](llvm::Value* at) { return Key(at); });
    int64_t place_digits = 0;
    while (n_ - 1 >= int64_t{1} << (kDigit * place_digits)) ++place_digits;
    Digits(place_digits, place_prefix_, place_mask_, [&](llvm::Value* at) { return Place(at); });
    Collect(room);
    Sort(room);
    Write();
  }

 private:
  // The part of the row, or of its candidates, that the block selects from: of `count_` elements from `first_` on.
  void Range() {
    first_ = ir_.I64(0);
    count_ = ir_.I64(pass_ == Pass::kCandidates ? p_.candidates() : n_);
    if (pass_ != Pass::kPieces) return;
    piece_ = b_.CreateURem(row_, ir_.I64(p_.pieces));
    row_ = b_.CreateUDiv(row_, ir_.I64(p_.pieces));
    const auto begin = [&](llvm::Value* piece) { return b_.CreateUDiv(ir_.Mul(piece, n_), ir_.I64(p_.pieces)); };
    first_ = begin(piece_);
    count_ = b_.CreateSub(begin(ir_.Add(piece_, ir_.I64(1))), first_);
  }
  // Keys and places of the row's candidate `at`, in the arena.
  llvm::Value* CandidateKey(llvm::Value* at) {
    return b_.CreateInBoundsGEP(b_.getInt64Ty(), body_.scratch, ir_.Add(ir_.Mul(row_, p_.candidates()), at));
  }
  llvm::Value* CandidatePlace(llvm::Value* at) {
    llvm::Value* places = b_.CreateInBoundsGEP(b_.getInt64Ty(), body_.scratch, ir_.I64(p_.rows * p_.candidates()));
    return b_.CreateInBoundsGEP(b_.getInt32Ty(), places, ir_.Add(ir_.Mul(row_, p_.candidates()), at));
  }

  llvm::Value* ElementAt(llvm::Value* at) { return ir_.Add(ir_.Mul(row_, n_), at); }
  llvm::Value* Get(llvm::Type* type, llvm::Value* array, llvm::Value* at) {
    return b_.CreateLoad(type, b_.CreateInBoundsGEP(type, array, at));
  }
  void Put(llvm::Value* v, llvm::Value* array, llvm::Value* at) {
    b_.CreateStore(v, b_.CreateInBoundsGEP(v->getType(), array, at));
  }
  // Adds one and returns what was there.
  llvm::Value* Count(llvm::Value* array, llvm::Value* at) {
    return b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, b_.CreateInBoundsGEP(b_.getInt32Ty(), array, at),
                              b_.getInt32(1), llvm::MaybeAlign(4), llvm::AtomicOrdering::Monotonic);
  }

  // Bits of an f32 that are the same for every number of a narrower type.
  int64_t ConstantBits() const {
    return type_ == PrimitiveType::BF16 ? 2 * kDigit : type_ == PrimitiveType::F16 ? kDigit : 0;
  }
  int64_t KeyDigits() const {
    if (!IsFloat(type_)) return ByteWidth(type_);
    return (type_ == PrimitiveType::F64 ? 8 : 4) - ConstantBits() / kDigit;
  }

  // i64, larger for what comes first.
  llvm::Value* Key(llvm::Value* at) {
    if (pass_ == Pass::kCandidates) return b_.CreateLoad(b_.getInt64Ty(), CandidateKey(at));
    llvm::Value* v = ir_.Load(type_, body_.operands[0], ElementAt(ir_.Add(first_, at))).re;
    const unsigned width =
        IsFloat(type_) ? v->getType()->getScalarSizeInBits() : static_cast<unsigned>(8 * ByteWidth(type_));
    llvm::Type* bits = b_.getIntNTy(width);
    llvm::Value* sign = llvm::ConstantInt::get(bits, llvm::APInt::getSignMask(width));
    if (IsFloat(type_)) {
      // Negative numbers shrink as their bits grow.
      v = b_.CreateBitCast(v, bits);
      v = b_.CreateXor(v, b_.CreateOr(b_.CreateAShr(v, width - 1), sign));
    } else if (IsSigned(type_)) {
      v = b_.CreateXor(b_.CreateSExt(v, bits), sign);
    } else {
      v = b_.CreateZExt(v, bits);
    }
    if (!body_.i->attrs().largest.value_or(true)) v = b_.CreateNot(v);
    return b_.CreateZExt(b_.CreateLShr(v, static_cast<uint64_t>(ConstantBits())), b_.getInt64Ty());
  }
  // Likewise among elements of one key.
  llvm::Value* Place(llvm::Value* at) {
    if (pass_ == Pass::kCandidates)
      return b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), CandidatePlace(at)), b_.getInt64Ty());
    return b_.CreateSub(ir_.I64(n_ - 1), ir_.Add(first_, at));
  }

  // The k-th element agrees with what is known so far.
  llvm::Value* Agrees(llvm::Value* at) {
    llvm::Type* i64 = b_.getInt64Ty();
    const auto same = [&](llvm::Value* v, llvm::Value* mask, llvm::Value* prefix) {
      return b_.CreateICmpEQ(b_.CreateAnd(v, b_.CreateLoad(i64, mask)), b_.CreateLoad(i64, prefix));
    };
    return b_.CreateAnd(same(Key(at), mask_, prefix_), same(Place(at), place_mask_, place_prefix_));
  }

  // Learns the digits of the k-th element's number, the highest first.
  void Digits(int64_t count, llvm::Value* prefix, llvm::Value* mask,
              const std::function<llvm::Value*(llvm::Value*)>& number) {
    llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
    ir_.Loop(ir_.I64(0), ir_.I64(count), 1, [&](llvm::Value* step) {
      llvm::Value* shift = ir_.Mul(b_.CreateSub(ir_.I64(count - 1), step), kDigit);
      llvm::Value* counts = b_.CreateICmpULT(thread_, ir_.I64(kDigits));
      ir_.If(counts, [&] { Put(b_.getInt32(0), counts_, thread_); });
      body_.grid.Barrier();
      ir_.Loop(thread_, count_, body_.threads, [&](llvm::Value* at) {
        ir_.If(Agrees(at),
               [&] { Count(counts_, b_.CreateAnd(b_.CreateLShr(number(at), shift), ir_.I64(kDigits - 1))); });
      });
      body_.grid.Barrier();
      // Running sums from the highest digit down: thread t looks at the t-th highest, and those beyond at none.
      llvm::Value* mine = b_.CreateSub(ir_.I64(kDigits - 1), b_.CreateAnd(thread_, ir_.I64(kDigits - 1)));
      llvm::Value *own = Get(i32, counts_, mine), *sum = ir_.Alloca(i32, 1, 8);
      b_.CreateStore(own, sum);
      for (int64_t distance = 1; distance < kDigits; distance *= 2) {
        llvm::Value* reaches = b_.CreateAnd(counts, b_.CreateICmpUGE(thread_, ir_.I64(distance)));
        ir_.If(reaches, [&] {
          llvm::Value* before = Get(i32, counts_, ir_.Add(mine, ir_.I64(distance)));
          b_.CreateStore(b_.CreateAdd(b_.CreateLoad(i32, sum), before), sum);
        });
        body_.grid.Barrier();
        ir_.If(counts, [&] { Put(b_.CreateLoad(i32, sum), counts_, mine); });
        body_.grid.Barrier();
      }
      llvm::Value *upto = b_.CreateLoad(i32, sum), *above = b_.CreateSub(upto, own),
                  *wanted = b_.CreateLoad(i32, wanted_);
      llvm::Value* in_it = b_.CreateAnd(b_.CreateICmpULT(above, wanted), b_.CreateICmpUGE(upto, wanted));
      ir_.If(b_.CreateAnd(counts, in_it), [&] {
        Put(b_.CreateTrunc(mine, i32), found_, ir_.I64(0));
        Put(b_.CreateSub(wanted, above), found_, ir_.I64(1));
      });
      body_.grid.Barrier();
      llvm::Value* digit = b_.CreateZExt(Get(i32, found_, ir_.I64(0)), i64);
      b_.CreateStore(Get(i32, found_, ir_.I64(1)), wanted_);
      b_.CreateStore(b_.CreateOr(b_.CreateLoad(i64, prefix), b_.CreateShl(digit, shift)), prefix);
      b_.CreateStore(b_.CreateOr(b_.CreateLoad(i64, mask), b_.CreateShl(ir_.I64(kDigits - 1), shift)), mask);
    });
  }

  // The k elements that are not below the k-th, in any order; the rest of the room sorts last.
  void Collect(int64_t room) {
    llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
    body_.grid.Barrier();  // found_ was read
    ir_.If(b_.CreateICmpEQ(thread_, ir_.I64(0)), [&] { Put(b_.getInt32(0), found_, ir_.I64(0)); });
    ir_.Loop(ir_.Add(ir_.I64(k_), thread_), ir_.I64(room), body_.threads, [&](llvm::Value* at) {
      Put(ir_.I64(0), keys_, at);
      Put(b_.getInt32(static_cast<uint32_t>(-1)), places_, at);
    });
    body_.grid.Barrier();
    llvm::Value *key = b_.CreateLoad(i64, prefix_), *place = b_.CreateLoad(i64, place_prefix_);
    ir_.Loop(thread_, count_, body_.threads, [&](llvm::Value* at) {
      llvm::Value *own = Key(at), *own_place = Place(at);
      llvm::Value* tied = b_.CreateAnd(b_.CreateICmpEQ(own, key), b_.CreateICmpUGE(own_place, place));
      ir_.If(b_.CreateOr(b_.CreateICmpUGT(own, key), tied), [&] {
        llvm::Value* slot = b_.CreateZExt(Count(found_, ir_.I64(0)), i64);
        Put(own, keys_, slot);
        Put(b_.CreateTrunc(own_place, i32), places_, slot);
      });
    });
    body_.grid.Barrier();
  }

  void Sort(int64_t room) {
    const auto step = [&](const std::function<llvm::Value*(llvm::Value*)>& low,
                          const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& high) {
      ir_.Loop(thread_, ir_.I64(room / 2), body_.threads, [&](llvm::Value* pair) {
        llvm::Value* x = low(pair);
        Exchange(x, high(pair, x));
      });
      body_.grid.Barrier();
    };
    for (int64_t block = 2; block <= room; block *= 2) {
      const int64_t half = block / 2;
      step(
          [&](llvm::Value* q) {
            return ir_.Add(ir_.Mul(b_.CreateUDiv(q, ir_.I64(half)), block), b_.CreateURem(q, ir_.I64(half)));
          },
          [&](llvm::Value* q, llvm::Value*) {
            return b_.CreateSub(ir_.Add(ir_.Mul(b_.CreateUDiv(q, ir_.I64(half)), block), ir_.I64(block - 1)),
                                b_.CreateURem(q, ir_.I64(half)));
          });
      for (int64_t distance = half / 2; distance > 0; distance /= 2)
        step(
            [&](llvm::Value* q) {
              return ir_.Add(ir_.Mul(b_.CreateUDiv(q, ir_.I64(distance)), 2 * distance),
                             b_.CreateURem(q, ir_.I64(distance)));
            },
            [&](llvm::Value*, llvm::Value* x) { return ir_.Add(x, ir_.I64(distance)); });
    }
  }
  void Exchange(llvm::Value* x, llvm::Value* y) {
    llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
    llvm::Value *kx = Get(i64, keys_, x), *ky = Get(i64, keys_, y), *px = Get(i32, places_, x),
                *py = Get(i32, places_, y);
    llvm::Value* tied = b_.CreateAnd(b_.CreateICmpEQ(kx, ky), b_.CreateICmpSLT(px, py));
    ir_.If(b_.CreateOr(b_.CreateICmpULT(kx, ky), tied), [&] {
      Put(ky, keys_, x);
      Put(kx, keys_, y);
      Put(py, places_, x);
      Put(px, places_, y);
    });
  }

  void Write() {
    llvm::Type *raw = b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(type_))), *i32 = b_.getInt32Ty();
    ir_.Loop(thread_, ir_.I64(k_), body_.threads, [&](llvm::Value* q) {
      if (pass_ == Pass::kPieces) {
        llvm::Value* candidate = ir_.Add(ir_.Mul(piece_, k_), q);
        b_.CreateStore(Get(b_.getInt64Ty(), keys_, q), CandidateKey(candidate));
        b_.CreateStore(Get(i32, places_, q), CandidatePlace(candidate));
        return;
      }
      llvm::Value* at = b_.CreateSub(b_.getInt32(static_cast<uint32_t>(n_ - 1)), Get(i32, places_, q));
      llvm::Value* to = ir_.Add(ir_.Mul(row_, k_), q);
      Put(at, body_.results[1], to);
      Put(Get(raw, body_.operands[0], ElementAt(b_.CreateZExt(at, b_.getInt64Ty()))), body_.results[0], to);
    });
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const PrimitiveType type_;
  const TopKPlan& p_;
  const Pass pass_;
  const int64_t n_, k_;
  llvm::Value *first_ = nullptr, *count_ = nullptr, *piece_ = nullptr;
  llvm::Value *thread_ = nullptr, *row_ = nullptr;
  llvm::Value *counts_ = nullptr, *found_ = nullptr, *keys_ = nullptr, *places_ = nullptr;
  // What is known of the k-th element's key and place, and how many elements like it are wanted.
  llvm::Value *prefix_ = nullptr, *mask_ = nullptr, *place_prefix_ = nullptr, *place_mask_ = nullptr,
              *wanted_ = nullptr;
};

}  // namespace

int64_t SelectionScratchBytes(const Instruction* i) {
  if (i->operand(0)->shape().ElementCount() == 0 || *i->attrs().k == 0) return 0;
  const TopKPlan plan = PlanOf(i);
  return plan.pieces > 1 ? plan.rows * plan.candidates() * 12 : 0;
}

absl::StatusOr<std::vector<Launch>> EmitTopK(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                             const Instruction* i, const std::set<int64_t>& shared) {
  std::vector<Launch> out;
  const int64_t k = *i->attrs().k;
  if (k > kMostTopK)
    return ErrorAt(i, absl::StrCat("k is ", k, ", more than ", kMostTopK), absl::StatusCode::kUnimplemented);
  if (i->operand(0)->shape().ElementCount() == 0 || k == 0) return out;
  const TopKPlan plan = PlanOf(i);
  const auto add = [&](const std::string& suffix, Pass pass) -> absl::Status {
    const auto emit = [&](Body& body) {
      TopK(body, plan, pass).Run();
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(out.emplace_back(), EmitFunction(ir, target, symbol + suffix, i, shared, emit));
    return absl::OkStatus();
  };
  if (plan.pieces == 1) {
    RETURN_IF_ERROR(add("", Pass::kRows));
    return out;
  }
  RETURN_IF_ERROR(add("_pieces", Pass::kPieces));
  RETURN_IF_ERROR(add("", Pass::kCandidates));
  return out;
}

}  // namespace kiln::gpu
