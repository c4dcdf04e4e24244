#include "compiler/base/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "compiler/base/status.h"

namespace kiln {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  FILE* f = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!f) return InvalidArgument(path, ": error: cannot open: ", std::strerror(errno));
  std::string out;
  // Large files shall not be copied while the string grows.
  if (struct stat s; fstat(fileno(f), &s) == 0 && S_ISREG(s.st_mode)) out.reserve(static_cast<size_t>(s.st_size) + 1);
  char buf[1 << 16];
  size_t n;
  while ((n = std::fread(buf, 1, sizeof buf, f)) > 0) out.append(buf, n);
  const bool bad = std::ferror(f);
  if (f != stdin) std::fclose(f);
  if (bad) return InvalidArgument(path, ": error: cannot read");
  return out;
}

absl::Status MakeFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return InvalidArgument(path, ": error: cannot create the folder '", folder.string(), "': ", error.message());
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  RETURN_IF_ERROR(MakeFolderOf(path));
  const std::string tmp = absl::StrCat(path, ".tmp", static_cast<int>(getpid()));
  FILE* f = std::fopen(tmp.c_str(), "wb");
  if (!f) return InvalidArgument(path, ": error: cannot write: ", std::strerror(errno));
  bool ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  ok = std::fclose(f) == 0 && ok;
  if (!ok || std::rename(tmp.c_str(), path.c_str()) != 0) {
    const int why = errno;
    std::remove(tmp.c_str());
    return InvalidArgument(path, ": error: cannot write: ", std::strerror(why));
  }
  return absl::OkStatus();
}

uint64_t StableHash(absl::string_view bytes, uint64_t seed) {
  uint64_t h = seed;
  for (unsigned char c : bytes) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

std::string JsonQuote(absl::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string CIdentifier(absl::string_view text) {
  std::string out;
  for (char c : text) out += absl::ascii_isalnum(c) ? c : '_';
  if (out.empty() || absl::ascii_isdigit(out[0])) out.insert(0, "_");
  return out;
}

}  // namespace kiln
