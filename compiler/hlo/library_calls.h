// Custom calls that stand for routines of GPU libraries: how they are written in HLO, and what they compute.
//
// What: the targets' names, the configuration text that a call carries, and each call's meaning as ordinary HLO, which
//   the evaluator and tests use. Names and fields are those that XLA prints, as far as they exist there.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

inline constexpr char kGemmTarget[] = "__cublas$lt$matmul";
// Of 8-bit floats, each operand times a scale.
inline constexpr char kGemmF8Target[] = "__cublas$lt$matmul$f8";
inline constexpr char kConvForwardTarget[] = "__cudnn$convForward";
inline constexpr char kConvBackwardInputTarget[] = "__cudnn$convBackwardInput";
inline constexpr char kConvBackwardFilterTarget[] = "__cudnn$convBackwardFilter";
inline constexpr char kConvBiasActivationTarget[] = "__cudnn$convBiasActivationForward";
inline constexpr char kBatchNormInferenceTarget[] = "__cudnn$batchNormalizationForwardInference";
inline constexpr char kBatchNormTrainingTarget[] = "__cudnn$batchNormalizationForwardTraining";
inline constexpr char kBatchNormGradTarget[] = "__cudnn$batchNormalizationBackward";
inline constexpr char kCholeskyTarget[] = "__cusolver$cholesky";
inline constexpr char kTriangularSolveTarget[] = "__cublas$triangularSolve";
// (keys, u8[workspace]) or (keys, values, u8[workspace]): rows along the last dimension, ascending or as "descending"
// says, equal keys in their old order; floating-point keys by total order.
inline constexpr char kRadixSortTarget[] = "__cub$DeviceRadixSort";

// out = epilogue(alpha * dot(a, b) + beta * c + bias); operands a, b, then c if beta is not 0, then bias (along the
// last dimension) if the epilogue has one. Of 8-bit floats: dot(a * scale_a, b * scale_b), and the scales, f32[],
// follow b.
struct GemmConfig {
  Ints lhs_batch, lhs_contracting, rhs_batch, rhs_contracting;
  double alpha = 1, beta = 0;
  std::string epilogue = "DEFAULT";  // BIAS, RELU, BIAS_RELU, GELU, BIAS_GELU
  // An operand whose batch dimensions are the other's: it is one matrix, read again for each.
  bool lhs_broadcast = false, rhs_broadcast = false;
  bool precise = false;          // the program asks for more than the default precision
  std::string algorithm = "-1";  // see ChosenAlgorithm
  bool HasBias() const { return epilogue.rfind("BIAS", 0) == 0; }
  bool HasRelu() const { return epilogue.find("RELU") != std::string::npos; }
  bool HasGelu() const { return epilogue.find("GELU") != std::string::npos; }
};
std::string ToText(const GemmConfig& c);
// Whether a dot wants more of an operand than the default precision.
bool AsksForPrecision(const Instruction* dot);
absl::StatusOr<GemmConfig> GemmConfigOf(const Instruction* call);

// The tuple (result, u8[workspace]) of a convolution call; window, dim_labels and feature_group_count are attributes of
// the call. Operands: input and filter, then bias and side input of the fused form. Backward calls keep the window of
// the convolution that they were, not that of the forward one whose gradient they are.
struct ConvConfig {
  double conv_scale = 1, side_scale = 0;
  std::string activation = "kNone";  // kRelu
  std::string algorithm = "-1";      // see ChosenAlgorithm
};
std::string ToText(const ConvConfig& c);
absl::StatusOr<ConvConfig> ConvConfigOf(const Instruction* call);

// A field of a configuration text: what stands behind "key": up to the next comma or closing bracket, without quotes.
std::optional<std::string> ConfigField(absl::string_view config, absl::string_view key);

// What tuning chose for `i` on a target, a number of the library's or, for kiln's own kernels, of
// compiler/target/gpu_tiles.def; -1 if nothing. The configuration holds it as "selected_algorithm": a number for every
// target, or "sm_80=3;sm_90=7".
int64_t ChosenAlgorithm(const Instruction* i, absl::string_view target);
// Sets it; `i` must have no configuration or one that ToText wrote, or a fusion's.
void SetAlgorithm(Instruction* i, const std::string& choice);

bool IsLibraryCall(const Instruction* i);
bool IsCallTo(const Instruction* i, absl::string_view target);
// A product of either kind.
bool IsGemmCall(const Instruction* i);

// What `call` computes from `operands`, which are in `c`, in ordinary operations; a tuple where the call gives one.
absl::StatusOr<Instruction*> MeaningOf(const Instruction* call, Computation* c,
                                       const std::vector<Instruction*>& operands);

}  // namespace kiln
