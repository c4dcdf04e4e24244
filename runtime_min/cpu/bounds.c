// <model>_out_of_bounds: what an access outside its array ends in, in libraries built with bounds_check.
#include <stdint.h>

extern long write(int fd, const void* data, unsigned long size);
_Noreturn extern void abort(void);

static char* put(char* at, const char* end, const char* text) {
  while (*text && at < end) *at++ = *text++;
  return at;
}

static char* put_number(char* at, const char* end, int64_t v) {
  char digits[24];
  int n = 0;
  uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  do digits[n++] = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) digits[n++] = '-';
  while (n > 0 && at < end) *at++ = digits[--n];
  return at;
}

_Noreturn void kiln_model_out_of_bounds(const char* what, int64_t element, int64_t count) {
  char line[512];
  const char* end = line + sizeof line - 1;
  char* at = put(line, end, what);
  at = put(at, end, ": element ");
  at = put_number(at, end, element);
  at = put(at, end, " of ");
  at = put_number(at, end, count);
  *at++ = '\n';
  write(2, line, (unsigned long)(at - line));
  abort();
}
