// Custom calls that front ends and other compilers use as names for operations: annotations pass their operand on,
// TopK and the functions of XLA's builder become what they name. Every other target is the user's own function.
#include <string>

#include "compiler/passes/expand/expand_each.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

enum class Meaning { kNone, kIdentity, kTopK, kUnary, kAtan };

struct Known {
  const char* target;
  Meaning meaning;
  Opcode opcode;
};

// Annotations mean something to a partitioner or to a target with memories of its own; here values stay where they are.
constexpr Known kKnown[] = {
    {"Sharding", Meaning::kIdentity, Opcode::Copy},
    {"xla.sdy.FuncResultSharding", Meaning::kIdentity, Opcode::Copy},
    {"annotate_device_placement", Meaning::kIdentity, Opcode::Copy},
    {"MoveToDevice", Meaning::kIdentity, Opcode::Copy},
    {"MoveToHost", Meaning::kIdentity, Opcode::Copy},
    {"TopK", Meaning::kTopK, Opcode::TopK},
    {"xla_builder.math.Acos", Meaning::kUnary, Opcode::Acos},
    {"xla_builder.math.Acosh", Meaning::kUnary, Opcode::Acosh},
    {"xla_builder.math.Asin", Meaning::kUnary, Opcode::Asin},
    {"xla_builder.math.Asinh", Meaning::kUnary, Opcode::Asinh},
    {"xla_builder.math.Atan", Meaning::kAtan, Opcode::Atan2},
    {"xla_builder.math.Atanh", Meaning::kUnary, Opcode::Atanh},
    {"xla_builder.math.Cosh", Meaning::kUnary, Opcode::Cosh},
    {"xla_builder.math.Erf", Meaning::kUnary, Opcode::Erf},
    {"xla_builder.math.Sinh", Meaning::kUnary, Opcode::Sinh},
    {"xla_builder.math.Tan", Meaning::kUnary, Opcode::Tan},
};

const Known* Find(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target) return nullptr;
  for (const Known& k : kKnown)
    if (i->attrs().custom_call_target->text == k.target) return &k;
  return nullptr;
}

bool Fits(const Instruction* i, const Known& k) {
  if (i->operand_count() != 1) return false;
  if (k.meaning != Meaning::kTopK) return i->shape().Compatible(i->operand(0)->shape());
  return i->shape().IsTuple() && i->shape().tuple().size() == 2 && i->shape().tuple()[0].rank() > 0;
}

Instruction* Expand(Instruction* i) {
  const Known& k = *Find(i);
  Computation* c = i->parent();
  switch (k.meaning) {
    case Meaning::kTopK: {
      Instruction* t = c->Add(Opcode::TopK, i->shape(), i->operands());
      t->attrs().k = i->shape().tuple()[0].dims().back();
      t->attrs().largest = true;
      return t;
    }
    case Meaning::kUnary:
      return Unary(k.opcode, i->operand(0)).get();
    case Meaning::kAtan: {
      Expr x = i->operand(0);
      return Binary(Opcode::Atan2, x, x.Like(1)).get();
    }
    default:
      return i->operand(0);
  }
}

}  // namespace

absl::StatusOr<bool> CustomCallDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        const Known* k = Find(i);
        return k && Fits(i, *k);
      },
      Expand);
}

}  // namespace kiln
