// Many short rows sorted side by side: a row in each lane of vectors, by a network of comparisons.
//
// A unit is a group of rows. Where a key is the element, lanes hold keys; a group with elements that share a key, zeros
// of both signs for instance, is sorted again with places. Else lanes hold keys above places, and what the places say
// is fetched behind. Both are stable.
#include <algorithm>

#include "codegen/elemental/element.h"
#include "codegen/elemental/library.h"
#include "codegen/elemental/sort_rows.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln {
namespace {

constexpr int64_t kFewestRows = 4;
constexpr int64_t kLongest = 1024;  // words of a lane: 64 KiB, twice where rows are turned
constexpr int64_t kGroup = 16;      // rows

class SideBySide {
 public:
  explicit SideBySide(Body& body)
      : body_(body), ir_(body.ir), b_(body.ir.b), i_(body.i), rows_(body.i), key_(KeysOfSort(body.i)[0]) {
    const int64_t padded = (rows_.n + 7) / 8 * 8;
    columns_ = ir_.Alloca(b_.getInt32Ty(), padded * kGroup);
    if (rows_.inner == 1) lines_ = ir_.Alloca(b_.getInt32Ty(), rows_.n * kGroup);
  }

  absl::StatusOr<int64_t> Emit() {
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* group) {
      llvm::Value* first = ir_.Mul(group, kGroup);
      i_->operand_count() == 1 && KeyIsElement(key_) ? Alone(first) : WithPlaces(first);
    });
    RETURN_IF_ERROR(status_);
    return (rows_.count() + kGroup - 1) / kGroup;
  }

 private:
  // Rows from `first`, one in each lane of vectors of `word`, `count` of them.
  struct Lanes {
    llvm::IntegerType* word;
    llvm::Value *first, *count;
    int64_t most() const { return kGroup * 32 / word->getBitWidth(); }
  };

  Lanes LanesFrom(llvm::Value* first, unsigned bits) {
    Lanes l{b_.getIntNTy(bits), first, nullptr};
    l.count =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.I64(l.most()), b_.CreateSub(ir_.I64(rows_.count()), first));
    return l;
  }

  // `visit` is given an element's place in its row, where it lies in its array, and the address of its word.
  using Visit = std::function<void(llvm::Value* q, llvm::Value* at, llvm::Value* word)>;

  void Each(const Lanes& l, const Visit& visit) {
    if (rows_.inner == 1)
      return ir_.Loop(ir_.I64(0), l.count, 1, [&](llvm::Value* lane) {
        llvm::Value *begin = ir_.Mul(ir_.Add(l.first, lane), rows_.n), *line = ir_.Mul(lane, rows_.n);
        const auto element = [&](llvm::Value* q) { visit(q, ir_.Add(begin, q), At(l, lines_, ir_.Add(line, q))); };
        ir_.VectorLoop(rows_.n, element, false);
      });
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      const auto row = [&](llvm::Value* lane) {
        llvm::Value* at = ir_.Add(rows_.Begin(ir_, ir_.Add(l.first, lane)), ir_.Mul(q, rows_.inner));
        visit(q, at, At(l, columns_, ir_.Add(ir_.Mul(q, l.most()), lane)));
      };
      if (rows_.outer > 1) return ir_.Loop(ir_.I64(0), l.count, 1, row);
      llvm::Value* whole = b_.CreateICmpEQ(l.count, ir_.I64(l.most()));
      ir_.If(whole, [&] { ir_.VectorLoop(l.most(), row, false); });
      if (rows_.inner % l.most() != 0) ir_.If(b_.CreateNot(whole), [&] { ir_.Loop(ir_.I64(0), l.count, 1, row); });
    });
  }

  llvm::Value* At(const Lanes& l, llvm::Value* words, llvm::Value* k) { return b_.CreateInBoundsGEP(l.word, words, k); }

  void Sort(const Lanes& l) {
    const std::string type = l.word->getBitWidth() == 32 ? "u32" : "u64";
    if (lines_)
      ir_.CallLibrary("kiln_sort_lines_" + type, b_.getVoidTy(), {lines_, columns_, ir_.I64(rows_.n)});
    else
      ir_.CallLibrary("kiln_sort_columns_" + type, b_.getVoidTy(), {columns_, ir_.I64(rows_.n)});
  }

  llvm::Type* Bits(const Instruction* array) {
    return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(array->shape().type())));
  }
  llvm::Value* LoadBits(size_t k, llvm::Value* at) {
    llvm::Type* type = Bits(i_->operand(static_cast<int64_t>(k)));
    return b_.CreateAlignedLoad(type, b_.CreateInBoundsGEP(type, body_.operands[k], at), llvm::Align(1));
  }
  void StoreBits(size_t k, llvm::Value* bits, llvm::Value* at) {
    b_.CreateAlignedStore(bits, b_.CreateInBoundsGEP(bits->getType(), body_.results[k], at), llvm::Align(1));
  }

  llvm::Value* Key(llvm::Value* at) {
    const auto operand = static_cast<size_t>(key_.operand);
    auto key =
        EmitKey(ir_, key_, ir_.Load(i_->operand(key_.operand)->shape().type(), body_.operands[operand], at), nullptr);
    if (key.ok()) return *key;
    status_.Update(key.status());
    return b_.getInt32(0);
  }

  void Alone(llvm::Value* first) {
    const Lanes l = LanesFrom(first, 32);
    llvm::Value* differ = nullptr;  // bits in which elements are not what their keys say
    if (KeysMayMeet(key_)) {
      differ = ir_.Alloca(b_.getInt32Ty(), 1);
      b_.CreateStore(b_.getInt32(0), differ);
    }
    Each(l, [&](llvm::Value*, llvm::Value* at, llvm::Value* word) {
      llvm::Value* key = Key(at);
      if (differ) {
        llvm::Value* bits = b_.CreateXor(ElementOfKey(ir_, key_, key), LoadBits(0, at));
        b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), differ), bits), differ);
      }
      b_.CreateStore(b_.CreateZExt(key, l.word), word);
    });
    const auto sort = [&] {
      Sort(l);
      Each(l, [&](llvm::Value*, llvm::Value* at, llvm::Value* word) {
        StoreBits(0, ElementOfKey(ir_, key_, b_.CreateLoad(l.word, word)), at);
      });
    };
    if (!differ) return sort();
    llvm::Value* same = b_.CreateICmpEQ(b_.CreateLoad(b_.getInt32Ty(), differ), b_.getInt32(0));
    ir_.If(same, sort);
    ir_.If(b_.CreateNot(same), [&] { WithPlaces(first); });
  }

  // The rows of a group in turns: words with a place are wider.
  void WithPlaces(llvm::Value* group) {
    const int64_t turn = kGroup / 2;
    llvm::Value* end =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(group, ir_.I64(kGroup)), ir_.I64(rows_.count()));
    ir_.Loop(group, end, turn, [&](llvm::Value* first) {
      const Lanes l = LanesFrom(first, 64);
      Each(l, [&](llvm::Value* q, llvm::Value* at, llvm::Value* word) {
        b_.CreateStore(b_.CreateOr(b_.CreateShl(b_.CreateZExt(Key(at), l.word), 32), q), word);
      });
      Sort(l);
      Each(l, [&](llvm::Value* q, llvm::Value* at, llvm::Value* word) {
        llvm::Value* place = b_.CreateAnd(b_.CreateLoad(l.word, word), UINT32_MAX);
        llvm::Value* from = ir_.Add(b_.CreateSub(at, ir_.Mul(q, rows_.inner)), ir_.Mul(place, rows_.inner));
        std::vector<llvm::Value*> values;
        for (size_t k = 0; k < body_.results.size(); ++k) {
          llvm::Type* bits = Bits(i_->operand(static_cast<int64_t>(k)));
          values.push_back(IsPlaces(i_, k) ? b_.CreateTrunc(place, bits) : LoadBits(k, from));
        }
        for (size_t k = 0; k < body_.results.size(); ++k) StoreBits(k, values[k], at);
      });
    });
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Instruction* const i_;
  const SortRows rows_;
  const SortKey key_;
  llvm::Value* columns_;
  llvm::Value* lines_ = nullptr;  // rows as they lie, where that is not in lanes
  absl::Status status_;
};

}  // namespace

bool SortsSideBySide(const Instruction* sort, const CpuLevel& level) {
  // Of a vector. Narrower ones have no least and greatest of two words of 64 bits: more code than it saves time.
  constexpr int64_t kLeastBytes = 64;
  if (level.vector_bytes < kLeastBytes) return false;
  const SortRows rows(sort);
  if (rows.n < 2 || rows.n > kLongest || rows.count() < kFewestRows) return false;
  const std::vector<SortKey> keys = KeysOfSort(sort);
  return keys.size() == 1 && !MayBeUnordered(keys[0]) && KeyBits(keys[0]) <= 32;
}

absl::StatusOr<int64_t> EmitSortSideBySide(Body& body) { return SideBySide(body).Emit(); }

}  // namespace kiln
