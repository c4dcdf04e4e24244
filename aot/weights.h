// The constants of all programs of a library.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/llvm/object.h"
#include "compiler/base/text.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// Each value once, in order of use. Their bytes stay where they are.
class Weights {
 public:
  // Offset of the value in the block.
  int64_t Add(const Literal& l) {
    const absl::string_view bytes(reinterpret_cast<const char*>(l.data()), static_cast<size_t>(l.byte_size()));
    const uint64_t hash = StableHash(bytes);
    auto& same = by_hash_[hash];
    for (size_t k : same)
      if (pieces_[k].bytes == bytes) return static_cast<int64_t>(pieces_[k].offset);
    const size_t offset = (size_ + kAlignment - 1) / kAlignment * kAlignment;
    same.push_back(pieces_.size());
    pieces_.push_back({offset, bytes});
    literals_.push_back(l);
    size_ = offset + bytes.size();
    hash_ = StableHash(absl::string_view(reinterpret_cast<const char*>(&hash), sizeof hash), hash_);
    return static_cast<int64_t>(offset);
  }
  const std::vector<DataPiece>& pieces() const { return pieces_; }
  size_t size() const { return size_; }
  uint64_t hash() const { return hash_; }

 private:
  static constexpr size_t kAlignment = 64;
  std::vector<DataPiece> pieces_;
  std::vector<Literal> literals_;  // that hold the bytes
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_hash_;
  size_t size_ = 0;
  uint64_t hash_ = StableHash("");
};

}  // namespace kiln
