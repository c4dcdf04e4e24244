// What generated archives and the runtime agree on about weights. C11.
#ifndef KILN_RUNTIME_MIN_WEIGHTS_TABLE_H_
#define KILN_RUNTIME_MIN_WEIGHTS_TABLE_H_

#include <stdint.h>

// An array of a set of weights. Places are bytes from the beginning of the table.
struct kiln_weight {
  int64_t bytes, alignment;
  int64_t rank, extents;  // place of as many int64_t
  int64_t names;          // place of `name_count` strings, one behind the other: what the array may be called
  int64_t name_count;
  char dtype[16];  // as safetensors calls it
  uint64_t hash;   // of its bytes (kiln_weights_hash), if `hashed`
  int64_t hashed;
};

// Of a library.
struct kiln_weights_table {
  int64_t count;
  struct kiln_weight weight[];
};

// Of a program: which of its arguments these are.
struct kiln_weight_arguments {
  int64_t arguments;  // weights included
  int64_t passed;     // of these, by the caller
  int64_t weight[];   // of each argument: its place in the library's table; -1: the caller passes it
};

// Of an array, as <model>_weights_verify compares it: four lanes of words, so that it keeps up with memory.
static inline uint64_t kiln_weights_hash(const unsigned char* data, int64_t bytes) {
  const uint64_t kPrime = 0x9e3779b97f4a7c15ull;
  uint64_t lane[4] = {1, 2, 3, 4};
  int64_t k = 0;
  for (; k + 32 <= bytes; k += 32)
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      __builtin_memcpy(&word, data + k + 8 * i, 8);
      lane[i] = (lane[i] ^ word) * kPrime;
      lane[i] ^= lane[i] >> 29;
    }
  for (; k < bytes; ++k) lane[k & 3] = (lane[k & 3] ^ data[k]) * kPrime;
  uint64_t h = (uint64_t)bytes;
  for (int i = 0; i < 4; ++i) {
    h = (h ^ lane[i]) * kPrime;
    h ^= h >> 32;
  }
  return h;
}

#endif  // KILN_RUNTIME_MIN_WEIGHTS_TABLE_H_
