// Algorithms with data-dependent control flow: sorting, selection, transforms, factorisations, random bits.
// Compiled to bitcode; every model gets its own internal copy, specialised where arguments are constants.
#include <stdint.h>
#include <string.h>

#include "fft_limits.h"

// ---- Sorting ----

// less(env, a, i, b, j): element i of the arrays `a` before element j of the arrays `b`.
typedef int (*kiln_less)(void* const* a, int64_t i, void* const* b, int64_t j);
// move(d, i, s, j): element j of every array of `s` into position i of `d`.
typedef void (*kiln_move)(void* const* d, int64_t i, void* const* s, int64_t j);

// Stable bottom-up merge sort of n records in `a`, with `t` as room for as many. The result ends in `a`.
// Safe with comparators that are no order: every loop is bounded by n.
__attribute__((always_inline)) void kiln_sort(void* const* a, void* const* t, void* const* one, int64_t n,
                                              kiln_less less, kiln_move move) {
  const int64_t run = 16;
  for (int64_t lo = 0; lo < n; lo += run) {
    int64_t hi = lo + run < n ? lo + run : n;
    for (int64_t i = lo + 1; i < hi; ++i) {
      if (!less(a, i, a, i - 1)) continue;
      move(one, 0, a, i);
      int64_t j = i;
      do {
        move(a, j, a, j - 1);
        --j;
      } while (j > lo && less(one, 0, a, j - 1));
      move(a, j, one, 0);
    }
  }
  void* const* src = a;
  void* const* dst = t;
  for (int64_t width = run; width < n; width *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * width) {
      int64_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n;
      int64_t p = lo, q = mid, o = lo;
      if (mid >= hi || !less(src, mid, src, mid - 1)) {  // already in order
        for (; o < hi; ++o) move(dst, o, src, o);
        continue;
      }
      while (p < mid && q < hi) {
        if (less(src, q, src, p))
          move(dst, o++, src, q++);
        else
          move(dst, o++, src, p++);
      }
      while (p < mid) move(dst, o++, src, p++);
      while (q < hi) move(dst, o++, src, q++);
    }
    void* const* x = src;
    src = dst;
    dst = x;
  }
  if (src != a)
    for (int64_t i = 0; i < n; ++i) move(a, i, src, i);
}

#include "sort_by_digits.inc"

typedef uint32_t lanes_u32 __attribute__((ext_vector_type(16)));
typedef uint64_t lanes_u64 __attribute__((ext_vector_type(8)));

#define WORD uint32_t
#define LANES lanes_u32
#define COUNT 16
#define NAME(x) kiln_sort_##x##_u32
#define MASK(...) __VA_ARGS__
#define EXCHANGES                                                              \
  EXCHANGE(8, MASK(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),    \
           MASK(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)) \
  EXCHANGE(4, MASK(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),  \
           MASK(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))   \
  EXCHANGE(2, MASK(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),  \
           MASK(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))   \
  EXCHANGE(1, MASK(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30), \
           MASK(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#include "sort_side_by_side.inc"
#undef WORD
#undef LANES
#undef COUNT
#undef NAME
#undef EXCHANGES
#define WORD uint64_t
#define LANES lanes_u64
#define COUNT 8
#define NAME(x) kiln_sort_##x##_u64
#define EXCHANGES                                                               \
  EXCHANGE(4, MASK(0, 1, 2, 3, 8, 9, 10, 11), MASK(4, 5, 6, 7, 12, 13, 14, 15)) \
  EXCHANGE(2, MASK(0, 1, 8, 9, 4, 5, 12, 13), MASK(2, 3, 10, 11, 6, 7, 14, 15)) \
  EXCHANGE(1, MASK(0, 8, 2, 10, 4, 12, 6, 14), MASK(1, 9, 3, 11, 5, 13, 7, 15))
#include "sort_side_by_side.inc"
#undef WORD
#undef LANES
#undef COUNT
#undef NAME
#undef EXCHANGES
#undef MASK

// The k first of n by less, ties by lower index; `idx` has room for k.
__attribute__((always_inline)) void kiln_topk(void* const* a, int64_t n, int64_t k, int32_t* idx, kiln_less less) {
  int64_t have = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (have == k && (k == 0 || !less(a, i, a, idx[k - 1]))) continue;
    int64_t j = have < k ? have++ : k - 1;
    while (j > 0 && less(a, i, a, idx[j - 1])) {
      idx[j] = idx[j - 1];
      --j;
    }
    idx[j] = (int32_t)i;
  }
}

// Partitions w so that its `k` smallest of n distinct words come first, w[k - 1] being the largest of them. What a
// comparison says moves a place and no branch: it could not be foreseen.
static void select_least(uint64_t* w, int64_t n, int64_t k) {
  int64_t lo = 0, hi = n - 1;
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    uint64_t x = w[lo], y = w[mid], z = w[hi];
    int64_t median = x < y ? (y < z ? mid : x < z ? hi : lo) : (x < z ? lo : y < z ? hi : mid);
    uint64_t pivot = w[median];
    w[median] = z;
    int64_t place = lo;
    for (int64_t i = lo; i < hi; ++i) {
      uint64_t t = w[i];
      w[i] = w[place];
      w[place] = t;
      place += t < pivot;
    }
    w[hi] = w[place];
    w[place] = pivot;
    if (place == k - 1) return;
    if (place > k - 1)
      hi = place - 1;
    else
      lo = place + 1;
  }
}

