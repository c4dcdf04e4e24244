// StableHLO (and CHLO) programs to HLO modules.
//
// What: a Converter walks the functions of a program and hands each operation to the handler that operations.def names
//   for it. Static shapes come out whatever the text says: an unbounded dimension takes the extent that follows from
//   the arguments' shapes, operation by operation (shape refinement), and operands that state shapes are evaluated.
// Guarantees: every error names the operation, its line and column. Functions whose types are unbounded are inlined at
//   each call, since their shapes depend on it.
// Internal to compiler/import.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/import/import.h"
#include "compiler/import/mlir.h"
#include "compiler/import/origin.h"
#include "compiler/import/quantized.h"

namespace kiln::stablehlo {

using Values = std::vector<Instruction*>;
// Values of one scope by their SSA names; a result group holds several.
using Env = absl::flat_hash_map<std::string, Values>;

class Converter {
 public:
  Converter(const mlir::Program& program, const std::string& file, const ImportOptions& options);
  absl::StatusOr<std::unique_ptr<Module>> Run();

  absl::Status Fail(const mlir::Op& op, absl::string_view why,
                    absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;
  Module* module() { return module_.get(); }
  const std::string& file() const { return module_->file; }
  // Text of an attribute alias, or the text itself.
  std::string Resolve(const std::string& text) const;

  // The computation of a function without unbounded types, built once.
  absl::StatusOr<Computation*> FunctionOf(const std::string& name, const mlir::Op& caller);
  // A call: of a computation, or inlined where shapes depend on the caller.
  absl::StatusOr<Values> CallFunction(const std::string& name, const mlir::Op& caller, Computation* c,
                                      const Values& arguments);
  // A region over scalars (reducer, comparator): parameters are its block arguments; captured constants are copied.
  absl::StatusOr<Computation*> ScalarRegion(const mlir::Region& region, const mlir::Op& op, const Env& outer,
                                            absl::string_view name);
  // A region with one tuple parameter: block arguments of the types `arguments`, then captured values.
  // A condition returns its one value; a body or branch a tuple, the forwarded parts of its parameter last. `always`:
  // for each argument the value outside that it has in every iteration; null, or left out at the end: not known.
  absl::StatusOr<Computation*> TupleRegion(const mlir::Region& region, const std::vector<Shape>& arguments,
                                           const std::vector<std::string>& captured, const Env& outer,
                                           absl::string_view name, const std::vector<int64_t>& forwarded,
                                           const Values& always);
  // Names that a region uses and does not define.
  void FreeNames(const mlir::Region& region, std::vector<std::string>* out);
  // Converts the operations of a region; `returned` are the operands of its terminator.
  absl::Status BuildOps(const mlir::Region& region, Computation* c, Env* env, Values* returned);
  // The results of one operation.
  absl::StatusOr<Values> Convert(const mlir::Op& op, Computation* c, Env* env);

  // The value of an instruction that does not depend on arguments (or only on dimension arguments).
  absl::StatusOr<Literal> Evaluate(Instruction* i);
  // Whether it depends on an argument that is no dimension argument, and would become one if Evaluate were asked.
  bool DependsOnOtherArgument(const Instruction* i) const;
  // `inside`, a value in or behind a region, always has the value of `outside`.
  void Always(const Instruction* inside, Instruction* outside) { always_[inside] = outside; }
  // The types of quantized values.
  QuantizedPtr QuantizationOf(const Instruction* i) const;
  void Mark(const Instruction* i, QuantizedPtr type);
  // Values that interpreter.probe kept, by their names.
  Values& Probe(const std::string& id) { return probes_[id]; }

 private:
  absl::StatusOr<Computation*> BuildFunction(const mlir::Function& f);
  absl::Status BuildOp(const mlir::Op& op, Computation* c, Env* env);
  absl::StatusOr<Instruction*> CloneConstant(Instruction* i, Computation* into, const mlir::Op& op);
  const mlir::Function* Find(const std::string& name) const;
  absl::StatusOr<Shape> ArgumentShape(const mlir::Function& f, size_t k) const;
  void ReadSharing(const mlir::Function& main);
  void ReadNames(const mlir::Function& main);
  // What the front end calls an argument; what a function called from `f` calls one of f's. Empty: nothing says.
  std::string GivenName(const mlir::BlockArgument& a);
  std::string NameInCallee(const mlir::Function& f, const std::string& argument);
  // What the argument is called in headers: its given name, or else MLIR's.
  std::string ArgumentName(const mlir::Function& main, const mlir::BlockArgument& a);

  const mlir::Program& program_;
  const ImportOptions& options_;
  std::unique_ptr<Module> module_;
  Computation* entry_ = nullptr;
  absl::flat_hash_map<std::string, Computation*> functions_;
  absl::flat_hash_map<absl::string_view, const mlir::Function*> by_name_;
  bool building_entry_ = false;
  int inline_depth_ = 0;
  int64_t inlined_ = 0;
  absl::flat_hash_map<const Instruction*, QuantizedPtr> quantized_;
  absl::flat_hash_map<const Instruction*, Literal> evaluated_;
  absl::flat_hash_map<const Instruction*, Instruction*> always_;
  absl::flat_hash_map<std::string, Values> probes_;
  int64_t next_region_ = 0;
  Origins origins_;
};

// One operation on its way to HLO: what handlers work with.
struct Call {
  Converter& converter;
  const mlir::Op& op;
  absl::string_view name;  // without its dialect
  Computation* c;
  Env* env;
  Values x;                  // operands
  std::vector<Shape> types;  // of the results; extents that the text leaves open are negative

