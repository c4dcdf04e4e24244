// Attributes and operations of Shardy's dialect (sdy) in binary form, as the text that its assembly has. Source:
// bytecode.td and ops.td of Shardy.
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/base/status.h"
#include "compiler/import/bytecode/vhlo.h"

namespace kiln::bytecode {
namespace {

enum SdyAttribute {
  kManualAxes = 0,
  kMeshAxis = 1,
  kMesh = 2,
  kSubAxis = 3,
  kAxis = 4,
  kDimension = 5,
  kSharding = 6,
  kShardings = 7,
  kShardingUnreduced = 15,
  kShardingsUnreduced = 16
};

constexpr absl::string_view kShardingPrefix = "#sdy.sharding";

}  // namespace

const std::vector<std::string>* SdyAttributesOf(absl::string_view op) {
  static const auto* const table = new absl::flat_hash_map<std::string, std::vector<std::string>>{
      {"sdy.mesh", {"mesh", "sym_name"}},
      {"sdy.manual_computation", {"in_shardings", "manual_axes", "out_shardings"}},
      {"sdy.reshard", {"sharding"}},
      {"sdy.return", {}},
      {"sdy.sharding_constraint", {"sharding"}},
  };
  const auto it = table->find(op);
  return it == table->end() ? nullptr : &it->second;
}

// "name", and the part of the axis that is meant: "name":(2)4.
absl::StatusOr<std::string> Tables::ReadAxis(Cursor& c) {
  ASSIGN_OR_RETURN(const std::string name, RawString(c));
  const uint64_t part = c.Varint();
  RETURN_IF_ERROR(Check(c));
  std::string out = absl::StrCat("\"", name, "\"");
  if (part & 1) {
    ASSIGN_OR_RETURN(const std::string text, Attribute(part >> 1));
    absl::StrAppend(&out, ":", text);
  }
  return out;
}

// {"a", "b", ?}p1
absl::StatusOr<std::string> Tables::ReadDimensionSharding(Cursor& c) {
  ASSIGN_OR_RETURN(std::vector<std::string> axes, Texts(c));
  const bool closed = c.Byte() != 0;
  const uint64_t priority = c.Varint();
  RETURN_IF_ERROR(Check(c));
  if (!closed) axes.emplace_back("?");
  std::string out = absl::StrCat("{", absl::StrJoin(axes, ", "), "}");
  if (priority & 1) absl::StrAppend(&out, "p", priority >> 1);
  return out;
}

// #sdy.sharding<@mesh, [{"a"}, {}], replicated={"b"}, unreduced={"c"}>
absl::StatusOr<std::string> Tables::ReadSharding(Cursor& c, bool unreduced) {
  const uint64_t index = c.Varint();
  RETURN_IF_ERROR(Check(c));
  ASSIGN_OR_RETURN(const std::string mesh, Attribute(index));
  absl::string_view where = mesh;  // a symbol, or a mesh written in place
  absl::ConsumePrefix(&where, "#sdy.");
  ASSIGN_OR_RETURN(const std::vector<std::string> dimensions, Texts(c));
  std::string out = absl::StrCat(kShardingPrefix, "<", where, ", [", absl::StrJoin(dimensions, ", "), "]");
  ASSIGN_OR_RETURN(const std::vector<std::string> replicated, Texts(c));
  if (!replicated.empty()) absl::StrAppend(&out, ", replicated={", absl::StrJoin(replicated, ", "), "}");
  if (unreduced) {
    ASSIGN_OR_RETURN(const std::vector<std::string> axes, Texts(c));
    if (!axes.empty()) absl::StrAppend(&out, ", unreduced={", absl::StrJoin(axes, ", "), "}");
  }
  return out + ">";
}

absl::StatusOr<std::string> Tables::ReadMesh(Cursor& c) {
  ASSIGN_OR_RETURN(const std::vector<std::string> axes, Texts(c));
  std::string out = absl::StrCat("#sdy.mesh<[", absl::StrJoin(axes, ", "), "]");
  std::vector<int64_t> devices;
  for (uint64_t n = c.Count(); n > 0 && c.ok(); --n) devices.push_back(c.SignedVarint());
  RETURN_IF_ERROR(Check(c));
  if (!devices.empty()) absl::StrAppend(&out, ", device_ids=[", absl::StrJoin(devices, ", "), "]");
  return out + ">";
}

absl::StatusOr<std::string> Tables::ReadSdy(Cursor c) {
  const uint64_t code = c.Varint();
  switch (code) {
    case kManualAxes: {
      ASSIGN_OR_RETURN(const std::vector<std::string> axes, Texts(c));
      return absl::StrCat("{", absl::StrJoin(axes, ", "), "}");
    }
    case kMeshAxis: {
      ASSIGN_OR_RETURN(const std::string name, RawString(c));
      const int64_t size = c.SignedVarint();
      RETURN_IF_ERROR(Check(c));
      return absl::StrCat("\"", name, "\"=", size);
    }
    case kMesh:
      return ReadMesh(c);
    case kSubAxis: {
      const int64_t before = c.SignedVarint(), size = c.SignedVarint();
      RETURN_IF_ERROR(Check(c));
      return absl::StrCat("(", before, ")", size);
    }
    case kAxis:
      return ReadAxis(c);
    case kDimension:
      return ReadDimensionSharding(c);
    case kSharding:
    case kShardingUnreduced:
      return ReadSharding(c, code == kShardingUnreduced);
    case kShardings:
    case kShardingsUnreduced: {
      ASSIGN_OR_RETURN(std::vector<std::string> each, Texts(c));
      for (std::string& text : each) text = std::string(absl::StripPrefix(text, kShardingPrefix));
      return absl::StrCat("[", absl::StrJoin(each, ", "), "]");
    }
    default:
      return Fail(c, absl::StrCat("an attribute of Shardy's of kind ", code, " in binary form"));
  }
}

}  // namespace kiln::bytecode
