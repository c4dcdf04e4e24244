// The HLO graph: instructions in computations in a module.
//
// What: the container every pass edits. Computations own their instructions, the module owns its computations.
// Guarantees: operand and user lists stay consistent under every edit made through these functions; names are unique
//   within a module; iteration order never depends on addresses.
// Cost: replacing all uses is linear in the number of uses; adding and removing an instruction or a use is O(1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/base/status.h"
#include "compiler/hlo/attributes.h"
#include "compiler/hlo/instruction_list.h"
#include "compiler/hlo/limits.h"
#include "compiler/hlo/literal.h"
#include "compiler/hlo/shape.h"
#include "compiler/hlo/user_list.h"

namespace kiln {

enum class Opcode : uint8_t {
#define OP(e, ...) e,
#include "compiler/hlo/opcodes.def"
};

enum class Lowering : uint8_t { Elemental, Thunk, Control, Free, Expanded };

enum Traits : uint32_t {
  None = 0,
  Elementwise = 1,
  Commutative = 2,
  Transcendental = 4,
  SideEffect = 8,
  Collective = 16,
  Async = 32,
  Contracting = 64,
  InPlace = 128,
  Moving = 256,  // every element of the result is one of an operand's, in the same type
  Costly = 512,  // takes several times as long as an addition, as transcendental functions do
};

// Which element types an elementwise operation takes. Own: its shape rule says it.
enum class OperandTypes : uint8_t { Own, Any, Numbers, FloatsOrComplex, Floats, Integers, Bits };

struct OpcodeInfo {
  Opcode opcode;
  absl::string_view text;
  int arity;
  uint32_t traits;
  Lowering lowering;
  OperandTypes operand_types;
};

const OpcodeInfo& InfoOf(Opcode op);
inline absl::string_view TextOf(Opcode op) { return InfoOf(op).text; }
std::optional<Opcode> OpcodeFromText(absl::string_view text);
int OpcodeCount();

class Computation;
class Module;

class Instruction {
 public:
  Opcode opcode() const { return opcode_; }
  const Shape& shape() const { return shape_; }
  Shape& mutable_shape() { return shape_; }
  const std::string& name() const { return name_; }
  // Calls it `wanted`, with "_2" or so behind if something has that name.
  void Rename(const std::string& wanted);
  // Unique within the module, in order of creation.
  int64_t id() const { return id_; }
  Computation* parent() const { return parent_; }
  const Attributes& attrs() const { return attrs_ ? *attrs_ : NoAttributes(); }
  // Allocates them on first use: most instructions have none.
  Attributes& mutable_attrs() {
    if (!attrs_) attrs_ = std::make_unique<Attributes>();
    return *attrs_;
  }
  // Value of a constant.
  const Literal& literal() const { return literal_; }
  void set_literal(Literal l) { literal_ = std::move(l); }
  SourceLoc loc() const { return loc_; }
  void set_loc(SourceLoc l) { loc_ = l; }

  const std::vector<Instruction*>& operands() const { return operands_; }
  Instruction* operand(int64_t i) const { return operands_[i]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  const std::vector<Instruction*>& users() const { return users_.list(); }
  bool IsUsedBy(const Instruction* user) const { return users_.Contains(user); }
  // Index of the first use of `o` as an operand, or -1.
  int64_t OperandIndex(const Instruction* o) const;
  void ReplaceOperand(int64_t i, Instruction* with);
  void AppendOperand(Instruction* o);
  void RemoveOperand(int64_t i);
  // Makes every user (the computation's root included) use `with` instead.
  void ReplaceAllUsesWith(Instruction* with);
  void ReplaceUseWith(Instruction* user, Instruction* with);

  const std::vector<Instruction*>& control_predecessors() const { return control_preds_; }
  const std::vector<Instruction*>& control_successors() const { return control_succs_; }
  void AddControlDependencyTo(Instruction* successor);
  void DropControlDependencies();

  bool Is(Opcode op) const { return opcode_ == op; }
  bool HasTrait(Traits t) const { return InfoOf(opcode_).traits & t; }
  bool IsElementwise() const { return HasTrait(Elementwise); }
  bool IsRoot() const;
  // Must stay although nobody uses its value.
  bool HasSideEffect() const;
  std::vector<Computation*> called() const;
  // Applies `fn` to each called computation pointer, so that it can be replaced.
  template <typename Fn>
  void MapCalled(Fn fn);

 private:
  friend class Computation;
  friend class InstructionList;
  friend class Module;
  Instruction(Opcode op, Shape shape) : opcode_(op), shape_(std::move(shape)) {}
  static const Attributes& NoAttributes();
  void AddUser(Instruction* u);
  void RemoveUser(Instruction* u);

  Opcode opcode_;
  Shape shape_;
  std::string name_;
  int64_t id_ = 0;
  Computation* parent_ = nullptr;
  std::vector<Instruction*> operands_;
  UserList users_;
  std::vector<Instruction*> control_preds_;
  std::vector<Instruction*> control_succs_;
  std::unique_ptr<Attributes> attrs_;
  Literal literal_;
  SourceLoc loc_;
  size_t slot_ = 0;  // in its computation's list
};

class Computation {
 public:
  const std::string& name() const { return name_; }
  Module* module() const { return module_; }
  Instruction* root() const { return root_; }
  void set_root(Instruction* r) { root_ = r; }
  // In order of creation or, for a parsed or scheduled computation, of the text.
  const InstructionList& instructions() const { return instructions_; }
  // Those with an id of at least `id`, in order, given that they are the last of the list.
  std::vector<Instruction*> AddedSince(int64_t id) const;
  const std::vector<Instruction*>& parameters() const { return params_; }
  Instruction* parameter(int64_t i) const { return params_[i]; }
  int64_t instruction_count() const { return static_cast<int64_t>(instructions_.size()); }
  const std::string& execution_thread() const { return execution_thread_; }
  void set_execution_thread(std::string t) { execution_thread_ = std::move(t); }

