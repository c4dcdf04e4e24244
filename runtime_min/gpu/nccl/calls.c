// A program's collectives as calls of NCCL.
//
// Arrays of one collective travel in one group of calls. Bytes that are not combined are of no type to NCCL.
// kiln renames kiln_model_* for each model.
#include "runtime_min/gpu/nccl/nccl.h"

struct call {
  struct kiln_nccl* n;
  const struct kiln_gpu_exchange* x;
  kiln_nccl_comm comm;
  void* stream;
  int64_t place, members;
  kiln_nccl_result refused;  // the first that was; a group of calls has to end before its communicator can be aborted
};

static void note(struct call* c, kiln_nccl_result code) {
  ++c->n->calls;
  if (code != kNcclSuccess && code != kNcclInProgress && c->refused == kNcclSuccess) c->refused = code;
}

// Each member's block, its own too, is a message of its own.
static void all_to_all(struct call* c, const struct kiln_gpu_exchanged* a, const char* from, char* to) {
  const struct kiln_nccl_library* api = c->n->api;
  const int64_t count = a->count / c->members, bytes = count * a->width;
  for (int64_t k = 0; k < c->members; ++k) {
    note(c, api->Send(from + k * bytes, (size_t)count, (int)a->type, (int)k, c->comm, c->stream));
    note(c, api->Recv(to + k * bytes, (size_t)count, (int)a->type, (int)k, c->comm, c->stream));
  }
}

static void permute(struct call* c, const struct kiln_gpu_exchanged* a, const void* from, void* to) {
  const struct kiln_nccl_library* api = c->n->api;
  const int64_t source = c->x->source[c->place];
  for (int64_t d = 0; d < c->members; ++d)
    if (c->x->source[d] == c->place)
      note(c, api->Send(from, (size_t)a->count, (int)a->type, (int)d, c->comm, c->stream));
  if (source >= 0) note(c, api->Recv(to, (size_t)a->count, (int)a->type, (int)source, c->comm, c->stream));
}

static void exchange(struct call* c, const struct kiln_gpu_exchanged* a, const void* from, void* to) {
  const struct kiln_nccl_library* api = c->n->api;
  const size_t count = (size_t)a->count, block = count / (size_t)c->members;
  const int type = (int)a->type, op = (int)c->x->op;
  switch (c->x->kind) {
    case KILN_GPU_ALL_REDUCE:
      note(c, api->AllReduce(from, to, count, type, op, c->comm, c->stream));
      return;
    case KILN_GPU_REDUCE_SCATTER:
      note(c, api->ReduceScatter(from, to, block, type, op, c->comm, c->stream));
      return;
    case KILN_GPU_ALL_GATHER:
      note(c, api->AllGather(from, to, count, type, c->comm, c->stream));
      return;
    case KILN_GPU_BROADCAST:
      note(c, api->Broadcast(from, to, count, type, 0, c->comm, c->stream));
      return;
    case KILN_GPU_ALL_TO_ALL:
      all_to_all(c, a, from, to);
      return;
    default:
      permute(c, a, from, to);
  }
}

// What no other device gives is zeros.
static int32_t fill_results(const struct kiln_gpu_exchange* x, void* const* buffers, const struct kiln_gpu* table) {
  int32_t status = 0;
  for (int64_t k = 0; k < x->arrays && !status; ++k)
    status = table->fill(table->self, buffers[x->arrays + k], 0, x->array[k].result_bytes);
  return status;
}

int32_t kiln_model_nccl_exchange(struct kiln_nccl* n, const struct kiln_gpu_exchange* x, void* const* buffers,
                                 void* stream, const struct kiln_gpu* table) {
  if (n->failure) return n->failure;
  if (x->kind == KILN_GPU_RAGGED) return kiln_model_nccl_ragged(n, x, buffers, stream, table);
  const struct kiln_gpu_grouping* g = &n->groups->grouping[x->grouping];
  struct call c = {n, x, n->comm[x->grouping], stream, g->place[n->device], g->members[n->device], kNcclSuccess};
  if (g->group[n->device] < 0 || (x->kind == KILN_GPU_PERMUTE && x->source[c.place] < 0)) {
    const int32_t status = fill_results(x, buffers, table);
    if (status || g->group[n->device] < 0) return status;
  }
  int32_t status = kiln_model_nccl_check(n, c.comm, n->api->GroupStart(), x->name);
  if (status) return status;
  for (int64_t k = 0; k < x->arrays; ++k)
    if (x->array[k].count > 0) exchange(&c, &x->array[k], buffers[k], buffers[x->arrays + k]);
  const kiln_nccl_result ended = n->api->GroupEnd();
  status = kiln_model_nccl_check(n, c.comm, c.refused != kNcclSuccess ? c.refused : ended, x->name);
  return status ? status : kiln_model_nccl_settle(n, c.comm, x->name);
}
