// Exchanges of as many rows as lists say that lie in the device's memory.
//
// NCCL wants to be told how many, so the host reads the lists, and waits for the stream. Each member knows where its
// rows go in the others' results; the receivers learn it by an exchange of these numbers. kiln renames kiln_model_* for
// each model.
#include <stdlib.h>

#include "runtime_min/gpu/nccl/nccl.h"

enum { kFrom = 0, kSent = 1, kTo = 2, kTaken = 3, kPlaced = 4, kLists = 5 };

struct ragged {
  struct kiln_nccl* n;
  const struct kiln_gpu_exchange* x;
  const struct kiln_gpu* table;
  void* const* buffers;
  void* stream;
  kiln_nccl_comm comm;
  int64_t members, row, width;  // bytes of a row, and of a number
  int64_t* list[kLists];        // by member
};

static int64_t number_at(const char* bytes, int64_t width, int64_t k) {
  if (width == 8) return ((const int64_t*)(const void*)bytes)[k];
  if (width == 4) return ((const int32_t*)(const void*)bytes)[k];
  return width == 2 ? ((const int16_t*)(const void*)bytes)[k] : ((const signed char*)bytes)[k];
}

static int32_t read_list(struct ragged* r, int which, const void* at) {
  char* bytes = malloc((size_t)(r->members * r->width));
  if (!bytes) return kiln_model_nccl_fail(r->n, KILN_COMMUNICATION, "no memory");
  const int32_t status = r->table->read(r->table->self, bytes, at, r->members * r->width);
  for (int64_t k = 0; k < r->members && !status; ++k) r->list[which][k] = number_at(bytes, r->width, k);
  free(bytes);
  return status;
}

// Ends the group, whatever became of its calls.
static int32_t end(struct ragged* r, kiln_nccl_result refused) {
  const kiln_nccl_result ended = r->n->api->GroupEnd();
  const int32_t status = kiln_model_nccl_check(r->n, r->comm, refused != kNcclSuccess ? refused : ended, r->x->name);
  return status ? status : kiln_model_nccl_settle(r->n, r->comm, r->x->name);
}

static void note(struct ragged* r, kiln_nccl_result code, kiln_nccl_result* refused) {
  ++r->n->calls;
  if (code != kNcclSuccess && code != kNcclInProgress && *refused == kNcclSuccess) *refused = code;
}

static int32_t begin(struct ragged* r) {
  return kiln_model_nccl_check(r->n, r->comm, r->n->api->GroupStart(), r->x->name);
}

// Every member learns where the others' rows go in its result.
static int32_t pass_places(struct ragged* r) {
  const struct kiln_nccl_library* api = r->n->api;
  const char* from = r->buffers[2 + kTo];
  char* to = r->buffers[r->x->arrays + 1];
  kiln_nccl_result refused = kNcclSuccess;
  int32_t status = begin(r);
  if (status) return status;
  for (int64_t k = 0; k < r->members; ++k) {
    const int64_t at = k * r->width;
    note(r, api->Send(from + at, (size_t)r->width, kNcclUint8, (int)k, r->comm, r->stream), &refused);
    note(r, api->Recv(to + at, (size_t)r->width, kNcclUint8, (int)k, r->comm, r->stream), &refused);
  }
  status = end(r, refused);
  return status ? status : read_list(r, kPlaced, to);
}

static int inside(int64_t from, int64_t count, int64_t rows) { return from >= 0 && count >= 0 && from + count <= rows; }

static int32_t pass_rows(struct ragged* r) {
  const struct kiln_nccl_library* api = r->n->api;
  const int64_t rows = r->x->array[0].count, places = r->x->array[0].result_bytes / r->row;
  const char* from = r->buffers[0];
  char* to = r->buffers[r->x->arrays];
  for (int64_t k = 0; k < r->members; ++k)
    if (!inside(r->list[kFrom][k], r->list[kSent][k], rows) || !inside(r->list[kPlaced][k], r->list[kTaken][k], places))
      return kiln_model_nccl_fail(r->n, KILN_COMMUNICATION,
                                  "%s: rows for or from member %lld lie outside of its arrays", r->x->name,
                                  (long long)k);
  kiln_nccl_result refused = kNcclSuccess;
  const int32_t status = begin(r);
  if (status) return status;
  for (int64_t k = 0; k < r->members; ++k) {
    const size_t sent = (size_t)(r->list[kSent][k] * r->row), taken = (size_t)(r->list[kTaken][k] * r->row);
    if (sent)
      note(r, api->Send(from + r->list[kFrom][k] * r->row, sent, kNcclUint8, (int)k, r->comm, r->stream), &refused);
    if (taken)
      note(r, api->Recv(to + r->list[kPlaced][k] * r->row, taken, kNcclUint8, (int)k, r->comm, r->stream), &refused);
  }
  return end(r, refused);
}

int32_t kiln_model_nccl_ragged(struct kiln_nccl* n, const struct kiln_gpu_exchange* x, void* const* buffers,
                               void* stream, const struct kiln_gpu* table) {
  const int64_t members = n->groups->grouping[x->grouping].members[n->device];
  struct ragged r = {n,  x, table, buffers, stream, n->comm[x->grouping], members, x->array[0].width, x->array[1].width,
                     {0}};
  int64_t* lists = calloc((size_t)(kLists * members), sizeof *lists);
  if (!lists) return kiln_model_nccl_fail(n, KILN_COMMUNICATION, "no memory");
  int32_t status = 0;
  for (int k = 0; k < kLists; ++k) r.list[k] = lists + k * members;
  for (int k = kFrom; k <= kTaken && !status; ++k) status = read_list(&r, k, buffers[2 + k]);
  if (!status) status = pass_places(&r);
  if (!status && buffers[1] != buffers[x->arrays])
    status = table->copy(table->self, buffers[x->arrays], buffers[1], x->array[0].result_bytes);
  if (!status) status = pass_rows(&r);
  free(lists);
  return status;
}
