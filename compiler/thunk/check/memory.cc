#include "compiler/thunk/check/memory.h"

#include <algorithm>

namespace kiln {

SymbolicMemory::Storage SymbolicMemory::StorageOf(const Slice& s) {
  const bool one = s.kind == Slice::kTemp || s.kind == Slice::kSlow;
  return {s.kind, one ? 0 : s.index};
}

void SymbolicMemory::Cut(Pieces* pieces, int64_t begin, int64_t end) {
  auto it = pieces->upper_bound(begin);
  if (it != pieces->begin()) --it;
  while (it != pieces->end() && it->first < end) {
    const auto [at, piece] = *it;
    if (piece.end <= begin) {
      ++it;
      continue;
    }
    it = pieces->erase(it);
    if (at < begin) pieces->insert({at, {begin, piece.value, piece.position}});
    if (piece.end > end) pieces->insert({end, {piece.end, piece.value, piece.position + (end - at)}});
  }
}

void SymbolicMemory::Write(const Slice& s, ValueId value) {
  if (s.size == 0) return;
  Pieces& pieces = storages_[StorageOf(s)];
  Cut(&pieces, s.offset, s.offset + s.size);
  if (value != kUnknownValue) pieces[s.offset] = {s.offset + s.size, value, 0};
}

bool SymbolicMemory::Holds(const Slice& s, ValueId value) const {
  if (s.size == 0) return true;
  const auto storage = storages_.find(StorageOf(s));
  if (storage == storages_.end()) return false;
  int64_t at = s.offset;
  for (auto it = storage->second.find(at); it != storage->second.end() && it->first == at; ++it) {
    if (it->second.value != value || it->second.position != at - s.offset) return false;
    at = it->second.end;
    if (at >= s.offset + s.size) return true;
  }
  return false;
}

ValueId SymbolicMemory::Sample(const Slice& s) const {
  const auto storage = storages_.find(StorageOf(s));
  if (storage == storages_.end()) return kUnknownValue;
  auto it = storage->second.upper_bound(s.offset + s.size - 1);
  if (it == storage->second.begin()) return kUnknownValue;
  --it;
  return it->second.end > s.offset ? it->second.value : kUnknownValue;
}

void SymbolicMemory::Join(const SymbolicMemory& other) {
  for (auto& [storage, pieces] : storages_) {
    Pieces both;
    const auto theirs = other.storages_.find(storage);
    if (theirs != other.storages_.end()) {
      auto b = theirs->second.begin();
      for (auto a = pieces.begin(); a != pieces.end() && b != theirs->second.end();) {
        const int64_t begin = std::max(a->first, b->first), end = std::min(a->second.end, b->second.end);
        const int64_t position = a->second.position + (begin - a->first);
        if (begin < end && a->second.value == b->second.value && position == b->second.position + (begin - b->first))
          both[begin] = {end, a->second.value, position};
        if (a->second.end <= b->second.end)
          ++a;
        else
          ++b;
      }
    }
    pieces = std::move(both);
  }
}

bool Overlap(const Slice& a, const Slice& b) {
  const bool one = a.kind == Slice::kTemp || a.kind == Slice::kSlow;
  if (a.kind != b.kind || (!one && a.index != b.index)) return false;
  return a.size > 0 && b.size > 0 && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}

}  // namespace kiln
