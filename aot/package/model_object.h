// A model as data: what runtime_min/kiln.h promises to hosts.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace kiln {

struct CompiledModel;

// An object with the model's kiln_model, <symbols>_descriptor. It refers to the library's functions, so they are linked
// where it is.
absl::StatusOr<std::string> ModelObject(const CompiledModel& model);

}  // namespace kiln
