#include "aot/tools/output_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

absl::Status Failed(const std::string& path, int error) {
  return InvalidArgument(path, ": error: cannot write: ", std::strerror(error));
}

absl::Status Write(const std::string& temporary, const OutputFile& out) {
  FILE* f = std::fopen(temporary.c_str(), "wb");
  if (!f) return Failed(out.path, errno);
  bool written = true;
  for (absl::string_view bytes : out.pieces)
    written = written && std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  const int error = errno;
  if (std::fclose(f) != 0) return Failed(out.path, written ? errno : error);
  return written ? absl::OkStatus() : Failed(out.path, error);
}

}  // namespace

absl::Status WriteFiles(const std::vector<OutputFile>& files) {
  // Named beforehand: once the first is there nothing may end the process, as memory that runs out would.
  std::vector<std::string> temporary;
  for (const OutputFile& f : files) temporary.push_back(absl::StrCat(f.path, ".tmp", static_cast<int>(getpid())));
  absl::Status status;
  for (size_t k = 0; k < files.size() && status.ok(); ++k) status = MakeFolderOf(files[k].path);
  for (size_t k = 0; k < files.size() && status.ok(); ++k) status = Write(temporary[k], files[k]);
  for (size_t k = 0; k < files.size() && status.ok(); ++k)
    if (std::rename(temporary[k].c_str(), files[k].path.c_str()) != 0) status = Failed(files[k].path, errno);
  if (!status.ok())
    for (const std::string& t : temporary) std::remove(t.c_str());
  return status;
}

}  // namespace kiln
