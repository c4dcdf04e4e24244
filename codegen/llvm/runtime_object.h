// The runtime's parts as objects of an archive.
//
// What: each part was compiled when kiln was built; its symbols get the model's names here.
// Cost: a copy of a few kilobytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/llvm/object.h"

namespace kiln {

enum class RuntimePart {
#define RUNTIME_PART(name, ...) name,
#include "codegen/kernels/runtime_parts.def"
};

// What a program may need parts for; a set of them is a sum.
struct RuntimeNeed {
  enum : unsigned {
    Calls = 1,    // <name>_run
    Threads = 2,  // CPU kernels that are split
    Gpu = 4,
    GpuLibraries = 8,  // beside Gpu, where products may be calls of cuBLASLt
    BoundsCheck = 16,
    Devices = 32,  // it communicates
    Tuner = 64,
    Weights = 128,  // arguments come from files
    Hosts = 256,    // any program: it is a part of those that ask for it
    Profile = 512,
    ProfiledThreads = 1024,  // beside Profile
    Numerics = 2048,
    WeightedRuns = 4096,  // beside Weights, for each program whose arguments these are
    Entries = 8192,       // a library has several
    GpuPrograms = 16384,  // beside Gpu, for each program
    GpuDevices = 32768,   // beside Gpu, where it communicates
    GpuNccl = 65536,      // beside GpuDevices, where NCCL connects the devices
  };
};

struct RuntimeMember {
  RuntimePart part;
  const char* member;  // its name in the archive, behind the model's
};
std::vector<RuntimeMember> RuntimeMembers(unsigned needs);

// The ELF object of `part`, whose symbols kiln_model_* are called `name`_*, and kiln_library_* `library`_*: a library
// may have several programs. `unwound`: with unwind tables, unless it is sanitized.
absl::StatusOr<std::string> RuntimeObject(const std::string& name, const std::string& library, RuntimePart part,
                                          Sanitizer sanitizer, bool unwound = false);

}  // namespace kiln
