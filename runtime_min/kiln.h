// Any model that kiln compiled, as data: what it takes and gives, what memory it needs, and its functions. C99, C++11.
//
// What: `kiln_model`, which every library of kiln's holds. `NAME_model()` of NAME_c.h gives it; a shared object exports
// a
//   list by the one name `kiln_models`. kiln_host.h has helpers for what hosts do with it.
// Why: a server, a binding of another language or a test can load and run models that it was not compiled with.
// Guarantees: fields are only ever appended, and every struct says how many bytes of it the library has (KILN_HAS), so
// a
//   host reads the libraries of older and of newer kilns. What `abi_version` counts (types.h) must be equal to run one.
//   All of it is constant, and lives as long as the library is loaded. No pointer is NULL unless its comment says so.
// Cost: a program that never calls NAME_model does not contain it.
#ifndef KILN_H_
#define KILN_H_

#include "types.h"

// Counts the fields that were appended.
#define KILN_MODEL_VERSION 4

// Whether `bytes` bytes of a struct reach to the end of a field: KILN_HAS(kiln_model, gpu, model->struct_bytes).
#define KILN_HAS(type, field, bytes) ((size_t)(bytes) >= offsetof(type, field) + sizeof(((const type*)0)->field))

// Element types, with XLA's numbers: X(NAME, number, "text", bytes of an element). Types narrower than a byte take one.
#define KILN_ELEMENT_TYPES(X)              \
  X(PRED, 1, "pred", 1)                    \
  X(S1, 30, "s1", 1)                       \
  X(S2, 26, "s2", 1)                       \
  X(S4, 21, "s4", 1)                       \
  X(S8, 2, "s8", 1)                        \
  X(S16, 3, "s16", 2)                      \
  X(S32, 4, "s32", 4)                      \
  X(S64, 5, "s64", 8)                      \
  X(U1, 31, "u1", 1)                       \
  X(U2, 27, "u2", 1)                       \
  X(U4, 22, "u4", 1)                       \
  X(U8, 6, "u8", 1)                        \
  X(U16, 7, "u16", 2)                      \
  X(U32, 8, "u32", 4)                      \
  X(U64, 9, "u64", 8)                      \
  X(F4E2M1FN, 32, "f4e2m1fn", 1)           \
  X(F6E2M3FN, 35, "f6e2m3fn", 1)           \
  X(F6E3M2FN, 36, "f6e3m2fn", 1)           \
  X(F8E3M4, 29, "f8e3m4", 1)               \
  X(F8E4M3, 28, "f8e4m3", 1)               \
  X(F8E4M3FN, 20, "f8e4m3fn", 1)           \
  X(F8E4M3B11FNUZ, 23, "f8e4m3b11fnuz", 1) \
  X(F8E4M3FNUZ, 25, "f8e4m3fnuz", 1)       \
  X(F8E5M2, 19, "f8e5m2", 1)               \
  X(F8E5M2FNUZ, 24, "f8e5m2fnuz", 1)       \
  X(F8E8M0FNU, 33, "f8e8m0fnu", 1)         \
  X(F16, 10, "f16", 2)                     \
  X(BF16, 16, "bf16", 2)                   \
  X(F32, 11, "f32", 4)                     \
  X(F64, 12, "f64", 8)                     \
  X(C64, 15, "c64", 8)                     \
  X(C128, 18, "c128", 16)

typedef enum kiln_type {
#define KILN_X(name, number, text, bytes) KILN_TYPE_##name = number,
  KILN_ELEMENT_TYPES(KILN_X)
#undef KILN_X
      KILN_TYPE_NONE = 0
} kiln_type;

// Of a program partitioned among devices: what an array is a part of.
typedef struct kiln_tiling {
  const int64_t* whole_extents;  // of the whole array
  const int64_t* tiles;          // along each dimension; all 1: every device holds all of it
  int64_t partitions;
  const int64_t* tile_of_partition;  // in row-major order of tiles
} kiln_tiling;

// An argument or a result.
typedef struct kiln_array {
  const char* name;  // a C identifier, unique on its side
  const char* path;  // what the program calls it ("params['layer0']['w']"); the name where it says nothing
  int32_t type;      // a kiln_type; hosts older than the library may not know it
  int32_t rank;
  const int64_t* extents;         // `rank` of them
  const int64_t* minor_to_major;  // dimensions from the fastest-varying; NULL: row major
  int64_t element_bytes;
  int64_t bytes;      // of the array
  int64_t alignment;  // a power of two
  // Of an argument, the result that overwrites it (it is donated); of a result, the argument that holds it afterwards
  // (its own pointer is ignored); or -1.
  int64_t alias;
  // Of an argument that states the size of a dimension: what it may be. low > high: it states none.
  int64_t low, high;
  const kiln_tiling* tiling;  // NULL unless the program is partitioned
  int64_t weight;             // whether it is an argument that a set of weights can give
} kiln_array;

