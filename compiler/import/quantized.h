// Uniformly quantized types of StableHLO: a tensor of small integers that stands for (q - zero_point) * scale.
//
// What: HLO has no quantized types, so the importer keeps such a value as its storage integers beside the parameters
//   of its type, and writes the arithmetic out. Per-tensor and per-axis scales.
// Guarantees: quantize rounds to nearest even, adds the zero point, and clamps to the storage range; requantize is
//   dequantize and quantize, as the StableHLO specification defines it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/graph_builder.h"

namespace kiln {

struct QuantizedType {
  PrimitiveType storage = PrimitiveType::S8, expressed = PrimitiveType::F32;
  int64_t low = -128, high = 127;  // of the storage values in use
  int64_t axis = -1;               // of the scales; -1: one for the whole tensor
  std::vector<double> scales;
  std::vector<int64_t> zero_points;  // as many as scales
  bool operator==(const QuantizedType&) const = default;
};
using QuantizedPtr = std::shared_ptr<const QuantizedType>;

// "!quant.uniform<i8<-127:127>:f32:0, {0.1:-30,0.5:-20}>". Fails with what is wrong with it.
absl::StatusOr<QuantizedType> ParseQuantizedType(absl::string_view text);

// Storage integers to the expressed float type.
absl::StatusOr<Expr> Dequantize(Expr stored, const QuantizedType& type);
// Floats to storage integers.
absl::StatusOr<Expr> Quantize(Expr real, const QuantizedType& type);

// Ops that move values without looking at them: their quantized operands and results are the storage integers.
bool MovesStorage(absl::string_view stablehlo_op);

}  // namespace kiln
