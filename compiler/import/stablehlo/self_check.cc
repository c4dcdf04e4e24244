// The self-checks of StableHLO's test programs and its interpreter's dialect, as custom calls that `kiln check` takes
// apart.
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"
#include "compiler/import/symbols.h"

namespace kiln::stablehlo {

absl::StatusOr<Values> ConvertCheck(Call& call) {
  // The constant forms get their constant as an operand.
  if (call.op.Has("value")) {
    RETURN_IF_ERROR(call.Need(1));
    auto lit = ParseDense(call.op.Attr("value"), call.x[0]->shape());
    if (!lit.ok()) return call.Fail(lit.status().message());
    call.x.push_back(call.c->AddConstant(std::move(*lit)));
  }
  RETURN_IF_ERROR(call.Need(2));
  Instruction* i = call.Add(Opcode::CustomCall, Shape::Tuple({}), call.x);
  i->mutable_attrs().custom_call_target = attr::Str(call.op.name);
  i->mutable_attrs().custom_call_has_side_effect = true;
  for (const char* key : {"max_ulp_difference", "min_ulp_difference", "tolerance"})
    if (call.op.Has(key)) {
      const std::string& text = call.op.Attr(key);
      i->mutable_attrs().backend_config = attr::Raw(absl::StrCat(key, "=", text.substr(0, text.find(' '))));
    }
  return Values{};
}

absl::StatusOr<Values> ConvertSerializedCheck(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  const Values& kept = call.converter.Probe(call.op.Attr("probe_id"));
  if (kept.empty()) return call.Fail(absl::StrCat("no probe is named ", call.op.Attr("probe_id")));
  call.x.push_back(kept.back());
  return ConvertCheck(call);
}

absl::StatusOr<Values> ConvertProbe(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  call.converter.Probe(call.op.Attr("probe_id")).push_back(call.x[0]);
  return call.x;
}

absl::StatusOr<Values> ConvertPrint(Call&) { return Values{}; }

absl::Status ReadDeviceGrid(const mlir::Op& op, Converter* converter) {
  const std::string& grid = op.Attr("programs");
  int64_t replicas = -1;
  for (char ch : grid) replicas += ch == '[';
  const auto programs = static_cast<int64_t>(mlir::SymbolsIn(grid).size());
  if (replicas < 1 || programs == 0 || programs % replicas)
    return converter->Fail(op, "programs is not a grid of functions");
  converter->module()->replica_count = replicas;
  converter->module()->partition_count = programs / replicas;
  return absl::OkStatus();
}

// programs=[[@a, @b], [@a, @b]]: a row for each replica, a column for each partition; operands and results are those
// of the programs in turn. infeed=[@q0, @q1]: functions that give what the infeed queue holds.
absl::StatusOr<Values> ConvertRunParallel(Call& call) {
  auto functions = [&](absl::string_view text) -> absl::StatusOr<std::vector<Computation*>> {
    std::vector<Computation*> out;
    for (const std::string& name : mlir::SymbolsIn(text)) {
      ASSIGN_OR_RETURN(Computation * c, call.converter.FunctionOf(name, call.op));
      out.push_back(c);
    }
    return out;
  };
  RETURN_IF_ERROR(ReadDeviceGrid(call.op, &call.converter));
  ASSIGN_OR_RETURN(std::vector<Computation*> called, functions(call.op.Attr("programs")));
  ASSIGN_OR_RETURN(std::vector<Computation*> feeds, functions(call.op.Attr("infeed")));
  called.insert(called.end(), feeds.begin(), feeds.end());
  Instruction* i = call.Add(Opcode::CustomCall, Shape::Tuple(call.types), call.x);
  i->mutable_attrs().custom_call_target = attr::Str(call.op.name);
  i->mutable_attrs().custom_call_has_side_effect = true;
  i->mutable_attrs().called_computations = called;
  return call.Split(i);
}

}  // namespace kiln::stablehlo
