#include "compiler/import/import.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "compiler/base/text.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/verify.h"
#include "compiler/import/bytecode.h"

namespace kiln {

namespace {

// What a file is that no program of kiln's begins like; empty if that is not known either.
std::string LooksLike(absl::string_view bytes) {
  const std::pair<absl::string_view, const char*> kBeginnings[] = {
      {"\x93NUMPY", "an .npy array"},
      {"PK\x03\x04", "a zip archive, as PyTorch and .npz files are"},
      {"\177ELF", "an object file or program"},
      {"\x1f\x8b", "compressed by gzip"},
      {"%PDF", "a PDF document"},
      {"#!", "a script"},
      {"#include", "C or C++"},
      {"import ", "Python"},
      {"from ", "Python"},
      {"def ", "Python"},
      {"\"\"\"", "Python"},
      {"<", "HTML or XML"},
      {"{", "JSON"},
      {"[", "JSON"}};
  for (const auto& [beginning, what] : kBeginnings)
    if (absl::StartsWith(bytes, beginning)) return absl::StrCat("; it looks like ", what);
  return "";
}

absl::Status NotAProgram(absl::string_view bytes, const std::string& file) {
  return InvalidArgument(file,
                         ":1:1: error: this is neither HLO text, nor StableHLO text or bytecode, nor an HLO proto",
                         LooksLike(bytes));
}

// HLO text may leave its header out, but not its instructions.
bool MayBeHloText(absl::string_view bytes) {
  return absl::StrContains(bytes, "HloModule") || absl::StrContains(bytes, "ENTRY") ||
         absl::StrContains(bytes, "ROOT ") || absl::StrContains(bytes, "parameter(") ||
         absl::StrContains(bytes, "constant(");
}

// An alias, as MLIR writes it: #name, !name.
bool BeginsWithAlias(absl::string_view text) {
  return text.size() > 1 && (text[0] == '#' || text[0] == '!') && absl::ascii_isalpha(text[1]) &&
         !absl::StartsWith(text, "#include");
}

absl::StatusOr<std::unique_ptr<Module>> CheckEntry(absl::StatusOr<std::unique_ptr<Module>> module,
                                                   const std::string& file, const ImportOptions& options) {
  if (!module.ok() || options.entry.empty() || options.entry == (*module)->entry()->name()) return module;
  return InvalidArgument(file, ":1:1: error: an HLO module has one entry, '", (*module)->entry()->name(),
                         "'; --entry chooses among the functions of a StableHLO program");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportModule(absl::string_view bytes, const std::string& file,
                                                     const ImportOptions& options) {
  if (bytes.empty()) return InvalidArgument(file, ":1:1: error: the file is empty");
  if (absl::StartsWith(bytes, kBytecodeMagic)) return ImportBytecode(bytes, file, options);
  if (const absl::string_view artifact = ArtifactOfExported(bytes); !artifact.empty())
    return ImportBytecode(artifact, file, options);
  for (unsigned char c : bytes.substr(0, 4096))
    if (c < 9 || (c > 13 && c < 32)) {  // no text holds these
      auto module = ImportHloProto(bytes, file);
      const bool other = !module.ok() && !LooksLike(bytes).empty();
      return other ? NotAProgram(bytes, file) : CheckEntry(std::move(module), file, options);
    }
  Scanner s(bytes, file);
  const absl::string_view first = s.PeekWord("_.");
  if (first == "HloModule") return CheckEntry(ParseHlo(bytes, file), file, options);
  const bool hlo_body = absl::StrContains(bytes, "ROOT ") || absl::StrContains(bytes, "ENTRY ");
  if (first == "module" || first == "func.func" || first == "builtin.module" || absl::StartsWith(first, "stablehlo.") ||
      BeginsWithAlias(bytes.substr(s.pos())) || (s.Peek() == '"' && LooksLike(bytes.substr(s.pos())).empty()) ||
      (s.Peek() == '%' && !hlo_body)) {
    return ImportStableHlo(bytes, file, options);
  }
  // A text proto opens with one of its fields.
  const size_t begin = s.pos();
  s.Word("_");
  if ((s.Peek() == ':' || s.Peek() == '{') &&
      (first == "name" || first == "hlo_module" || first == "hlo" || first == "id" || first == "computations" ||
       first == "entry_computation_name")) {
    return CheckEntry(ImportHloProto(bytes, file), file, options);
  }
  if (!MayBeHloText(bytes)) return NotAProgram(bytes.substr(begin), file);
  return CheckEntry(ParseHlo(bytes, file), file, options);
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
