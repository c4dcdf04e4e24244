// .npy files, C order, as the command-line contract stores each element type.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// A file taken apart: element type as NumPy writes it ("<f4"), extents, and the bytes of the elements.
struct NpyArray {
  std::string descr;
  Ints dims;
  absl::string_view data;
};
// `path` is only for messages. The result views `bytes`.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, const std::string& path);
absl::StatusOr<Literal> NpyLiteral(const NpyArray& array, const std::string& path, const Shape& shape);
// Reads a file as a value of `shape`. bf16 and f8 come as their bits (of integers, or of ml_dtypes: "<V2", "<V1") or as
// float32; 4-bit integers as int8 or uint8.
absl::StatusOr<Literal> ReadNpy(const std::string& path, const Shape& shape);
absl::Status WriteNpy(const std::string& path, const Literal& value);

}  // namespace kiln
