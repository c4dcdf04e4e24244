// Sorts: by digits of keys where the comparator asks for the order of operands, else by comparing. Many short rows are
// sort_side_by_side.cc's.
//
// A record of a key is a word: what is compared, as an unsigned number of the same order, above the element's place, or
// above the element itself where it is all that is sorted. Both ways are stable, so that of several keys the last is
// sorted by first.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/elemental/callbacks.h"
#include "codegen/elemental/element.h"
#include "codegen/elemental/library.h"
#include "codegen/elemental/sort_rows.h"

namespace kiln {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::vector<SortKey> KeysOf(const Instruction* sort) {
  constexpr int64_t kMost = int64_t{1} << 32;  // places that a word holds beside a key
  const int64_t n = SortRows(sort).n;
  return n < kFewestByDigits || n >= kMost ? std::vector<SortKey>() : KeysOfSort(sort);
}

int64_t RecordBytes(const SortKey& key) { return KeyBits(key) > 32 ? 16 : 8; }

// For two times the records of any key.
int64_t RoomOfRecords(const Instruction* sort) {
  int64_t bytes = 0;
  for (const SortKey& key : KeysOf(sort)) bytes = std::max(bytes, 2 * Aligned(SortRows(sort).n * RecordBytes(key)));
  return bytes;
}

// Merging copies rows: into the other half of the room, and out of strided arrays first.
int64_t MergeBytes(const Instruction* sort) {
  const SortRows rows(sort);
  int64_t bytes = 0;
  for (const Instruction* o : sort->operands()) bytes += Aligned(rows.n * ByteWidth(o->shape().type()));
  return rows.inner == 1 ? bytes : 2 * bytes;
}

bool NeedsMerge(const std::vector<SortKey>& keys) { return keys.empty() || MayBeUnordered(keys[0]); }

class Sorter {
 public:
  Sorter(Body& body, int64_t stack_bytes)
      : body_(body), ir_(body.ir), b_(body.ir.b), i_(body.i), rows_(body.i), keys_(KeysOf(body.i)) {
    for (const Instruction* o : i_->operands()) types_.push_back(o->shape().type());
    const int64_t bytes = SortScratchBytes(i_);
    on_stack_ = bytes <= stack_bytes;
    room_ = on_stack_ ? ir_.Alloca(b_.getInt8Ty(), std::max<int64_t>(bytes, 64)) : body_.scratch;
  }

  absl::StatusOr<int64_t> Emit() {
    const int64_t rows = rows_.count();
    if (rows == 0 || rows_.n == 0) return 1;
    if (NeedsMerge(keys_)) RETURN_IF_ERROR(MakeCallbacks());
    const auto row = [&](llvm::Value* r) {
      base_ = rows_.Begin(ir_, r);
      keys_.empty() ? Merge() : keys_.size() == 1 && KeyIsElement(i_, keys_[0]) ? ByDigitsAlone() : ByDigits();
    };
    if (on_stack_)
      ir_.Loop(body_.begin, body_.end, 1, row);
    else
      ir_.Loop(ir_.I64(0), ir_.I64(rows), 1, row);
    RETURN_IF_ERROR(status_);
    return on_stack_ ? rows : 1;
  }

