// Tensor cores want rows in multiples of 16 bytes: products of f16 and bf16 get extents in multiples of 8, of 8-bit
// integers of 4, by zeros that a slice takes away again. Batch dimensions stay.
#include <algorithm>
#include <cstring>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

int64_t Multiple(PrimitiveType t) {
  switch (t) {
    case PrimitiveType::F16:
    case PrimitiveType::BF16:
      return 8;
    case PrimitiveType::S8:
      return 4;
    default:
      return 1;
  }
}

// Of a constant, such as weights: once, here, and not in every run.
Literal PaddedLiteral(const Literal& from, const Ints& dims) {
  Literal out(Shape::Array(from.type(), dims));
  std::memset(out.mutable_data(), 0, static_cast<size_t>(out.byte_size()));
  const auto rank = static_cast<size_t>(from.shape().rank());
  const int64_t bytes = from.shape().dims().back() * ByteWidth(from.type()),
                wide_bytes = dims.back() * ByteWidth(from.type());
  Ints row(rank, 0);
  for (int64_t k = 0; k * bytes < from.byte_size(); ++k) {
    int64_t at = 0;
    for (size_t d = 0; d + 1 < rank; ++d) at = at * dims[d] + row[d];
    std::memcpy(out.mutable_data() + at * wide_bytes, from.data() + k * bytes, static_cast<size_t>(bytes));
    for (size_t d = rank - 1; d-- > 0 && ++row[d] == from.shape().dim(static_cast<int64_t>(d));) row[d] = 0;
  }
  return out;
}

Expr Padded(Expr x, const Ints& dims) {
  if (x.shape().dims() == dims) return x;
  if (x.get()->Is(Opcode::Constant)) return x.computation()->AddConstant(PaddedLiteral(x.get()->literal(), dims));
  Instruction* zero = x.computation()->AddConstant(Literal::Of(x.type(), 0));
  Instruction* pad = x.computation()->Add(Opcode::Pad, Shape::Array(x.type(), dims), {x.get(), zero});
  attr::Padding amounts;
  for (int64_t d = 0; d < x.shape().rank(); ++d) {
    PadDim p;
    p.high = dims[static_cast<size_t>(d)] - x.shape().dim(d);
    amounts.push_back(p);
  }
  pad->mutable_attrs().padding = amounts;
  return pad;
}

// Extents of `s` behind `batch` dimensions, rounded up.
Ints RoundedUp(const Shape& s, int64_t batch, int64_t multiple) {
  Ints dims = s.dims();
  for (int64_t d = batch; d < s.rank(); ++d)
    dims[static_cast<size_t>(d)] = (s.dim(d) + multiple - 1) / multiple * multiple;
  return dims;
}

// Floats of fewer rows or columns than a multiple: next to a vector tensor cores gain nothing, and zeros would be
// copied in every run. The library takes them as they are; integers it does not.
bool FewRows(const Instruction* dot, int64_t batch) {
  const PrimitiveType t = dot->operand(0)->shape().type();
  return IsFloat(t) && std::min(dot->shape().dim(batch), dot->shape().dim(batch + 1)) < Multiple(t);
}

// Batch dimensions stand in front, in their order.
bool BatchesLead(const Instruction* dot, int64_t batch) {
  for (const auto& dims : {dot->attrs().lhs_batch_dims, dot->attrs().rhs_batch_dims})
    for (int64_t k = 0; k < batch; ++k)
      if ((*dims)[static_cast<size_t>(k)] != k) return false;
  return true;
}

}  // namespace

absl::StatusOr<bool> CublasPadForGemms(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Dot) || i->attrs().sparsity || i->shape().HasDynamic()) return false;
    const PrimitiveType t = i->operand(0)->shape().type();
    const auto batch = static_cast<int64_t>(i->attrs().lhs_batch_dims.value_or(Ints()).size());
    if (t != i->operand(1)->shape().type() || Multiple(t) == 1 || !i->attrs().lhs_contracting_dims ||
        i->attrs().lhs_contracting_dims->size() != 1 || i->operand(0)->shape().rank() != batch + 2 ||
        i->operand(1)->shape().rank() != batch + 2)
      return false;
    if (!BatchesLead(i, batch) || FewRows(i, batch)) return false;
    for (int64_t k = 0; k < 2; ++k)
      if (RoundedUp(i->operand(k)->shape(), batch, Multiple(t)) != i->operand(k)->shape().dims()) return true;
    return false;
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const int64_t multiple = Multiple(i->operand(0)->shape().type());
    const auto batch = static_cast<int64_t>(i->attrs().lhs_batch_dims.value_or(Ints()).size());
    const auto padded = [&](int64_t k) {
      return Padded(i->operand(k), RoundedUp(i->operand(k)->shape(), batch, multiple)).get();
    };
    const Shape wide = Shape::Array(i->shape().type(), RoundedUp(i->shape(), batch, multiple));
    Instruction* dot = i->parent()->AddClone(i, wide, {padded(0), padded(1)});
    return SliceOf(dot, Ints(static_cast<size_t>(wide.rank()), 0), i->shape().dims()).get();
  });
}

}  // namespace kiln
