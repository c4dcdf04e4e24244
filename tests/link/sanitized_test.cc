// A library with debug.sanitize: "address" in a program under AddressSanitizer: a short buffer is caught inside the
// model. Called with any argument the program overruns; the shell side of the test looks for the report.
#include "sanitized.h"

#include <cstdint>
#include <vector>

int main(int argc, char**) {
  std::vector<float> x(argc > 1 ? 60 : 64), y(64);
  void* arguments[] = {x.data()};
  void* results[] = {y.data()};
  sanitized::Context context;
  return sanitized_run(arguments, results, context.arena(), nullptr);
}
