#include "aot/package/shared_library.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "aot/package/model_object.h"
#include "codegen/link/shared_object.h"
#include "compiler/base/status.h"
#include "runtime_min/kiln.h"

namespace kiln {

absl::Status LinkModels(const std::vector<std::string>& archives, const std::string& path) {
  std::vector<std::string> descriptors;
  for (const std::string& archive : archives) {
    ASSIGN_OR_RETURN(std::vector<std::string> found, SymbolsOfArchive(archive, "_descriptor"));
    if (found.empty()) return InvalidArgument(archive, ": error: no library of kiln's, or one older than kiln.h");
    descriptors.insert(descriptors.end(), found.begin(), found.end());
  }
  SharedObject object;
  object.archives = archives;
  ASSIGN_OR_RETURN(object.root, ModelListObject(kModelListSymbol, descriptors));
  object.shown = KILN_MODELS_SYMBOL;
  object.defined_by = kModelListSymbol;
  object.soname = path.substr(path.rfind('/') + 1);
  const std::string temporary = absl::StrCat(path, ".tmp", static_cast<int>(getpid()));
  absl::Status status = LinkSharedObject(object, temporary);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0)
    status = InvalidArgument(path, ": error: cannot write");
  if (!status.ok()) std::remove(temporary.c_str());
  return status;
}

}  // namespace kiln
