// Shardy's operations: regions written for each partition, and hints that only the choice of shardings reads.
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

absl::StatusOr<Values> ConvertShardingGroup(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  return Values{};
}

}  // namespace kiln::stablehlo
