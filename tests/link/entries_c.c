// A language model's two entries from C, with one arena. The text of what is wrong; empty if nothing is.
#include "entries_c.h"

#include <string.h>

#include "language_model_c.h"
#include "language_model_reference.h"

static _Alignas(64) char memory[LANGUAGE_MODEL_ARENA_BYTES];

const char* WhatIsWrongInC(void) {
  const kiln_arena arena = {memory, sizeof memory};
  int32_t words[LANGUAGE_MODEL_PREFILL_ARGUMENT_WORDS_COUNT] = {3, 1, 4, 1, 5, 9, 2, 6}, word[1] = {200};
  float state[kWidth], best[8], next[1], want[kWidth], want_best[8];
  void *sentence[] = {words}, *read[] = {state, best}, *one[] = {word, state}, *spoken[] = {NULL, next};
  if (LANGUAGE_MODEL_PREFILL_ARGUMENTS != 1 || LANGUAGE_MODEL_DECODE_ARGUMENTS != 2) return "numbers of arguments";
  const int32_t status = language_model_prefill_run(sentence, read, arena, NULL);
  if (status != LANGUAGE_MODEL_OK) return language_model_status_text(status);
  Prefill(words, 8, want, want_best);
  if (memcmp(state, want, sizeof want) || memcmp(best, want_best, sizeof best)) return "prefill";
  if (language_model_decode_run(one, spoken, arena, NULL) != LANGUAGE_MODEL_OK) return "decode failed";
  if (next[0] != Decode(200, want) || memcmp(state, want, sizeof want)) return "decode";
  const kiln_arena little = {memory, LANGUAGE_MODEL_DECODE_ARENA_BYTES};
  if (language_model_decode_run(one, spoken, little, NULL) != LANGUAGE_MODEL_OK) return "decode in its own arena";
  if (language_model_prefill_run(sentence, read, little, NULL) != LANGUAGE_MODEL_ARENA_SIZE) return "a small arena";
  return "";
}
