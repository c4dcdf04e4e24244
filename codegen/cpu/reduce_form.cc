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

std::optional<Around> AroundOf(const Instruction* reduce) {
  constexpr int64_t kLongest = 64;  // elements of a row: longer ones are vectors by themselves
  const Instruction* root = reduce->Is(Opcode::Reduce) ? (*reduce->attrs().to_apply)->root() : nullptr;
  if (!root || reduce->operand_count() != 2 || IsComplex(reduce->shape().type()) || !root->HasTrait(Commutative) ||
      !root->operand(0)->Is(Opcode::Parameter) || !root->operand(1)->Is(Opcode::Parameter) ||
      root->operand(0) == root->operand(1) || IsDecidedEarly(reduce))
    return std::nullopt;
  const Shape& in = reduce->operand(0)->shape();
  const Ints& dims = *reduce->attrs().dimensions;
  const auto reduced = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  Ints useful;
  for (int64_t d = 0; d < in.rank(); ++d)
    if (in.dim(d) != 1) useful.push_back(d);
  Around out;
  int64_t length = 1;
  for (; !useful.empty() && reduced(useful.back()); useful.pop_back()) {
    out.inner.insert(out.inner.begin(), useful.back());
    length *= in.dim(useful.back());
  }
  if (out.inner.empty() || useful.empty() || length >= kLongest || in.ElementCount() == 0) return std::nullopt;
  out.rows = useful.back();
  useful.pop_back();
  for (const int64_t d : useful) (reduced(d) ? out.outer : out.kept).push_back(d);
  return out.outer.empty() ? std::nullopt : std::optional(out);
}

}  // namespace kiln::cpu
