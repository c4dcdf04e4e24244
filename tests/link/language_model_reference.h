// What tests/link/language_model.awk computes, by hand.
#ifndef KILN_TESTS_LINK_LANGUAGE_MODEL_REFERENCE_H_
#define KILN_TESTS_LINK_LANGUAGE_MODEL_REFERENCE_H_

#include <stdint.h>

enum { kWords = 256, kWidth = 64 };

static inline float Table(int word, int place) { return (float)((word * 7 + place * 3) % 5 - 2); }

// The largest product of `state` with a word's row.
static inline float Best(const float* state) {
  float best = -1e30f;
  for (int w = 0; w < kWords; ++w) {
    float logit = 0;
    for (int k = 0; k < kWidth; ++k) logit += state[k] * Table(w, k);
    if (logit > best) best = logit;
  }
  return best;
}

// What a sentence of `count` words gives: the state, and for each word the best.
static inline void Prefill(const int32_t* words, int count, float* state, float* best) {
  for (int k = 0; k < kWidth; ++k) state[k] = 0;
  for (int n = 0; n < count; ++n) {
    float twice[kWidth];
    for (int k = 0; k < kWidth; ++k) state[k] += twice[k] = 2 * Table(words[n], k);
    best[n] = Best(twice);
  }
}

// What a word makes of the state.
static inline float Decode(int32_t word, float* state) {
  for (int k = 0; k < kWidth; ++k) state[k] += Table(word, k);
  return Best(state);
}

#endif  // KILN_TESTS_LINK_LANGUAGE_MODEL_REFERENCE_H_
