// The tile instructions of AMX in software, for machines without them.
//
// What: each tile instruction that traps as unknown (SIGILL) is decoded and executed on tiles of the thread's own. What
//   an instruction refuses (a tile that is not configured, shapes that do not go together) ends the program, as on a
//   machine it does.
// Guarantees: AMX-TILE, AMX-INT8 and AMX-BF16 with the results that Intel's manual states, bit for bit. Other unknown
//   instructions end the program.
// Cost: some microseconds an instruction.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
#pragma once

namespace kiln {

// From here on, in all threads. Linux on x86-64.
void EmulateTiles();

// Instructions that were executed so.
long EmulatedTileInstructions();

}  // namespace kiln
