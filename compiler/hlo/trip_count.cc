#include "compiler/hlo/trip_count.h"

#include "absl/strings/numbers.h"

namespace kiln {

std::optional<int64_t> KnownTripCount(const Instruction* i) {
  constexpr absl::string_view kKey = "\"known_trip_count\":{\"n\":\"";
  if (!i->Is(Opcode::While) || !i->attrs().backend_config) return std::nullopt;
  const absl::string_view text = i->attrs().backend_config->text;
  const size_t at = text.find(kKey);
  if (at == text.npos) return std::nullopt;
  const absl::string_view count = text.substr(at + kKey.size());
  int64_t n = 0;
  if (!absl::SimpleAtoi(count.substr(0, count.find('"')), &n)) return std::nullopt;
  return n;
}

}  // namespace kiln