// What one batch size takes and gives.
typedef struct kiln_variant {
  int64_t batch;  // kiln_call.batch; 0 where the library has one size
  int64_t arena_bytes;
  const kiln_array* arguments;  // step by kiln_model.array_bytes (kiln_argument)
  const kiln_array* results;
} kiln_variant;

// Devices as threads of this process: NAME_c.h says what each function does.
typedef struct kiln_world_functions {
  uint32_t struct_bytes, reserved;
  kiln_world* (*create)(int64_t devices);
  kiln_comm* (*comm)(kiln_world* world, int64_t device);
  void (*set_timeout)(kiln_world* world, int64_t milliseconds);
  void (*abort)(kiln_world* world);
  void (*reset)(kiln_world* world);
  void (*destroy)(kiln_world* world);
} kiln_world_functions;

// Devices as ranks of MPI: NAME_c.h says what each function does.
struct kiln_mpi;
typedef struct kiln_mpi_functions {
  uint32_t struct_bytes, reserved;
  int32_t (*open)(struct kiln_mpi** mpi, void* comm, char* error, size_t error_bytes);
  kiln_comm* (*comm)(struct kiln_mpi* mpi);
  const char* (*error)(const struct kiln_mpi* mpi);
  void (*set_timeout)(struct kiln_mpi* mpi, int64_t milliseconds);
  int32_t (*connect)(struct kiln_mpi* mpi, int64_t channel, int32_t from, int32_t to);
  void (*abort)(struct kiln_mpi* mpi);
  void (*close)(struct kiln_mpi* mpi);
} kiln_mpi_functions;

// Weights that lie outside of the library: NAME_c.h says what each function does. `run` takes a call whose table of
// arguments leaves the weights out; kiln_model.run takes one with all.
struct kiln_weights;
struct kiln_weights_source;
typedef struct kiln_weights_functions {
  uint32_t struct_bytes, reserved;
  int32_t (*open)(struct kiln_weights** weights, const char* path, char* error, size_t error_bytes);
  int32_t (*open_memory)(struct kiln_weights** weights, const void* image, size_t bytes, char* error,
                         size_t error_bytes);
  int32_t (*open_source)(struct kiln_weights** weights, const struct kiln_weights_source* source, char* error,
                         size_t error_bytes);
  int32_t (*verify)(struct kiln_weights* weights, char* error, size_t error_bytes);
  void (*swap)(struct kiln_weights* weights, struct kiln_weights* fresh);
  void (*close)(struct kiln_weights* weights);
  int32_t (*run)(const kiln_call* call, struct kiln_weights* weights);
} kiln_weights_functions;

// The program for NVIDIA GPUs: NAME_c.h says what each function does.
typedef struct kiln_gpu kiln_gpu;
typedef struct kiln_gpu_functions {
  uint32_t struct_bytes, reserved;
  int32_t (*create)(kiln_gpu** gpu, int32_t device, void* stream, char* error, size_t error_bytes);
  void (*destroy)(kiln_gpu* gpu);
  int32_t (*run)(kiln_gpu* gpu, void* const* arguments, void* const* results, void* arena);
  int32_t (*wait)(kiln_gpu* gpu);
  int32_t (*run_host)(kiln_gpu* gpu, const void* const* arguments, void* const* results);
  void* (*malloc)(kiln_gpu* gpu, size_t bytes);
  void (*free)(kiln_gpu* gpu, void* array);
  int32_t (*to_device)(kiln_gpu* gpu, void* array, const void* host, size_t bytes);
  int32_t (*to_host)(kiln_gpu* gpu, void* host, const void* array, size_t bytes);
  int32_t (*upload)(kiln_gpu* gpu, void* array, const void* host, size_t bytes);
  int32_t (*download)(kiln_gpu* gpu, void* host, const void* array, size_t bytes);
  void* (*malloc_host)(kiln_gpu* gpu, size_t bytes);
  void (*free_host)(kiln_gpu* gpu, void* memory);
  void (*set_graphs)(kiln_gpu* gpu, int32_t on);
  const char* (*error)(const kiln_gpu* gpu);
  const char* (*image)(const kiln_gpu* gpu);
  const char* (*report)(kiln_gpu* gpu);
  void (*set_comm)(kiln_gpu* gpu, const kiln_comm* comm);  // NULL unless the program communicates
} kiln_gpu_functions;

