#include "aot/tools/mpi_launcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

constexpr int kNotFound = 127;

// In a child: this executable, once for each rank.
[[noreturn]] void Mpirun(size_t ranks, const std::string& dir) {
  std::string self(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length <= 0) _exit(1);
  self.resize(static_cast<size_t>(length));
  const std::string count = absl::StrCat(ranks);
  // More ranks than cores are fine here: a small machine shall run a program of eight devices.
  std::vector<const char*> argv = {"mpirun",     "-q",   "--oversubscribe", "-n",   count.c_str(),
                                   self.c_str(), "rank", dir.c_str(),       nullptr};
  if (geteuid() == 0) argv.insert(argv.begin() + 1, "--allow-run-as-root");
  execvp(argv[0], const_cast<char* const*>(argv.data()));
  _exit(kNotFound);
}

absl::Status StartRanks(size_t ranks, const std::string& dir) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) Mpirun(ranks, dir);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound)
    return InvalidArgument("error: --launcher mpi: there is no mpirun (Debian's package is openmpi-bin)");
  return InvalidArgument("error: the compiled model failed on a rank of MPI");
}

}  // namespace

absl::Status RunRanks(const CompiledModel& m, const std::string& library,
                      const std::vector<std::vector<Literal>>& arguments,
                      const std::function<char*(size_t device, size_t k)>& result, TempFolder* dir) {
  RETURN_IF_ERROR(dir->Write("job", absl::StrCat(m.symbols, "\n", library, "\n")).status());
  for (size_t d = 0; d < arguments.size(); ++d) {
    std::string bytes;
    for (const Literal& l : arguments[d])
      bytes.append(reinterpret_cast<const char*>(l.data()), static_cast<size_t>(l.byte_size()));
    RETURN_IF_ERROR(dir->Write(absl::StrCat("arguments.", d), bytes).status());
  }
  RETURN_IF_ERROR(StartRanks(arguments.size(), dir->path()));
  for (size_t d = 0; d < arguments.size(); ++d) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(dir->File(absl::StrCat("results.", d))));
    size_t at = 0;
    for (size_t k = 0; k < m.ports.results.size(); ++k) {
      const auto size = static_cast<size_t>(m.ports.results[k].shape.ByteSize());
      if (bytes.size() - at < size) return Internal("error: rank ", d, " left too few bytes of results");
      std::memcpy(result(d, k), bytes.data() + at, size);
      at += size;
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