// Ascending; `t` has room for n. Where the result is.
static uint64_t* merge_words(uint64_t* w, uint64_t* t, int64_t n) {
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * width) {
      int64_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n, p = lo, q = mid;
      for (int64_t o = lo; o < hi; ++o) {
        int first = q == hi || (p < mid && w[p] < w[q]);
        t[o] = first ? w[p] : w[q];
        p += first;
        q += !first;
      }
    }
    uint64_t* x = w;
    w = t;
    t = x;
  }
  return w;
}

typedef uint32_t (*kiln_key)(void* const* a, int64_t i);
typedef _Bool lanes_bool __attribute__((ext_vector_type(16)));

// 16 keys from place i on.
static inline __attribute__((always_inline)) void keys_at(void* const* a, int64_t i, kiln_key key, lanes_u32* keys) {
#pragma clang loop unroll(disable) vectorize(enable)
  for (int32_t j = 0; j < 16; ++j) ((uint32_t*)keys)[j] = key(a, i + j);
}

// At least k of n elements have a key up to this, and hardly more: the k-th of what is least in each of kParts parts.
enum { kParts = 256, kMostSampled = 1 << 14 };
static inline __attribute__((always_inline)) uint32_t few_up_to(void* const* a, int64_t n, int64_t k, kiln_key key) {
  lanes_u32 least[kParts / 16];
  __builtin_memset(least, 255, sizeof least);
  for (int64_t i = 0; i + kParts <= n; i += kParts)
#pragma clang loop unroll(disable)
    for (int32_t part = 0; part < kParts / 16; ++part) {
      lanes_u32 keys;
      keys_at(a, i + 16 * part, key, &keys);
      least[part] = __builtin_elementwise_min(least[part], keys);
    }
  uint64_t words[kParts];
  for (int32_t part = 0; part < kParts; ++part)
    words[part] = (uint64_t)((const uint32_t*)least)[part] << 32 | (uint32_t)part;
  select_least(words, kParts, k);
  return (uint32_t)(words[k - 1] >> 32);
}

// The k first of n < 2^32 elements by ascending key, equal ones by place. What is left of them is looked through when
// the room is full: 2 k words in `w`. From then on few elements come before the k-th: blocks are compared as vectors.
// Where rows are long, a first look at them says from which key on no element counts.
__attribute__((always_inline)) void kiln_topk_by_key(void* const* a, int64_t n, int64_t k, int32_t* idx, kiln_key key,
                                                     uint64_t* w) {
  enum { kBlock = 64, kLanes = 16, kLong = 8 * kParts };
  int64_t have = 0, i = 0;
  uint32_t bar = UINT32_MAX;  // keys from here on are out, once there are k
  if (n >= kLong && k <= kParts / 4) {
    const uint32_t last = few_up_to(a, n < kMostSampled ? n : kMostSampled, k, key);
    bar = last < UINT32_MAX ? last + 1 : last;
  }
  if (bar == UINT32_MAX)
    for (; i < n && have < 2 * k; ++i) w[have++] = (uint64_t)key(a, i) << 32 | (uint32_t)i;
#define KEEP(place)                                                 \
  do {                                                              \
    if (have == 2 * k) {                                            \
      select_least(w, have, k);                                     \
      have = k;                                                     \
      bar = (uint32_t)(w[k - 1] >> 32);                             \
    }                                                               \
    uint32_t x = key(a, place);                                     \
    if (x < bar) w[have++] = (uint64_t)x << 32 | (uint32_t)(place); \
  } while (0)
  if (i < n) {
    KEEP(i);
    ++i;
  }
  for (; i + kBlock <= n; i += kBlock) {
    uint64_t before = 0;
    for (int32_t first = 0; first < kBlock; first += kLanes) {
      lanes_u32 keys;
      keys_at(a, i + first, key, &keys);
      const lanes_bool part = __builtin_convertvector(keys < bar, lanes_bool);
      uint16_t bits;
      __builtin_memcpy(&bits, &part, sizeof bits);
      before |= (uint64_t)bits << first;
    }
    for (; before; before &= before - 1) KEEP(i + __builtin_ctzll(before));
  }
  for (; i < n; ++i) KEEP(i);
#undef KEEP
  if (have > k) select_least(w, have, k);
  uint64_t* sorted = merge_words(w, w + k, k);
  for (int64_t j = 0; j < k; ++j) idx[j] = (int32_t)(uint32_t)sorted[j];
}

