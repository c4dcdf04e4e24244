// Attributes and types of StableHLO's versioned dialect (VHLO), of Shardy's and of MLIR's builtin dialect, from their
// tables.
//
// What: an attribute becomes the text that StableHLO's generic form would print, a type the importer's own; both are
//   made once. Elements of constants stay bytes (dense<bytes:...>).
// Guarantees: cycles, nesting beyond a limit and texts that grow out of proportion are errors.
// Internal to compiler/import/bytecode.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/import/bytecode/container.h"
#include "compiler/import/mlir.h"

namespace kiln::bytecode {

using Dictionary = std::vector<std::pair<std::string, std::string>>;

struct FunctionType {
  std::vector<mlir::Type> inputs, results;
};

class Tables {
 public:
  Tables(const Container& container, const std::string& file);

  absl::StatusOr<std::string> Attribute(uint64_t index);
  // The entries of a dictionary attribute, names unquoted.
  absl::StatusOr<Dictionary> Entries(uint64_t index);
  // The elements of an array attribute, as indices.
  absl::StatusOr<std::vector<uint64_t>> Elements(uint64_t index);
  // The text of a string attribute, unquoted.
  absl::StatusOr<std::string> String(uint64_t index);
  absl::StatusOr<mlir::Type> TypeAt(uint64_t index);
  // The function type inside a type attribute.
  absl::StatusOr<FunctionType> Function(uint64_t attribute);

 private:
  static constexpr int kMaxDepth = 64;  // to which attributes and types nest

  absl::StatusOr<std::string> ReadAttribute(const Entry& e);
  absl::Status Charge(const std::string& text, const Entry& e);
  absl::StatusOr<std::string> ReadVhlo(Cursor c);
  absl::StatusOr<std::string> ReadBuiltin(Cursor c);
  absl::StatusOr<std::string> ReadSdy(Cursor c);
  absl::StatusOr<std::string> ReadMesh(Cursor& c);
  absl::StatusOr<std::string> ReadAxis(Cursor& c);
  absl::StatusOr<std::string> ReadDimensionSharding(Cursor& c);
  absl::StatusOr<std::string> ReadSharding(Cursor& c, bool unreduced);
  absl::StatusOr<std::string> ReadList(Cursor& c);
  // A list of attributes, each as text.
  absl::StatusOr<std::vector<std::string>> Texts(Cursor& c);
  absl::StatusOr<std::string> ReadDictionary(Cursor& c);
  absl::StatusOr<std::string> ReadTensor(Cursor& c, bool builtin);
  absl::StatusOr<std::string> ReadInteger(Cursor& c);
  absl::StatusOr<mlir::Type> ReadType(const Entry& e);
  absl::StatusOr<mlir::Type> ReadBuiltinType(Cursor& c, uint64_t code);
  absl::StatusOr<mlir::Type> ReadTensorType(Cursor& c, bool bounded);
  absl::StatusOr<mlir::Type> ReadQuantized(Cursor& c, bool per_axis);
  absl::StatusOr<std::string> TypeText(uint64_t index);
  absl::StatusOr<std::string> RawString(Cursor& c);
  absl::StatusOr<FunctionType> ReadFunction(Cursor c);
  absl::Status Fail(const Cursor& c, absl::string_view why) const { return ErrorAt(file_, c.offset(), why); }
  absl::Status Check(const Cursor& c) const;
  absl::StatusOr<const Entry*> Find(const std::vector<Entry>& table, uint64_t index, absl::string_view what) const;
  // The cursor of a VHLO attribute whose code must be `code` (or, for builtin ones, `builtin`).
  absl::StatusOr<Cursor> Open(uint64_t index, uint64_t code, uint64_t builtin, absl::string_view what) const;

  const Container& in_;
  std::string file_;
  std::vector<std::optional<std::string>> texts_;
  std::vector<std::optional<mlir::Type>> types_;
  int depth_ = 0;
  bool in_dictionary_ = false;  // inside an attribute that is a dictionary
  size_t text_left_;
};

// The attributes of a VHLO operation in the order in which its properties hold them; nullptr for an operation that has
// none or is not known.
const std::vector<std::string>* AttributesOf(absl::string_view versioned_op);
// The same of an operation of Shardy's ("sdy.mesh"); empty for one that has none.
const std::vector<std::string>* SdyAttributesOf(absl::string_view op);

}  // namespace kiln::bytecode
