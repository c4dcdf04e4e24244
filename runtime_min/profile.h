// What a library built with `debug { profile: true }` tells of its operations. C99, C++11.
//
// Counters are the library's: runs in several threads add up. A program may have one run in N measured. Times are of
// the processor's time stamp counter, which runs at one speed on every x86-64 CPU of this century, turned into
// nanoseconds by the system's clock.
#ifndef KILN_PROFILE_H_
#define KILN_PROFILE_H_

#include <stdint.h>

// An operation that a run executes by itself: a kernel, a copy, a loop. Texts are never NULL; "" where nothing is
// known.
typedef struct kiln_profile_op {
  const char* name;         // of the instruction in the optimised program
  const char* label;        // what its kernel's symbol says
  const char* kind;         // "kernel", "copy", "while", ...
  const char* opcode;       // what a fusion is mostly made of
  const char* op_name;      // the user's scopes and operation: "jit(f)/layer0/dot_general"
  const char* source_file;  // where the user wrote it
  int64_t source_line, hlo_line;
  int64_t parent;        // the loop or branch around it; -1
  int64_t flops, bytes;  // of one run of it, by kiln's cost analysis; 0 of loops
} kiln_profile_op;

typedef struct kiln_profile_entry {
  kiln_profile_op op;
  int64_t calls;
  double ns;         // of all calls, what is nested in it included
  double thread_ns;  // the same, of all threads that took part together
} kiln_profile_entry;

// A run of an operation, or (`part`) what one thread did of it. In ticks of the time stamp counter.
typedef struct kiln_profile_event {
  int64_t entry;
  uint64_t thread;  // an address, unique while the thread lives
  uint64_t begin, end;
  int64_t part;
} kiln_profile_event;

#endif  // KILN_PROFILE_H_
