// What a shared object holds in memory once it is loaded, without loading it: none of its code runs.
//
// Guarantees: an address or a text that lies outside the file's segments is an error, whatever the file says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace kiln {

class ElfImage {
 public:
  // Of an x86-64 shared object.
  static absl::StatusOr<std::unique_ptr<ElfImage>> Open(const std::string& path);
  virtual ~ElfImage() = default;

  // The address of a symbol that the object shows; NotFound if it shows none of that name.
  virtual absl::StatusOr<uint64_t> AddressOf(absl::string_view symbol) const = 0;
  // `bytes` bytes from an address on, with the addresses in them as if the object were loaded at 0.
  virtual absl::Status Read(uint64_t address, void* to, size_t bytes) const = 0;
  // A text of C's at an address.
  virtual absl::StatusOr<std::string> Text(uint64_t address) const = 0;
};

}  // namespace kiln
