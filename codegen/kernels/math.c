// Elementary functions and number formats, compiled to LLVM bitcode and inlined into every kernel that uses them.
//
// Everything is branch-free (selects only) but for calls of RARE functions, so that loops around it vectorise on every
// target. f32 functions whose accuracy needs it work in double inside. Error bounds are in docs/numerics.md.
#include <stdint.h>

#define INLINE __attribute__((always_inline))

static INLINE uint32_t f32_bits(float x) {
  union {
    float f;
    uint32_t u;
  } v = {x};
  return v.u;
}
static INLINE float bits_f32(uint32_t u) {
  union {
    uint32_t u;
    float f;
  } v = {u};
  return v.f;
}
static INLINE uint64_t f64_bits(double x) {
  union {
    double f;
    uint64_t u;
  } v = {x};
  return v.u;
}
static INLINE double bits_f64(uint64_t u) {
  union {
    uint64_t u;
    double f;
  } v = {u};
  return v.f;
}

// 2^n for integral n in [-126, 127].
static INLINE float exp2i_f32(int32_t n) { return bits_f32((uint32_t)(n + 127) << 23); }

// exp(x) = (1 + p) 2^n for x in [-104, 89], with n + bias in the low bits of *t. Degree-6 minimax polynomial on
// [-ln2/2, ln2/2].
static INLINE float exp_minus_one_reduced(float x, float bias, float* t) {
  const float to_integer = 0x1.8p23f + bias;
  *t = x * 1.44269504088896341f + to_integer;
  float n = *t - to_integer;
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.38145406e-3f;
  p = p * r + 8.36874545e-3f;
  p = p * r + 4.16683890e-2f;
  p = p * r + 1.66665211e-1f;
  p = p * r + 4.99999940e-1f;
  return p * (r * r) + r;
}

// exp(x) = p 2^n, with x, bias and t as above.
static INLINE float exp_reduced(float x, float bias, float* t) { return exp_minus_one_reduced(x, bias, t) + 1.0f; }

// Scaled in two steps, of which each takes a half of the exponent, so that subnormal results round once.
INLINE float kiln_exp_f32(float x) {
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  float t, p = exp_reduced(c, 254.0f, &t);
  uint32_t half = (f32_bits(t) << 22) & 0xff800000u;
  return p * bits_f32(half) * bits_f32((f32_bits(t) << 23) - half);
}

// The same for x up to 0: the factor 2^(n + 65) is a normal number, and the product with 2^-65 rounds once.
INLINE float kiln_exp_below_f32(float x) {
  float t, p = exp_reduced(x < -104.0f ? -104.0f : x, 65.0f + 127.0f, &t);
  return p * bits_f32(f32_bits(t) << 23) * 0x1p-65f;
}

INLINE float kiln_log_f32(float x) {
  int sub = x < 1.17549435e-38f;
  float v = sub ? x * 8388608.0f : x;
  // v = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
  int32_t e = (int32_t)(f32_bits(v) - f32_bits(0.70710678f)) >> 23;
  float f = bits_f32(f32_bits(v) - ((uint32_t)e << 23)) - 1.0f;
  float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float k = (float)(e - (sub ? 23 : 0));
  float y = f * z * p + k * -2.12194440e-4f - 0.5f * z + f + k * 0.693359375f;
  y = x == 0.0f ? -__builtin_inff() : y;
  y = x < __builtin_inff() ? y : x;  // also a NaN
  return x < 0.0f ? __builtin_nanf("") : y;
}

#ifdef FUSED_MULTIPLY_ADD
// Rational approximation on [-7.99881172180175781, 7.99881172180175781], outside which tanh rounds to one.
INLINE float kiln_tanh_f32(float x) {
  float c = x < -7.99881172180175781f ? -7.99881172180175781f : x;
  c = c > 7.99881172180175781f ? 7.99881172180175781f : c;
  float z = c * c;
  float p = -2.76076847742355e-16f;
  p = p * z + 2.00018790482477e-13f;
  p = p * z + -8.60467152213735e-11f;
  p = p * z + 5.12229709037114e-08f;
  p = p * z + 1.48572235717979e-05f;
  p = p * z + 6.37261928875436e-04f;
  p = p * z + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * z + 1.18534705686654e-04f;
  q = q * z + 2.26843463243900e-03f;
  q = q * z + 4.89352518554385e-03f;
  float y = c * p / q;
  y = __builtin_fabsf(x) > 9.0f ? __builtin_copysignf(1.0f, x) : y;
  return __builtin_fabsf(x) < 0.0004f ? x : y;
}
#else
// m / (m + 2) with m = exp(2 |x|) - 1, which is 1 from |x| = 9.02 on. The rational function above loses digits where
// every product is rounded before it is added: up to 6.2 units in the last place, 2.6 this way.
INLINE float kiln_tanh_f32(float x) {
  float a = __builtin_fabsf(x), c = a < 9.5f ? a : 9.5f;
  float t, p = exp_minus_one_reduced(2.0f * c, 127.0f, &t);
  float s = bits_f32(f32_bits(t) << 23);
  float m = s * p + (s - 1.0f);
  return __builtin_copysignf(x == x ? m / (m + 2.0f) : x, x);
}
#endif

