#include "codegen/link/shared_object.h"

#include <unistd.h>

#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/llvm/object.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/Archive.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace kiln {
namespace {

// A folder for the linker's inputs, which goes with the object.
class Folder {
 public:
  Folder() {
    const char* root = std::getenv("TMPDIR");
    path_ = absl::StrCat(root && *root ? root : "/tmp", "/kiln_link_XXXXXX");
    if (!mkdtemp(path_.data())) path_.clear();
  }
  ~Folder() {
    for (const std::string& f : files_) unlink(f.c_str());
    if (!path_.empty()) rmdir(path_.c_str());
  }
  bool made() const { return !path_.empty(); }
  std::string File(const std::string& name) {
    files_.push_back(absl::StrCat(path_, "/", name));
    return files_.back();
  }
  absl::StatusOr<std::string> Write(const std::string& name, absl::string_view bytes) {
    std::string path = File(name);
    RETURN_IF_ERROR(WriteFile(path, bytes));
    return path;
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

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
absl::StatusOr<std::string> StandIn(absl::string_view library, const std::string& stub, Folder* folder) {
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
  ASSIGN_OR_RETURN(const std::string script, folder->Write(soname + ".ld", definitions));
  ASSIGN_OR_RETURN(const std::string version_script, folder->Write(soname + ".map", map));
  std::string path = folder->File(soname);
  RETURN_IF_ERROR(RunLinker({"-soname", soname, "--version-script", version_script, script, stub, "-o", path}));
  return path;
}

// Both libraries, behind what needs them: a symbol without a version would be bound to its oldest one.
absl::Status AddCLibraries(Folder* folder, std::vector<std::string>* arguments) {
  ASSIGN_OR_RETURN(const std::string stub, folder->Write("stub.o", DataObject("kiln_stub", {}, false)));
  arguments->push_back("--as-needed");
  for (const char* library : {"c", "m"}) {
    ASSIGN_OR_RETURN(std::string file, StandIn(library, stub, folder));
    arguments->push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status Made(const Folder& folder) {
  if (folder.made()) return absl::OkStatus();
  return InvalidArgument("error: cannot make a folder for temporary files (TMPDIR names where)");
}

}  // namespace

absl::Status LinkSharedObject(const SharedObject& what, const std::string& path) {
  Folder folder;
  RETURN_IF_ERROR(Made(folder));
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
  RETURN_IF_ERROR(AddCLibraries(&folder, &arguments));
  return RunLinker(std::move(arguments));
}

absl::Status LinkLoadable(const std::string& archive, const std::string& path) {
  Folder folder;
  RETURN_IF_ERROR(Made(folder));
  std::vector<std::string> arguments = {"-o", path, "--whole-archive", archive, "--no-whole-archive"};
  RETURN_IF_ERROR(AddCLibraries(&folder, &arguments));
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
