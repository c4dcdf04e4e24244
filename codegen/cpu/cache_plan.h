// What plans and kernels suppose of caches.
#pragma once

#include <cstdint>

namespace kiln::cpu {

inline constexpr int64_t kCacheLine = 64;          // bytes
inline constexpr int64_t kLargeResult = 12 << 20;  // bytes of a result that caches do not keep

}  // namespace kiln::cpu
