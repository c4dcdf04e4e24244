// nccl.h takes nothing from CUDA's header of this name.
