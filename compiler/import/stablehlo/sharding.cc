// Shardy's operations: regions written for each partition, and hints that only the choice of shardings reads.
#include "compiler/hlo/sharding.h"

#include "absl/strings/match.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/import/mhlo_sharding.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {
namespace {

// The custom call at the boundary of such a region, as XLA writes it.
Values Boundary(Call& call, const char* target, const char* key, absl::string_view shardings, const Values& values,
                const std::vector<Shape>& shapes) {
  Instruction* i = call.Add(Opcode::CustomCall, Shape::Tuple(shapes), values);
  i->mutable_attrs().custom_call_target = attr::Str(target);
  i->mutable_attrs().frontend_attributes = attr::Raw(absl::StrCat(
      "{xla.sdy.", key, "=", QuoteHlo(absl::StrCat("#sdy.sharding_per_value<", shardings, ">")),
      ",xla.sdy.manual_axes=", QuoteHlo(absl::StrCat("#sdy<manual_axes", call.op.Attr("manual_axes"), ">")), "}"));
  return call.Split(i);
}

// "<@mesh, [...]>" and "#sdy.sharding<@mesh, [...]>" as frontend attributes have it.
std::string MeshSharding(absl::string_view text) {
  return absl::StartsWith(text, "#sdy.sharding") ? std::string(text) : absl::StrCat("#sdy.sharding", text);
}

// The value of "sdy.sharding" among the attributes of an argument or a result; empty if there is none.
std::string EntryMeshSharding(absl::string_view attributes) {
  constexpr absl::string_view kKey = "sdy.sharding", kValue = "#sdy.sharding<";
  const size_t key = attributes.find(kKey);
  const size_t start = key == attributes.npos ? key : attributes.find(kValue, key);
  if (start == attributes.npos) return "";
  int depth = 0;
  for (size_t k = start; k < attributes.size(); ++k) {
    depth += attributes[k] == '<' ? 1 : attributes[k] == '>' ? -1 : 0;
    if (attributes[k] == '>' && depth == 0) return std::string(attributes.substr(start, k + 1 - start));
  }
  return "";
}

// The sharding of "mhlo.sharding" there; empty if there is none.
std::string EntryMhloSharding(absl::string_view attributes) {
  return ShardingOfMhlo(TextAttribute(attributes, "mhlo.sharding"));
}

}  // namespace

absl::StatusOr<Values> ConvertManualComputation(Call& call) {
  if (call.op.regions.size() != 1 || call.op.regions[0].arguments.size() != call.x.size())
    return call.Fail("its region does not take the operands");
  const mlir::Region& region = call.op.regions[0];
  std::vector<Shape> inside;
  for (const mlir::BlockArgument& a : region.arguments) inside.push_back(a.type);
  Env env = *call.env;
  if (!call.x.empty()) {
    const Values tiles =
        Boundary(call, "xla.sdy.GlobalToLocalShape", "in_shardings", call.op.Attr("in_shardings"), call.x, inside);
    for (size_t k = 0; k < tiles.size(); ++k) Bind(&env, region.arguments[k].name, tiles[k]);
  }
  Values returned;
  RETURN_IF_ERROR(call.converter.BuildOps(region, call.c, &env, &returned));
  if (returned.size() != call.types.size()) return call.Fail("its region returns another number of values");
  if (returned.empty()) return returned;
  return Boundary(call, "xla.sdy.LocalToGlobalShape", "out_shardings", call.op.Attr("out_shardings"), returned,
                  call.types);
}

absl::StatusOr<Values> ConvertShardingHint(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  return call.x;
}

// A call that carries the sharding, as XLA writes it.
absl::StatusOr<Values> ConvertShardingConstraint(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  const std::string sharding = call.Resolve(call.op.Attr("sharding"));
  if (sharding.empty() || !call.x[0]->shape().IsArray()) return call.x;
  Instruction* i = call.Add(Opcode::CustomCall, call.x[0]->shape(), call.x);
  i->mutable_attrs().custom_call_target = attr::Str("Sharding");
  i->mutable_attrs().frontend_attributes =
      attr::Raw(absl::StrCat("{xla.sdy.sharding=", QuoteHlo(MeshSharding(sharding)), "}"));
  return Values{i};
}

void SetEntrySharding(absl::string_view attributes, Instruction* i) {
  if (const std::string text = EntryMeshSharding(attributes); !text.empty())
    i->mutable_attrs().frontend_attributes = attr::Raw(absl::StrCat("{xla.sdy.sharding=", QuoteHlo(text), "}"));
  if (std::string text = EntryMhloSharding(attributes); !text.empty())
    i->mutable_attrs().sharding = attr::Raw(std::move(text));
}

Instruction* WithResultSharding(absl::string_view attributes, Instruction* result) {
  if (!result->shape().IsArray()) return result;
  if (EntryMeshSharding(attributes).empty() && EntryMhloSharding(attributes).empty()) return result;
  Instruction* i = result->parent()->Add(Opcode::CustomCall, result->shape(), {result});
  i->mutable_attrs().custom_call_target = attr::Str("Sharding");
  i->set_loc(result->loc());
  SetEntrySharding(attributes, i);
  return i;
}

absl::StatusOr<Values> ConvertShardingGroup(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  return Values{};
}

}  // namespace kiln::stablehlo
