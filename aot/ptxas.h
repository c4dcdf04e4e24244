// NVIDIA's assembler, as a process.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace kiln {

// The path of ptxas: `configured` if it is not empty, else what PATH finds, else the CUDA Toolkit's usual place. Empty
// if there is none.
std::string FindPtxas(const std::string& configured);

// libdevice.10.bc of the same CUDA Toolkit as `ptxas`, or of the usual place; empty if there is none.
std::string FindLibdevice(const std::string& ptxas);

// A cubin for `architecture` ("sm_90") from PTX; fails with what ptxas prints, or if it is no program.
absl::StatusOr<std::string> AssemblePtx(const std::string& ptxas, const std::string& ptx,
                                        const std::string& architecture);

}  // namespace kiln
