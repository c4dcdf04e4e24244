#include "compiler/passes/expand/csr_product.h"

#include "compiler/passes/expand/cumulative.h"
#include "compiler/passes/expand/rows.h"

namespace kiln {

Instruction* CsrProductOf(Instruction* i) {
  const Expr data = i->operand(0), starts = i->operand(1), columns = i->operand(2), dense = i->operand(3);
  Computation* c = i->parent();
  const int64_t entries = data.shape().dim(0), rows = i->shape().dim(0);
  const PrimitiveType s32 = PrimitiveType::S32;
  const Expr zeros = BroadcastTo(ConvertTo(data.type(), IntegerIn(c, s32, 0)), i->shape().dims());
  if (i->shape().ElementCount() == 0 || entries == 0 || dense.shape().dim(0) == 0) return zeros.get();
  // An entry's row is how many rows end at or before it; padding behind the last row belongs to none.
  Computation* count = ScalarFunction(c->module(), Opcode::Add, s32);
  const Expr zero = IntegerIn(c, s32, 0);
  const Expr ends = ScatterRows(BroadcastTo(zero, {entries}), SliceOf(starts, {1}, {rows + 1}),
                                BroadcastTo(IntegerIn(c, s32, 1), {rows}), count);
  const Expr row = Cumulate(ends, zero, count, 0);
  const Expr picked = GatherRows(dense, columns);
  const Expr scaled = BroadcastTo(data, picked.shape().dims(), {0}) * picked;
  return ScatterRows(zeros, row, scaled, ScalarFunction(c->module(), Opcode::Add, data.type())).get();
}

}  // namespace kiln
