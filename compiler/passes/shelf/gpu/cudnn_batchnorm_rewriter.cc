// Batch normalisation in f32 becomes calls of cuDNN, which counts in 1 / sqrt(variance + epsilon): conversions stand
// around the calls. Epsilon and the feature's position are trailing operands. An epsilon below the library's least
// stays.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr double kLeastEpsilon = 1e-5;

Instruction* Call(Instruction* i, const char* target, const Shape& shape, std::vector<Instruction*> operands) {
  Computation* c = i->parent();
  const double epsilon = i->attrs().epsilon.value_or(0);
  const int64_t feature = i->attrs().feature_index.value_or(0);
  operands.push_back(c->AddConstant(Literal::Of(PrimitiveType::F32, epsilon)));
  operands.push_back(c->AddConstant(Literal::Int(PrimitiveType::S64, feature)));
  Instruction* call = c->Add(Opcode::CustomCall, shape, std::move(operands), "cudnn-batch-norm");
  call->mutable_attrs().custom_call_target = attr::Str(target);
  call->mutable_attrs().backend_config = absl::StrFormat("{\"epsilon\":%.9g,\"feature_index\":%d}",
                                                         static_cast<double>(static_cast<float>(epsilon)), feature);
  return call;
}

}  // namespace

absl::StatusOr<bool> CudnnBatchnormRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        const bool norm =
            i->Is(Opcode::BatchNormInference) || i->Is(Opcode::BatchNormTraining) || i->Is(Opcode::BatchNormGrad);
        return norm && i->operand(0)->shape().type() == PrimitiveType::F32 &&
               i->attrs().epsilon.value_or(0) >= kLeastEpsilon * (1 - 1e-6) &&
               i->operand(0)->shape().ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const auto epsilon = static_cast<double>(static_cast<float>(i->attrs().epsilon.value_or(0)));
        if (i->Is(Opcode::BatchNormInference)) return Call(i, kBatchNormInferenceTarget, i->shape(), i->operands());
        if (i->Is(Opcode::BatchNormTraining)) {
          Instruction* call = Call(i, kBatchNormTrainingTarget, i->shape(), i->operands());
          Expr inverse = PartOf(call, 2);
          return TupleOf({PartOf(call, 0), PartOf(call, 1), 1.0 / (inverse * inverse) - epsilon});
        }
        std::vector<Instruction*> operands = i->operands();
        operands[3] = Unary(Opcode::Rsqrt, Expr(operands[3]) + epsilon).get();
        return Call(i, kBatchNormGradTarget, i->shape(), operands);
      });
}

}  // namespace kiln