  Shape result() const { return types.empty() ? Shape::Tuple({}) : types[0]; }
  Instruction* Finish(Instruction* i) {
    i->set_loc(op.loc);
    return i;
  }
  Instruction* Add(Opcode o, const Shape& s, Values operands) { return Finish(c->Add(o, s, std::move(operands))); }
  // The elements of a tuple.
  Values Split(Instruction* tuple);
  absl::Status Fail(absl::string_view why, absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    return converter.Fail(op, why, code);
  }
  absl::Status Need(size_t operands) const;
  std::string Resolve(const std::string& text) const { return converter.Resolve(text); }
  // Attributes: a list of integers (empty if absent), one integer, a flag, the op's dimensions under any spelling.
  Ints List(absl::string_view key) const;
  int64_t One(absl::string_view key, int64_t otherwise) const;
  bool Flag(absl::string_view key, bool otherwise) const;
  // One of the words of an attribute.
  template <AttributeWord E>
  absl::Status Word(absl::string_view key, absl::string_view text, std::optional<E>* out) const {
    const auto word = WordFromText<E>(text);
    if (!word.ok()) return Fail(absl::StrCat(key, " ", word.status().message()));
    *out = *word;
    return absl::OkStatus();
  }
  Ints Dims() const;
  absl::StatusOr<Computation*> ScalarRegion(const mlir::Region& r, absl::string_view region_name) {
    return converter.ScalarRegion(r, op, *env, region_name);
  }
  // The one function of `called_computations`.
  absl::StatusOr<Computation*> CalledComputation();
  // An operand that states a shape, offsets or sizes: its value as integers.
  absl::StatusOr<Ints> Known(size_t operand);
};

using Handler = absl::StatusOr<Values> (*)(Call&);
#define OPERATION(dialect, name, handler) absl::StatusOr<Values> handler(Call& call);
#include "compiler/import/stablehlo/operations.def"
// Operations without a row.
absl::StatusOr<Values> ConvertElementwise(Call& call);
absl::StatusOr<Values> ConvertChlo(Call& call);
absl::StatusOr<Values> ConvertQuantization(Call& call);
// Targets of stablehlo.custom_call. JAX writes the dynamic ones where attributes or extents of the operation that they
// are named after are values of the program.
absl::StatusOr<Values> ConvertApproxTopK(Call& call);
absl::StatusOr<Values> ConvertDynamicApproxTopK(Call& call);
absl::StatusOr<Values> ConvertDynamicReduceWindow(Call& call);
absl::StatusOr<Values> ConvertDynamicRngBitGenerator(Call& call);
absl::StatusOr<Values> ConvertDynamicTopK(Call& call);
// An operation that StableHLO lacks, whose name is the target. Without mhlo.attributes it is a function of the user's.
bool IsEncoded(const Call& call, absl::string_view target);
absl::StatusOr<Values> ConvertEncoded(Call& call, absl::string_view target);
// The operands that `indices_of_shape_operands` names go; the results have the extents that they state.
absl::Status TakeShapeOperands(Call& call);

// The string `key` among the attributes of an argument or a result (`jax.result_info = "loss"`); empty if there is
// none.
std::string TextAttribute(absl::string_view attributes, absl::string_view key);
// The sharding that an argument of the entry, or a result, states among its attributes. A result that states one passes
// through a call that carries it.
void SetEntrySharding(absl::string_view attributes, Instruction* i);
Instruction* WithResultSharding(absl::string_view attributes, Instruction* result);

// interpreter.run_parallel: the devices that a program of StableHLO's own tests runs on, before its functions are read.
absl::Status ReadDeviceGrid(const mlir::Op& op, Converter* converter);

// Some extent is unknown until shapes are refined.
bool Unbounded(const Shape& s);
// "value" or "value#2" in a scope.
absl::StatusOr<Instruction*> Lookup(const Env& env, const std::string& name);
// Binds "value" or "value#2".
void Bind(Env* env, const std::string& name, Instruction* value);
// Word inside an enum attribute: "#stablehlo<comparison_direction LT>" -> "LT".
std::string EnumWord(absl::string_view text);
// "key = [1, 2]" inside #stablehlo.gather<...>.
std::optional<Ints> FieldInts(absl::string_view text, absl::string_view key);
// The same, absent if empty.
std::optional<Ints> SomeInts(absl::string_view text, absl::string_view key);

}  // namespace kiln::stablehlo
