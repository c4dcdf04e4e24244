// Other views of the same memory, for passes that give kernels simpler shapes.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// `x` as `shape`, whose bytes in memory are the same; `x` itself if it is that already.
inline Instruction* BitcastTo(Instruction* x, const Shape& shape) {
  if (x->shape() == shape) return x;
  return x->parent()->Add(Opcode::Bitcast, shape, {x});
}

// An array with its layout spelled out.
inline Shape LaidOut(PrimitiveType t, const Ints& dims) {
  Shape s = Shape::Array(t, dims);
  s.SetDefaultLayouts();
  return s;
}

// A reduce of `operands` (and the initial values of `like`) over `dims`, with results of `results`' extents and
// layouts.
inline Instruction* ReduceLike(const Instruction* like, std::vector<Instruction*> operands, const Ints& dims,
                               const std::vector<Shape>& results) {
  const size_t n = operands.size();
  for (size_t k = 0; k < n; ++k) operands.push_back(like->operand(static_cast<int64_t>(n + k)));
  Instruction* r = operands[0]->parent()->AddClone(like, like->shape().IsTuple() ? Shape::Tuple(results) : results[0],
                                                   std::move(operands));
  r->mutable_attrs().dimensions = dims;
  return r;
}

// The results of `reduce` as those of `like`, which they equal in memory.
inline Instruction* ResultsLike(const Instruction* like, Instruction* reduce) {
  if (!like->shape().IsTuple()) return BitcastTo(reduce, like->shape());
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < like->shape().tuple().size(); ++k) {
    Instruction* e = reduce->parent()->Add(Opcode::GetTupleElement, reduce->shape().tuple()[k], {reduce});
    e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    parts.push_back(BitcastTo(e, like->shape().tuple()[k]));
  }
  return reduce->parent()->Add(Opcode::Tuple, like->shape(), parts);
}

inline std::vector<Shape> ResultShapes(const Instruction* reduce) {
  return reduce->shape().IsTuple() ? reduce->shape().tuple() : std::vector<Shape>{reduce->shape()};
}

}  // namespace kiln
