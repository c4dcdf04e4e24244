// Communicators: made together by all devices, once, and given up together.
// kiln renames kiln_model_* for each model.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/gpu/nccl/nccl.h"

static const char kWhat[] = "connecting the devices";

static kiln_nccl_config config_of(void) {
  return (kiln_nccl_config){.size = sizeof(kiln_nccl_config),
                            .magic = KILN_NCCL_MAGIC,
                            .version = KILN_NCCL_OLDEST,
                            .blocking = 0,
                            .cga_cluster_size = KILN_NCCL_UNDEFINED,
                            .min_ctas = KILN_NCCL_UNDEFINED,
                            .max_ctas = KILN_NCCL_UNDEFINED,
                            .net_name = NULL,
                            .split_share = KILN_NCCL_UNDEFINED};
}

// Its one group is all devices, in their order.
static int is_world(const struct kiln_gpu_groups* all, const struct kiln_gpu_grouping* g) {
  for (int64_t d = 0; d < all->devices; ++d)
    if (g->group[d] != g->group[0] || g->place[d] != d) return 0;
  return g->group[0] >= 0;
}

// Every device takes part in every split, also those that are in none of the groups.
static int32_t split(struct kiln_nccl* n, int64_t k) {
  const struct kiln_gpu_grouping* g = &n->groups->grouping[k];
  if (is_world(n->groups, g)) {
    n->comm[k] = n->world;
    return 0;
  }
  const int64_t group = g->group[n->device];
  kiln_nccl_config config = config_of();
  int32_t status = kiln_model_nccl_check(n, n->world,
                                         n->api->CommSplit(n->world, group < 0 ? kNcclNoColor : (int)group,
                                                           (int)g->place[n->device], &n->comm[k], &config),
                                         kWhat);
  if (!status) status = kiln_model_nccl_settle(n, n->world, kWhat);
  return status || !n->comm[k] ? status : kiln_model_nccl_settle(n, n->comm[k], kWhat);
}

int32_t kiln_model_nccl_connect(struct kiln_nccl* n, int64_t device, const kiln_nccl_id* id) {
  if (device < 0 || device >= n->groups->devices)
    return kiln_model_nccl_fail(n, KILN_DEVICE, "there is no device %lld: the program has %lld", (long long)device,
                                (long long)n->groups->devices);
  n->device = device;
  n->comm = calloc((size_t)n->groups->groupings + 1, sizeof(kiln_nccl_comm));
  if (!n->comm) return kiln_model_nccl_fail(n, KILN_COMMUNICATION, "no memory");
  kiln_nccl_config config = config_of();
  const int devices = (int)n->groups->devices;
  int32_t status =
      kiln_model_nccl_check(n, NULL, n->api->CommInitRankConfig(&n->world, devices, *id, (int)device, &config), kWhat);
  if (!status) status = kiln_model_nccl_settle(n, n->world, kWhat);
  for (int64_t k = 0; k < n->groups->groupings && !status; ++k) status = split(n, k);
  return status;
}

// What device 0 tells the others; they all give one.
struct introduction {
  kiln_nccl_id id;
  int32_t status;
};

int32_t kiln_model_nccl_connect_by(struct kiln_nccl* n, const struct kiln_comm* c) {
  const int64_t devices = n->groups->devices;
  struct introduction mine = {.status = KILN_OK};
  struct introduction* all = calloc((size_t)devices, sizeof *all);
  int64_t* everybody = calloc((size_t)devices, sizeof *everybody);
  int32_t status = KILN_OK;
  if (!all || !everybody) {
    status = kiln_model_nccl_fail(n, KILN_COMMUNICATION, "no memory");
  } else {
    for (int64_t d = 0; d < devices; ++d) everybody[d] = d;
    if (c->device == 0) mine.status = kiln_model_nccl_check(n, NULL, n->api->GetUniqueId(&mine.id), kWhat);
    const int code = c->gather(c->self, c->device, everybody, devices, &mine, all, sizeof mine);
    if (code)
      status = kiln_model_nccl_fail(n, code == KILN_TIMEOUT ? KILN_TIMEOUT : KILN_COMMUNICATION,
                                    "%s: another device %s", kWhat, code == KILN_TIMEOUT ? "is late" : "failed");
    else if (all[0].status)
      status = kiln_model_nccl_fail(n, KILN_COMMUNICATION, "%s: device 0 has no id of NCCL's", kWhat);
    else
      status = kiln_model_nccl_connect(n, c->device, &all[0].id);
  }
  free(everybody);
  free(all);
  return status;
}

// Nothing is lost where this fails: what is aborted is freed too.
static void close_one(struct kiln_nccl* n, kiln_nccl_comm* comm) {
  kiln_nccl_comm c = *comm;
  if (!c || n->failure) return;
  if (kiln_model_nccl_check(n, c, n->api->CommFinalize(c), "leaving the other devices") ||
      kiln_model_nccl_settle(n, c, "leaving the other devices"))
    return;
  *comm = NULL;
  n->api->CommDestroy(c);
}

void kiln_model_nccl_close(struct kiln_nccl* n) {
  for (int64_t k = 0; n->comm && k < n->groups->groupings; ++k) {
    if (n->comm[k] == n->world) n->comm[k] = NULL;
    close_one(n, &n->comm[k]);
  }
  close_one(n, &n->world);
  free(n->comm);
  n->comm = NULL;
}
