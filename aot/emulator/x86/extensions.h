// The emulated extensions. Each function executes `d` and returns true, or returns false for instructions of others.
#pragma once

#include "aot/emulator/x86/decode.h"
#include "aot/emulator/x86/evex_operands.h"
#include "aot/emulator/x86/registers.h"

namespace kiln::x86 {

// AMX-TILE, AMX-INT8, AMX-BF16. The tiles are the thread's.
bool ExecuteTiles(const Decoded& d);

// AVX-VNNI: sums of products of bytes and of 16-bit integers.
bool ExecuteDots(const Decoded& d, VectorRegisters* registers);

// AVX512-FP16: arithmetic and conversions of f16. MXCSR is taken to round to nearest.
bool ExecuteHalves(const Decoded& d, ucontext_t* context, VectorRegisters* registers);
// Of these, conversions.
bool ConvertHalves(const Decoded& d, const EvexOperands& operands, ucontext_t* context);

}  // namespace kiln::x86
