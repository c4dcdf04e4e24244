// Runs code of x86-64 levels that this machine lacks: the instructions that trap are executed in software.
//
// Why: an archive holds code for machines that its author does not have. Level v3dot adds AVX-VNNI to v3, v4fp16
// AVX512-FP16 to v4dot, and amx tiles to v4bf16; what they add are few instructions, which a machine of the level below
// can imitate exactly.
// Guarantees: results are those of the machine, bit for bit, NaNs and subnormal numbers included; an instruction that a
// machine refuses (a tile of no possible shape) or that is not known here ends the process with its bytes.
// Cost: about a microsecond for each instruction that traps.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::x86 {

// Whether this machine has every instruction of a level, and lets this process use them. `level`: a name of
// KILN_CPU_LEVELS, or "native".
bool MachineRuns(absl::string_view level);

// An error that names the level below where this machine lacks more of `level` than can be executed in software.
absl::Status CanEmulate(absl::string_view level);

// From now on in this process, on all its threads. Takes SIGILL. Call it while no code of a model runs.
void EmulateMissingInstructions();

// Instructions executed in software so far.
long EmulatedInstructions();

}  // namespace kiln::x86
