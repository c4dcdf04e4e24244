// From archives to one shared object, by LLVM's linker as a library: nothing of the machine's is needed.
//
// Guarantees: the object shows one symbol, has no text relocations, and asks for the functions of libc.def in the
//   versions that are stated there, of libc.so.6 and libm.so.6 as far as it calls them. What else the archives leave
//   undefined (functions of custom calls) must be found when it is loaded. The same inputs give the same bytes.
// Cost: the objects are read from the archive's file, so weights pass through memory once.
// Note: LLD resets LLVM's options; nothing may be compiled in the process afterwards.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

struct SharedObject {
  std::vector<std::string> archives;  // files
  std::string root;                   // the bytes of an object; what it needs of the archives is linked
  std::string shown, defined_by;      // the symbol that the object shows, and the root's symbol of that value
  std::string soname;
};

absl::Status LinkSharedObject(const SharedObject& what, const std::string& path);

// All of an archive, with every symbol shown. What neither it nor libc.def has (functions of custom calls) is looked
// for in the process that loads the object.
absl::Status LinkLoadable(const std::string& archive, const std::string& path);

// The global symbols that an archive's file defines and whose names end so.
absl::StatusOr<std::vector<std::string>> SymbolsOfArchive(const std::string& path, absl::string_view suffix);

}  // namespace kiln
