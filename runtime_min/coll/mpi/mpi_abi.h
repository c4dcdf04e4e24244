// What kiln calls of MPI, as Open MPI 4 (libmpi.so.40) has it: prototypes, and the few constants and addresses that its
// mpi.h fixes. C11.
//
// Nothing of MPI is needed to build a program: the library is opened when it is asked for (library.c).
// tests/mpi/mpi_abi_test.c compares all of this with the real header.
#ifndef KILN_RUNTIME_MIN_COLL_MPI_MPI_ABI_H_
#define KILN_RUNTIME_MIN_COLL_MPI_MPI_ABI_H_

#include <stddef.h>

// Handles are pointers to structs of the library's own.
typedef struct ompi_communicator_t* kiln_mpi_comm;
typedef struct ompi_datatype_t* kiln_mpi_type;
typedef struct ompi_request_t* kiln_mpi_request;
typedef struct ompi_errhandler_t* kiln_mpi_errhandler;

// struct ompi_status_public_t.
struct kiln_mpi_status {
  int source, tag, error, cancelled;
  size_t bytes;
};

// F(name behind MPI_, parameters). All return an error code, which is 0 for success.
#define KILN_MPI_FUNCTIONS(F)                                                             \
  F(Initialized, (int*))                                                                  \
  F(Finalized, (int*))                                                                    \
  F(Init_thread, (int*, char***, int, int*))                                              \
  F(Query_thread, (int*))                                                                 \
  F(Is_thread_main, (int*))                                                               \
  F(Finalize, (void))                                                                     \
  F(Get_library_version, (char*, int*))                                                   \
  F(Error_string, (int, char*, int*))                                                     \
  F(Comm_rank, (kiln_mpi_comm, int*))                                                     \
  F(Comm_size, (kiln_mpi_comm, int*))                                                     \
  F(Comm_idup, (kiln_mpi_comm, kiln_mpi_comm*, kiln_mpi_request*))                        \
  F(Comm_free, (kiln_mpi_comm*))                                                          \
  F(Comm_set_errhandler, (kiln_mpi_comm, kiln_mpi_errhandler))                            \
  F(Isend, (const void*, int, kiln_mpi_type, int, int, kiln_mpi_comm, kiln_mpi_request*)) \
  F(Irecv, (void*, int, kiln_mpi_type, int, int, kiln_mpi_comm, kiln_mpi_request*))       \
  F(Test, (kiln_mpi_request*, int*, struct ompi_status_public_t*))                        \
  F(Testsome, (int, kiln_mpi_request*, int*, int*, struct ompi_status_public_t*))         \
  F(Cancel, (kiln_mpi_request*))                                                          \
  F(Request_free, (kiln_mpi_request*))                                                    \
  F(Iprobe, (int, int, kiln_mpi_comm, int*, struct ompi_status_public_t*))

// Constants of mpi.h: F(name behind MPI_, value).
#define KILN_MPI_CONSTANTS(F) \
  F(THREAD_SINGLE, 0)         \
  F(THREAD_FUNNELED, 1)       \
  F(THREAD_SERIALIZED, 2)     \
  F(THREAD_MULTIPLE, 3)       \
  F(ANY_SOURCE, -1)           \
  F(ERR_IN_STATUS, 18)        \
  F(MAX_ERROR_STRING, 256)    \
  F(MAX_LIBRARY_VERSION_STRING, 256)

// Handles that are addresses of the library's variables: F(field, type, symbol, name behind MPI_).
#define KILN_MPI_HANDLES(F)                                  \
  F(world, kiln_mpi_comm, ompi_mpi_comm_world, COMM_WORLD)   \
  F(bytes, kiln_mpi_type, ompi_mpi_byte, BYTE)               \
  F(none, kiln_mpi_request, ompi_request_null, REQUEST_NULL) \
  F(codes, kiln_mpi_errhandler, ompi_mpi_errors_return, ERRORS_RETURN)

struct ompi_status_public_t;

enum {
#define F(name, value) KILN_MPI_##name = value,
  KILN_MPI_CONSTANTS(F)
#undef F
};

struct kiln_mpi_library {
#define F(name, parameters) int(*name) parameters;
  KILN_MPI_FUNCTIONS(F)
#undef F
#define F(field, type, symbol, name) type field;
  KILN_MPI_HANDLES(F)
#undef F
};

#endif  // KILN_RUNTIME_MIN_COLL_MPI_MPI_ABI_H_