typedef struct kiln_model {
  uint32_t struct_bytes;                // of this struct, as the library has it
  uint32_t version;                     // the lowest that has the fields which the model needs
  uint32_t abi_version;                 // KILN_ABI_VERSION
  uint32_t variant_bytes, array_bytes;  // of these structs
  uint32_t arena_alignment;             // of both arenas
  const char* name;                     // of the library
  const char* kiln_version;             // "0.1.0"
  const char* build;                    // what the library's symbols begin with: the name and a hash of the build
  int64_t arguments, results;           // arrays on each side, of every variant
  int64_t variants;                     // 1, or the number of batch sizes
  const kiln_variant* variant;          // by batch, ascending; step by variant_bytes (kiln_variant_at)
  const char* const* cpu_levels;  // "v2", "v3", "v3dot", "v4", "v4dot", "v4fp16", "v4bf16", "amx": best last, then NULL
  const char* const* gpu_targets;  // that the library has machine code for ("sm_90"), then NULL
  const char* const* callbacks;    // functions that the program must provide (custom calls), then NULL
  int64_t arena_bytes;             // enough for every variant
  int64_t slow_arena_bytes;
  int64_t gpu_arena_bytes;  // on the device
  int64_t constant_bytes;   // weights in the library
  int64_t stack_bytes;      // that a run uses, at most
  int64_t threads;          // the most that a run uses; 0: as many as its pool has; 1: pools are ignored
  int64_t devices;          // that the program is for
  int64_t communicates;     // whether a run needs a comm
  // Computes the model on the CPU; NULL without a CPU program.
  int32_t (*run)(const kiln_call* call);
  // A status in words.
  const char* (*status_text)(int32_t status);
  // The one of cpu_levels that runs on this machine; NULL if none does.
  const char* (*cpu_level)(void);
  // A pool of threads, the caller's included; NULL if they cannot be had. Both are NULL where pools are ignored.
  kiln_pool* (*pool_create)(int threads);
  void (*pool_destroy)(kiln_pool* pool);
  const kiln_world_functions* world;      // NULL unless the program communicates
  const kiln_gpu_functions* gpu;          // NULL without a GPU program
  const kiln_weights_functions* weights;  // NULL unless arguments can come from a file
  // Version 2, of models that are entries of a library with several (kiln_model_entry asks). `name` is then
  // <library>_<entry>; entries share pools, and sets of weights: one opened by any serves all.
  const char* library;
  const char* entry;
  // Version 3, of models that communicate; `library` and `entry` are NULL where the model is no entry.
  const kiln_mpi_functions* mpi;
  // Version 4, of models whose GPU program keeps values in the host's memory: page-locked, and the program's own.
  // `mpi`, `library` and `entry` are NULL where they say nothing.
  int64_t gpu_host_arena_bytes;
} kiln_model;

// What a shared object exports as `kiln_models`, and nothing else.
typedef struct kiln_model_list {
  uint32_t struct_bytes, count;
  const kiln_model* const* models;
} kiln_model_list;
#define KILN_MODELS_SYMBOL "kiln_models"

// Variant k, and array k of either side of a variant.
static inline const kiln_variant* kiln_variant_at(const kiln_model* m, int64_t k) {
  return (const kiln_variant*)(const void*)((const char*)m->variant + (size_t)k * m->variant_bytes);
}
static inline const kiln_array* kiln_argument(const kiln_model* m, const kiln_variant* v, int64_t k) {
  return (const kiln_array*)(const void*)((const char*)v->arguments + (size_t)k * m->array_bytes);
}
static inline const kiln_array* kiln_result(const kiln_model* m, const kiln_variant* v, int64_t k) {
  return (const kiln_array*)(const void*)((const char*)v->results + (size_t)k * m->array_bytes);
}

// What the model is called in its library; NULL if it is all of the library.
static inline const char* kiln_model_entry(const kiln_model* m) {
  return KILN_HAS(kiln_model, entry, m->struct_bytes) ? m->entry : NULL;
}

// The variant for exactly this batch size (any, where the library has one size); NULL if there is none.
static inline const kiln_variant* kiln_variant_of(const kiln_model* m, int64_t batch) {
  int64_t k;
  for (k = 0; k < m->variants; ++k) {
    const kiln_variant* v = kiln_variant_at(m, k);
    if (v->batch == 0 || v->batch == batch) return v;
  }
  return NULL;
}

// The smallest variant that holds `n`; NULL if none does.
static inline const kiln_variant* kiln_variant_for(const kiln_model* m, int64_t n) {
  int64_t k;
  for (k = 0; k < m->variants; ++k) {
    const kiln_variant* v = kiln_variant_at(m, k);
    if (v->batch == 0 || n <= v->batch) return v;
  }
  return NULL;
}

#endif  // KILN_H_
