#include "compiler/import/bytecode/locations.h"

#include "compiler/import/bytecode/codes.h"

namespace kiln::bytecode {
namespace {

constexpr int kMaxDepth = 512;  // to which locations nest

}  // namespace

std::string Locations::TextAt(uint64_t index) { return tables_->String(index).value_or(""); }

Origin Locations::At(uint64_t index, int depth) {
  if (index >= known_.size() || depth > kMaxDepth) return {};
  if (!known_[index]) {
    known_[index] = Origin();  // what a cycle finds
    known_[index] = Read(in_.attributes[index], depth);
  }
  return *known_[index];
}

Origin Locations::Read(const Entry& e, int depth) {
  Cursor c = e.bytes;
  if (!e.custom) {
    const absl::flat_hash_map<std::string, std::string> no_aliases;
    return Origins(no_aliases).Of(c.Bytes(c.left()));
  }
  if (e.dialect != "builtin") return {};
  const uint64_t code = c.Varint(), first = c.Varint(), second = c.Varint();
  if (!c.ok()) return {};
  switch (code) {
    case kCallSiteLocation:
      return CallSite(At(first, depth + 1), At(second, depth + 1));
    case kFileLocation:
      return {"", TextAt(first), static_cast<int64_t>(second)};
    case kFileRangeLocation:  // `second` counts the numbers, of which the line comes first
      return {"", TextAt(first), second == 0 ? 0 : static_cast<int64_t>(c.Varint())};
    case kNamedLocation:
      return Named(TextAt(first), At(second, depth + 1));
    case kFusedLocation:
    case kFusedLocationWithMetadata: {
      if (first == 0) return {};
      Origin out = At(second, depth + 1);
      for (uint64_t k = 1; k < first && c.ok() && (out.name.empty() || out.file.empty()); ++k)
        out = CallSite(std::move(out), At(c.Varint(), depth + 1));
      return out;
    }
    default:
      return {};
  }
}

}  // namespace kiln::bytecode
