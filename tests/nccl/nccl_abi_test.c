// runtime_min/gpu/nccl/nccl_abi.h against a real nccl.h. It compiles, or the declarations differ.
#include <nccl.h>
#include <stddef.h>

// NCCL's own types in place of ours, so that the table declares what the header must.
#define KILN_NCCL_TYPES
typedef ncclResult_t kiln_nccl_result;
typedef ncclDataType_t kiln_nccl_type;
typedef ncclRedOp_t kiln_nccl_op;
typedef ncclComm_t kiln_nccl_comm;
typedef cudaStream_t kiln_nccl_stream;
typedef ncclUniqueId kiln_nccl_id;
typedef ncclConfig_t kiln_nccl_config;
#include "runtime_min/gpu/nccl/nccl_abi.h"

#define F(name, result, parameters)                                                                            \
  _Static_assert(__builtin_types_compatible_p(__typeof__(nccl##name), result parameters), "nccl" #name);       \
  _Static_assert(                                                                                              \
      __builtin_types_compatible_p(__typeof__(&nccl##name), __typeof__(((struct kiln_nccl_library*)0)->name)), \
      "the table's nccl" #name);
KILN_NCCL_FUNCTIONS(F)
#undef F

#define F(name, value) _Static_assert(nccl##name == value, "nccl" #name);
KILN_NCCL_CONSTANTS(F)
#undef F

// Enumerations are passed as ints, and the id by value.
_Static_assert(sizeof(ncclResult_t) == sizeof(int), "ncclResult_t");
_Static_assert(sizeof(ncclDataType_t) == sizeof(int), "ncclDataType_t");
_Static_assert(sizeof(ncclRedOp_t) == sizeof(int), "ncclRedOp_t");
_Static_assert(sizeof(ncclUniqueId) == KILN_NCCL_ID_BYTES && _Alignof(ncclUniqueId) == 1, "ncclUniqueId");
_Static_assert(NCCL_SPLIT_NOCOLOR == kNcclNoColor, "NCCL_SPLIT_NOCOLOR");
_Static_assert(NCCL_CONFIG_UNDEF_INT == KILN_NCCL_UNDEFINED, "NCCL_CONFIG_UNDEF_INT");
_Static_assert(NCCL_VERSION(2, 18, 0) == KILN_NCCL_OLDEST, "NCCL_VERSION");
_Static_assert(NCCL_VERSION_CODE >= KILN_NCCL_OLDEST, "the header is older than what programs ask for");

// The config that programs fill.
#define SAME(mine, theirs)                                                                          \
  _Static_assert(offsetof(struct kiln_nccl_config, mine) == offsetof(ncclConfig_t, theirs) &&       \
                     sizeof((struct kiln_nccl_config){0}.mine) == sizeof((ncclConfig_t){0}.theirs), \
                 #mine)
SAME(size, size);
SAME(magic, magic);
SAME(version, version);
SAME(blocking, blocking);
SAME(cga_cluster_size, cgaClusterSize);
SAME(min_ctas, minCTAs);
SAME(max_ctas, maxCTAs);
SAME(net_name, netName);
SAME(split_share, splitShare);

int main(void) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  return theirs.magic != KILN_NCCL_MAGIC;
}
