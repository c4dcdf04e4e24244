// A folder that keeps products of compiles by key.
//
// What: a file KEY.kiln for each product, with all its files and what the compile said. Nothing else in the folder is
//   touched.
// Guarantees: an entry gets its name when it is whole, so any number of processes may use one folder; an entry whose
//   bytes are not those that were written is never returned. Whoever can write to the folder can put code into
//   products: it is to be as trusted as the compiler.
// Cost: a read and a SHA-256 of the entry; after each new entry a look at the names of all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

struct CachedProduct {
  struct File {
    std::string name;  // in the folder of the product
    std::vector<absl::string_view> pieces;
  };
  std::vector<File> files;
  std::vector<std::string> notes;
  std::string summary, json;                 // the line that `kiln compile` prints, and that with --json
  std::shared_ptr<const std::string> bytes;  // what `pieces` point into, of one that was found
};

class CacheStore {
 public:
  // `limit`: bytes that all entries may take; 0: any number.
  CacheStore(std::string folder, int64_t limit) : folder_(std::move(folder)), limit_(limit) {}

  const std::string& folder() const { return folder_; }
  // The product, whose age begins anew. Fails with NotFound, with DataLoss for an entry that was damaged and is
  // removed, or with what keeps the entry from being read.
  absl::StatusOr<CachedProduct> Find(const std::string& key) const;
  // Adds a product, and removes the oldest entries while all together are larger than the limit. Fails if it cannot be
  // written or is larger than the limit by itself; the folder is then as before.
  absl::Status Keep(const std::string& key, const CachedProduct& product) const;

 private:
  void RemoveOldest() const;

  std::string folder_;
  int64_t limit_;
};

}  // namespace kiln
