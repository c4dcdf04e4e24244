// A reader for MLIR text as StableHLO programs use it: operations, regions, attributes and types as a light tree.
//
// What: accepts the generic form ("op"(...) <{...}> ({...}) : ...) of any operation, modules and functions included,
//   and the pretty forms that the StableHLO, CHLO, func and sdy dialects print. Knows syntax only; meaning is the
//   converter's.
// Guarantees: malformed text gives one error with line and column; recursion is bounded.
// Attribute values stay text, `dense` payloads stay views into the input (large constants are not copied).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/shape.h"
#include "compiler/import/quantized.h"

namespace kiln::mlir {

struct Op;

// A type as the text states it. Extents that it leaves open (?) are -1 unless bounded.
struct Type : Shape {
  Type() = default;
  Type(Shape s) : Shape(std::move(s)) {}  // NOLINT: every shape is a type
  QuantizedPtr quantized;                 // of a quantized tensor, whose shape is that of its storage
};

struct BlockArgument {
  std::string name;
  Type type;
  std::string attributes;  // text of its {...}, for function arguments
  std::string origin;      // text of its loc(...)
};

struct Region {
  std::vector<BlockArgument> arguments;
  std::vector<std::unique_ptr<Op>> ops;
};

struct Op {
  std::string name;  // "stablehlo.add"
  // Result groups: `%0:2, %1` gives {("0", 2), ("1", 1)}.
  std::vector<std::pair<std::string, int>> results;
  std::vector<std::string> operands;  // "0", "0#1"
  absl::flat_hash_map<std::string, std::string> attributes;
  std::vector<std::string> words;  // bare words of a pretty form: LT, SIGNED
  std::vector<Region> regions;
  std::vector<Type> operand_types, result_types;
  bool has_function_type = false;
  size_t pos = 0;
  SourceLoc loc;       // in the file that is read
  std::string origin;  // text of its loc(...): where the front end says that it comes from

  bool Has(absl::string_view key) const { return attributes.contains(key); }
  // Text of an attribute, "" if absent.
  const std::string& Attr(absl::string_view key) const;
};

struct Function {
  std::string name;
  bool is_public = false;
  Region body;
  std::vector<Type> result_types;
  std::vector<std::string> result_attributes;
  SourceLoc loc;
};

struct Program {
  std::string name;
  absl::flat_hash_map<std::string, std::string> attributes;
  std::map<std::string, std::string> meshes;  // sdy.mesh: name -> <["axis"=size, ...]>
  std::vector<Function> functions;
  // Operations of a module without a function (implicit main).
  std::vector<std::unique_ptr<Op>> top_level;
  absl::flat_hash_map<std::string, std::string> aliases;  // "#name" -> text
  bool operand_types_stated = true;                       // bytecode leaves them to the values
};

absl::StatusOr<Program> Parse(absl::string_view text, const std::string& file);

// Equal, bounds and quantization included.
bool SameType(const Type& a, const Type& b);

// Element type from its MLIR spelling ("i32", "ui8", "bf16", "f8E4M3FN", "complex<f32>").
std::optional<PrimitiveType> ElementType(absl::string_view text);
// "tensor<4x?xf32, #stablehlo.bounds<?, 8>>" and friends.
absl::StatusOr<Type> ParseType(absl::string_view text);

}  // namespace kiln::mlir
