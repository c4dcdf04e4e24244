// Every allocation and thread that a model's runtime asks for fails once: functions return NULL or a status, no run
// hangs and what is returned as right is right.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "model.h"

namespace {

std::atomic<long> calls{0};
long fail_at = 0;
thread_local bool counting = false;

bool Fails() { return counting && ++calls == fail_at; }

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
Create real_create = nullptr;

// While it lives, calls of this thread count.
struct Counting {
  Counting() { counting = true; }
  ~Counting() { counting = false; }
};

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) { return Fails() ? nullptr : __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t m) { return Fails() ? nullptr : __libc_calloc(n, m); }
void* aligned_alloc(std::size_t a, std::size_t n) { return Fails() ? nullptr : __libc_memalign(a, n); }
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
  return Fails() ? EAGAIN : real_create(t, a, f, x);
}
}

namespace {

constexpr int kDevices = 2, kCount = 256 * 256;
int failures = 0;
void Expect(bool ok, const char* what) {
  if (!ok) std::printf("FAILED: fault %ld: %s\n", fail_at, what), ++failures;
}

// Whether the fault happened; counts how its runs ended.
bool Run(long n, long* good, long* bad) {
  calls = 0;
  fail_at = n;
  std::vector<float> x(kCount, 1), y[kDevices];
  for (auto& v : y) v.assign(kCount, 0);
  kiln_pool* pool;
  kiln_world* world;
  {
    const Counting on;
    pool = model_pool_create(3);
    world = model_world_create(kDevices);
  }
  int32_t status[kDevices] = {MODEL_COMMUNICATION, MODEL_COMMUNICATION};
  if (world) {
    std::vector<std::thread> threads;
    for (int d = 0; d < kDevices; ++d)
      threads.emplace_back([&, d] {
        kiln_comm* comm = model_world_comm(world, d);
        const Counting on;
        if (comm->send(comm->self, d, KILN_INFEED, x.data(), kCount * sizeof(float))) model_world_abort(world);
        model::Context context(pool);
        context.set_comm(comm);
        status[d] = model::run(context, model::Argument_input::Unchecked(x.data()),
                               model::Result_result0::Unchecked(y[d].data()))
                        .code;
      });
    for (std::thread& t : threads) t.join();
  }
  model_world_destroy(world);
  model_pool_destroy(pool);
  const bool fired = calls >= n;
  for (int d = 0; d < kDevices; ++d) {
    const bool ok = status[d] == MODEL_OK;
    ++*(ok ? good : bad);
    Expect(ok || (fired && (status[d] == MODEL_COMMUNICATION || status[d] == MODEL_NULL_POINTER)), "status");
    Expect(!ok || (y[d][0] == 2 * 256 * 4 && y[d][kCount - 1] == 2 * 256 * 4), "results");
  }
  return fired;
}

}  // namespace

int main() {
  real_create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  long n = 1, good = 0, bad = 0;
  while (Run(n, &good, &bad)) ++n;
  std::printf("%ld faults: %ld runs ended well, %ld with an error\n", n - 1, good - kDevices, bad);
  Expect(n > 6 && bad > 0, "too few faults");
  return failures != 0;
}