  // Operands and control predecessors before users; ties in list order.
  std::vector<Instruction*> PostOrder() const;

  // Adds an instruction whose operands are in this computation. `name` is a hint, made unique.
  Instruction* Add(Opcode op, Shape shape, std::vector<Instruction*> operands, absl::string_view name = "");
  Instruction* AddParameter(int64_t number, Shape shape, absl::string_view name);
  Instruction* AddConstant(Literal value, absl::string_view name = "");
  // Copy of `from` (opcode, attributes, literal, location) over new operands.
  Instruction* AddClone(const Instruction* from, Shape shape, std::vector<Instruction*> operands);
  // Fills an empty computation with copies of the instructions of `from` in `order`, which holds each once, operands
  // first. `callee` maps called computations.
  void CopyFrom(const Computation& from, const std::vector<const Instruction*>& order,
                const std::function<Computation*(Computation*)>& callee);
  // Takes out an instruction without users; control edges are dropped.
  void Remove(Instruction* instruction);
  // Removes a parameter without users and renumbers the rest.
  void RemoveParameter(int64_t number);
  // Orders the instruction list; `order` holds each exactly once.
  void Reorder(const std::vector<Instruction*>& order);

 private:
  friend class Module;
  friend class Instruction;
  std::string name_;
  Module* module_ = nullptr;
  Instruction* root_ = nullptr;
  InstructionList instructions_;
  std::vector<Instruction*> params_;
  std::string execution_thread_;
};

// Output leaf `output` may or must use the buffer of parameter `parameter` (leaf `parameter_index`).
struct AliasEntry {
  ShapeIndex output;
  int64_t parameter = 0;
  ShapeIndex parameter_index;
  bool must = false;
};

struct EntryLayout {
  std::vector<Shape> parameters;
  Shape result;
};

class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = delete;

  const std::string& name() const { return name_; }
  Computation* entry() const { return entry_; }
  void set_entry(Computation* c) { entry_ = c; }
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  Computation* AddComputation(absl::string_view name);
  void RemoveComputation(Computation* c);
  // Callees before callers; only computations reachable from the entry.
  std::vector<Computation*> PostOrder() const;
  // Deep copy of `c` and of everything it calls.
  Computation* CloneComputation(const Computation* c, absl::string_view suffix = "clone");
  std::unique_ptr<Module> Clone() const;
  // Replaces every computation by those of `copy`, a Clone of this module that was edited.
  void TakeComputationsOf(std::unique_ptr<Module> copy);
  // Removes computations that the entry does not reach; true if any was.
  bool RemoveUnreachableComputations();
  int64_t instruction_count() const;
  // The id of the instruction that is added next, to whichever computation.
  int64_t next_id() const { return next_id_; }

  std::string UniqueName(absl::string_view hint);
  void ReleaseName(const std::string& name) { names_.erase(name); }

  // "file" part of error messages.
  std::string file;
  // Where keys of the HloModule line stand; a key that is not here was not written.
  absl::flat_hash_map<std::string, SourceLoc> header_locs;
  Limits limits;
  bool is_scheduled = false;
  std::optional<EntryLayout> entry_layout;
  std::vector<AliasEntry> aliases;
  std::vector<std::pair<int64_t, ShapeIndex>> buffer_donors;
  int64_t replica_count = 1;
  int64_t partition_count = 1;
  // The user's build links LAPACK: calls of it stay calls even where kiln has kernels of its own.
  bool external_lapack = false;
  // Every other `key=value` of the HloModule line, as written.
  std::vector<std::pair<std::string, std::string>> extra_header;
  // The tables between the header and the first computation (FileNames, StackFrames, ...), as written.
  std::string preamble;
  // Names the front end gave to arguments; empty where it gave none.
  std::vector<std::string> argument_names;
  // Integer arguments that stated an extent when shapes were settled, and the values they must have.
  std::vector<std::pair<int64_t, int64_t>> dimension_arguments;

 private:
  friend class Computation;
  friend class Instruction;
  std::string name_;
  Computation* entry_ = nullptr;
  std::vector<std::unique_ptr<Computation>> computations_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int64_t> next_suffix_;
  int64_t next_id_ = 0;
};

// A name that HLO text can hold: what it cannot becomes '_'. Instructions and computations have such names.
std::string NameInText(absl::string_view name);

// "file:line:col: error: op: message" for something wrong with `instruction`.
absl::Status ErrorAt(const Instruction* instruction, absl::string_view message,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument);
// The same for a key of the HloModule line; 1:1 where it does not stand there.
absl::Status HeaderErrorAt(const Module& module, absl::string_view key, absl::string_view message,
                           absl::StatusCode code = absl::StatusCode::kInvalidArgument);

template <typename Fn>
void Instruction::MapCalled(Fn fn) {
  if (!attrs_) return;
  Attributes& a = *attrs_;
  for (auto* c : {&a.to_apply, &a.calls, &a.condition, &a.body, &a.true_computation, &a.false_computation, &a.select,
                  &a.scatter}) {
    if (*c) *c = fn(**c);
  }
  for (auto* cs : {&a.branch_computations, &a.called_computations}) {
    if (!*cs) continue;
    for (Computation*& c : **cs) c = fn(c);
  }
}

}  // namespace kiln
