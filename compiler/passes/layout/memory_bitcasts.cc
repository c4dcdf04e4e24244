#include "compiler/passes/layout/memory_bitcasts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/physical_shape.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

Expr ConvertBits(Expr x, PrimitiveType t, const Ints& dims) {
  return Expr(x.computation()->Add(Opcode::BitcastConvert, Shape::Array(t, dims), {x.get()}));
}

// The elements of a row-major array as elements of another type: a line of them, where the widths differ.
Expr Reinterpreted(Expr x, PrimitiveType t) {
  const int from = InfoOf(x.type()).bits, to = InfoOf(t).bits;
  if (x.type() == t) return x;
  if (from == to) return ConvertBits(x, t, x.shape().dims());
  const int64_t n = x.shape().ElementCount();
  if (from > to) return ConvertBits(ReshapeTo(x, {n}), t, {n, from / to});
  const int64_t wide = n / (to / from);
  return ConvertBits(ReshapeTo(x, {wide, to / from}), t, {wide});
}

bool SpeaksOfMemory(const Instruction* i) {
  return i->Is(Opcode::Bitcast) && (!i->shape().HasDefaultLayout() || !i->operand(0)->shape().HasDefaultLayout() ||
                                    i->shape().type() != i->operand(0)->shape().type());
}

// What the bitcast computes, whatever layouts its operand and result get.
absl::StatusOr<Expr> AsValues(Instruction* i) {
  const Shape from = i->operand(0)->shape(), to = i->shape();
  if (from.ByteSize() != to.ByteSize())
    return ErrorAt(i, absl::StrCat("a bitcast from ", from.ToString(), " changes the size"));
  const int bits = InfoOf(from.type()).bits, new_bits = InfoOf(to.type()).bits;
  if (IsComplex(from.type()) != IsComplex(to.type()) || (bits != new_bits && std::min(bits, new_bits) < 8))
    return ErrorAt(i, absl::StrCat("a bitcast from ", from.ToString(), " is not supported"),
                   absl::StatusCode::kUnimplemented);
  Expr x = TransposeBy(i->operand(0), MajorToMinor(from));
  x = ReshapeTo(Reinterpreted(x, to.type()), PhysicalShape(to).dims());
  return TransposeBy(x, InversePermutation(MajorToMinor(to)));
}

}  // namespace

absl::StatusOr<bool> ExpandMemoryBitcasts(Module& m, const std::function<bool()>& take) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!SpeaksOfMemory(i) || !take()) continue;
      ASSIGN_OR_RETURN(const Expr x, AsValues(i));
      x.get()->set_loc(i->loc());
      i->ReplaceAllUsesWith(x.get());
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

absl::StatusOr<bool> BitcastExpander(Module& m, PassContext& ctx) {
  return ExpandMemoryBitcasts(m, [&] { return ctx.Take(); });
}

}  // namespace kiln
