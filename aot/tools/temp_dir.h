// A temporary directory that goes with the object, and the files in it.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace kiln {

class TempDir {
 public:
  TempDir() {
    std::string t = "/tmp/kiln_run_XXXXXX";
    if (mkdtemp(t.data())) path_ = t;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    if (path_.empty()) return;
    for (const std::string& f : files_) unlink(f.c_str());
    rmdir(path_.c_str());
  }
  // Empty if none could be made.
  const std::string& path() const { return path_; }
  // The path of a file in it, removed with the directory.
  std::string File(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

}  // namespace kiln
