// Products of earlier compiles for `kiln compile --cache DIR`.
//
// What: names a compile by a SHA-256 of all that decides its product: this build of kiln and of the libraries that it
//   has loaded, the options, the bytes of the configuration, of tuning results and of the programs (by their base
//   names, which line tables show), the CPU that `native` stands for, and for GPUs the bytes of ptxas and libdevice.
// Guarantees: what is found is byte for byte what a compile would make, with its notes and its summary, whose time is
//   that of the compile that made it. A folder that fails is a warning, and the program is compiled.
// Cost: of a compile that is found, reading and hashing its files and its product.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "aot/compile.h"
#include "aot/tools/cache_store.h"
#include "aot/tools/commands.h"

namespace kiln {

class CompileCache {
 public:
  // By --cache and --cache-limit, or else by KILN_CACHE and KILN_CACHE_LIMIT; without a folder it finds and keeps
  // nothing. `config` is the configuration's text. With --verbose it says what it does.
  static absl::StatusOr<CompileCache> Open(const Arguments& args, const CompileOptions& options,
                                           const std::string& config);

  std::optional<CachedProduct> Find() const;
  // Unless a file changed since Open.
  void Keep(const CachedProduct& product) const;

 private:
  // A file as it was before it was read.
  struct Input {
    std::string path;
    std::vector<int64_t> state;
  };
  void SetKey(const Arguments& args, const CompileOptions& options, const std::string& config);
  void Say(const std::string& what) const;
  void Warn(const absl::Status& why, const char* so) const;

  std::optional<CacheStore> store_;
  std::string name_, key_, why_not_;  // no key, with the reason, where the compile cannot be cached
  std::vector<Input> inputs_;
  bool verbose_ = false;
};

}  // namespace kiln
