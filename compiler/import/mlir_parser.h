// The parser behind mlir::Parse: one class, its files by what they read.
//
// What: mlir_parser.cc reads operations in generic form, regions and attributes; mlir_pretty.cc the pretty forms of the
//   StableHLO, CHLO, func and sdy dialects; mlir_types.cc types; mlir_program.cc modules and functions, of either form.
// Internal to compiler/import.
#pragma once

#include <string>
#include <vector>

#include "compiler/hlo/scanner.h"
#include "compiler/import/mlir.h"

namespace kiln::mlir {

// Regions and types nest no deeper: readers and converters of them recurse.
inline constexpr int kMaxDepth = 256;

class Parser {
 public:
  Parser(absl::string_view text, const std::string& file) : s_(text, file) {}

  absl::StatusOr<Program> ParseProgram();
  absl::StatusOr<Type> ReadType();
  absl::StatusOr<std::vector<Type>> TypeList();
  // (types) -> types, as the attribute function_type holds it.
  absl::Status ReadFunctionType(std::vector<Type>* arguments, std::vector<Type>* results);
  // The texts of the elements of [a, b].
  absl::StatusOr<std::vector<std::string>> ReadList();
  // The texts of the attributes of {a = 1, b}, by their names.
  absl::Status ParseDict(absl::flat_hash_map<std::string, std::string>* out);

 private:
  absl::Status ParseTopLevel(Region* top);
  absl::Status ParseAlias();
  absl::StatusOr<std::unique_ptr<Op>> ParseOp();
  absl::Status ParseGeneric(Op* op);
  absl::Status ParsePretty(Op* op);
  absl::Status ParseModule(Op* op);
  absl::Status ParseFunction(Op* op);
  absl::Status ParseMesh(Op* op);
  absl::Status ParseConstant(Op* op);
  absl::Status ParseWhile(Op* op);
  absl::Status ParseReduce(Op* op);
  absl::Status ParseScan(Op* op);
  absl::Status ParseManualComputation(Op* op);
  absl::Status ParseRegion(Region* r);
  absl::Status ParseOps(Region* r);
  absl::Status ParseTypes(Op* op);
  absl::Status ParseBlockArgument(Region* r);
  absl::StatusOr<std::string> Operand();
  absl::StatusOr<std::string> SymbolName();
  absl::StatusOr<std::string> PrettyValue();
  // Text up to a stop character outside brackets and strings; `<`/`>` nest, `->` does not close.
  absl::StatusOr<std::string> Raw(absl::string_view stops);
  // The text inside loc(...), if that comes next; the last of several.
  std::string ReadOrigin();
  absl::string_view Ident() { return s_.Word("_.$-"); }

  Scanner s_;
  int depth_ = 0;
  absl::flat_hash_map<std::string, std::string> aliases_;
};

// Makes a program of what stands at the outermost level: modules, functions, meshes, and other operations.
absl::Status AddTopLevel(std::unique_ptr<Op> op, const std::string& file, Program* program);

}  // namespace kiln::mlir
