// <model>_numerics_*: looks through what an operation wrote for numbers that are not finite.
#include "runtime_min/numerics.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime_min/profile.h"

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN extern const kiln_profile_op kiln_model_ops[];

// What follows is written by the compiler (codegen/host/entry_watched.cc).
//
// An array that an operation reads or writes: a number is special if its bits under `mask` are `special`, and then
// infinite if there is a `fraction` and none of its bits is set, else NaN.
struct kiln_checked_array {
  int64_t elements, bytes;  // of one; 0 bytes: the array holds no such numbers
  uint64_t mask, special, fraction;
  int64_t parts;        // of an element of the program: complex numbers have 2
  int64_t overwritten;  // it is read, and a result takes its place
  const char* shape;
};

struct kiln_checked_op {
  int64_t op;  // its number
  int64_t reads, writes;
  const struct kiln_checked_array* array;
};

static kiln_numerics_handler* handler;
static void* handler_self;
static __thread char text[1024];  // of the thread's latest report

void kiln_model_numerics_handle(kiln_numerics_handler* new_handler, void* self) {
  handler = new_handler;
  handler_self = self;
}

const char* kiln_model_numerics_text(void) { return text; }

enum { kNaN = 1, kInfinity = 2 };

static uint64_t bits_at(const struct kiln_checked_array* a, const void* data, int64_t k) {
  switch (a->bytes) {
    case 1:
      return ((const uint8_t*)data)[k];
    case 2:
      return ((const uint16_t*)data)[k];
    case 4:
      return ((const uint32_t*)data)[k];
    default:
      return ((const uint64_t*)data)[k];
  }
}

static int kind_of(const struct kiln_checked_array* a, uint64_t bits) {
  if ((bits & a->mask) != a->special) return 0;
  return a->fraction && !(bits & a->fraction) ? kInfinity : kNaN;
}

// Written so that compilers make vectors of it.
#define COUNT(type)                                                         \
  for (int64_t k = 0; k < a->elements; ++k) {                               \
    const type bits = ((const type*)data)[k];                               \
    special += (bits & (type)a->mask) == (type)a->special;                  \
    infinite += (bits & (type)(a->mask | a->fraction)) == (type)a->special; \
  }

// Which kinds there are; `count`: of elements.
static int scan(const struct kiln_checked_array* a, const void* data, int64_t* count) {
  int64_t special = 0, infinite = 0;
  switch (a->bytes) {
    case 0:
      break;
    case 1:
      COUNT(uint8_t) break;
    case 2:
      COUNT(uint16_t) break;
    case 4:
      COUNT(uint32_t) break;
    default:
      COUNT(uint64_t)
  }
  if (!a->fraction) infinite = 0;  // formats without infinities
  *count = special;
  return (special > infinite ? kNaN : 0) | (infinite ? kInfinity : 0);
}

static kiln_numerics_report describe(const struct kiln_checked_op* op, int64_t result, const void* data, int kind,
                                     int64_t count) {
  const struct kiln_checked_array* a = &op->array[op->reads + result];
  const kiln_profile_op* o = &kiln_model_ops[op->op];
  int64_t k = 0;
  while (kind_of(a, bits_at(a, data, k)) != kind) ++k;
  const int negative = kind == kInfinity && bits_at(a, data, k) >> (8 * a->bytes - 1);
  const double value = kind == kNaN ? __builtin_nan("") : negative ? -__builtin_inf() : __builtin_inf();
  const char* word = kind == kNaN ? "NaN" : negative ? "-infinity" : "infinity";
  const int64_t element = k / a->parts;
  char source[256] = "";
  if (*o->source_file) snprintf(source, sizeof source, " at %s:%lld", o->source_file, (long long)o->source_line);
  snprintf(text, sizeof text, "%%%s (%s)%s: element %lld of result %lld, %s, is %s; %lld are not finite", o->name,
           *o->op_name ? o->op_name : o->opcode, source, (long long)element, (long long)result, a->shape, word,
           (long long)count);
  return (kiln_numerics_report){o->name,  o->op_name, o->source_file, o->source_line, o->hlo_line, result,
                                a->shape, element,    value,          count,          text};
}

// What kinds the inputs have that are overwritten, or those that are not.
static int kinds_given(const struct kiln_checked_op* op, void* const* arrays, int overwritten) {
  int kinds = 0;
  int64_t count;
  for (int64_t r = 0; r < op->reads; ++r)
    if (op->array[r].overwritten == overwritten) kinds |= scan(&op->array[r], arrays[r], &count);
  return kinds;
}

// Called by generated code before an operation that overwrites an input.
HIDDEN int32_t kiln_model_numerics_before(const struct kiln_checked_op* op, void* const* arrays) {
  return kinds_given(op, arrays, 1);
}

// Called behind every operation that computes, with what the call before it gave: 0, or 1 if the run shall end.
HIDDEN int32_t kiln_model_numerics_check(const struct kiln_checked_op* op, void* const* arrays, int32_t before) {
  int given = -1;  // looked at if it matters
  for (int64_t k = 0; k < op->writes; ++k) {
    int64_t count;
    const void* data = arrays[op->reads + k];
    const int kinds = scan(&op->array[op->reads + k], data, &count);
    if (!kinds) continue;
    if (given < 0) given = before | kinds_given(op, arrays, 0);
    const int kind = kinds & kNaN && !(given & kNaN) ? kNaN : kinds & kInfinity && !given ? kInfinity : 0;
    if (!kind) continue;
    const kiln_numerics_report report = describe(op, k, data, kind, count);
    if (!handler || !handler(handler_self, &report)) return 1;
  }
  return 0;
}
