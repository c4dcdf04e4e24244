// <library>_models: the entries of a library as data. kiln renames kiln_model_* for each library.
#include "runtime_min/kiln.h"

// Written by the compiler (aot/package/model_object.cc).
__attribute__((visibility("hidden"))) extern const kiln_model_list kiln_model_models_list;

const kiln_model_list* kiln_model_models(void) { return &kiln_model_models_list; }
