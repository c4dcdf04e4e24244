// The backend that a test of code generation is about: a test target's own, by its environment.
#pragma once

#include <cstdlib>

#include "aot/tools/runner.h"

namespace kiln {

inline RunOptions TestedBackend() {
  RunOptions o;
  if (const char* backend = std::getenv("KILN_TEST_BACKEND")) o.backend = backend;
  o.check_accesses = true;
  return o;
}

}  // namespace kiln
