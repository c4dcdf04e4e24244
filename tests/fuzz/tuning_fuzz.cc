// Results of tuning and denylists, which are read from files.
#include <sys/mman.h>
#include <unistd.h>

#include "aot/tuning/results.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = memfd_create("tuning", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  kiln::gpu::LibraryAlgorithms words;
  const auto results = kiln::LoadTuning({path}, "", nullptr, &words);
  const auto denied = kiln::LoadTuning({}, path);
  for (const absl::Status& s : {results.status(), denied.status()})
    if (!s.ok() && s.message().substr(0, path.size() + 1) != path + ":") __builtin_trap();
  close(file);
  return 0;
}
