#include "compiler/base/temp_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

// Folders of this process; more than fit stay when it is interrupted.
std::array<std::atomic<char*>, 64> folders;
pid_t owner;  // children have the handler too, and their parent goes on
struct sigaction before[NSIG];

// For signal handlers: no memory is allocated.
void Remove(const char* folder) {
  const int fd = open(folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  alignas(dirent64) char entries[4096];
  for (long n; (n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0;)
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      unlinkat(fd, entry->d_name, 0);
      at += entry->d_reclen;
    }
  close(fd);
  rmdir(folder);
}

void Interrupted(int signal) {
  if (getpid() == owner)
    for (const std::atomic<char*>& folder : folders)
      if (const char* path = folder.load()) Remove(path);
  sigaction(signal, &before[signal], nullptr);
  raise(signal);
}

void Handle() {
  owner = getpid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &before[signal]) != 0 || before[signal].sa_handler != SIG_DFL) continue;
    now.sa_handler = Interrupted;
    sigaction(signal, &now, nullptr);
  }
}

void Keep(const std::string& path) {
  char* mine = strdup(path.c_str());
  for (std::atomic<char*>& folder : folders)
    if (char* none = nullptr; folder.compare_exchange_strong(none, mine)) return;
  free(mine);
}

void Drop(const std::string& path) {
  for (std::atomic<char*>& folder : folders) {
    char* held = folder.load();
    if (!held || path != held || !folder.compare_exchange_strong(held, nullptr)) continue;
    free(held);
    return;
  }
}

}  // namespace

TempFolder::TempFolder() {
  static absl::once_flag once;
  absl::call_once(once, Handle);
  const char* root = std::getenv("TMPDIR");
  path_ = absl::StrCat(root && *root ? root : "/tmp", "/kiln_XXXXXX");
  if (mkdtemp(path_.data()))
    Keep(path_);
  else
    path_.clear();
}

TempFolder::~TempFolder() {
  if (path_.empty()) return;
  Remove(path_.c_str());
  Drop(path_);
}

absl::Status TempFolder::Made() const {
  if (!path_.empty()) return absl::OkStatus();
  return InvalidArgument("error: cannot make a folder for temporary files (TMPDIR names where)");
}

std::string TempFolder::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

absl::StatusOr<std::string> TempFolder::Write(absl::string_view name, absl::string_view bytes) const {
  RETURN_IF_ERROR(Made());
  std::string path = File(name);
  RETURN_IF_ERROR(WriteFile(path, bytes));
  return path;
}

}  // namespace kiln
