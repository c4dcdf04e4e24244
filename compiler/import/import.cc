#include "compiler/import/import.h"

#include "absl/strings/match.h"
#include "compiler/base/text.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/verify.h"
#include "compiler/import/bytecode.h"

namespace kiln {

absl::StatusOr<std::unique_ptr<Module>> ImportModule(absl::string_view bytes, const std::string& file,
                                                     const ImportOptions& options) {
  if (bytes.empty()) return InvalidArgument(file, ":1:1: error: the file is empty");
  if (absl::StartsWith(bytes, kBytecodeMagic)) return ImportBytecode(bytes, file, options);
  if (const absl::string_view artifact = ArtifactOfExported(bytes); !artifact.empty())
    return ImportBytecode(artifact, file, options);
  for (unsigned char c : bytes.substr(0, 4096))
    if (c < 9 || (c > 13 && c < 32)) return ImportHloProto(bytes, file);  // no text holds these
  Scanner s(bytes, file);
  const absl::string_view first = s.PeekWord("_.");
  if (first == "HloModule") return ParseHlo(bytes, file);
  const bool hlo_body = absl::StrContains(bytes, "ROOT ") || absl::StrContains(bytes, "ENTRY ");
  if (first == "module" || first == "func.func" || absl::StartsWith(first, "stablehlo.") || s.Peek() == '#' ||
      s.Peek() == '"' || (s.Peek() == '%' && !hlo_body)) {
    return ImportStableHlo(bytes, file, options);
  }
  // A text proto opens with one of its fields.
  s.Word("_");
  if ((s.Peek() == ':' || s.Peek() == '{') &&
      (first == "name" || first == "hlo_module" || first == "hlo" || first == "id" || first == "computations" ||
       first == "entry_computation_name")) {
    return ImportHloProto(bytes, file);
  }
  return ParseHlo(bytes, file);  // HLO text may leave its header out
}

absl::StatusOr<std::unique_ptr<Module>> LoadModule(const std::string& path, const ImportOptions& options) {
  std::unique_ptr<Module> module;
  {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    ASSIGN_OR_RETURN(module, ImportModule(bytes, path, options));
  }
  RETURN_IF_ERROR(VerifyModule(*module));
  return module;
}

}  // namespace kiln
