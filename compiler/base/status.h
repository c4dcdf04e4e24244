// Status helpers shared by the whole compiler.
//
// What: the error constructors and the propagation macros that abseil 20220623 does not carry.
// Why: every fallible function of kiln returns absl::Status or absl::StatusOr; codes have one meaning each
//   (docs/architecture.md, section 11).
// Guarantees: no exceptions, no allocation on the success path.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace kiln {

// Where a piece of input text starts. `line` and `column` are 1-based; line 0 means "unknown".
struct SourceLoc {
  int line = 0;
  int column = 0;
};

// The module or the configuration is wrong.
template <typename... Args>
absl::Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}
// Legal, but not supported: names the op and the target.
template <typename... Args>
absl::Status Unimplemented(const Args&... args) {
  return absl::UnimplementedError(absl::StrCat(args...));
}
// A limit was exceeded: names both numbers.
template <typename... Args>
absl::Status ResourceExhausted(const Args&... args) {
  return absl::ResourceExhaustedError(absl::StrCat(args...));
}
// A bug of kiln.
template <typename... Args>
absl::Status Internal(const Args&... args) {
  return absl::InternalError(absl::StrCat(args...));
}

}  // namespace kiln

#define KILN_CONCAT_INNER(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                                        \
  do {                                                                               \
    if (absl::Status kiln_status_ = (expr); !kiln_status_.ok()) return kiln_status_; \
  } while (0)

#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(KILN_CONCAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  if (!tmp.ok()) return tmp.status();         \
  lhs = std::move(tmp).value()

// Aborts with a message; only for states that would corrupt memory if the program went on.
#define KILN_CHECK(cond)                                                                            \
  do {                                                                                              \
    if (!(cond)) {                                                                                  \
      std::fprintf(stderr, "%s:%d: internal error: check failed: %s\n", __FILE__, __LINE__, #cond); \
      std::abort();                                                                                 \
    }                                                                                               \
  } while (0)
#include <cstdio>
#include <cstdlib>