// exp(-|x|) cannot overflow, so that the small side keeps its digits.
INLINE float kiln_logistic_f32(float x) {
  float e = kiln_exp_below_f32(-__builtin_fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// erf: rational in x on [-4, 4], beyond which it rounds to one.
INLINE float kiln_erf_f32(float x) {
  float c = x < -4.0f ? -4.0f : x;
  c = c > 4.0f ? 4.0f : c;
  float z = c * c;
  float p = -2.72614225801306e-10f;
  p = p * z + 2.77068142495902e-08f;
  p = p * z + -2.10102402082508e-06f;
  p = p * z + -5.69250639462346e-05f;
  p = p * z + -7.34990630326855e-04f;
  p = p * z + -2.95459980854025e-03f;
  p = p * z + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * z + -2.13374055278905e-04f;
  q = q * z + -1.68282697438203e-03f;
  q = q * z + -7.37332916720468e-03f;
  q = q * z + -1.42647390514189e-02f;
  return c * (p / q);  // c * p would be subnormal before the result is
}

double sin(double), cos(double), tan(double), atan2(double, double), pow(double, double), fmod(double, double);
#include "double.inc"
#include "formats.inc"
#include "pairs.inc"
#include "single.inc"

// Both parts of a complex number, in registers.
typedef struct {
  double re, im;
} complex;
static INLINE complex parts(double re, double im) {
  complex c = {re, im};
  return c;
}
static INLINE complex times(complex a, complex b) {
  return parts(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
static INLINE complex times_i(complex a) { return parts(-a.im, a.re); }
static INLINE complex over_i(complex a) { return parts(a.im, -a.re); }
static INLINE complex conjugate(complex a) { return parts(a.re, -a.im); }
// Infinite parts become one, others zero, with their signs.
static INLINE complex unit_box(complex a) {
  double inf = __builtin_inf();
  return parts(__builtin_copysign(__builtin_fabs(a.re) == inf ? 1.0 : 0.0, a.re),
               __builtin_copysign(__builtin_fabs(a.im) == inf ? 1.0 : 0.0, a.im));
}
// The real, or else the imaginary, part of a quotient n / d of which both parts came out as NaN. By the rules of C,
// infinities and zeros have one.
RARE double kiln_rare_complex_quotient(double a, double b, double c, double d, double imaginary) {
  double inf = __builtin_inf(), m = __builtin_fabs(c) > __builtin_fabs(d) ? __builtin_fabs(c) : __builtin_fabs(d);
  complex n = parts(a, b), top = unit_box(n), low = unit_box(parts(c, d)),
          r = parts(__builtin_nan(""), __builtin_nan(""));
  if (m == 0.0 && c == c && d == d && (a == a || b == b))
    r = parts(__builtin_copysign(inf, c) * a, __builtin_copysign(inf, c) * b);
  else if (m < inf && c == c && d == d && top.re * top.re + top.im * top.im > 0.0)
    r = parts(inf * (top.re * c + top.im * d), inf * (top.im * c - top.re * d));
  else if (m == inf && __builtin_fabs(a) < inf && __builtin_fabs(b) < inf)
    r = parts(0.0 * (a * low.re + b * low.im), 0.0 * (b * low.re - a * low.im));
  return imaginary == 0.0 ? r.re : r.im;
}

#include "complex_parts.inc"

#define REAL(name) name##_of_doubles
#define COMPLEX(name) kiln_c##name##_c128
#include "complex.inc"
#undef REAL
#undef COMPLEX
#define REAL(name) name##_of_floats
#define COMPLEX(name) kiln_c##name##_c64
#include "complex.inc"
#undef REAL
#undef COMPLEX

// Every row of functions.def has its functions.
#define UNARY(opcode, stem, ...) _Static_assert(sizeof(&kiln_##stem##_f32) == sizeof(&kiln_##stem##_f64), "");
#define BINARY UNARY
#define ROOT(...)
#include "compiler/hlo/functions.def"
