// A folder for temporary files, which goes with the object, and what is in it.
//
// It lies in TMPDIR, or in /tmp, and nobody else can read it. It also goes if the process is interrupted (SIGINT,
// SIGTERM, SIGHUP, as far as nobody else handles these). It holds no folders. Cost: a folder; handlers of those
// signals, with the first one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  // Fails where none could be made.
  absl::Status Made() const;
  const std::string& path() const { return path_; }
  // The path of a file in it.
  std::string File(absl::string_view name) const;
  // A file with these bytes.
  absl::StatusOr<std::string> Write(absl::string_view name, absl::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace kiln
