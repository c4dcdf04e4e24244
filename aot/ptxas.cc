#include "aot/ptxas.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "compiler/base/temp_folder.h"
#include "compiler/base/text.h"

namespace kiln {

std::string FindPtxas(const std::string& configured) {
  if (!configured.empty()) return configured;
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH")) folders = absl::StrSplit(path, ':', absl::SkipEmpty());
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string& f : folders)
    if (const std::string at = f + "/ptxas"; access(at.c_str(), X_OK) == 0) return at;
  return "";
}

std::string FindLibdevice(const std::string& ptxas) {
  const std::string beside = ptxas.substr(0, ptxas.rfind("/bin/"));
  for (const std::string& toolkit : {beside, std::string("/usr/local/cuda")})
    if (const std::string at = toolkit + "/nvvm/libdevice/libdevice.10.bc"; access(at.c_str(), R_OK) == 0) return at;
  return "";
}

absl::StatusOr<std::string> AssemblePtx(const std::string& ptxas, const std::string& ptx,
                                        const std::string& architecture) {
  if (access(ptxas.c_str(), X_OK) != 0) return InvalidArgument("error: ptxas: '", ptxas, "' is no program");
  const TempFolder folder;
  ASSIGN_OR_RETURN(const std::string in, folder.Write("in.ptx", ptx));
  const std::string out = folder.File("out.cubin"), log = folder.File("log");
  const pid_t pid = fork();
  if (pid == 0) {
    const int fd = open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execl(ptxas.c_str(), "ptxas", absl::StrCat("-arch=", architecture).c_str(), "-O3", in.c_str(), "-o", out.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const auto said = ReadFile(log);
    return Internal("error: ", ptxas, " refuses the code for ", architecture, ": ", said.ok() ? *said : "");
  }
  return ReadFile(out);
}

}  // namespace kiln
