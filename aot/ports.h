// What goes into a program and what comes out, as its interface names it.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "aot/compile.h"
#include "compiler/plan/buffer_assignment.h"

namespace kiln {

// Names and extents of arguments and results, and which argument holds which result. The first `stated` of the module's
// dimension arguments have one value, the others are sizes within a bound.
absl::Status DescribePorts(const Module& module, const CompileOptions& options, size_t stated,
                           std::vector<Port>* arguments, std::vector<Port>* results);

// Sets what the code assumes of each array: its elements' alignment and, of a result whose memory serves as arena
// before, that of what lies there.
void AlignPorts(const BufferAssignment& buffers, std::vector<Port>* arguments, std::vector<Port>* results);

int64_t PortBytes(const std::vector<Port>& ports);

}  // namespace kiln
