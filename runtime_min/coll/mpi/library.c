// Opens Open MPI when a program asks for it.
// kiln renames kiln_model_* for each model.
#define _GNU_SOURCE  // RTLD_DEFAULT
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_min/coll/mpi/world.h"

static const char kOpenMpi[] = "Open MPI v4.";

// A program that uses MPI itself may have another one, with other handles and constants.
static int other_mpi(char* error, size_t error_bytes) {
  int (*version)(char*, int*);
  *(void**)&version = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  if (!version) return 0;
  char text[KILN_MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  version(text, &length);
  if (!memcmp(text, kOpenMpi, sizeof kOpenMpi - 1)) return 0;
  for (char* c = text; *c; ++c)
    if (*c == '\n' || *c == ',') *c = 0;
  snprintf(error, error_bytes, "the program uses %s; the transport needs Open MPI 4", text);
  return 1;
}

// Among all that the program has: where an executable names the library's variables itself, they lie in the executable
// (copy relocations), and the library's own are not used.
static int find(struct kiln_mpi_library* out, char* error, size_t error_bytes) {
  const char* missing = 0;
#define F(name, parameters)                                \
  *(void**)&out->name = dlsym(RTLD_DEFAULT, "MPI_" #name); \
  if (!out->name && !missing) missing = "MPI_" #name;
  KILN_MPI_FUNCTIONS(F)
#undef F
#define F(field, type, symbol, name)               \
  out->field = (type)dlsym(RTLD_DEFAULT, #symbol); \
  if (!out->field && !missing) missing = #symbol;
  KILN_MPI_HANDLES(F)
#undef F
  if (missing) snprintf(error, error_bytes, "the MPI library is not Open MPI 4: it lacks %s", missing);
  return missing != 0;
}

int kiln_model_mpi_library(struct kiln_mpi_library* out, char* error, size_t error_bytes) {
  if (other_mpi(error, error_bytes)) return 1;
  if (!dlsym(RTLD_DEFAULT, "MPI_Initialized")) {
    const char* chosen = getenv("KILN_MPI");
    if (!chosen || !*chosen) chosen = "libmpi.so.40";
    // Global: the library opens components that look for its functions.
    if (!dlopen(chosen, RTLD_NOW | RTLD_GLOBAL)) {
      const char* why = dlerror();
      snprintf(error, error_bytes, "there is no Open MPI (%s; Debian's package is libopenmpi3)", why ? why : chosen);
      return 1;
    }
  }
  if (find(out, error, error_bytes)) return 1;
  return other_mpi(error, error_bytes);
}
