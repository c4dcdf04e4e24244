// A library that fits its limit by a slow arena: both memories may be the caller's, and neither may be missing.
#include "slow_arena.h"

#include <cstdio>
#include <cstdlib>

#include "tests/link/expect.h"

int main() {
  static_assert(slow_arena::kArenaBytes <= 8192, "the limit");
  static_assert(slow_arena::kSlowArenaBytes > 0 && slow_arena::kSlowArenaBytes <= 4096, "the slow arena");
  float x[32 * 32] = {}, own[32], given[32];
  for (int k = 0; k < 32; ++k) x[k * 33] = 2;  // twice the identity: rows of its powers sum to powers of two
  slow_arena::Context context;
  Expect(slow_arena::run(context, x, own).ok(), "memory of the context");
  alignas(64) static unsigned char arena[slow_arena::kArenaBytes], slow[slow_arena::kSlowArenaBytes];
  slow_arena::Context mine(arena, slow);
  Expect(slow_arena::run(mine, x, given).ok(), "memory of the caller");
  for (int k = 0; k < 32; ++k) Expect(own[k] == 64 + 16 && given[k] == own[k], "sums");
  slow_arena::Context half(kiln_arena{arena, sizeof arena}, kiln_arena{});
  Expect(slow_arena::run(half, x, given).code == SLOW_ARENA_NULL_POINTER, "no slow arena");
  return failures != 0;
}
