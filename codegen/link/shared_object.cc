#include "codegen/link/shared_object.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/llvm/object.h"
#include "compiler/base/status.h"
#include "compiler/base/temp_folder.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/Archive.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace kiln {
namespace {

absl::Status RunLinker(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"ld.lld", "-m", "elf_x86_64", "-shared", "--threads=1"});
  std::vector<const char*> pointers;
  for (const std::string& a : arguments) pointers.push_back(a.c_str());
  std::string said;
  llvm::raw_string_ostream out(said);
  const lld::Result result = lld::lldMain(pointers, out, out, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) return Internal("the linker failed:\n", out.str());
  return absl::OkStatus();
}

struct CFunction {
  absl::string_view library, version, name;
};
constexpr CFunction kCFunctions[] = {
#define C_FUNCTION(library, version, name) {#library, version, #name},
#include "codegen/link/libc.def"
};

// A stand-in for libc.so.6 or libm.so.6: its names and versions, no code.
absl::StatusOr<std::string> StandIn(absl::string_view library, const std::string& stub, const TempFolder& folder) {
  const std::string soname = absl::StrCat("lib", library, ".so.6");
  std::string definitions;
  std::map<std::string, std::string> versions;
  for (const CFunction& f : kCFunctions) {
    if (f.library != library) continue;
    absl::StrAppend(&definitions, f.name, " = 0;\n");
    absl::StrAppend(&versions[std::string(f.version)], f.name, "; ");
  }
  std::string map;
  for (const auto& [version, names] : versions) absl::StrAppend(&map, version, " { ", names, "};\n");
  ASSIGN_OR_RETURN(const std::string script, folder.Write(soname + ".ld", definitions));
  ASSIGN_OR_RETURN(const std::string version_script, folder.Write(soname + ".map", map));
  std::string path = folder.File(soname);
  RETURN_IF_ERROR(RunLinker({"-soname", soname, "--version-script", version_script, script, stub, "-o", path}));
  return path;
}

// Both libraries, behind what needs them: a symbol without a version would be bound to its oldest one.
absl::Status AddCLibraries(const TempFolder& folder, std::vector<std::string>* arguments) {
  ASSIGN_OR_RETURN(const std::string stub, folder.Write("stub.o", DataObject("kiln_stub", {}, false)));
  arguments->push_back("--as-needed");
  for (const char* library : {"c", "m"}) {
    ASSIGN_OR_RETURN(std::string file, StandIn(library, stub, folder));
    arguments->push_back(std::move(file));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LinkSharedObject(const SharedObject& what, const std::string& path) {
  const TempFolder folder;
  ASSIGN_OR_RETURN(const std::string root, folder.Write("root.o", what.root));
  ASSIGN_OR_RETURN(const std::string shown,
                   folder.Write("shown.map", absl::StrCat("{ global: ", what.shown, "; local: *; };\n")));
  std::vector<std::string> arguments = {"-soname",
                                        what.soname,
                                        "--version-script",
                                        shown,
                                        "-z",
                                        "text",
                                        "-z",
                                        "now",
                                        "-z",
                                        "relro",
                                        "--hash-style=both",
                                        "--build-id=sha1",
                                        "--gc-sections",
                                        "-o",
                                        path,
                                        root,
                                        absl::StrCat("--defsym=", what.shown, "=", what.defined_by)};
  arguments.insert(arguments.end(), what.archives.begin(), what.archives.end());
  RETURN_IF_ERROR(AddCLibraries(folder, &arguments));
  return RunLinker(std::move(arguments));
}

absl::Status LinkLoadable(const std::string& archive, const std::string& path) {
  const TempFolder folder;
  std::vector<std::string> arguments = {"-o", path, "--whole-archive", archive, "--no-whole-archive"};
  RETURN_IF_ERROR(AddCLibraries(folder, &arguments));
  return RunLinker(std::move(arguments));
}

absl::StatusOr<std::vector<std::string>> SymbolsOfArchive(const std::string& path, absl::string_view suffix) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) return InvalidArgument(path, ": error: cannot read: ", file.getError().message());
  auto archive = llvm::object::Archive::create(**file);
  if (!archive) return InvalidArgument(path, ": error: no archive: ", llvm::toString(archive.takeError()));
  std::vector<std::string> out;
  for (const llvm::object::Archive::Symbol& symbol : (*archive)->symbols())
    if (symbol.getName().ends_with(llvm::StringRef(suffix.data(), suffix.size())))
      out.push_back(symbol.getName().str());
  return out;
}

}  // namespace kiln
