// NCCL 2's ABI as far as programs use it. C11.
//
// NCCL is opened at run time, so that nothing of it is needed to build a program; `./dev nccl` compares these
// declarations with the headers of several releases. From 2.18 on, which brought ncclCommSplit, they are the same.
#ifndef KILN_RUNTIME_MIN_GPU_NCCL_NCCL_ABI_H_
#define KILN_RUNTIME_MIN_GPU_NCCL_NCCL_ABI_H_

#include <stddef.h>
#include <stdint.h>

enum { KILN_NCCL_ID_BYTES = 128, KILN_NCCL_OLDEST = 21800 };

// That of 2.18; later releases take it as it is, by its size and version.
struct kiln_nccl_config {
  size_t size;
  unsigned int magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
  int split_share;
};

// Enumerations of NCCL are ints to callers. The comparison puts NCCL's own types in place of these.
#ifndef KILN_NCCL_TYPES
typedef int kiln_nccl_result;
typedef int kiln_nccl_type;
typedef int kiln_nccl_op;
typedef struct kiln_nccl_communicator* kiln_nccl_comm;
typedef void* kiln_nccl_stream;
typedef struct kiln_nccl_id {
  char bytes[KILN_NCCL_ID_BYTES];
} kiln_nccl_id;
typedef struct kiln_nccl_config kiln_nccl_config;
#endif

// Functions: ncclNAME, what it returns, its parameters.
#define KILN_NCCL_FUNCTIONS(F)                                                                                        \
  F(GetVersion, kiln_nccl_result, (int*))                                                                             \
  F(GetErrorString, const char*, (kiln_nccl_result))                                                                  \
  F(GetLastError, const char*, (kiln_nccl_comm))                                                                      \
  F(GetUniqueId, kiln_nccl_result, (kiln_nccl_id*))                                                                   \
  F(CommInitRankConfig, kiln_nccl_result, (kiln_nccl_comm*, int, kiln_nccl_id, int, kiln_nccl_config*))               \
  F(CommSplit, kiln_nccl_result, (kiln_nccl_comm, int, int, kiln_nccl_comm*, kiln_nccl_config*))                      \
  F(CommFinalize, kiln_nccl_result, (kiln_nccl_comm))                                                                 \
  F(CommDestroy, kiln_nccl_result, (kiln_nccl_comm))                                                                  \
  F(CommAbort, kiln_nccl_result, (kiln_nccl_comm))                                                                    \
  F(CommGetAsyncError, kiln_nccl_result, (kiln_nccl_comm, kiln_nccl_result*))                                         \
  F(GroupStart, kiln_nccl_result, (void))                                                                             \
  F(GroupEnd, kiln_nccl_result, (void))                                                                               \
  F(AllReduce, kiln_nccl_result,                                                                                      \
    (const void*, void*, size_t, kiln_nccl_type, kiln_nccl_op, kiln_nccl_comm, kiln_nccl_stream))                     \
  F(ReduceScatter, kiln_nccl_result,                                                                                  \
    (const void*, void*, size_t, kiln_nccl_type, kiln_nccl_op, kiln_nccl_comm, kiln_nccl_stream))                     \
  F(AllGather, kiln_nccl_result, (const void*, void*, size_t, kiln_nccl_type, kiln_nccl_comm, kiln_nccl_stream))      \
  F(Broadcast, kiln_nccl_result, (const void*, void*, size_t, kiln_nccl_type, int, kiln_nccl_comm, kiln_nccl_stream)) \
  F(Send, kiln_nccl_result, (const void*, size_t, kiln_nccl_type, int, kiln_nccl_comm, kiln_nccl_stream))             \
  F(Recv, kiln_nccl_result, (void*, size_t, kiln_nccl_type, int, kiln_nccl_comm, kiln_nccl_stream))

struct kiln_nccl_library {
#define F(name, result, parameters) result(*name) parameters;
  KILN_NCCL_FUNCTIONS(F)
#undef F
};

// Constants: ncclNAME.
#define KILN_NCCL_CONSTANTS(F) \
  F(Success, 0)                \
  F(UnhandledCudaError, 1)     \
  F(SystemError, 2)            \
  F(InternalError, 3)          \
  F(InvalidArgument, 4)        \
  F(InvalidUsage, 5)           \
  F(RemoteError, 6)            \
  F(InProgress, 7)             \
  F(Sum, 0)                    \
  F(Prod, 1)                   \
  F(Max, 2)                    \
  F(Min, 3)                    \
  F(Int8, 0)                   \
  F(Uint8, 1)                  \
  F(Int32, 2)                  \
  F(Uint32, 3)                 \
  F(Int64, 4)                  \
  F(Uint64, 5)                 \
  F(Float16, 6)                \
  F(Float32, 7)                \
  F(Float64, 8)                \
  F(Bfloat16, 9)

enum {
#define F(name, value) kNccl##name = value,
  KILN_NCCL_CONSTANTS(F)
#undef F
      kNcclNoColor = -1,  // of a split: in none of the new communicators
};
#define KILN_NCCL_MAGIC 0xcafebeefU
#define KILN_NCCL_UNDEFINED INT32_MIN  // of a number in a config

#endif  // KILN_RUNTIME_MIN_GPU_NCCL_NCCL_ABI_H_
