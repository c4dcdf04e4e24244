// A program for GPUs, compiled and loaded, on a fake device that runs its kernels by the emulator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aot/compile.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "runtime_min/abi.h"
#include "runtime_min/gpu/model.h"
#include "tests/gpu/emulated_device.h"

namespace kiln {

// Options of a GPU program, named m. With libraries: small products are theirs too, whatever surrounds them.
inline CompileOptions GpuOptions(const std::vector<std::string>& targets, bool libraries = false) {
  CompileOptions o;
  o.model.name = "m";
  o.cpu.levels.clear();
  o.gpu.targets = targets;
  o.gpu.libraries = libraries;
  if (libraries) o.pipeline.disabled.push_back("triton-gemm-rewriter");
  return o;
}

inline CompiledModel CompileText(const std::string& text, const CompileOptions& o) {
  auto m = ParseHlo(text, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  auto model = Compile(std::move(*m), o);
  EXPECT_TRUE(model.ok()) << model.status();
  return std::move(*model);
}

// The library of a program, and its kernels for the emulator. Loaded once and never unloaded, as the driver that it
// keeps open.
class GpuProgram {
 public:
  GpuProgram(const std::string& text, CompileOptions o) : model_(CompileText(text, o)) {
    program_ = LoadModel(model_, NextName());
    o.gpu.emulation = GpuOptions::Emulation::kPlain;
    emulated_ = LoadModel(CompileText(text, o), NextName());
  }
  // The same as another library, which has opened nothing yet.
  std::unique_ptr<GpuProgram> Again() const {
    auto out = std::unique_ptr<GpuProgram>(new GpuProgram(*this));
    out->program_ = LoadModel(model_, NextName());
    return out;
  }

  const gpu::EmulatedLibrary* library() const { return emulated_.Emulated(); }
  // The entry for the emulator's own table.
  kiln_gpu_region entry() const { return reinterpret_cast<kiln_gpu_region>(emulated_.Find("gpu_entry")); }
  // A function of the library by the name that headers call it by, without the model's.
  void* Of(const std::string& name) const { return program_.Find(name); }
  template <typename F>
  F* Function(const std::string& suffix) const {
    void* f = program_.Find("gpu_" + suffix);
    EXPECT_NE(f, nullptr) << suffix;
    return reinterpret_cast<F*>(f);
  }

 private:
  GpuProgram(const GpuProgram&) = default;
  static std::string NextName() {
    static int count = 0;
    return "program" + std::to_string(count++);
  }
  const CompiledModel model_;
  LoadedModel program_, emulated_;
};

// One program on the device.
class Gpu {
 public:
  Gpu(const GpuProgram& p, void* stream = KILN_GPU_OWN_STREAM, int device = 0) : p_(p) {
    status_ = p.Function<decltype(kiln_model_gpu_create)>("create")(&gpu_, device, stream, problem_, sizeof problem_);
  }
  ~Gpu() { p_.Function<decltype(kiln_model_gpu_destroy)>("destroy")(gpu_); }
  Gpu(const Gpu&) = delete;

  int32_t status() const { return status_; }
  std::string problem() const { return problem_; }
  std::string error() const { return p_.Function<decltype(kiln_model_gpu_error)>("error")(gpu_); }
  std::string image() const { return p_.Function<decltype(kiln_model_gpu_image)>("image")(gpu_); }
  std::string report() const { return p_.Function<decltype(kiln_model_gpu_report)>("report")(gpu_); }
  void set_graphs(bool on) { p_.Function<decltype(kiln_model_gpu_set_graphs)>("set_graphs")(gpu_, on); }
  void set_comm(const kiln_comm* comm) { p_.Function<decltype(kiln_model_gpu_set_comm)>("set_comm")(gpu_, comm); }
  int32_t connect(int64_t device, const void* id) {
    return p_.Function<decltype(kiln_model_gpu_connect)>("connect")(gpu_, device, id);
  }
  int32_t run(const std::vector<void*>& arguments, const std::vector<void*>& results, void* arena = nullptr) {
    return p_.Function<decltype(kiln_model_gpu_run)>("run")(gpu_, arguments.data(), results.data(), arena);
  }
  int32_t run_host(const std::vector<const void*>& arguments, const std::vector<void*>& results) {
    return p_.Function<decltype(kiln_model_gpu_run_host)>("run_host")(gpu_, arguments.data(), results.data());
  }
  int32_t wait() { return p_.Function<decltype(kiln_model_gpu_wait)>("wait")(gpu_); }
  int32_t upload(void* array, const void* host, size_t bytes) {
    return p_.Function<decltype(kiln_model_gpu_upload)>("upload")(gpu_, array, host, bytes);
  }
  int32_t download(void* host, const void* array, size_t bytes) {
    return p_.Function<decltype(kiln_model_gpu_download)>("download")(gpu_, host, array, bytes);
  }
  int32_t to_device(void* array, const void* host, size_t bytes) {
    return p_.Function<decltype(kiln_model_gpu_to_device)>("to_device")(gpu_, array, host, bytes);
  }
  int32_t to_host(void* host, const void* array, size_t bytes) {
    return p_.Function<decltype(kiln_model_gpu_to_host)>("to_host")(gpu_, host, array, bytes);
  }
  void* malloc(size_t bytes) { return p_.Function<decltype(kiln_model_gpu_malloc)>("malloc")(gpu_, bytes); }
  void free(void* p) { p_.Function<decltype(kiln_model_gpu_free)>("free")(gpu_, p); }
  void* malloc_host(size_t bytes) {
    return p_.Function<decltype(kiln_model_gpu_malloc_host)>("malloc_host")(gpu_, bytes);
  }
  void free_host(void* p) { p_.Function<decltype(kiln_model_gpu_free_host)>("free_host")(gpu_, p); }

 private:
  const GpuProgram& p_;
  kiln_model_gpu* gpu_ = nullptr;
  int32_t status_ = 0;
  char problem_[1024] = "";
};

// A function of the driver, for what a caller does beside the program.
template <typename F>
F* Driver(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* f = driver ? dlsym(driver, name) : nullptr;
  EXPECT_NE(f, nullptr) << name;
  return reinterpret_cast<F*>(f);
}

}  // namespace kiln
