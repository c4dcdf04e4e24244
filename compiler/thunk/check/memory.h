// Memory that knows which value each of its bytes is a part of.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "compiler/plan/buffer_assignment.h"

namespace kiln {

using ValueId = int64_t;
inline constexpr ValueId kUnknownValue = -1;

class SymbolicMemory {
 public:
  // The bytes of the slice hold the value from now on.
  void Write(const Slice& s, ValueId value);
  // Nobody knows what they hold.
  void Forget(const Slice& s) { Write(s, kUnknownValue); }
  // True if the slice holds the whole value, from its first byte on.
  bool Holds(const Slice& s, ValueId value) const;
  // A value that lies in the slice, for messages.
  ValueId Sample(const Slice& s) const;
  // What is not the same in both becomes unknown.
  void Join(const SymbolicMemory& other);

 private:
  struct Piece {
    int64_t end;  // in the storage
    ValueId value;
    int64_t position;  // of the first byte within the value
  };
  using Pieces = std::map<int64_t, Piece>;  // by their begin; they do not overlap
  using Storage = std::pair<int, int64_t>;  // kind and number; the arena and the slow arena are one each
  static Storage StorageOf(const Slice& s);
  static void Cut(Pieces* pieces, int64_t begin, int64_t end);
  std::map<Storage, Pieces> storages_;
};

bool Overlap(const Slice& a, const Slice& b);

}  // namespace kiln
