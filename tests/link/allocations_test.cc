// run() allocates nothing: every allocation of the process is counted while it runs.
#include <atomic>
#include <cstdlib>
#include <new>

#include "decoder.h"
#include "digits.h"

namespace {
std::atomic<long> g_allocations{0};
}

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) {
  ++g_allocations;
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t m) {
  ++g_allocations;
  return __libc_calloc(n, m);
}
void* realloc(void* p, std::size_t n) {
  ++g_allocations;
  return __libc_realloc(p, n);
}
void* aligned_alloc(std::size_t a, std::size_t n) {
  ++g_allocations;
  return __libc_memalign(a, n);
}
}

#include <cstdio>

int main() {
  digits_pool* pool = digits_pool_create(2);
  const long before_context = g_allocations;
  digits::Context context(pool);
  if (g_allocations == before_context && digits::kArenaBytes > 0) {
    std::printf("the counter does not count\n");
    return 1;
  }
  decoder::Context decoder_context;
  alignas(64) static float pixels[64], scores[10], cache[DECODER_ARGUMENT_ARG2_COUNT],
      logits[DECODER_RESULT_RESULT0_COUNT];
  alignas(64) int32_t token[1] = {1}, at[1] = {0};
  bool ok = true;
  const long before = g_allocations;
  for (int k = 0; k < 50; ++k) {
    ok = ok && digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores).ok();
    ok = ok && decoder::run(decoder_context, token, at, cache, logits).ok();
  }
  const long during = g_allocations - before;
  digits_pool_destroy(pool);
  std::printf("%ld allocations in 100 runs\n", during);
  return ok && during == 0 ? 0 : 1;
}
