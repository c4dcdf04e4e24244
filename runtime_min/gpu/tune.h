// What a tuning program measures, as data: every product or convolution with its candidates. C11.
#ifndef KILN_RUNTIME_MIN_GPU_TUNE_H_
#define KILN_RUNTIME_MIN_GPU_TUNE_H_

#include "runtime_min/gpu/abi.h"

enum { KILN_TUNE_OPERAND = 0, KILN_TUNE_RESULT = 1, KILN_TUNE_SCRATCH = 2 };

struct kiln_tune_array {
  int64_t bytes;
  int64_t type;  // of its elements, XLA's number
  int64_t kind;
};

// A launch or a call; the other is null. Both take the subject's arrays.
struct kiln_tune_candidate {
  int64_t algorithm;
  const struct kiln_gpu_launch* launch;
  const struct kiln_gpu_call* call;
};

struct kiln_tune_subject {
  const char* key;
  const char* hlo;
  int64_t arrays;
  const struct kiln_tune_array* array;
  int64_t candidates;  // the first is the reference that the others are compared with
  const struct kiln_tune_candidate* candidate;
};

struct kiln_tune_program {
  const char* name;
  const char* target;
  int64_t level;
  int64_t subjects;
  const struct kiln_tune_subject* subject;
};

// The tuning program but for main().
int32_t kiln_model_tune(int32_t argc, char** argv);

#endif  // KILN_RUNTIME_MIN_GPU_TUNE_H_
