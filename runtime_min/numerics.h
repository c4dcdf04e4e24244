// What a library built with `debug { check_numerics: true }` reports. C99, C++11.
#ifndef KILN_NUMERICS_H_
#define KILN_NUMERICS_H_

#include <stdint.h>

// An operation whose inputs had no NaN gave one; or whose inputs were all finite gave an infinity.
typedef struct kiln_numerics_report {
  const char* name;         // of the instruction in the optimised program
  const char* op_name;      // the user's scopes and operation; "" if unknown
  const char* source_file;  // where the user wrote it; "" if unknown
  int64_t source_line, hlo_line;
  int64_t result;     // which of its arrays
  const char* shape;  // of that array: "f32[8,16]"
  int64_t index;      // of the first such element, in row-major order unless `shape` names a layout
  double value;       // NaN, or an infinity with its sign
  int64_t count;      // of elements that are not finite
  const char* text;   // all of it in one line
} kiln_numerics_report;

// Returns 0 to end the run with KILN_NUMERICS, anything else to go on. Called on the run's own thread.
typedef int kiln_numerics_handler(void* self, const kiln_numerics_report* report);

#endif  // KILN_NUMERICS_H_
