// What libraries say of themselves (kiln.h) is what their headers say, and a host that knows nothing else runs them.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "batches.h"
#include "decoder.h"
#include "devices.h"
#include "kiln/kiln_host.h"
#include "partitioned.h"
#include "slow_arena.h"
#include "tests/link/expect.h"
#include "weights.h"

namespace {

// What holds for every library of this kiln.
void CheckModel(const kiln_model* m, const char* name, const char* build) {
  Expect(kiln_model_problem(m) == nullptr, "this host can run it");
  Expect(m->version == (m->communicates ? 3 : 1), "the version of what is no entry");
  Expect(
      m->struct_bytes == (m->communicates ? offsetof(kiln_model, gpu_host_arena_bytes) : offsetof(kiln_model, library)),
      "its struct");
  Expect(kiln_model_entry(m) == nullptr, "it is no entry");
  Expect(std::strcmp(m->name, name) == 0 && std::strcmp(m->build, build) == 0, name);
  Expect(std::strcmp(m->kiln_version, DECODER_KILN_VERSION) == 0, "the version of kiln");
  bool held = false;
  for (const char* const* level = m->cpu_levels; *level; ++level)
    held = held || std::strcmp(*level, m->cpu_level()) == 0;
  Expect(held, "the level that runs is one of those held");
  Expect(std::strcmp(m->status_text(KILN_OK), "ok") == 0, "ok in words");
  Expect(std::strcmp(m->status_text(12345), "unknown status") == 0, "an unknown status in words");
  for (int64_t k = 0; k < m->variants; ++k) {
    const kiln_variant* v = kiln_variant_at(m, k);
    Expect(v->arena_bytes <= m->arena_bytes, "an arena for every batch size");
    for (int64_t a = 0; a < m->arguments + m->results; ++a) {
      const kiln_array* array = a < m->arguments ? kiln_argument(m, v, a) : kiln_result(m, v, a - m->arguments);
      int64_t bytes = array->element_bytes;
      for (int32_t d = 0; d < array->rank; ++d) bytes *= array->extents[d];
      Expect(bytes == array->bytes, "bytes");
      Expect(std::strcmp(kiln_type_text(array->type), "?") != 0, "a known type");
      Expect(array->name[0] && array->path[0], "names");
      if (array->alias < 0) continue;
      const kiln_array* other = a < m->arguments ? kiln_result(m, v, array->alias) : kiln_argument(m, v, array->alias);
      Expect(other->alias == (a < m->arguments ? a : a - m->arguments) && other->bytes == bytes,
             "an alias and its other");
    }
  }
}

void CheckFigures() {
  const kiln_model* m = decoder_model();
  CheckModel(m, "decoder", DECODER_BUILD);
  Expect(m->arena_bytes == DECODER_ARENA_BYTES && m->arena_alignment == DECODER_ALIGNMENT, "the decoder's arena");
  Expect(m->arguments == DECODER_ARGUMENTS && m->results == DECODER_RESULTS, "the decoder's arrays");
  Expect(m->run == decoder_run_call && m->pool_create == decoder_pool_create, "the decoder's functions");
  Expect(!m->world && !m->gpu && m->devices == 1 && !m->communicates, "the decoder runs alone");
  bool donated = false;
  for (int64_t k = 0; k < m->arguments; ++k)
    donated = donated || kiln_argument(m, kiln_variant_at(m, 0), k)->alias >= 0;
  Expect(donated, "the decoder's cache is donated");

  m = slow_arena_model();
  CheckModel(m, "slow_arena", SLOW_ARENA_BUILD);
  Expect(m->slow_arena_bytes == SLOW_ARENA_SLOW_ARENA_BYTES, "the slow arena");

  m = devices_model();
  CheckModel(m, "devices", DEVICES_BUILD);
  Expect(m->devices == 4 && m->communicates && m->world && m->world->struct_bytes == sizeof *m->world, "a world");
  Expect(m->mpi && m->mpi->struct_bytes == sizeof *m->mpi && m->mpi->open == devices_mpi_open &&
             m->mpi->close == devices_mpi_close,
         "ranks of MPI");
  Expect(m->world->create == devices_world_create && m->world->abort == devices_world_abort, "its functions");

  m = partitioned_model();
  CheckModel(m, "partitioned", PARTITIONED_BUILD);
  const kiln_tiling* tiling = kiln_argument(m, kiln_variant_at(m, 0), 0)->tiling;
  Expect(tiling && tiling->partitions == m->devices, "what an array is a part of");
}

// A host that reads everything from the descriptor: the products of batches_test.cc.
void RunBatches() {
  const kiln_model* m = batches_model();
  CheckModel(m, "batches", BATCHES_BUILD);
  Expect(m->variants == BATCHES_BATCHES, "batch sizes");
  Expect(kiln_variant_for(m, 2)->batch == 4 && kiln_variant_for(m, 10) == nullptr, "the size that holds");
  Expect(kiln_variant_of(m, 2) == nullptr, "a size without a variant");
  kiln_pool* pool = m->pool_create(2);
  kiln_context context;
  Expect(kiln_context_create(&context, m, pool) == KILN_OK, "a context");
  char why[256];
  for (int64_t k = 0; k < m->variants; ++k) {
    const kiln_variant* v = kiln_variant_at(m, k);
    const kiln_array *in = kiln_argument(m, v, 0), *out = kiln_result(m, v, 0), *sums = kiln_result(m, v, 1);
    std::vector<float> x(in->bytes / 4), y(out->bytes / 4), s(sums->bytes / 4);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    kiln_view arguments[] = {{x.data(), KILN_TYPE_F32, 2, in->extents, nullptr}};
    kiln_view results[] = {{y.data(), KILN_TYPE_F32, 2, out->extents, nullptr},
                           {s.data(), KILN_TYPE_F32, sums->rank, sums->extents, nullptr}};
    Expect(kiln_context_run(&context, v->batch, arguments, results, why, sizeof why) == KILN_OK, why);
    float want = 0;
    for (int i = 0; i < 4; ++i) want += x[i] * static_cast<float>(3 * i + 1);
    Expect(y[0] == want, "a product");

    const auto refused = [&](int64_t batch, int32_t status, const char* reason) {
      const int32_t got = kiln_context_run(&context, batch, arguments, results, why, sizeof why);
      Expect(got == status, reason);
      Expect(std::strstr(why, reason) != nullptr, why);
    };
    refused(2, KILN_BATCH_SIZE, "no variant for this batch size");
    results[0].type = KILN_TYPE_S32;
    refused(v->batch, KILN_EXTENT, "elements are f32, not s32");
    results[0].type = KILN_TYPE_F32;
    arguments[0].rank = 1;
    refused(v->batch, KILN_EXTENT, "has 2 dimensions, not 1");
    arguments[0].rank = 2;
    const int64_t wrong[] = {v->batch, 5}, strides[] = {32, 4}, dense[] = {16, 4};
    arguments[0].extents = wrong;
    refused(v->batch, KILN_EXTENT, "dimension 1 is 4, not 5");
    arguments[0].extents = in->extents;
    arguments[0].strides = strides;
    if (v->batch > 1) refused(v->batch, KILN_EXTENT, "dimension 0 has a stride of 16 bytes, not 32");
    arguments[0].strides = dense;
    Expect(kiln_context_run(&context, v->batch, arguments, results, why, sizeof why) == KILN_OK, why);
    arguments[0].data = nullptr;
    refused(v->batch, KILN_NULL_POINTER, "is NULL");
  }
  kiln_context_destroy(&context);
  m->pool_destroy(pool);
}

// Arrays by the names that the library asks for: all elements are 2.
const void* Twos(void*, const char* name, int64_t bytes) {
  static const std::vector<float> twos(64, 2.0f);
  return std::strstr(name, "params") && bytes <= 256 ? twos.data() : nullptr;
}

// Weights that a set gives, and the same weights as plain arguments.
void RunWeights() {
  const kiln_model* m = weights_model();
  CheckModel(m, "weights", WEIGHTS_BUILD);
  const kiln_variant* v = kiln_variant_at(m, 0);
  Expect(m->weights && m->weights->struct_bytes == sizeof *m->weights, "functions for weights");
  std::vector<float> ones(64, 1.0f), twos(64, 2.0f), hidden(6), logits(4);
  kiln_view arguments[4], results[2];
  for (int k = 0; k < 4; ++k) {
    const kiln_array* a = kiln_argument(m, v, k);
    Expect(a->weight == (std::strstr(a->path, "params") != nullptr), "what is a weight");
    arguments[k] = {a->weight ? twos.data() : ones.data(), a->type, a->rank, a->extents, nullptr};
  }
  for (int k = 0; k < 2; ++k) {
    const kiln_array* a = kiln_result(m, v, k);
    results[k] = {k ? logits.data() : hidden.data(), a->type, a->rank, a->extents, nullptr};
  }
  char why[256];
  kiln_context context;
  Expect(kiln_context_create(&context, m, nullptr) == KILN_OK, "a context");
  Expect(kiln_context_run(&context, 0, arguments, results, why, sizeof why) == KILN_OK, why);
  Expect(hidden[0] == 10 && logits[3] == 60, "weights as arguments");
  const kiln_weights_source source = {nullptr, Twos, nullptr};
  Expect(m->weights->open_source(&context.weights, &source, why, sizeof why) == KILN_OK, why);
  for (kiln_view& a : arguments)
    if (a.data == twos.data()) a = {};
  hidden.assign(6, 0);
  Expect(kiln_context_run(&context, 0, arguments, results, why, sizeof why) == KILN_OK, why);
  Expect(hidden[5] == 10 && logits[0] == 60, "weights of a source");
  m->weights->close(context.weights);
  kiln_context_destroy(&context);
}

}  // namespace

int main() {
  CheckFigures();
  RunBatches();
  RunWeights();
  if (!failures) std::printf("hosts: ok\n");
  return failures != 0;
}
