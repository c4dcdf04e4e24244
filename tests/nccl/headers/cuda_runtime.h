// What nccl.h takes from CUDA's header, for its comparison without a CUDA Toolkit.
#pragma once
#include <stddef.h>
#define CUDART_VERSION 12000
#define __CUDA_BF16_TYPES_EXIST__ 1
typedef struct CUstream_st* cudaStream_t;
