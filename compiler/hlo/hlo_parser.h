// The reader of HLO text (parser.h); for parser.cc and parse_*.cc alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/scanner.h"

namespace kiln {

class HloParser {
 public:
  // With `look`, constants printed as `{...}` are read too: they hold stand-ins, and their custom_call_literal says
  // "{...}", by which the printer knows them.
  HloParser(absl::string_view text, const std::string& file, const Limits& limits, bool look)
      : s_(text, file), limits_(limits), look_(look) {}

  absl::StatusOr<std::unique_ptr<Module>> ParseModule();
  absl::StatusOr<Shape> ParseShape(int depth = 0);
  bool AtEnd() { return s_.AtEnd(); }
  absl::Status Error(absl::string_view m) { return s_.Error(m); }

 private:
  // A computation named before its text is known to be read.
  struct Pending {
    size_t pos;
    std::string name;
    Instruction* instruction;
    std::optional<Computation*>* one;
    std::optional<std::vector<Computation*>>* many;
  };

  absl::Status ParseHeader();
  absl::Status ParseHeaderValue(absl::string_view key, size_t at);
  absl::Status ParseLocationTables();
  absl::Status ParseDonors();
  absl::Status ParseEntryLayout();
  absl::Status ParseComputation();
  absl::Status ParseBody(Computation* c);
  absl::Status ParseInstruction(Computation* c, Instruction** root, Instruction** last);
  // `opcode(operands)`, for an instruction of its own or written inside an operand list.
  absl::StatusOr<Instruction*> ParseCall(Computation* c, const std::string& name, std::optional<Shape> shape,
                                         absl::string_view* wrapped, int depth);
  absl::Status CheckNewInstruction(size_t at);
  bool LooksLikeCall();
  // `op` is the opcode that the attributes belong to: of what is wrapped for an asynchronous start.
  absl::Status ParseAttribute(Instruction* i, Opcode op, std::vector<std::string>* control_preds);
  absl::StatusOr<Literal> ParseLiteral(const Shape& shape);
  absl::Status ParseLiteralInto(Literal* l, int64_t dim, int64_t* next);
  absl::StatusOr<Literal> ElidedLiteral(const Shape& shape);
  absl::Status ParseScalar(Literal* l, int64_t n);
  absl::StatusOr<int64_t> ParseIntegerOrTruth();
  absl::StatusOr<double> ParseReal(PrimitiveType t);
  absl::StatusOr<std::string> Name();
  bool LooksLikeShape();
  Computation* Complete(absl::string_view name) const;
  absl::Status WrapAsync(Instruction* i, absl::string_view wrapped);
  void MoveAttributesOfWrapped();
  void FillDefaults();
  // The shapes of instructions that leave theirs out, once everything they call is known.
  absl::Status InferOmittedShapes();
  absl::StatusOr<ShapeIndex> ParseShapeIndex();
  absl::Status ParseAliases();
  absl::StatusOr<Ints> ParseInts();

  absl::Status Value(std::optional<attr::Ints>* v, Instruction*);
  absl::Status Value(std::optional<attr::Int>* v, Instruction*);
  absl::Status Value(std::optional<attr::Num>* v, Instruction*);
  absl::Status Value(std::optional<attr::Bool>* v, Instruction*);
  absl::Status Value(std::optional<attr::Raw>* v, Instruction*);
  absl::Status Value(std::optional<attr::Str>* v, Instruction*);
  absl::Status Value(std::optional<attr::Comp>* v, Instruction*);
  absl::Status Value(std::optional<attr::Comps>* v, Instruction*);
  absl::Status Value(std::optional<attr::Slices>* v, Instruction*);
  absl::Status Value(std::optional<attr::Padding>* v, Instruction*);
  absl::Status Value(std::optional<attr::Win>* v, Instruction*);
  absl::Status Value(std::optional<attr::ConvDims>* v, Instruction*);
  absl::Status Value(std::optional<Shape>* v, Instruction*);
  template <AttributeWord E>
  absl::Status Value(std::optional<E>* v, Instruction*);

  Scanner s_;
  const Limits limits_;
  const bool look_;
  std::unique_ptr<Module> m_;
  int64_t instructions_ = 0;
  bool elided_ = false;  // the constant just read was
  absl::flat_hash_map<std::string, Computation*> computations_;
  absl::flat_hash_map<std::string, Instruction*> values_;
  std::vector<Pending> pending_;
  // The computation that ended last: the entry, where none is marked.
  Computation* last_ = nullptr;
  // `op-start` sugar: the start and the op it wraps, which takes over the attributes once they are resolved.
  std::vector<std::pair<Instruction*, Instruction*>> wrapped_;
  // Convolutions whose text says `convolution_kind=dgrad`.
  absl::flat_hash_set<const Instruction*> filters_turned_;
  // Instructions without a shape of their own.
  absl::flat_hash_set<const Instruction*> shapeless_;
};

}  // namespace kiln
