// The functions of one model's GPU program that its user calls (<model>_gpu_*), as files of the runtime share them.
// C11. The generated C header documents them; kiln renames kiln_model_* for each model.
#ifndef KILN_RUNTIME_MIN_GPU_MODEL_H_
#define KILN_RUNTIME_MIN_GPU_MODEL_H_

#include <stddef.h>
#include <stdint.h>

struct kiln_comm;
struct kiln_gpu_call;
struct kiln_model_gpu;

// The stream of a program that shall have one of its own (<MODEL>_GPU_OWN_STREAM).
#define KILN_GPU_OWN_STREAM ((void*)(intptr_t)-1)

int32_t kiln_model_gpu_create(struct kiln_model_gpu** out, int32_t device, void* stream, char* error,
                              size_t error_bytes);
void kiln_model_gpu_destroy(struct kiln_model_gpu* g);
const char* kiln_model_gpu_error(const struct kiln_model_gpu* g);
const char* kiln_model_gpu_image(const struct kiln_model_gpu* g);
const char* kiln_model_gpu_report(struct kiln_model_gpu* g);
void kiln_model_gpu_describe(struct kiln_model_gpu* g, char* name, size_t name_bytes, char* versions,
                             size_t versions_bytes);
// For tuning: the eight words of the algorithm that a library call uses, and the library's version; 0: there is none.
int64_t kiln_model_gpu_algorithm(struct kiln_model_gpu* g, const struct kiln_gpu_call* call, uint64_t* words);
void kiln_model_gpu_set_comm(struct kiln_model_gpu* g, const struct kiln_comm* comm);
int32_t kiln_model_gpu_nccl_id(void* id, char* error, size_t error_bytes);
int32_t kiln_model_gpu_connect(struct kiln_model_gpu* g, int64_t device, const void* id);
void kiln_model_gpu_set_graphs(struct kiln_model_gpu* g, int32_t on);

int32_t kiln_model_gpu_run(struct kiln_model_gpu* g, void* const* arguments, void* const* results, void* arena);
int32_t kiln_model_gpu_run_host(struct kiln_model_gpu* g, const void* const* arguments, void* const* results);
int32_t kiln_model_gpu_wait(struct kiln_model_gpu* g);

void* kiln_model_gpu_malloc(struct kiln_model_gpu* g, size_t bytes);
void kiln_model_gpu_free(struct kiln_model_gpu* g, void* array);
void* kiln_model_gpu_malloc_host(struct kiln_model_gpu* g, size_t bytes);
void kiln_model_gpu_free_host(struct kiln_model_gpu* g, void* memory);
int32_t kiln_model_gpu_to_device(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes);
int32_t kiln_model_gpu_to_host(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes);
int32_t kiln_model_gpu_upload(struct kiln_model_gpu* g, void* array, const void* host, size_t bytes);
int32_t kiln_model_gpu_download(struct kiln_model_gpu* g, void* host, const void* array, size_t bytes);

// What a run does, asking `gpu` (abi.h); generated, or a tuning program's own.
int32_t kiln_model_gpu_entry(void* const* arguments, void* const* results, void* arena, const void* gpu,
                             const void* comm);

#endif  // KILN_RUNTIME_MIN_GPU_MODEL_H_
