// Weights that lie outside a library: in a file that processes share, or wherever the host program has them. C99,
// C++11.
//
// What: <model>_weights_open maps a safetensors file (github.com/huggingface/safetensors) and finds in it each array
// that
//   the library takes from there, by its name; <model>_run_weights runs with them. <model>_weights_swap puts other
//   weights in their place while models run.
// Guarantees: a run uses one set of weights from its beginning to its end. A set goes when nobody uses it any more.
// What
//   a file says is checked before anything is read by it: names, types, extents and places of all arrays.
// Cost: opening reads the file's header, not its arrays; pages come as they are used and are shared between processes.
// Generated headers hold this text.
#ifndef KILN_WEIGHTS_H_
#define KILN_WEIGHTS_H_

#include <stddef.h>
#include <stdint.h>

// Any number of threads may run with one; nobody may when it is closed.
typedef struct kiln_weights kiln_weights;

// Arrays of the host's own: decrypted, decompressed, fetched.
typedef struct kiln_weights_source {
  void* self;
  // The array called `name`, of `bytes` bytes, aligned as the library's header says of its argument; it stays as it is
  // until `release`. NULL: there is none.
  const void* (*tensor)(void* self, const char* name, int64_t bytes);
  // Called once, when no run uses the arrays any more. May be NULL.
  void (*release)(void* self);
} kiln_weights_source;

#endif  // KILN_WEIGHTS_H_
