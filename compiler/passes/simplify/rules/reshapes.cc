// Reshapes of reshapes, of what is one value, and of iotas.
#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* OfScalarBroadcast(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Broadcast) || x->operand(0)->shape().ElementCount() != 1) return nullptr;
  return BroadcastTo(ReshapeTo(x->operand(0), {}), i->shape().dims()).get();
}

Instruction* OfConstant(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Constant) || x->users().size() != 1) return nullptr;
  return i->parent()->AddConstant(x->literal().Reshaped(i->shape()));
}

// An iota that only gains or loses extents 1 stays an iota.
Instruction* OfIota(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Iota) || i->shape().rank() == 0) return nullptr;
  Ints from, to;
  int64_t from_pos = -1, to_dim = -1, pos = 0;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (x->shape().dim(d) != 1) {
      if (d == *x->attrs().iota_dimension) from_pos = static_cast<int64_t>(from.size());
      from.push_back(x->shape().dim(d));
    }
  for (int64_t d = 0; d < i->shape().rank(); ++d)
    if (i->shape().dim(d) != 1) {
      if (pos++ == from_pos) to_dim = d;
      to.push_back(i->shape().dim(d));
    }
  if (from != to || to_dim < 0) return nullptr;
  return IotaOf(i->parent(), i->shape().type(), i->shape().dims(), to_dim).get();
}

const Rule kRules[] = {
    {"reshape-to-itself",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] reshape(p)",
     "ROOT r = $T[6,4] reshape(p)",
     [](Instruction* i) { return i->shape().dims() == i->operand(0)->shape().dims() ? i->operand(0) : nullptr; }},
    {"reshape-of-reshape",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "a = $T[24] reshape(p)\n ROOT r = $T[6,4] reshape(a)",
     "ROOT r = $T[6,4] reshape(p)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = i->operand(0);
       return x->Is(Opcode::Reshape) ? ReshapeTo(x->operand(0), i->shape().dims()).get() : nullptr;
     }},
    {"reshape-of-scalar-broadcast",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[24] reshape(b)",
     "b = $T[4,6,2] broadcast(p), dimensions={0,1}\n ROOT r = $T[48] reshape(b)",
     OfScalarBroadcast},
    {"reshape-of-constant",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "c = $T[2,2] constant({{0, 1}, {1, 0}})\n ROOT r = $T[4] reshape(c)",
     "c = $T[2,2] constant({{0, 1}, {1, 0}})\n r = $T[4] reshape(c)\n ROOT t = ($T[4], $T[2,2]) tuple(r, c)",
     OfConstant},
    {"reshape-of-iota",
     {Opcode::Reshape},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "n = $T[1,6] iota(), iota_dimension=1\n ROOT r = $T[6] reshape(n)",
     "n = $T[2,3] iota(), iota_dimension=1\n ROOT r = $T[6] reshape(n)",
     OfIota},
};

}  // namespace

absl::Span<const Rule> ReshapeRules() { return kRules; }

}  // namespace kiln
