// Small text helpers: exact number printing, file reading and atomic file writing.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

// The whole file, or standard input for "-". Fails with InvalidArgument naming the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Makes the folder that `path` lies in, and those above it.
absl::Status MakeFolderOf(const std::string& path);
// Writes `bytes` beside `path` and renames it into place, so that a reader never sees half a file.
absl::Status WriteFile(const std::string& path, absl::string_view bytes);
// FNV-1a over bytes, 64 bits: stable across hosts, used for names and manifest hashes, not for security.
uint64_t StableHash(absl::string_view bytes, uint64_t seed = 0xcbf29ce484222325ull);
// `text` as a JSON string literal with quotes.
std::string JsonQuote(absl::string_view text);
// An identifier for C: letters, digits and '_' kept, everything else '_'; never empty, never starts with a digit.
std::string CIdentifier(absl::string_view text);

}  // namespace kiln
