#include "tests/fuzz/mutate/child.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

namespace kiln::mutate {
namespace {

constexpr size_t kMost = 64 << 10;

#if __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

[[noreturn]] void Child(const std::function<std::string()>& f, const Limits& limits, int out, int log) {
  const auto seconds = static_cast<rlim_t>(limits.cpu_seconds);
  const rlimit cpu{seconds, seconds + 1}, core{0, 0};
  setrlimit(RLIMIT_CPU, &cpu);
  setrlimit(RLIMIT_CORE, &core);
  // The shadow of AddressSanitizer is larger than any limit of address space.
  if (!kSanitized) {
    const rlimit data{static_cast<rlim_t>(limits.bytes) * 2, static_cast<rlim_t>(limits.bytes) * 2};
    setrlimit(RLIMIT_DATA, &data);
  }
  dup2(log, STDERR_FILENO);
  const std::string said = f();
  for (size_t at = 0; at < said.size();) {
    const ssize_t n = write(out, said.data() + at, said.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  _exit(0);
}

// Everything until the end of the file; false if that does not come in time.
bool ReadAll(int fd, int seconds, std::string* out) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd p{fd, POLLIN, 0};
    if (left.count() <= 0 || poll(&p, 1, static_cast<int>(left.count())) == 0) return false;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) return true;
    if (out->size() < kMost) out->append(buffer, static_cast<size_t>(n));
  }
}

std::string Problem(int status, const rusage& use, const Limits& limits, bool in_time) {
  if (!in_time) return "no end after " + std::to_string(limits.wall_seconds) + " s";
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)
      return "over " + std::to_string(limits.cpu_seconds) + " s";
    return "signal " + std::to_string(WTERMSIG(status));
  }
  if (use.ru_maxrss * int64_t{1024} > limits.bytes) return "over " + std::to_string(limits.bytes >> 20) + " MiB";
  if (WEXITSTATUS(status) != 0) return "exit code " + std::to_string(WEXITSTATUS(status));
  return "";
}

}  // namespace

Ended RunInChild(const std::function<std::string()>& f, const Limits& limits) {
  Ended out;
  int fds[2];
  const int log = memfd_create("log", 0);
  if (log < 0 || pipe(fds) != 0) return {"", "no pipe", ""};
  const pid_t pid = fork();
  if (pid == 0) {
    close(fds[0]);
    Child(f, limits, fds[1], log);
  }
  close(fds[1]);
  const bool in_time = pid > 0 && ReadAll(fds[0], limits.wall_seconds, &out.said);
  if (pid > 0 && !in_time) kill(pid, SIGKILL);
  int status = 0;
  rusage use{};
  if (pid < 0 || wait4(pid, &status, 0, &use) != pid)
    out.problem = "no process";
  else
    out.problem = Problem(status, use, limits, in_time);
  close(fds[0]);
  out.log.resize(kMost);
  out.log.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(log, out.log.data(), kMost, 0))));
  close(log);
  return out;
}

}  // namespace kiln::mutate
