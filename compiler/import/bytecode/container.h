// The container of MLIR bytecode: sections, string table, dialects, attribute and type tables.
//
// What: cuts a file into its tables without looking into what dialects encode; the operations follow in `ir`.
// Guarantees: every length and index is checked against the bytes that are there; an error names the byte offset.
// Source: MLIR's bytecode format, versions 0 to 6.
// Internal to compiler/import/bytecode.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::bytecode {

// A cursor over bytes. The first failed read leaves it failed: later reads return zeros, and `ok` says so at the end.
class Cursor {
 public:
  Cursor() = default;
  // `base`: where the bytes lie in the file, for messages.
  Cursor(absl::string_view bytes, size_t base) : bytes_(bytes), base_(base) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return pos_ >= bytes_.size(); }
  size_t left() const { return bytes_.size() - pos_; }
  size_t offset() const { return base_ + pos_; }
  uint8_t Byte();
  // MLIR's prefix varint, and its zigzag form.
  uint64_t Varint();
  int64_t SignedVarint();
  absl::string_view Bytes(uint64_t n);
  // A count of things that take at least one byte each.
  uint64_t Count();
  void Fail() { ok_ = false; }

 private:
  absl::string_view bytes_;
  size_t base_ = 0, pos_ = 0;
  bool ok_ = true;
};

// One row of the attribute or type table.
struct Entry {
  absl::string_view dialect;
  bool custom = false;  // the dialect's own encoding; text otherwise
  Cursor bytes;
};

struct Container {
  uint64_t version = 0;
  std::string producer;
  std::vector<absl::string_view> strings, dialects;
  std::vector<std::string> op_names;  // with their dialects
  std::vector<Entry> attributes, types;
  std::vector<Cursor> properties;
  Cursor ir;
};

inline constexpr uint64_t kNewestVersion = 6;
enum SectionId {
  kStrings,
  kDialects,
  kAttrTypes,
  kAttrTypeOffsets,
  kIr,
  kResources,
  kResourceOffsets,
  kDialectVersions,
  kProperties,
  kSectionIds
};

absl::StatusOr<Container> ReadContainer(absl::string_view bytes, const std::string& file);
// "file:1:OFFSET: error: why"; byte offsets count from one, as columns do.
absl::Status ErrorAt(const std::string& file, size_t offset, absl::string_view why);

}  // namespace kiln::bytecode
