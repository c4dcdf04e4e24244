// Fusions that the input brings along become their bodies again: which operations run together is this compiler's own
// decision, made later with its own kernels in mind. Bitcasts of such modules speak of memory: each becomes the
// transposes and the reshape that say the same of values, so that layouts may change.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

// Dimensions of `s` from the slowest to the fastest in memory.
Ints MajorToMinor(const Shape& s) {
  const Ints minor = s.LayoutOrDefault().minor_to_major;
  return Ints(minor.rbegin(), minor.rend());
}

Ints Extents(const Shape& s, const Ints& order) {
  Ints out;
  for (int64_t d : order) out.push_back(s.dim(d));
  return out;
}

Ints Inverse(const Ints& order) {
  Ints out(order.size());
  for (size_t k = 0; k < order.size(); ++k) out[order[k]] = static_cast<int64_t>(k);
  return out;
}

bool SpeaksOfMemory(const Instruction* i) {
  return i->Is(Opcode::Bitcast) && (!i->shape().HasDefaultLayout() || !i->operand(0)->shape().HasDefaultLayout() ||
                                    i->shape().type() != i->operand(0)->shape().type());
}

}  // namespace

absl::StatusOr<bool> Defuser(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Fusion) || !ctx.Take()) continue;
      Instruction* root = InlineBody(c, *i->attrs().calls, i->operands(), i);
      i->ReplaceAllUsesWith(root);
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

absl::StatusOr<bool> LayoutNormalization(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!SpeaksOfMemory(i)) continue;
      const Shape from = i->operand(0)->shape(), to = i->shape();
      if (from.ByteSize() != to.ByteSize())
        return ErrorAt(i, absl::StrCat("a bitcast from ", from.ToString(), " changes the size"));
      if (!ctx.Take()) continue;
      const Ints in = MajorToMinor(from), out = MajorToMinor(to);
      Expr x = TransposeBy(i->operand(0), in);
      if (from.type() != to.type()) {
        if (InfoOf(from.type()).bits != InfoOf(to.type()).bits)
          return ErrorAt(i, "a bitcast between types of different widths is not supported",
                         absl::StatusCode::kUnimplemented);
        x = Expr(c->Add(Opcode::BitcastConvert, Shape::Array(to.type(), x.shape().dims()), {x.get()}));
      }
      x = TransposeBy(ReshapeTo(x, Extents(to, out)), Inverse(out));
      x.get()->set_loc(i->loc());
      i->ReplaceAllUsesWith(x.get());
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
