// What front ends write beside collectives to say which of them belong together.
#pragma once

#include <optional>
#include <string>

#include "compiler/hlo/instruction.h"
#include "compiler/hlo/sharding.h"

namespace kiln {

inline std::optional<std::string> AnnotationOf(const Instruction* i, absl::string_view key) {
  if (!i->attrs().frontend_attributes) return std::nullopt;
  return FrontendAttribute(i->attrs().frontend_attributes->text, key);
}

// A scheduler is to start it together with others: it must stay what it is.
inline bool HasSchedulingGroup(const Instruction* i) { return AnnotationOf(i, "_scheduling_group_id").has_value(); }

// Nothing that is written beside them keeps `a` and `b` from becoming one.
inline bool MayBecomeOne(const Instruction* a, const Instruction* b) {
  for (const char* key : {"_scheduling_group_id", "collective_group_key"})
    if (AnnotationOf(a, key) != AnnotationOf(b, key)) return false;
  return true;
}

}  // namespace kiln
