// What the programs of this folder, which link one library and nothing else, expect: a line for each failure, and their
// number, which main returns on.
#pragma once

#include <cstdio>

inline int failures = 0;

inline void Expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}
