// runtime_min/coll/mpi/mpi_abi.h against the real mpi.h of Open MPI. It compiles, or the declarations differ.
#include "runtime_min/coll/mpi/mpi_abi.h"

#include <mpi.h>
#include <stddef.h>

#define F(name, parameters) _Static_assert(__builtin_types_compatible_p(__typeof__(MPI_##name), int parameters), #name);
KILN_MPI_FUNCTIONS(F)
#undef F

#define F(name, value) _Static_assert(MPI_##name == value, #name);
KILN_MPI_CONSTANTS(F)
#undef F

#define SAME(mine, theirs)                                                                       \
  _Static_assert(offsetof(struct kiln_mpi_status, mine) == offsetof(MPI_Status, theirs) &&       \
                     sizeof((struct kiln_mpi_status){0}.mine) == sizeof((MPI_Status){0}.theirs), \
                 #mine)
SAME(source, MPI_SOURCE);
SAME(tag, MPI_TAG);
SAME(error, MPI_ERROR);
SAME(cancelled, _cancelled);
SAME(bytes, _ucount);
_Static_assert(sizeof(struct kiln_mpi_status) == sizeof(MPI_Status), "MPI_Status");

// Handles are the addresses of these variables.
int main(void) {
#define F(field, type, symbol, name) \
  if ((void*)MPI_##name != (void*)&symbol || sizeof(type) != sizeof MPI_##name) return 1;
  KILN_MPI_HANDLES(F)
#undef F
  return 0;
}