 private:
  llvm::Value* Room(int64_t bytes) { return b_.CreateInBoundsGEP(b_.getInt8Ty(), room_, ir_.I64(bytes)); }
  llvm::Value* At(llvm::Value* q) { return ir_.Add(base_, ir_.Mul(q, rows_.inner)); }
  // An element of operand `k` as it lies in memory.
  llvm::Type* Bits(size_t k) { return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(types_[k]))); }
  llvm::Value* LoadBits(size_t k, llvm::Value* array, llvm::Value* at) {
    return b_.CreateAlignedLoad(Bits(k), b_.CreateInBoundsGEP(Bits(k), array, at), llvm::Align(1));
  }
  void StoreBits(size_t k, llvm::Value* bits, llvm::Value* array, llvm::Value* at) {
    b_.CreateAlignedStore(bits, b_.CreateInBoundsGEP(Bits(k), array, at), llvm::Align(1));
  }

  // ---- By digits ----

  // Whether the elements themselves stand in the records.
  bool HoldsElements() const {
    return types_.size() == 1 && keys_.size() == 1 && ByteWidth(types_[0]) <= RecordBytes(keys_[0]) / 2;
  }

  llvm::Value* KeyAt(const SortKey& key, llvm::Value* at, llvm::Value* unordered) {
    const size_t operand = static_cast<size_t>(key.operand);
    auto word = EmitKey(ir_, key, ir_.Load(types_[operand], body_.operands[operand], at), unordered);
    if (word.ok()) return *word;
    status_.Update(word.status());
    return b_.getInt32(0);
  }

  // Keys that are the elements, and no element that shares its key with another.
  void ByDigitsAlone() {
    llvm::Type* word = b_.getInt32Ty();
    llvm::Value *differ = nullptr, *keys = Room(0);
    if (KeysMayMeet(keys_[0])) {
      differ = ir_.Alloca(word, 1);
      b_.CreateStore(b_.getInt32(0), differ);
    }
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      llvm::Value* key = KeyAt(keys_[0], At(q), nullptr);
      if (differ) {
        llvm::Value* bits = b_.CreateXor(ElementOfKey(ir_, keys_[0], key), LoadBits(0, body_.operands[0], At(q)));
        b_.CreateStore(b_.CreateOr(b_.CreateLoad(word, differ), bits), differ);
      }
      b_.CreateStore(b_.CreateZExt(key, word), b_.CreateInBoundsGEP(word, keys, q));
    });
    const auto sort = [&] {
      llvm::Value* sorted = Radix("kiln_radix_sort_alone", keys_[0], keys, Room(RoomOfRecords(i_) / 2));
      ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
        llvm::Value* key = b_.CreateLoad(word, b_.CreateInBoundsGEP(word, sorted, q));
        StoreBits(0, ElementOfKey(ir_, keys_[0], key), body_.results[0], At(q));
      });
    };
    if (!differ) return sort();
    llvm::Value* same = b_.CreateICmpEQ(b_.CreateLoad(word, differ), b_.getInt32(0));
    ir_.If(same, sort);
    ir_.If(b_.CreateNot(same), [&] { ByDigits(); });
  }

  void ByDigits() {
    llvm::Value* unordered = nullptr;
    if (NeedsMerge(keys_)) {
      unordered = ir_.Alloca(b_.getInt1Ty(), 1);
      b_.CreateStore(b_.getFalse(), unordered);
    }
    Sorted order;
    for (size_t k = keys_.size() - 1; k > 0; --k) order = SortedBy(keys_[k], RecordsOf(keys_[k], order, nullptr));
    const Records last = RecordsOf(keys_[0], order, unordered);
    if (!unordered) return Place(SortedBy(keys_[0], last));
    llvm::Value* compare = b_.CreateLoad(b_.getInt1Ty(), unordered);
    ir_.If(compare, [&] { Merge(); });
    ir_.If(b_.CreateNot(compare), [&] { Place(SortedBy(keys_[0], last)); });
  }

  // Records, each of so many words, and as much room.
  struct Records {
    llvm::Value *at, *room;
    int64_t words;
  };
  // The same in their order; no address: the elements as they lie.
  struct Sorted {
    llvm::Value* at = nullptr;
    int64_t words = 0;
  };

  // The lower half of the `q`-th record.
  llvm::Value* LowOf(const Sorted& sorted, llvm::Value* q) {
    llvm::Type* word = b_.getInt64Ty();
    return b_.CreateLoad(
        word, b_.CreateInBoundsGEP(word, sorted.at, ir_.Add(ir_.Mul(q, sorted.words), ir_.I64(sorted.words - 1))));
  }
  llvm::Value* PlaceOf(const Sorted& sorted, llvm::Value* q) {
    return sorted.words == 1 ? b_.CreateAnd(LowOf(sorted, q), UINT32_MAX) : LowOf(sorted, q);
  }

  // Records of `key` for the elements in `order`.
  Records RecordsOf(const SortKey& key, const Sorted& order, llvm::Value* unordered) {
    llvm::Type* word = b_.getInt64Ty();
    const bool wide = RecordBytes(key) > 8;
    Records r{Room(0), Room(RoomOfRecords(i_) / 2), RecordBytes(key) / 8};
    if (order.at) {  // in one half of the room
      llvm::Value *first = r.at, *taken = b_.CreateICmpEQ(order.at, first);
      r.at = ir_.Select(taken, r.room, first);
      r.room = order.at;
    }
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      llvm::Value* place = order.at ? PlaceOf(order, q) : q;
      llvm::Value* at = At(place);
      llvm::Value* low = HoldsElements() ? b_.CreateZExt(LoadBits(0, body_.operands[0], at), word) : place;
      llvm::Value* k = b_.CreateZExt(KeyAt(key, at, unordered), word);
      llvm::Value* to = ir_.Mul(q, r.words);
      b_.CreateStore(wide ? k : b_.CreateOr(b_.CreateShl(k, 32), low), b_.CreateInBoundsGEP(word, r.at, to));
      if (wide) b_.CreateStore(low, b_.CreateInBoundsGEP(word, r.at, ir_.Add(to, ir_.I64(1))));
    });
    return r;
  }

  Sorted SortedBy(const SortKey& key, const Records& r) {
    return {Radix(r.words == 2 ? "kiln_radix_sort_wide" : "kiln_radix_sort", key, r.at, r.room), r.words};
  }

  // Many records of one word have wider digits.
  llvm::Value* Radix(const std::string& name, const SortKey& key, llvm::Value* records, llvm::Value* room) {
    constexpr int64_t kMany = 1 << 13;
    const bool many = rows_.n >= kMany && KeyBits(key) <= 32;
    const int digit = many ? 11 : 8;
    const auto digits = static_cast<uint32_t>((KeyBits(key) + digit - 1) / digit);
    return ir_.CallLibrary(many ? name + "_many" : name, b_.getPtrTy(),
                           {records, room, ir_.I64(rows_.n), b_.getInt32(digits)});
  }

  // Every array's elements in the order of the records.
  void Place(const Sorted& sorted) {
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      if (HoldsElements()) return StoreBits(0, b_.CreateTrunc(LowOf(sorted, q), Bits(0)), body_.results[0], At(q));
      llvm::Value* from = At(PlaceOf(sorted, q));
      for (size_t k = 0; k < types_.size(); ++k)
        StoreBits(k, LoadBits(k, body_.operands[k], from), body_.results[k], At(q));
    });
  }

  // ---- By comparing ----

  absl::Status MakeCallbacks() {
    absl::Status status;
    llvm::Type *p = b_.getPtrTy(), *n = b_.getInt64Ty();
    less_ = Callback(
        ir_, "less", b_.getInt32Ty(), {p, n, p, n}, [&](llvm::Function* f) { return Less(f); }, &status);
    RETURN_IF_ERROR(status);
    move_ = Callback(
        ir_, "move", b_.getVoidTy(), {p, n, p, n}, [&](llvm::Function* f) { return Move(f); }, &status);
    return status;
  }

  llvm::Value* ArrayOf(llvm::Value* table, size_t k) {
    llvm::Type* p = b_.getPtrTy();
    return b_.CreateLoad(p, b_.CreateInBoundsGEP(p, table, ir_.I64(static_cast<int64_t>(k))));
  }

  absl::Status Less(llvm::Function* f) {
    std::vector<Val> args;
    for (size_t k = 0; k < types_.size(); ++k)
      for (unsigned side = 0; side < 2; ++side)
        args.push_back(ir_.Load(types_[k], ArrayOf(f->getArg(2 * side), k), f->getArg(2 * side + 1)));
    ElementEmitter e(ir_, {});
    ASSIGN_OR_RETURN(std::vector<Val> r, e.Apply(**i_->attrs().to_apply, args));
    b_.CreateRet(b_.CreateZExt(r[0].re, b_.getInt32Ty()));
    return absl::OkStatus();
  }

  absl::Status Move(llvm::Function* f) {
    for (size_t k = 0; k < types_.size(); ++k)
      StoreBits(k, LoadBits(k, ArrayOf(f->getArg(2), k), f->getArg(3)), ArrayOf(f->getArg(0), k), f->getArg(1));
    b_.CreateRetVoid();
    return absl::OkStatus();
  }

  void Merge() {
    const bool strided = rows_.inner != 1;
    std::vector<llvm::Value*> other, one, row;
    int64_t at = 0;
    const auto room = [&](size_t k) {
      llvm::Value* p = Room(at);
      at += Aligned(rows_.n * ByteWidth(types_[k]));
      return p;
    };
    for (size_t k = 0; k < types_.size(); ++k) {
      other.push_back(room(k));
      one.push_back(ir_.Alloca(b_.getInt8Ty(), 16, 16));
    }
    for (size_t k = 0; k < types_.size(); ++k)
      row.push_back(strided ? room(k) : b_.CreateInBoundsGEP(Bits(k), body_.results[k], base_));
    for (size_t k = 0; k < types_.size(); ++k)
      ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1,
               [&](llvm::Value* q) { StoreBits(k, LoadBits(k, body_.operands[k], At(q)), row[k], q); });
    ir_.CallLibrary("kiln_sort", b_.getVoidTy(),
                    {TableOf(ir_, row), TableOf(ir_, other), TableOf(ir_, one), ir_.I64(rows_.n), less_, move_});
    if (!strided) return;
    for (size_t k = 0; k < types_.size(); ++k)
      ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1,
               [&](llvm::Value* q) { StoreBits(k, LoadBits(k, row[k], q), body_.results[k], At(q)); });
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Instruction* const i_;
  const SortRows rows_;
  const std::vector<SortKey> keys_;
  std::vector<PrimitiveType> types_;
  bool on_stack_;
  llvm::Value* room_;
  llvm::Value* base_ = nullptr;  // element of the current row's first
  llvm::Function *less_ = nullptr, *move_ = nullptr;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<int64_t> EmitSortRows(Body& body, int64_t stack_bytes) {
  return SortsSideBySide(body.i, body.ir.level) ? EmitSortSideBySide(body) : Sorter(body, stack_bytes).Emit();
}

int64_t SortScratchBytes(const Instruction* i) {
  const int64_t records = RoomOfRecords(i);
  return NeedsMerge(KeysOf(i)) ? std::max(records, MergeBytes(i)) : records;
}

}  // namespace kiln
