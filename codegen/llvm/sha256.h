// SHA-256, by LLVM.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace llvm {
class SHA256;
}

namespace kiln {

// Cost: about 2 ms a megabyte.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;

  void Add(absl::string_view bytes);
  // 64 hexadecimal digits, of all bytes so far.
  std::string Hex();

 private:
  std::unique_ptr<llvm::SHA256> hash_;
};

}  // namespace kiln
