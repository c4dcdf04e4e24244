// Sorts: by digits of keys where the comparator asks for the order of operands, else by comparing. Many short rows are
// sort_side_by_side.cc's.
//
// A word of a key is what is compared, as an unsigned number of the same order, above the element's place, or above the
// element itself where it is all that is sorted. Both ways are stable, so that of several keys the last is sorted by
// first. Of longer keys a word holds what tells them apart at first.
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

bool IsLong(const SortKey& key) { return KeyBits(key) > 32; }

// Whether words are keys, which are the elements.
bool IsAlone(const Instruction* sort, const std::vector<SortKey>& keys) {
  return sort->operand_count() == 1 && keys.size() == 1 && KeyIsElement(keys[0]) && !IsLong(keys[0]);
}

// For a row's words of any key, and as many again.
int64_t RoomOfWords(const Instruction* sort) {
  const std::vector<SortKey> keys = KeysOf(sort);
  if (keys.empty()) return 0;
  const int64_t word = IsAlone(sort, keys) && !KeysMayMeet(keys[0]) ? 4 : 8;
  return 2 * Aligned(SortRows(sort).n * word);
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
      keys_.empty() ? Merge() : IsAlone(i_, keys_) ? ByDigitsAlone() : ByDigits();
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

  // Whether the elements themselves stand below the keys.
  bool HoldsElements() const {
    return types_.size() == 1 && keys_.size() == 1 && ByteWidth(types_[0]) <= 4 && !IsLong(keys_[0]);
  }

  llvm::Value* KeyOf(const SortKey& key, llvm::Value* array, llvm::Value* at, llvm::Value* unordered) {
    auto word = EmitKey(ir_, key, ir_.Load(types_[static_cast<size_t>(key.operand)], array, at), unordered);
    if (word.ok()) return *word;
    status_.Update(word.status());
    return llvm::ConstantInt::get(b_.getIntNTy(static_cast<unsigned>(KeyBits(key))), 0);
  }
  llvm::Value* KeyAt(const SortKey& key, llvm::Value* at, llvm::Value* unordered) {
    return KeyOf(key, body_.operands[static_cast<size_t>(key.operand)], at, unordered);
  }

  // The bits in which elements are not what their keys of up to 32 bits say; null where keys say it all.
  llvm::Value* Differing(const SortKey& key) {
    if (!KeysMayMeet(key)) return nullptr;
    llvm::Value* differ = ir_.Alloca(b_.getInt32Ty(), 1);
    b_.CreateStore(b_.getInt32(0), differ);
    return differ;
  }
  void Compare(const SortKey& key, llvm::Value* word, llvm::Value* at, llvm::Value* differ) {
    const auto operand = static_cast<size_t>(key.operand);
    llvm::Value* bits = b_.CreateXor(ElementOfKey(ir_, key, word), LoadBits(operand, body_.operands[operand], at));
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), differ), bits), differ);
  }
  llvm::Value* IsZero(llvm::Value* differ) {
    return b_.CreateICmpEQ(b_.CreateLoad(b_.getInt32Ty(), differ), b_.getInt32(0));
  }

  // Keys that are the elements, and no element that shares its key with another.
  void ByDigitsAlone() {
    const SortKey& key = keys_[0];
    llvm::Type* word = b_.getInt32Ty();
    llvm::Value *differ = Differing(key), *keys = Room(0);
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      llvm::Value* k = KeyAt(key, At(q), nullptr);
      if (differ) Compare(key, k, At(q), differ);
      b_.CreateStore(b_.CreateZExt(k, word), b_.CreateInBoundsGEP(word, keys, q));
    });
    const auto sort = [&] {
      llvm::Value* sorted = Radix("kiln_sort_u32", key, keys, Room(RoomOfWords(i_) / 2));
      ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
        llvm::Value* k = b_.CreateLoad(word, b_.CreateInBoundsGEP(word, sorted, q));
        StoreBits(0, ElementOfKey(ir_, key, k), body_.results[0], At(q));
      });
    };
    if (!differ) return sort();
    llvm::Value* same = IsZero(differ);
    ir_.If(same, sort);
    ir_.If(b_.CreateNot(same), [&] { ByDigits(); });
  }

  // Words in their order, or to be brought into it, and room for as many; no address: the elements as they lie.
  struct Words {
    llvm::Value *at = nullptr, *room = nullptr;
  };

  void ByDigits() {
    Words order;
    for (size_t k = keys_.size() - 1; k > 0; --k) order = SortedBy(keys_[k], order, nullptr);
    if (!NeedsMerge(keys_)) return PlaceBy(order);
    llvm::Value* unordered = ir_.Alloca(b_.getInt1Ty(), 1);
    b_.CreateStore(b_.getFalse(), unordered);
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) { KeyAt(keys_[0], At(q), unordered); });
    llvm::Value* compare = b_.CreateLoad(b_.getInt1Ty(), unordered);
    ir_.If(compare, [&] { Merge(); });
    ir_.If(b_.CreateNot(compare), [&] { PlaceBy(order); });
  }

  // By the first key, and by `order` among equals. Where words tell that key's elements these need not be looked for.
  void PlaceBy(const Words& order) {
    const bool tells = KeyIsElement(keys_[0]) && !IsLong(keys_[0]) && !HoldsElements();
    llvm::Value* differ = tells ? Differing(keys_[0]) : nullptr;
    const Words sorted = SortedBy(keys_[0], order, differ);
    if (!differ) return Place(sorted, tells);
    llvm::Value* same = IsZero(differ);
    ir_.If(same, [&] { Place(sorted, true); });
    ir_.If(b_.CreateNot(same), [&] { Place(sorted, false); });
  }

  llvm::Value* WordAt(const Words& words, llvm::Value* q) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateInBoundsGEP(b_.getInt64Ty(), words.at, q));
  }
  llvm::Value* LowOf(llvm::Value* word) { return b_.CreateAnd(word, UINT32_MAX); }

  // Those of `order` by `key`. `differ`: as above, if anyone asks.
  Words SortedBy(const SortKey& key, const Words& order, llvm::Value* differ) {
    llvm::Value *first = Room(0), *second = Room(RoomOfWords(i_) / 2);
    Words w{first, second};
    if (order.at) {  // in one half of the room
      w.at = ir_.Select(b_.CreateICmpEQ(order.at, first), second, first);
      w.room = order.at;
    }
    if (IsLong(key)) return SortedByLong(key, order, w);
    llvm::Type* word = b_.getInt64Ty();
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      llvm::Value* place = order.at ? LowOf(WordAt(order, q)) : q;
      llvm::Value* at = At(place);
      llvm::Value* low = HoldsElements() ? b_.CreateZExt(LoadBits(0, body_.operands[0], at), word) : place;
      llvm::Value* k = KeyAt(key, at, nullptr);
      if (differ) Compare(key, k, at, differ);
      b_.CreateStore(b_.CreateOr(b_.CreateShl(b_.CreateZExt(k, word), 32), low), b_.CreateInBoundsGEP(word, w.at, q));
    });
    return {Radix("kiln_sort_upper", key, w.at, w.room)};
  }

  Words SortedByLong(const SortKey& key, const Words& order, const Words& w) {
    const auto operand = static_cast<size_t>(key.operand);
    absl::Status status;
    llvm::Function* callback = Callback(
        ir_, absl::StrCat("key", operand), b_.getInt64Ty(), {b_.getPtrTy(), b_.getInt64Ty()},
        [&](llvm::Function* f) {
          b_.CreateRet(KeyOf(key, ArrayOf(f->getArg(0), 0), ir_.Mul(f->getArg(1), rows_.inner), nullptr));
          return absl::OkStatus();
        },
        &status);
    status_.Update(status);
    llvm::Value* row = b_.CreateInBoundsGEP(Bits(operand), body_.operands[operand], base_);
    llvm::Value* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
    return {
        ir_.CallLibrary("kiln_sort_long_keys", b_.getPtrTy(),
                        {TableOf(ir_, {row}), ir_.I64(rows_.n), order.at ? order.at : none, w.at, w.room, callback})};
  }

  llvm::Value* Radix(const std::string& name, const SortKey& key, llvm::Value* words, llvm::Value* room) {
    return ir_.CallLibrary(
        name, b_.getPtrTy(),
        {words, room, ir_.I64(rows_.n), b_.getInt32(static_cast<uint32_t>(std::min(KeyBits(key), 32)))});
  }

  // Every array's elements in the order of the words. `tells`: these have the first key's.
  void Place(const Words& sorted, bool tells) {
    ir_.Loop(ir_.I64(0), ir_.I64(rows_.n), 1, [&](llvm::Value* q) {
      llvm::Value *word = WordAt(sorted, q), *low = LowOf(word);
      if (HoldsElements()) return StoreBits(0, b_.CreateTrunc(low, Bits(0)), body_.results[0], At(q));
      for (size_t k = 0; k < types_.size(); ++k) {
        llvm::Value* bits = nullptr;
        if (tells && static_cast<size_t>(keys_[0].operand) == k)
          bits = ElementOfKey(ir_, keys_[0], b_.CreateLShr(word, 32));
        else if (IsPlaces(i_, k))
          bits = b_.CreateTrunc(low, Bits(k));
        StoreBits(k, bits ? bits : LoadBits(k, body_.operands[k], At(low)), body_.results[k], At(q));
      }
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
  const int64_t records = RoomOfWords(i);
  return NeedsMerge(KeysOf(i)) ? std::max(records, MergeBytes(i)) : records;
}

}  // namespace kiln
