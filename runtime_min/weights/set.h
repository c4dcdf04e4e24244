// Sets of weights, as the runtime's files share them. C11.
#ifndef KILN_RUNTIME_MIN_WEIGHTS_SET_H_
#define KILN_RUNTIME_MIN_WEIGHTS_SET_H_

#include "runtime_min/types.h"
#include "runtime_min/weights/table.h"
#include "runtime_min/weights/weights.h"

// Written by the compiler (aot/package/weights_table.cc).
__attribute__((visibility("hidden"))) extern const struct kiln_weights_table kiln_model_weights_table;

// What one file, or one source, gave. It goes with its last user.
struct kiln_library_weights_set {
  int64_t users;
  void* mapped;  // of a file; its bytes follow
  size_t bytes;
  kiln_weights_source source;  // or what the host gave
  const void* array[];         // as the table lists them
};

// The set that a run uses from its beginning to its end, and what says that it has ended.
__attribute__((visibility("hidden"))) struct kiln_library_weights_set* kiln_library_weights_use(kiln_weights* w);
__attribute__((visibility("hidden"))) void kiln_library_weights_leave(struct kiln_library_weights_set* s);

// Where messages go: cut where it is full, always ended.
struct kiln_model_text {
  char* data;
  size_t bytes, used;
};
__attribute__((visibility("hidden"))) void kiln_model_text_add(struct kiln_model_text* t, const char* s);
__attribute__((visibility("hidden"))) void kiln_model_text_number(struct kiln_model_text* t, int64_t n);

// Finds the arrays of the table in the image of a safetensors file. KILN_OK, or KILN_WEIGHTS with a message.
__attribute__((visibility("hidden"))) int32_t kiln_model_weights_find(const unsigned char* image, size_t bytes,
                                                                      const void** array, struct kiln_model_text* why);

#endif  // KILN_RUNTIME_MIN_WEIGHTS_SET_H_