// ---- Random bits ----

static inline void threefry(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t* out0, uint32_t* out1) {
  uint32_t ks[3] = {k0, k1, 0x1BD11BDAu ^ k0 ^ k1};
  uint32_t x = c0 + ks[0], y = c1 + ks[1];
#define ROUND(r)                  \
  x += y;                         \
  y = (y << r) | (y >> (32 - r)); \
  y ^= x;
#define FOUR_A ROUND(13) ROUND(15) ROUND(26) ROUND(6)
#define FOUR_B ROUND(17) ROUND(29) ROUND(16) ROUND(24)
  FOUR_A x += ks[1];
  y += ks[2] + 1;
  FOUR_B x += ks[2];
  y += ks[0] + 2;
  FOUR_A x += ks[0];
  y += ks[1] + 3;
  FOUR_B x += ks[1];
  y += ks[2] + 4;
  FOUR_A x += ks[2];
  y += ks[0] + 5;
  *out0 = x;
  *out1 = y;
}

static inline void put_bits(char* out, int64_t i, int64_t bytes, uint64_t v) {
  memcpy(out + i * bytes, &v, (uint64_t)bytes);
}

// outer x dim x inner elements of `bytes`; blocks pair neighbouring positions of the middle dimension.
void kiln_threefry(const uint64_t* state, uint64_t* next, char* out, int64_t outer, int64_t dim, int64_t inner,
                   int64_t bytes) {
  uint64_t key = state[0], ctr = state[1];
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint64_t block = 0;
  if (bytes == 8) {
    int64_t n = outer * dim * inner;
    for (int64_t i = 0; i < n; ++i) {
      uint32_t a, b;
      uint64_t c = ctr + (uint64_t)i;
      threefry(k0, k1, (uint32_t)c, (uint32_t)(c >> 32), &a, &b);
      put_bits(out, i, 8, a | (uint64_t)b << 32);
    }
    block = (uint64_t)n;
  } else {
    int64_t half = (dim + 1) / 2;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t h = 0; h < half; ++h)
        for (int64_t i = 0; i < inner; ++i) {
          uint32_t a, b;
          uint64_t c = ctr + block++;
          threefry(k0, k1, (uint32_t)c, (uint32_t)(c >> 32), &a, &b);
          int64_t at = (o * dim + 2 * h) * inner + i;
          put_bits(out, at, bytes, a);
          if (2 * h + 1 < dim) put_bits(out, at + inner, bytes, b);
        }
  }
  next[0] = key;
  next[1] = ctr + block;
}

void kiln_philox(const uint64_t* state, uint64_t* next, int64_t words, char* out, int64_t n, int64_t bytes) {
  uint64_t key = state[0], lo = state[1], hi = words > 2 ? state[2] : state[0];
  int64_t per = bytes == 8 ? 2 : 4;
  uint64_t blocks = (uint64_t)((n + per - 1) / per);
  for (uint64_t k = 0; k < blocks; ++k) {
    uint64_t l = lo + k, h = hi + (l < lo);
    uint32_t c0 = (uint32_t)l, c1 = (uint32_t)(l >> 32), c2 = (uint32_t)h, c3 = (uint32_t)(h >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int r = 0; r < 10; ++r) {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
      uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
      c0 = n0;
      c1 = (uint32_t)p1;
      c2 = n2;
      c3 = (uint32_t)p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    uint32_t w[4] = {c0, c1, c2, c3};
    for (int64_t q = 0; q < per; ++q) {
      int64_t at = (int64_t)k * per + q;
      if (at < n) put_bits(out, at, bytes, bytes == 8 ? w[2 * q] | (uint64_t)w[2 * q + 1] << 32 : w[q]);
    }
  }
  next[0] = key;
  next[1] = lo + blocks;
  if (words > 2) next[2] = hi + (lo + blocks < lo);
}

// ---- FFT ----

double sqrt(double);

#define REAL float
#define LANES 16
#define NAME(x) kiln_##x##_f32
#include "transforms.inc"
#undef REAL
#undef LANES
#undef NAME
#define REAL double
#define LANES 8
#define NAME(x) kiln_##x##_f64
#include "transforms.inc"
