// The envelope that jax.export puts around a portable artifact: a flatbuffer whose root table has it as a byte vector.
#include <cstring>

#include "compiler/import/bytecode.h"

namespace kiln {
namespace {

template <typename T>
bool Read(absl::string_view bytes, uint64_t at, T* out) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return false;
  std::memcpy(out, bytes.data() + at, sizeof(T));
  return true;
}

}  // namespace

absl::string_view ArtifactOfExported(absl::string_view bytes) {
  uint32_t root;
  int32_t back;
  if (!Read(bytes, 0, &root) || !Read(bytes, root, &back)) return {};
  const int64_t table = static_cast<int64_t>(root) - back;  // of the offsets of the root's fields
  uint16_t size;
  if (table < 0 || !Read(bytes, static_cast<uint64_t>(table), &size)) return {};
  for (uint64_t field = 4; field + 2 <= size; field += 2) {
    uint16_t offset;
    uint32_t target, length;
    if (!Read(bytes, static_cast<uint64_t>(table) + field, &offset) || offset == 0) continue;
    const uint64_t at = uint64_t{root} + offset;
    if (!Read(bytes, at, &target) || !Read(bytes, at + target, &length)) continue;
    const uint64_t start = at + target + 4;
    if (start > bytes.size() || length > bytes.size() - start) continue;
    const absl::string_view payload = bytes.substr(start, length);
    if (payload.substr(0, kBytecodeMagic.size()) == kBytecodeMagic) return payload;
  }
  return {};
}

}  // namespace kiln
