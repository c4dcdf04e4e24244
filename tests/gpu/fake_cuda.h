// What a test tells the fake CUDA driver, and what that counts. Test and driver are built from one source, so they
// share this struct.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

struct FakeCuda {
  // The machine.
  int devices = 1, major = 9, minor = 0, version = 12040;
  int init_code = 0;           // of cuInit
  bool no_conditions = false;  // the driver makes no conditional nodes
  int64_t memory = INT64_MAX;  // bytes that can be allocated
  // How many further calls of a function succeed before one fails with the code; counts down. By name
  // ("cuGraphLaunch").
  struct Failure {
    int after, code;
    bool always = false;
  };
  std::map<std::string, Failure> failures;
  // Or by number: the call of the driver that fails, whatever it is; -1: none. `failed` is its name then.
  int64_t calls = 0, fail_call = -1;
  std::string failed;
  bool failed_in_recording = false;
  // 0, or why the driver does not load this image (cubin: machine code; else PTX).
  std::function<int(bool cubin, const void* image)> refuse_image;
  // Kernels are run by whatever the test sets.
  void* self = nullptr;
  int (*buffers_of)(void* self, const char* kernel) = nullptr;
  int (*launch)(void* self, const char* kernel, int64_t blocks, int64_t threads, void* const* buffers) = nullptr;
  // What happened.
  const void* image = nullptr;     // that was loaded last
  int streams = 0;                 // made so far
  std::vector<std::string> order;  // copies, events and who awaits whom, as they were asked for
  int conditional_nodes = 0, decisions = 0, loads_in_recordings = 0, contexts_pushed = 0, contexts_popped = 0;
  int live = 0;  // streams, events, graphs, modules and blocks of memory that exist
  int launches = 0, allocations = 0, waits = 0, queries = 0, captures = 0, instantiations = 0, updates = 0, replays = 0;
};

extern "C" {
// The device that programs see from now on; returns the one before.
FakeCuda* fake_cuda_set(FakeCuda* fake);
// For a library on top: puts `what` on a stream, or into its recording. It is attempted again while it returns -1.
int fake_cuda_do(void* stream, const std::function<int()>* what);
// Whether a stream is recorded now.
bool fake_cuda_recording(void* stream);
// The graph that it is recorded in, or null, and whether that is the body of a conditional node.
const void* fake_cuda_graph(void* stream);
bool fake_cuda_in_body(void* stream);
// Whether a stream of the device is recorded; the device of a stream, and of the calling thread's context (-1: none).
bool fake_cuda_device_recorded(int device);
int fake_cuda_device_of(void* stream);
int fake_cuda_current_device();
}
