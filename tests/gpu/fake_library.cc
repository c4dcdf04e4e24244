// What the fake CUDA driver tells libraries on top of it, and what its errors are in words.
#include <map>

#include "tests/gpu/fake_cuda.h"
#include "tests/gpu/fake_streams.h"

using namespace fake;  // NOLINT: the rest of this driver

extern "C" {

int fake_cuda_do(void* stream, const std::function<int()>* what) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return Do(Of(stream), *what);
}
bool fake_cuda_recording(void* stream) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return Of(stream)->recording != nullptr;
}
const void* fake_cuda_graph(void* stream) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return Of(stream)->recording;
}
bool fake_cuda_in_body(void* stream) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return Of(stream)->recording && Of(stream)->into_body;
}
bool fake_cuda_device_recorded(int device) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return DeviceRecorded(device);
}
int fake_cuda_device_of(void* stream) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return Of(stream)->device;
}
int fake_cuda_current_device() {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return CurrentDevice();
}

int cuGetErrorString(int code, const char** text) {
  static const std::map<int, const char*> kTexts = {
      {1, "invalid argument"},
      {2, "out of memory"},
      {34, "CUDA driver is a stub library"},
      {100, "no CUDA-capable device is detected"},
      {200, "device kernel image is invalid"},
      {201, "invalid device context"},
      {209, "no kernel image is available for execution on the device"},
      {222, "the provided PTX was compiled with an unsupported toolchain."},
      {716, "misaligned address"},
      {802, "system not yet initialized"},
      {803, "system has unsupported display driver / cuda driver combination"},
      {804, "forward compatibility was attempted on non supported HW"},
      {900, "operation not permitted when stream is capturing"},
      {999, "unknown error"}};
  const auto it = kTexts.find(code);
  *text = it == kTexts.end() ? "an error of the fake driver" : it->second;
  return it == kTexts.end();
}

}  // extern "C"
