// A model as data: what runtime_min/kiln.h promises to hosts.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

struct CompiledModel;

// An object with the model's kiln_model, <symbols>_descriptor. It refers to the library's functions, so they are linked
// where it is.
absl::StatusOr<std::string> ModelObject(const CompiledModel& model);

// An object with the hidden list (kiln_model_list) of the models whose descriptors have these symbols, and the symbol
// that it has in shared objects.
inline constexpr char kModelListSymbol[] = "kiln_model_list";
absl::StatusOr<std::string> ModelListObject(const std::string& symbol, const std::vector<std::string>& descriptors);

}  // namespace kiln
