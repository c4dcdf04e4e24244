// Operations that StableHLO lacks, as custom calls: PyTorch/XLA and TensorFlow write `mhlo.erf` as
// `stablehlo.custom_call @mhlo.erf`, with the operation's attributes as the dictionary `mhlo.attributes`.
//
// Source: XLA's hlo-legalize-to-stablehlo, which writes them, and chlo-recompose-ops, which reads them back.
#include "absl/strings/match.h"
#include "compiler/import/mlir_parser.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {

bool IsEncoded(const Call& call, absl::string_view target) {
  return call.op.Has("mhlo.attributes") && (absl::StartsWith(target, "mhlo.") || absl::StartsWith(target, "chlo."));
}

absl::StatusOr<Values> ConvertEncoded(Call& call, absl::string_view target) {
  mlir::Op op;
  op.name = std::string(target);
  const std::string attributes = call.Resolve(call.op.Attr("mhlo.attributes"));
  if (!mlir::Parser(attributes, "").ParseDict(&op.attributes).ok())
    return call.Fail("mhlo.attributes is not a dictionary");
  op.operands = call.op.operands;
  op.operand_types = call.op.operand_types;
  op.result_types = call.op.result_types;
  op.has_function_type = call.op.has_function_type;
  op.pos = call.op.pos;
  op.loc = call.op.loc;
  op.origin = call.op.origin;
  return call.converter.Convert(op, call.c, call.env);
}

}  // namespace kiln::stablehlo
