// MLIR attribute values: `dense<...>` constants and integer lists.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// `dense<...>` text (a trailing type is ignored) as a literal of `shape`. Bytecode's payloads arrive as they are, in
// `dense<bytes:...>`.
absl::StatusOr<Literal> ParseDense(absl::string_view text, const Shape& shape);
// Elements as MLIR stores them: one after the other, or one for all; pred possibly eight to a byte.
absl::StatusOr<Literal> DenseFromBytes(absl::string_view bytes, const Shape& shape);
// Integers of "[1, 2]", "array<i64: 1, 2>", "dense<[[0, 1]]> : tensor<1x2xi64>", "3 : i32". nullopt if the
// text holds something else.
std::optional<Ints> ParseIntList(absl::string_view text);

}  // namespace kiln
