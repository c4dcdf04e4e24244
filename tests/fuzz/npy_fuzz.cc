// .npy files, read as several types.
#include "aot/tools/npy.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto a = kiln::ParseNpy(absl::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!a.ok()) return 0;
  for (kiln::PrimitiveType t : {kiln::PrimitiveType::F32, kiln::PrimitiveType::BF16, kiln::PrimitiveType::S4})
    (void)kiln::NpyLiteral(*a, "f", kiln::Shape::Array(t, {2, 3}));
  return 0;
}
