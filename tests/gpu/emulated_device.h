// A device for the fake CUDA driver: kernels are the program's own, by name, run by the emulator.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "aot/compile.h"
#include "aot/emulator/emulator.h"
#include "compiler/base/text.h"
#include "gtest/gtest.h"
#include "tests/gpu/fake_cuda.h"

namespace kiln {

// Links an archive into a shared library and loads it.
inline void* LoadArchive(const std::string& archive, const std::string& stem) {
  static const std::string dir = [] {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string d = std::string(base ? base : "/tmp") + "/device_XXXXXX";
    EXPECT_NE(mkdtemp(d.data()), nullptr);
    return d;
  }();
  const std::string a = dir + "/" + stem + ".a", so = dir + "/" + stem + ".so";
  EXPECT_TRUE(WriteFile(a, archive).ok());
  const std::string command =
      "cc -shared -o " + so + " -Wl,--whole-archive " + a + " -Wl,--no-whole-archive -lm -lpthread -ldl";
  EXPECT_EQ(std::system(command.c_str()), 0);
  void* lib = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(lib, nullptr) << dlerror();
  return lib;
}

// A model as a loaded library, whose functions are found by the names that headers call them by, without the model's.
struct LoadedModel {
  void* library = nullptr;
  std::string symbols;
  void* Find(const std::string& function) const { return dlsym(library, (symbols + "_" + function).c_str()); }
  const gpu::EmulatedLibrary* Emulated() const { return static_cast<const gpu::EmulatedLibrary*>(Find("emulated")); }
};

inline LoadedModel LoadModel(const CompiledModel& m, const std::string& stem) {
  return {LoadArchive(m.code.archive, stem), m.symbols};
}

class EmulatedDevice {
 public:
  explicit EmulatedDevice(const gpu::EmulatedLibrary* library) : library_(library), emulator_(library) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(driver, nullptr) << dlerror();
    const auto set = reinterpret_cast<FakeCuda* (*)(FakeCuda*)>(dlsym(driver, "fake_cuda_set"));
    EXPECT_NE(set, nullptr) << "this is not the fake driver";
    set_ = set;
    for (int64_t k = 0; k < library->kernels; ++k) kernels_[library->kernel[k].name] = k;
    fake.self = this;
    fake.buffers_of = [](void* self, const char* kernel) {
      const auto* d = static_cast<EmulatedDevice*>(self);
      return static_cast<int>(d->library_->kernel[d->kernels_.at(kernel)].buffers);
    };
    fake.launch = [](void* self, const char* kernel, int64_t blocks, int64_t threads, void* const* buffers) {
      const auto* d = static_cast<EmulatedDevice*>(self);
      const int64_t k = d->kernels_.at(kernel), grid[] = {blocks, threads};
      const kiln_gpu_launch what = {k, grid, d->library_->kernel[k].buffers};
      const int32_t status = d->table()->launch(d->table()->self, &what, buffers);
      return d->after_launch ? d->after_launch(kernel, buffers) : status;
    };
    before_ = set(&fake);
  }
  ~EmulatedDevice() { set_(before_); }
  EmulatedDevice(const EmulatedDevice&) = delete;
  const kiln_gpu* table() const { return emulator_.table(); }

  FakeCuda fake;
  // Asked behind each launch for its status; may spoil what the kernel did.
  std::function<int32_t(const std::string& kernel, void* const* buffers)> after_launch;

 private:
  const gpu::EmulatedLibrary* library_;
  Emulator emulator_;
  std::map<std::string, int64_t> kernels_;
  FakeCuda* (*set_)(FakeCuda*) = nullptr;
  FakeCuda* before_ = nullptr;
};

}  // namespace kiln
