#include "compiler/hlo/inlined_size.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace kiln {

absl::Status CheckInlinedSize(const Module& m) {
  // A program that is larger as it is written takes no more than that.
  const int64_t most = std::max(m.limits.inlined_instructions, 2 * m.instruction_count());
  absl::flat_hash_map<const Computation*, int64_t> size;
  for (const Computation* c : m.PostOrder()) {
    int64_t n = c->instruction_count();
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::Call) && !i->Is(Opcode::While) && !i->Is(Opcode::Conditional)) continue;
      for (const Computation* callee : i->called()) n += size.at(callee);
      if (n > most)
        return ErrorAt(i.get(),
                       absl::StrCat("the program has more than ", most, " instructions once its calls are inlined"),
                       absl::StatusCode::kResourceExhausted);
    }
    size[c] = n;
  }
  return absl::OkStatus();
}

}  // namespace kiln
