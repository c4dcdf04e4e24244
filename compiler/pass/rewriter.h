// One instruction in the place of another, as every pass should do it.
//
// What: asks for fuel, lets a pass build a replacement, accepts or discards it, and moves what belongs to the place and
//   not to the operation: source position, metadata, frontend attributes, sharding, control edges.
// Guarantees: a refused replacement leaves nothing behind; changed() is true exactly if one was accepted.
#pragma once

#include "compiler/pass/pass.h"

namespace kiln {

class Rewriter {
 public:
  // Whether a replacement has to have the layout of what it replaces. Expansions run before layouts are assigned:
  // those that a program was written with mean nothing to them.
  enum class Layouts { kKept, kIgnored };
  explicit Rewriter(PassContext& ctx, Layouts layouts = Layouts::kKept) : ctx_(ctx), layouts_(layouts) {}

  // `build(i)` gives what takes the place of `i`, an absl::StatusOr<Instruction*> or an Instruction* of the same
  // computation: new, or there before; null or `i` itself: nothing. `i` stays without users; Remove() takes it out.
  // Refused are a value of another type, extents or layout, and the loss of a sharding or of control edges to a value
  // that was there before. True if `i` was replaced.
  template <typename Build>
  absl::StatusOr<bool> Replace(Instruction* i, const Build& build) {
    if (ctx_.fuel == 0) return false;
    const int64_t first_new = i->parent()->module()->next_id();
    const absl::StatusOr<Instruction*> with = build(i);
    if (!with.ok()) return with.status();
    if (!*with || *with == i || !Accepts(i, *with, first_new)) {
      Discard(i->parent(), first_new);
      return false;
    }
    ctx_.Take();
    Put(i, *with, first_new);
    changed_ = true;
    return true;
  }

  bool changed() const { return changed_; }

 private:
  bool Accepts(const Instruction* i, Instruction* with, int64_t first_new) const;
  static void Put(Instruction* i, Instruction* with, int64_t first_new);
  // Takes out what was added to `c` since, users before what they use.
  static void Discard(Computation* c, int64_t first_new);

  PassContext& ctx_;
  Layouts layouts_;
  bool changed_ = false;
};

}  // namespace kiln
