// HLO text.
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "tests/fuzz/printed.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 16) return 0;
  auto m = kiln::ParseHlo(absl::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!m.ok()) return m.status().message().empty() ? (__builtin_trap(), 0) : 0;
  if (!kiln::VerifyModule(**m).ok()) return 0;
  CheckPrinted(**m);
  return 0;
}
