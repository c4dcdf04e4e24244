#include "aot/tools/gpu_machine.h"

#include <dlfcn.h>

#include <type_traits>
#include <utility>

#include "compiler/base/status.h"
#include "compiler/target/gpu_target.h"

namespace kiln {

struct GpuMachine::Driver {
  int (*init)(unsigned flags);
  int (*count)(int* devices);
  int (*attribute)(int* value, int attribute, int device);
  int (*retain)(void** context, int device);
  int (*release)(int device);
};

absl::StatusOr<GpuMachine*> GpuMachine::Get() {
  static GpuMachine machine;
  static const absl::Status opened = machine.Open();
  RETURN_IF_ERROR(opened);
  return &machine;
}

absl::Status GpuMachine::Open() {
  void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return Unimplemented("error: there is no NVIDIA driver (libcuda.so.1 cannot be opened)");
  static Driver driver;
  const auto find = [&](auto* function, const char* symbol) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(lib, symbol));
    return *function != nullptr;
  };
  if (!find(&driver.init, "cuInit") || !find(&driver.count, "cuDeviceGetCount") ||
      !find(&driver.attribute, "cuDeviceGetAttribute") || !find(&driver.retain, "cuDevicePrimaryCtxRetain") ||
      !find(&driver.release, "cuDevicePrimaryCtxRelease_v2"))
    return Unimplemented("error: the NVIDIA driver is too old");
  driver_ = &driver;
  int devices = 0;
  if (const int code = driver.init(0)) return Unimplemented("error: the NVIDIA driver does not start (", code, ")");
  if (driver.count(&devices) || devices == 0) return Unimplemented("error: the NVIDIA driver finds no GPU");
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  int major = 0, minor = 0;
  driver.attribute(&major, kMajor, 0);
  driver.attribute(&minor, kMinor, 0);
  for (const GpuTarget& t : AllGpuTargets())
    if (std::pair(t.major, t.minor) <= std::pair(major, minor)) target_ = t.name;
  if (target_.empty())
    return Unimplemented("error: the GPU is of compute capability ", major, ".", minor, "; programs need ",
                         AllGpuTargets()[0].major, ".", AllGpuTargets()[0].minor);
  contexts_.resize(static_cast<size_t>(devices));
  for (int d = 0; d < devices; ++d) RETURN_IF_ERROR(Hold(d));
  return absl::OkStatus();
}

absl::Status GpuMachine::Hold(int device) {
  if (const int code = driver_->retain(&contexts_[static_cast<size_t>(device)], device))
    return Internal("error: no context on GPU ", device, " (", code, ")");
  return absl::OkStatus();
}

absl::Status GpuMachine::Renew(int device) {
  driver_->release(device);
  return Hold(device);
}

}  // namespace kiln
