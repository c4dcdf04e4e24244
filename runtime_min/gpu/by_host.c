// Exchanges with other devices, and queues of the host program, through the host's memory.
// kiln renames kiln_model_* for each model.
#include "runtime_min/gpu/driver.h"

// What goes to other devices passes through page-locked memory of the host, one exchange at a time: whatever carries
// `comm` needs to know nothing of GPUs.
static int32_t cut_off(struct kiln_model_gpu* g, int code) {
  const int late = code == KILN_TIMEOUT;
  snprintf(g->error, sizeof g->error, "another device, or a queue of the host program, %s",
           late ? "is late" : "failed");
  return late ? KILN_TIMEOUT : KILN_COMMUNICATION;
}

static int32_t gather(void* self, const void* comm, const int64_t* group, int64_t members, const void* mine, void* all,
                      int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_comm* c = comm;
  int32_t status = kiln_model_gpu_read(g, g->exchange, mine, bytes);
  if (status) return status;
  const int code = c->gather(c->self, c->device, group, members, g->exchange, g->exchange + bytes, bytes);
  if (code) return cut_off(g, code);
  return kiln_model_gpu_write(g, all, g->exchange + bytes, members * bytes);
}

static int32_t send_bytes(void* self, const void* comm, int64_t channel, const void* data, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_comm* c = comm;
  int32_t status = kiln_model_gpu_read(g, g->exchange, data, bytes);
  if (status) return status;
  const int code = c->send(c->self, c->device, channel, g->exchange, bytes);
  return code ? cut_off(g, code) : 0;
}

static int32_t receive_bytes(void* self, const void* comm, int64_t channel, void* data, int64_t bytes) {
  struct kiln_model_gpu* g = self;
  const struct kiln_comm* c = comm;
  if (g->recording) return kiln_model_gpu_refuse_in_recording(g);
  int32_t status = kiln_model_gpu_await(g);  // for the last exchange, which may still be read
  if (status) return status;
  const int code = c->receive(c->self, c->device, channel, g->exchange, bytes);
  if (code) return cut_off(g, code);
  return kiln_model_gpu_write(g, data, g->exchange, bytes);
}

void kiln_model_gpu_by_host(struct kiln_gpu* table) {
  table->gather = gather;
  table->send = send_bytes;
  table->receive = receive_bytes;
}
