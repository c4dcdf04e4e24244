// <model>_run_weights: a run of one program with the library's weights. kiln renames kiln_model_* for each program, and
// kiln_library_* for the library, of which it may be one of several.
#include <alloca.h>
#include <stdlib.h>

#include "runtime_min/weights/set.h"

int32_t kiln_model_run(const kiln_call* call);

// Written by the compiler (aot/package/weights_table.cc).
__attribute__((visibility("hidden"))) extern const struct kiln_weight_arguments kiln_model_weight_arguments;

enum { kMostArguments = 1 << 16 };  // of a table on the stack

int32_t kiln_model_run_weights(const kiln_call* call, kiln_weights* w) {
  const struct kiln_weight_arguments* t = &kiln_model_weight_arguments;
  if (!w || (t->passed && !call->arguments)) return KILN_NULL_POINTER;
  struct kiln_library_weights_set* s = kiln_library_weights_use(w);
  void** arguments = t->arguments > kMostArguments ? malloc((size_t)t->arguments * sizeof *arguments)
                                                   : alloca((size_t)t->arguments * sizeof *arguments);
  int32_t status = KILN_NULL_POINTER;
  if (arguments) {
    int64_t passed = 0;
    for (int64_t k = 0; k < t->arguments; ++k)
      arguments[k] = t->weight[k] < 0 ? call->arguments[passed++] : (void*)s->array[t->weight[k]];
    kiln_call all = *call;
    all.arguments = arguments;
    status = kiln_model_run(&all);
  }
  if (t->arguments > kMostArguments) free(arguments);
  kiln_library_weights_leave(s);
  return status;
}
