#include "aot/emulator/shadow.h"

#include "absl/strings/str_cat.h"
#include "codegen/gpu/emulated.h"

namespace kiln {

void Shadow::NewBlock() {
  ++epoch_;
  for (const Range& r : ranges_)
    if (r.shared)
      for (uintptr_t p = r.begin; p < r.end; ++p) cells_.erase(p);
}

void Shadow::Await(uintptr_t counter) {
  // Blocks of one pass wait for the same counter, and not for each other.
  if (awaited_.insert(counter).second) cells_.clear();
}

bool Shadow::Clashes(const Touch& t, int32_t block, int32_t thread) const {
  if (t.thread < 0) return false;
  if (t.block != block) return true;
  return t.epoch == epoch_ && (t.several || t.thread != thread);
}

void Shadow::Note(Touch* t, int32_t block, int32_t thread) const {
  const bool same = t->thread >= 0 && t->block == block && t->epoch == epoch_;
  // Another block's touch stays on record: it clashes with whatever comes.
  if (t->thread >= 0 && t->block != block) return;
  t->several = same && (t->several || t->thread != thread);
  t->block = block;
  t->thread = thread;
  t->epoch = epoch_;
}

std::string Shadow::Access(uintptr_t at, int64_t bytes, int kind, int32_t block, int32_t thread) {
  const char* const what = kind == gpu::kReads ? "reads" : kind == gpu::kWrites ? "writes" : "updates";
  bool inside = false;
  for (const Range& r : ranges_) inside = inside || (r.begin <= at && at + static_cast<uintptr_t>(bytes) <= r.end);
  if (!inside) {
    std::string nearest;
    uintptr_t best = ~uintptr_t{0};
    for (size_t k = 0; k < ranges_.size(); ++k) {
      const Range& r = ranges_[k];
      const uintptr_t away = at >= r.end ? at - r.end : r.begin - at;
      if (away >= best) continue;
      best = away;
      nearest = absl::StrCat(", ", static_cast<int64_t>(at - r.begin), " bytes from the start of ",
                             r.shared ? "shared memory" : absl::StrCat("array ", k), " of ", r.end - r.begin, " bytes");
    }
    return absl::StrCat(what, " ", bytes, " bytes outside its arrays", nearest);
  }
  for (int64_t k = 0; k < bytes; ++k) {
    Cell& c = cells_[at + static_cast<uintptr_t>(k)];
    const Touch* other = nullptr;
    if (Clashes(c.write, block, thread)) other = &c.write;
    if (kind != gpu::kUpdatesAtomically && Clashes(c.atomic, block, thread)) other = &c.atomic;
    if (kind != gpu::kReads && Clashes(c.read, block, thread)) other = &c.read;
    if (other)
      return absl::StrCat(what, " a byte that thread ", other->thread, " of block ", other->block,
                          other == &c.read ? " reads" : " writes", " with no barrier between: a race");
    Note(kind == gpu::kReads ? &c.read : kind == gpu::kWrites ? &c.write : &c.atomic, block, thread);
  }
  return "";
}

}  // namespace kiln
