// What a model's GPU entry asks of whatever runs it: one table of functions. C11.
//
// The entry is straight host code. It starts kernels, moves bytes and calls library routines through this table, in
// order, on one stream; it does not wait for them unless it must know a value. kiln's runtime fills the table with
// functions of the CUDA driver and libraries (driver.c); tests fill it with an emulator that runs the same kernels on
// the host. Functions return 0, or anything else for failure, which ends the run with KILN_GPU.
//
// What each guarantees: `launch`, `call`, `copy`, `fill`, `exchange`, `offer` and `take` only put work on the stream.
// `read`, `gather`, `send` and `receive` wait for the stream, and fail where it is being recorded. `record`, `loop` and
// `choose` compute the same whether they record or not.
#ifndef KILN_RUNTIME_MIN_GPU_ABI_H_
#define KILN_RUNTIME_MIN_GPU_ABI_H_

#include <stdint.h>

// One start of a kernel. Constants of the library.
struct kiln_gpu_launch {
  int64_t kernel;       // its place in the library's table
  const int64_t* grid;  // blocks and threads, one dimension each, for every image of the program
  int64_t buffers;      // the kernel's arguments: addresses
};

// Routines of libraries.
enum kiln_gpu_routine {
#define ROUTINE(name, text, value) KILN_GPU_##name = value,
#include "runtime_min/gpu/routines.def"
};

// How a library routine is to compute a call.
struct kiln_gpu_algorithm {
  int64_t number;         // of the library's candidates, exactly; -1: the library's choice
  int64_t version;        // of the library that `words` come from
  const uint64_t* words;  // the eight words of a tuned algorithm, or null
};

// One call of a library routine: what it is, and its numbers in the order that routines.def states. Constants of the
// library.
struct kiln_gpu_call {
  int64_t routine;
  int64_t buffers;  // operands, then results
  int64_t count;    // of `numbers`
  const int64_t* numbers;
  const struct kiln_gpu_algorithm* algorithm;  // for every image of the program
  const int64_t* alignment;                    // of each buffer's address, in bytes
  // kiln's own kernel that computes the same from the same buffers and a null scratch behind them, for machines whose
  // library does not; null: there is none.
  const struct kiln_gpu_launch* kernel;
};

// A part of an entry: one whose work may be recorded once and replayed, or that runs often or not at all.
typedef int32_t (*kiln_gpu_region)(void* const* arguments, void* const* results, void* arena, const void* gpu,
                                   const void* comm);

struct kiln_gpu_exchange;  // nccl/exchange.h

struct kiln_gpu {
  void* self;
  void* weights;  // the library's constants, in the device's memory
  int32_t (*launch)(void* self, const struct kiln_gpu_launch* what, void* const* buffers);
  int32_t (*call)(void* self, const struct kiln_gpu_call* what, void* const* buffers);
  int32_t (*copy)(void* self, void* to, const void* from, int64_t bytes);
  int32_t (*fill)(void* self, void* to, int32_t byte, int64_t bytes);
  // Waits for what was started so far; `host` then holds the bytes. Fails where the stream is being recorded.
  int32_t (*read)(void* self, void* host, const void* device, int64_t bytes);
  // Of pageable memory the bytes are taken before it returns, of page-locked memory when the stream gets there. Fails
  // where the stream is being recorded.
  int32_t (*write)(void* self, void* device, const void* host, int64_t bytes);
  // Runs `region`, recorded where that pays. `number`: its place among the entry's regions.
  int32_t (*record)(void* self, int64_t number, kiln_gpu_region region, void* const* arguments, void* const* results,
                    void* arena, const void* comm);
  // While the byte at `predicate` is not 0 once `condition` has run: `body`, then `condition` again.
  int32_t (*loop)(void* self, kiln_gpu_region condition, kiln_gpu_region body, void* const* arguments,
                  void* const* results, void* arena, const void* comm, const void* predicate);
  // One of `count` branches: that of the s32 at `index`, or the last if there is none of that number; or, of a
  // predicate, by the byte there: the first if it is not 0, else the last.
  int32_t (*choose)(void* self, int64_t count, const kiln_gpu_region* branches, void* const* arguments,
                    void* const* results, void* arena, const void* comm, const void* index, int32_t is_predicate);
  // The functions of `comm`, a kiln_comm, with arrays on the device. They wait for what was started so far; a failure
  // ends the run with KILN_COMMUNICATION.
  int32_t (*gather)(void* self, const void* comm, const int64_t* group, int64_t members, const void* mine, void* all,
                    int64_t bytes);
  int32_t (*send)(void* self, const void* comm, int64_t channel, const void* data, int64_t bytes);
  int32_t (*receive)(void* self, const void* comm, int64_t channel, void* data, int64_t bytes);
  // Of a program whose collectives are NCCL's. `buffers`: arrays, then results. Puts the exchange on the stream.
  int32_t (*exchange)(void* self, const struct kiln_gpu_exchange* what, void* const* buffers);
  // The same beside what goes on the stream next: begins behind what was started so far, and `take` of `place`, a
  // number below KILN_GPU_MOST_OFFERS that no other exchange under way has, puts its end before what is started next.
  int32_t (*offer)(void* self, int64_t place, const struct kiln_gpu_exchange* what, void* const* buffers);
  int32_t (*take)(void* self, int64_t place);
  // Page-locked memory of the host that kernels and copies reach, as large as the program asks for: its host arena.
  void* host_arena;
};

enum { KILN_GPU_MOST_OFFERS = 16 };  // exchanges under way beside the stream

#endif  // KILN_RUNTIME_MIN_GPU_ABI_H_
