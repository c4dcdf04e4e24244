#include "aot/emulator/connected.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "aot/emulator/nccl_stand_in.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

thread_local int thread_device = -1;
std::chrono::milliseconds patience{0};  // 0: no limit

// Until it comes to something. What other devices spoiled, the program hears of when it asks.
int Put(const std::function<int()>& attempt) {
  constexpr int kTimedOut = 702;
  const auto begin = Clock::now();
  for (;;) {
    const int code = attempt();
    if (code != kNcclNotYet) return code == kNcclBroken ? 0 : code;
    if (patience.count() > 0 && Clock::now() - begin > patience) return kTimedOut;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void UseStandIn() {
  static std::once_flag once;
  std::call_once(once, [] {
    SetStandInStreams({[] { return thread_device; },
                       [](void* stream) { return stream ? *static_cast<const int*>(stream) : -1; },
                       [](void*) -> const void* { return nullptr; }, [](int) { return false; },
                       [](void*, const std::function<int()>& attempt) { return Put(attempt); }});
  });
}

std::vector<std::vector<char>> Copies(const kiln_gpu_exchange& what, const std::vector<void*>& buffers) {
  std::vector<std::vector<char>> out;
  for (int64_t k = 0; k < 2 * what.arrays; ++k) {
    const kiln_gpu_exchanged& a = what.array[k % what.arrays];
    const auto* data = static_cast<const char*>(buffers[static_cast<size_t>(k)]);
    out.emplace_back(data, data + (k < what.arrays ? a.count * a.width : a.result_bytes));
  }
  return out;
}

[[noreturn]] void Changed(const char* name, const char* what) {
  std::fprintf(stderr, "error: the exchange %s %s while it is under way\n", name, what);
  std::fflush(stderr);
  _exit(kEmulatorFault);
}

}  // namespace

// Nothing else may write its arrays meanwhile.
void Emulator::Devices::Check(const Beside& b) {
  const auto now = Copies(*b.what, b.buffers);
  for (size_t k = b.ended ? now.size() / 2 : 0; k < now.size(); ++k)
    if (now[k] != b.arrays[k]) Changed(b.what->name, "has an array that is written");
}

// Exchanges are in one order, wherever they are: those that began before this one have ended.
int32_t Emulator::Devices::Exchange(const kiln_gpu_exchange* what, void* const* buffers) {
  for (Beside& b : beside) {
    if (!b.what) continue;
    Check(b);
    b.ended = true;
  }
  return kiln_model_nccl_exchange(&nccl, what, buffers, &device, table);
}

int32_t Emulator::Connect(const kiln_gpu_groups* groups, const kiln_comm& comm, int64_t timeout_ms) {
  UseStandIn();
  patience = std::chrono::milliseconds(timeout_ms);
  devices_ = std::make_unique<Devices>();
  Devices& d = *devices_;
  d.nccl.api = &NcclStandIn();
  d.nccl.groups = groups;
  d.nccl.timeout_ms = timeout_ms;
  d.device = static_cast<int>(comm.device);
  d.table = &table_;
  thread_device = d.device;
  // What NCCL connects gathers nothing through the host.
  table_.gather = [](void*, const void*, const int64_t*, int64_t, const void*, void*, int64_t) -> int32_t {
    std::fprintf(stderr, "error: a program whose devices NCCL connects gathers through the host\n");
    return KILN_COMMUNICATION;
  };
  table_.exchange = [](void* self, const kiln_gpu_exchange* what, void* const* buffers) {
    return OfTable(self)->Exchange(what, buffers);
  };
  table_.offer = [](void* self, int64_t place, const kiln_gpu_exchange* what, void* const* buffers) -> int32_t {
    Devices& of = *OfTable(self);
    const int32_t status = of.Exchange(what, buffers);
    Devices::Beside& beside = of.beside[place];
    if (beside.what) Changed(beside.what->name, "has another in its place");
    beside = {what, false, {buffers, buffers + 2 * what->arrays}, {}};
    beside.arrays = Copies(*what, beside.buffers);
    return status;
  };
  table_.take = [](void* self, int64_t place) -> int32_t {
    Devices::Beside& beside = OfTable(self)->beside[place];
    Devices::Check(beside);
    beside.what = nullptr;
    return 0;
  };
  return kiln_model_nccl_connect_by(&d.nccl, &comm);
}

void Emulator::Disconnect() {
  if (devices_) kiln_model_nccl_close(&devices_->nccl);
  devices_ = nullptr;
}

void Emulator::Fail() {
  if (devices_) kiln_model_nccl_fail(&devices_->nccl, KILN_COMMUNICATION, "the run of this device failed");
}

std::string Emulator::error() const { return devices_ ? devices_->nccl.error : ""; }

}  // namespace kiln
