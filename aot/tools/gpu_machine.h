// The NVIDIA GPUs of this machine, as its driver gives them. The driver is opened when it is first asked for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

class GpuMachine {
 public:
  // The only one; an error that says what is missing where there is no driver or no GPU. Its context on each GPU lives
  // as long as the process, so that programs that come and go need not make one.
  static absl::StatusOr<GpuMachine*> Get();

  int count() const { return static_cast<int>(contexts_.size()); }
  // The target whose code the first GPU runs best: its own, or the newest one before it.
  const std::string& target() const { return target_; }
  // A context in which a program failed serves nobody. To be called when no program uses it.
  absl::Status Renew(int device);

 private:
  GpuMachine() = default;
  absl::Status Open();
  absl::Status Hold(int device);

  struct Driver;
  const Driver* driver_ = nullptr;
  std::vector<void*> contexts_;
  std::string target_;
};

}  // namespace kiln
