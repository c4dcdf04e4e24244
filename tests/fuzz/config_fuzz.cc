// The compiler's configuration.
#include "aot/compile.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto o = kiln::ParseConfig(absl::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!o.ok() && o.status().message().empty()) __builtin_trap();
  return 0;
}
