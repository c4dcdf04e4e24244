// Attributes that HLO text holds as text of their own: shardings, groups of devices, aliases, metadata.
#include <map>

#include "absl/strings/str_join.h"
#include "compiler/import/hlo_proto_reader.h"
#include "compiler/import/mhlo_sharding.h"

namespace kiln {
namespace {

using proto::HloInstructionProto;

// An iota over extents, transposed, as HLO text writes it.
template <typename Dims, typename Order>
std::string IotaText(const Dims& dims, const Order& order) {
  const std::string transposed = order.size() > 1 ? absl::StrCat("T(", absl::StrJoin(order, ","), ")") : "";
  return absl::StrCat("<=[", absl::StrJoin(dims, ","), "]", transposed);
}

// A sharding as HLO text writes it.
std::string ShardingText(const proto::OpSharding& s) {
  const auto word = [](int type) {
    switch (type) {
      case proto::SHARDING_REPLICATED:
        return "replicated";
      case proto::SHARDING_MANUAL:
        return "manual";
      case proto::SHARDING_UNREDUCED:
        return "unreduced";
      default:
        return "unknown";
    }
  };
  if (s.type() == proto::SHARDING_TUPLE)
    return absl::StrCat("{",
                        absl::StrJoin(s.tuple_shardings(), ", ",
                                      [](std::string* out, const auto& e) { absl::StrAppend(out, ShardingText(e)); }),
                        "}");
  if (s.type() == proto::SHARDING_MAXIMAL)
    return absl::StrCat(
        "{maximal device=", s.tile_assignment_devices_size() ? s.tile_assignment_devices(0) : int64_t{0}, "}");
  if (s.type() != proto::SHARDING_OTHER) return absl::StrCat("{", word(s.type()), "}");
  std::string out = absl::StrCat("{devices=[", absl::StrJoin(s.tile_assignment_dimensions(), ","), "]");
  if (s.iota_reshape_dims_size()) {
    out += IotaText(s.iota_reshape_dims(), s.iota_transpose_perm());
  } else {
    absl::StrAppend(&out, absl::StrJoin(s.tile_assignment_devices(), ","));
  }
  if (s.replicate_on_last_tile_dim()) out += " last_tile_dim_replicate";
  if (s.last_tile_dims_size())
    absl::StrAppend(
        &out, " last_tile_dims={",
        absl::StrJoin(s.last_tile_dims(), ", ", [&](std::string* to, int type) { absl::StrAppend(to, word(type)); }),
        "}");
  return out + "}";
}

void ReadReplicaGroups(const HloInstructionProto& p, Attributes& a) {
  // Newer files have a list of its own for them.
  const auto& list = p.collective_device_list();
  const auto& groups = list.replica_groups_size() ? list.replica_groups() : p.replica_groups();
  if (list.has_iota_replica_group_list()) {
    const auto& iota = list.iota_replica_group_list();
    a.replica_groups = attr::Raw(absl::StrCat("[", iota.num_replica_groups(), ",", iota.num_devices_per_group(), "]",
                                              IotaText(iota.iota_reshape_dims(), iota.iota_transpose_perm())));
  } else if (!groups.empty()) {
    std::string t = "{";
    for (const auto& g : groups)
      absl::StrAppend(&t, t.size() > 1 ? "," : "", "{", absl::StrJoin(g.replica_ids(), ","), "}");
    a.replica_groups = attr::Raw(t + "}");
  }
}

void ReadSourceTargetPairs(const HloInstructionProto& p, Attributes& a) {
  if (!p.source_target_pairs_size()) return;
  std::string t = "{";
  for (const auto& g : p.source_target_pairs())
    absl::StrAppend(&t, t.size() > 1 ? "," : "", "{", g.source(), ",", g.target(), "}");
  a.source_target_pairs = attr::Raw(t + "}");
}

void ReadOutputAliasing(const HloInstructionProto& p, Attributes& a) {
  if (!p.output_operand_aliasing_size()) return;
  std::vector<std::string> pairs;
  for (const auto& e : p.output_operand_aliasing())
    pairs.push_back(absl::StrCat(AttrText(ToInts(e.output_shape_index())), ": (", e.operand_index(), ", ",
                                 AttrText(ToInts(e.operand_shape_index())), ")"));
  a.output_to_operand_aliasing = attr::Raw(absl::StrCat("{", absl::StrJoin(pairs, ", "), "}"));
}

void ReadMetadata(const HloInstructionProto& p, Attributes& a) {
  if (!p.has_metadata() || (p.metadata().op_name().empty() && p.metadata().source_file().empty())) return;
  std::string t = "{";
  auto put = [&](const char* k, const std::string& v) {
    if (!v.empty()) absl::StrAppend(&t, t.size() > 1 ? " " : "", k, "=", QuoteHlo(v));
  };
  put("op_type", p.metadata().op_type());
  put("op_name", p.metadata().op_name());
  put("source_file", p.metadata().source_file());
  if (p.metadata().source_line()) absl::StrAppend(&t, " source_line=", p.metadata().source_line());
  a.metadata = attr::Raw(t + "}");
}

}  // namespace

std::string ShardingOfMhlo(absl::string_view value) {
  proto::OpSharding s;
  const bool text = value.empty() || value[0] == '{';
  return !text && s.ParseFromArray(value.data(), static_cast<int>(value.size())) ? ShardingText(s) : std::string(value);
}

std::string FrontendText(const proto::FrontendAttributes& a) {
  const std::map<std::string, std::string> sorted(a.map().begin(), a.map().end());
  return absl::StrCat(
      "{",
      absl::StrJoin(sorted, ",",
                    [](std::string* out, const auto& e) { absl::StrAppend(out, e.first, "=", QuoteHlo(e.second)); }),
      "}");
}

void ProtoReader::ReadTexts(const HloInstructionProto& p, Attributes& a) {
  ReadReplicaGroups(p, a);
  ReadSourceTargetPairs(p, a);
  if (p.has_sharding()) a.sharding = attr::Raw(ShardingText(p.sharding()));
  if (p.frontend_attributes().map_size()) a.frontend_attributes = attr::Raw(FrontendText(p.frontend_attributes()));
  if (!p.async_execution_thread().empty()) a.async_execution_thread = attr::Str(p.async_execution_thread());
  ReadOutputAliasing(p, a);
  if (!p.backend_config().empty())
    a.backend_config = attr::Raw(p.backend_config()[0] == '{' ? p.backend_config() : QuoteHlo(p.backend_config()));
  ReadMetadata(p, a);
}

}  // namespace kiln
