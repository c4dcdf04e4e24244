// Two models in one C program: no symbol of one is a symbol of the other.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decoder_c.h"
#include "digits_c.h"

static _Alignas(64) unsigned char digits_arena[DIGITS_ARENA_BYTES + 64];
static _Alignas(64) unsigned char decoder_arena[DECODER_ARENA_BYTES + 64];
static _Alignas(64) float cache[DECODER_ARGUMENT_ARG2_COUNT];

int main(void) {
  _Alignas(64) float pixels[64] = {0}, scores[10];
  void* digits_arguments[] = {pixels};
  void* digits_results[] = {scores};
  kiln_pool* pool = digits_pool_create(2);
  const kiln_arena digits_memory = {digits_arena, sizeof digits_arena};
  int status = digits_run(digits_arguments, digits_results, digits_memory, pool);
  if (status != DIGITS_OK) {
    fprintf(stderr, "%s\n", digits_status_text(status));
    return 1;
  }
  float sum = 0;
  for (int k = 0; k < 10; ++k) sum += scores[k];

  _Alignas(64) int32_t token[1] = {3}, position[1] = {0};
  _Alignas(64) float logits[DECODER_RESULT_RESULT0_COUNT];
  void* decoder_arguments[] = {token, position, cache};
  void* decoder_results[] = {logits, cache};
  const kiln_arena decoder_memory = {decoder_arena, sizeof decoder_arena};
  status = decoder_run(decoder_arguments, decoder_results, decoder_memory, pool);  // a pool serves any model
  digits_pool_destroy(pool);
  if (status != DECODER_OK) {
    fprintf(stderr, "%s\n", decoder_status_text(status));
    return 1;
  }
  printf("probabilities sum to %.6f, first logit %.6f\n", sum, logits[0]);
  return fabsf(sum - 1) < 1e-5f && isfinite(logits[0]) ? 0 : 1;
}
