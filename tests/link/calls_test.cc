// What an entry checks before it runs: every pointer, alignment, arena, overlap and size that is wrong is a status,
// from C as from C++, and leaves the arrays alone.
#include "calls.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/link/expect.h"

namespace {

void ExpectStatus(int32_t got, int32_t want, const char* what) {
  if (got == want) return;
  std::printf("FAILED: %s: \"%s\" instead of \"%s\"\n", what, calls_status_text(got), calls_status_text(want));
  ++failures;
}

// A call with nothing wrong.
struct Call {
  alignas(64) unsigned char arena_bytes[CALLS_ARENA_BYTES + 64];
  alignas(64) float x[8], y[64 * 64 + 16], z[64];
  int32_t size = 5;
  float sum;
  alignas(64) float p[64 * 64 + 16];
  void* arguments[4] = {x, y, z, &size};
  void* results[3] = {&sum, nullptr, p};  // the second lies in z
  kiln_arena arena = {arena_bytes, CALLS_ARENA_BYTES};
  const kiln_pool* pool = nullptr;

  Call() {
    for (int k = 0; k < 8; ++k) x[k] = static_cast<float>(k + 1);
    std::memset(y, 0, sizeof y);
    for (int k = 0; k < 64; ++k) y[65 * k] = 1, z[k] = 2;
    sum = -7;
  }
  int32_t Run() { return calls_run(arguments, results, arena, pool); }
};

template <typename Spoil>
void Wrong(const char* what, int32_t want, Spoil spoil) {
  Call c;
  spoil(c);
  ExpectStatus(c.Run(), want, what);
  Expect(c.sum == -7 && c.z[0] == 2, "a refused call writes nothing");
}

}  // namespace

int main() {
  static_assert(CALLS_ARENA_BYTES > 0, "the test is about arenas");
  {
    Call c;
    ExpectStatus(c.Run(), CALLS_OK, "a right call");
    Expect(c.sum == 15 && c.z[0] == 3 && c.p[0] == 1, "its results");
    c.size = 0;
    ExpectStatus(c.Run(), CALLS_OK, "size 0");
    Expect(c.sum == 0, "the sum of nothing");
    c.size = 8;
    ExpectStatus(c.Run(), CALLS_OK, "size 8");
    Expect(c.sum == 36, "the sum of all");
  }
  Wrong("arguments", CALLS_NULL_POINTER, [](Call& c) {
    for (void*& a : c.arguments) a = nullptr;
  });
  for (int k = 0; k < 4; ++k) Wrong("an argument", CALLS_NULL_POINTER, [&](Call& c) { c.arguments[k] = nullptr; });
  for (int k : {0, 2}) Wrong("a result", CALLS_NULL_POINTER, [&](Call& c) { c.results[k] = nullptr; });
  Wrong("no arena", CALLS_NULL_POINTER, [](Call& c) { c.arena = {nullptr, CALLS_ARENA_BYTES}; });
  Wrong("an arena too small", CALLS_ARENA_SIZE, [](Call& c) { --c.arena.bytes; });
  Wrong("a misaligned arena", CALLS_MISALIGNED, [](Call& c) { c.arena.data = c.arena_bytes + 16; });
  for (int k : {0, 1, 2, 3})
    Wrong("a misaligned argument", CALLS_MISALIGNED,
          [&](Call& c) { c.arguments[k] = static_cast<char*>(c.arguments[k]) + 1; });
  for (int k : {0, 2})
    Wrong("a misaligned result", CALLS_MISALIGNED,
          [&](Call& c) { c.results[k] = static_cast<char*>(c.results[k]) + 2; });
  for (int32_t size : {-1, 9, 1 << 30, -(1 << 30)})
    Wrong("a size outside its bound", CALLS_DIMENSION, [&](Call& c) { c.size = size; });
  Wrong("a result in an argument", CALLS_OVERLAP, [](Call& c) { c.results[0] = c.x + 7; });
  Wrong("a result in a donated argument", CALLS_OVERLAP, [](Call& c) { c.results[0] = c.z + 63; });
  Wrong("a result in another", CALLS_OVERLAP, [](Call& c) { c.results[0] = c.p + 64 * 64 - 1; });
  Wrong("a result in the arena", CALLS_OVERLAP, [](Call& c) { c.results[0] = c.arena_bytes + 4; });
  Wrong("an argument in the arena", CALLS_OVERLAP, [](Call& c) { c.arguments[0] = c.arena_bytes + 4; });
  Wrong("a donated argument in another", CALLS_OVERLAP, [](Call& c) { c.arguments[2] = c.y + 100; });
  {
    Call c;
    c.results[2] = c.p + 1;  // as aligned as its elements are
    c.arguments[1] = c.y + 3;
    std::memset(c.y, 0, sizeof c.y);
    for (int k = 0; k < 64; ++k) c.y[3 + 65 * k] = 1;
    ExpectStatus(c.Run(), CALLS_OK, "arrays aligned to their elements");
    Expect(c.p[1] == 1 && c.z[63] == 3, "their results");
  }
  const kiln_pool empty = {nullptr, nullptr, nullptr, nullptr};
  Wrong("a pool without functions", CALLS_NULL_POINTER, [&](Call& c) { c.pool = &empty; });
  {
    Call c;
    ExpectStatus(calls_run(nullptr, c.results, c.arena, nullptr), CALLS_NULL_POINTER, "no table of arguments");
    ExpectStatus(calls_run(c.arguments, nullptr, c.arena, nullptr), CALLS_NULL_POINTER, "no table of results");
  }
  // From C++: spans of another count are empty, memory is typed.
  {
    using M = calls;
    Call c;
    const auto run = [&](const M::Context& context, M::Argument_x x) {
      return M::run(context, x, M::Argument_y::Unchecked(c.y), c.z, M::Argument_x_size0::Unchecked(&c.size),
                    M::Result_result0::Unchecked(&c.sum), M::Result_result2::Unchecked(c.p))
          .code;
    };
    M::Context context, own(c.arena_bytes), off(kiln_arena{c.arena_bytes + 1, CALLS_ARENA_BYTES});
    ExpectStatus(run(context, c.x), CALLS_OK, "C++");
    ExpectStatus(run(own, c.x), CALLS_OK, "memory of the caller's");
    ExpectStatus(run(context, M::Argument_x::Of(c.x, 7)), CALLS_EXTENT, "a view of another count");
    ExpectStatus(run(off, c.x), CALLS_MISALIGNED, "a misaligned context");
  }
  if (!failures) std::printf("calls: ok\n");
  return failures != 0;
}
