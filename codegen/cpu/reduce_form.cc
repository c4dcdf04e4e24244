#include "codegen/cpu/reduce_form.h"

#include <algorithm>

namespace kiln::cpu {

bool IsReadByRows(const Instruction* p, const Shape& in, int64_t along, int64_t minor) {
  constexpr int64_t kMostBytes = 64 << 10, kLeastRows = 32;
  const Shape& s = p->shape();
  if (!s.IsArray() || s.dims() != Ints{in.dim(along), in.dim(minor)} || !s.HasDefaultLayout() || IsComplex(s.type()) ||
      s.ByteSize() > kMostBytes || in.ElementCount() < kLeastRows * s.ElementCount())
    return false;
  return std::any_of(p->users().begin(), p->users().end(), [&](const Instruction* u) {
    return u->Is(Opcode::Broadcast) && u->shape().dims() == in.dims() && *u->attrs().dimensions == Ints{along, minor};
  });
}

bool IsDecidedEarly(const Instruction* reduce) {
  constexpr int64_t kLeastRow = 128, kLeast = 1024;  // elements
  if (reduce->operand_count() != 2) return false;
  const Shape& in = reduce->operand(0)->shape();
  const Ints& dims = *reduce->attrs().dimensions;
  const Instruction* root = (*reduce->attrs().to_apply)->root();
  if (in.type() != PrimitiveType::Pred || dims.empty() || !(root->Is(Opcode::Or) || root->Is(Opcode::And)) ||
      !root->operand(0)->Is(Opcode::Parameter) || !root->operand(1)->Is(Opcode::Parameter) ||
      root->operand(0) == root->operand(1))
    return false;
  int64_t all = 1;
  for (int64_t d : dims) all *= in.dim(d);
  return in.dim(*std::max_element(dims.begin(), dims.end())) >= kLeastRow && all >= kLeast;
}

}  // namespace kiln::cpu
