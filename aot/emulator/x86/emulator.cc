#include "aot/emulator/x86/emulator.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>

#include "aot/emulator/x86/extensions.h"
#include "compiler/base/status.h"
#include "runtime_min/cpu/level.h"

namespace kiln::x86 {
namespace {

constexpr const char* kNames[KILN_LEVELS] = KILN_CPU_LEVELS;

// What a machine needs for levels whose additions are emulated.
constexpr struct { int level, below; } kEmulated[] = {{V3DOT, V3}, {V4FP16, V4DOT}, {AMX, V4BF16}};

std::atomic<long> executed{0};

void Execute(int, siginfo_t*, void* of_thread) {
  auto* context = static_cast<ucontext_t*>(of_thread);
  const Decoded d = Decode(*context);
  VectorRegisters registers(*context);
  if (!ExecuteTiles(d) && !ExecuteDots(d, &registers) && !ExecuteHalves(d, context, &registers))
    Refuse(d.at, "that is not known");
  executed.fetch_add(1, std::memory_order_relaxed);
  context->uc_mcontext.gregs[REG_RIP] += d.length;
}

int NumberOf(absl::string_view level) {
  return static_cast<int>(std::find(std::begin(kNames), std::end(kNames), level) - std::begin(kNames));
}

}  // namespace

bool MachineRuns(absl::string_view level) {
  const int number = NumberOf(level);
  return number == KILN_LEVELS || best_level(1u << number) >= 0;
}

absl::Status CanEmulate(absl::string_view level) {
  if (MachineRuns(level)) return absl::OkStatus();
  const auto* known =
      std::find_if(std::begin(kEmulated), std::end(kEmulated), [&](auto e) { return e.level == NumberOf(level); });
  const char* needed = kNames[known == std::end(kEmulated) ? NumberOf(level) : known->below];
  if (known != std::end(kEmulated) && MachineRuns(needed)) return absl::OkStatus();
  return InvalidArgument("error: level ", level, " cannot be emulated here: the machine lacks instructions of ", needed,
                         ", and the emulator has those of AVX-VNNI, AVX512-FP16 and AMX alone");
}

void EmulateMissingInstructions() {
  struct sigaction action = {};
  action.sa_sigaction = Execute;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGILL, &action, nullptr)) std::abort();
}

long EmulatedInstructions() { return executed.load(); }

}  // namespace kiln::x86
