// What a GPU program's collectives are, as NCCL makes them. Constants of the program. C11.
#ifndef KILN_RUNTIME_MIN_GPU_NCCL_EXCHANGE_H_
#define KILN_RUNTIME_MIN_GPU_NCCL_EXCHANGE_H_

#include <stdint.h>

enum kiln_gpu_exchange_kind {
  KILN_GPU_ALL_REDUCE,
  KILN_GPU_REDUCE_SCATTER,
  KILN_GPU_ALL_GATHER,
  KILN_GPU_ALL_TO_ALL,  // sends and receives of equal blocks
  KILN_GPU_PERMUTE,     // a send and a receive at most, among all devices
  KILN_GPU_BROADCAST,   // from the first member
  // Rows, as many for each pair of members as lists in the device's memory say, which the host reads. Arrays: rows,
  // what the result holds where no rows come, and of each member where the rows for it begin, how many they are, where
  // they go in its result, and how many come from it; scratch behind the result holds one list more. Described are rows
  // (their width, and the bytes of the result) and a list.
  KILN_GPU_RAGGED
};

// A list of groups: of each device, the number of its group (-1: none), its place there, and how many members there
// are.
struct kiln_gpu_grouping {
  const int64_t *group, *place, *members;
};

struct kiln_gpu_groups {
  int64_t devices;
  int64_t groupings;
  const struct kiln_gpu_grouping* grouping;
};

// One array that a member gives, and what it gets.
struct kiln_gpu_exchanged {
  int64_t count;  // elements that a member gives
  int64_t type;   // of NCCL; bytes unless they are combined
  int64_t width;  // bytes of an element
  int64_t result_bytes;
};

struct kiln_gpu_exchange {
  int64_t kind;
  int64_t op;        // of a reduction, NCCL's
  int64_t grouping;  // its place among the program's
  int64_t arrays;
  const struct kiln_gpu_exchanged* array;
  const int64_t* source;  // of a permute, by device: whose array it gets, or -1
  const char* name;       // of the operation, for people
};

#endif  // KILN_RUNTIME_MIN_GPU_NCCL_EXCHANGE_H_
