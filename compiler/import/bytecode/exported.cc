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

// Where the field of the root table lies whose entry in the table of offsets is at `entry`; 0 if it is left out.
uint64_t FieldOfRoot(absl::string_view bytes, uint64_t entry) {
  uint32_t root;
  int32_t back;
  uint16_t size, offset;
  if (!Read(bytes, 0, &root) || !Read(bytes, root, &back)) return 0;
  const int64_t table = static_cast<int64_t>(root) - back;  // of the offsets of the root's fields
  if (table < 0 || !Read(bytes, static_cast<uint64_t>(table), &size) || entry + 2 > size) return 0;
  if (!Read(bytes, static_cast<uint64_t>(table) + entry, &offset) || offset == 0) return 0;
  return uint64_t{root} + offset;
}

// What the offset at `at` leads to: a count of bytes, and these.
absl::string_view Bytes(absl::string_view bytes, uint64_t at) {
  uint32_t target, length;
  if (!Read(bytes, at, &target) || !Read(bytes, at + target, &length)) return {};
  const uint64_t start = at + target + 4;
  if (start > bytes.size() || length > bytes.size() - start) return {};
  return bytes.substr(start, length);
}

constexpr uint64_t kFirstField = 4, kLastField = 126;  // JAX has about thirty fields
// Of jax/_src/export/serialization.fbs.
constexpr uint64_t kPlatforms = 22;

}  // namespace

absl::string_view ArtifactOfExported(absl::string_view bytes) {
  for (uint64_t field = kFirstField; field <= kLastField; field += 2) {
    const uint64_t at = FieldOfRoot(bytes, field);
    if (at == 0) continue;
    const absl::string_view payload = Bytes(bytes, at);
    if (payload.substr(0, kBytecodeMagic.size()) == kBytecodeMagic) return payload;
  }
  return {};
}

std::vector<std::string> PlatformsOfExported(absl::string_view bytes) {
  std::vector<std::string> out;
  const uint64_t at = FieldOfRoot(bytes, kPlatforms);
  uint32_t target, count;
  if (at == 0 || !Read(bytes, at, &target) || !Read(bytes, at + target, &count)) return out;
  if (count > bytes.size() / sizeof(uint32_t)) return out;
  for (uint64_t k = 0; k < count; ++k) out.push_back(std::string(Bytes(bytes, at + target + 4 + 4 * k)));
  return out;
}

}  // namespace kiln
