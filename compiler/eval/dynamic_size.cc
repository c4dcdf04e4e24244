// Evaluator: operations that read, set or compute sizes of dynamic dimensions.
#include "compiler/eval/families.h"

namespace kiln {
namespace {

// `x` cut or filled to `dims`. What a size grows by is what `x` has there, or zeros where it was never known.
Literal Sized(const Literal& x, const Shape& shape) {
  Literal out(shape);
  const IndexSpace from(x.shape().dims()), to(shape.dims());
  for (int64_t n = 0; n < out.size(); ++n) {
    const Ints p = to.At(n);
    if (from.Holds(p)) out.Set(n, x.Get(from.Linear(p)));
  }
  return out;
}

}  // namespace

absl::StatusOr<Literal> EvalDynamicSize(const Instruction& i, const Shape& shape,
                                        const std::vector<const Literal*>& x) {
  switch (i.opcode()) {
    case Opcode::SetDimensionSize:
      // A third operand is the array before any size of it was set.
      return Sized(x.size() > 2 ? *x[2] : *x[0], shape);
    case Opcode::GetDimensionSize:
      return Literal::Int(i.shape().type(), x[0]->shape().dim((*i.attrs().dimensions)[0]));
    case Opcode::DynamicReshape:
      return x[0]->Reshaped(shape);
    default:
      return absl::NotFoundError("");
  }
}

}  // namespace kiln
