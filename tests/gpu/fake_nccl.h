// What a test asks of the NCCL that it runs on (fake_nccl.cc), by dlsym.
#pragma once

#include <cstdint>

extern "C" {
// How often a function ("AllReduce") was called since the last reset, which also forgets failures.
int64_t fake_nccl_calls(const char* function);
void fake_nccl_reset();
// The function returns `result` once, after so many more calls.
void fake_nccl_fail(const char* function, int64_t after, int result);
// Communicators that exist.
int64_t fake_nccl_live();
}
