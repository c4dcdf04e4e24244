#include "aot/tools/entry_sources.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "compiler/base/text.h"
#include "compiler/import/public_functions.h"

namespace kiln {
namespace {

// A function that is to be an entry; `function` is empty where the file has only one.
struct Source {
  std::string name, file, function;
};

bool NamesAFile(const std::string& entry) { return absl::StrContains(entry, '='); }

absl::StatusOr<std::vector<std::string>> FunctionsOf(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
  return PublicFunctions(bytes, file);
}

absl::Status CheckNames(const std::vector<Source>& sources) {
  for (size_t k = 0; k < sources.size(); ++k)
    for (size_t j = 0; j < k; ++j)
      if (sources[j].name == sources[k].name)
        return InvalidArgument("error: --entry ", sources[k].name, " is given twice");
  return absl::OkStatus();
}

// --entry NAME=FILE, for each. Of a file with several functions, the one with that name.
absl::StatusOr<std::vector<Source>> FromFiles(const std::vector<std::string>& entries) {
  std::vector<Source> out;
  for (const std::string& e : entries) {
    const size_t at = e.find('=');
    Source s = {e.substr(0, at), e.substr(at + 1), ""};
    if (s.name.empty() || CIdentifier(s.name) != s.name)
      return InvalidArgument("error: --entry ", e, ": '", s.name, "' is not a C identifier");
    ASSIGN_OR_RETURN(const std::vector<std::string> functions, FunctionsOf(s.file));
    if (functions.size() > 1) s.function = s.name;
    out.push_back(std::move(s));
  }
  RETURN_IF_ERROR(CheckNames(out));
  return out;
}

// Functions of one file, by name.
absl::StatusOr<std::vector<Source>> FromFunctions(const std::vector<std::string>& functions, const std::string& file) {
  if (functions.size() > 1 && file == "-")
    return InvalidArgument("error: several entries are read from a file, not from standard input");
  std::vector<Source> out;
  for (const std::string& f : functions) out.push_back({f, file, f});
  RETURN_IF_ERROR(CheckNames(out));
  return out;
}

// A module for each batch size; one alone where nothing is unbounded.
absl::StatusOr<std::vector<BatchVariant>> LoadVariants(const Source& s, const CompileOptions& o, ImportOptions import) {
  import.entry = s.function;
  std::vector<BatchVariant> out;
  const bool fixed = o.model.batch_sizes.empty() || LoadModule(s.file, import).ok();
  for (int64_t batch : fixed ? std::vector<int64_t>{0} : o.model.batch_sizes) {
    if (batch) import.dim = batch;
    ASSIGN_OR_RETURN(auto module, LoadModule(s.file, import));
    out.push_back({batch, std::move(module)});
  }
  return out;
}

absl::StatusOr<std::vector<EntryPrograms>> Load(const std::vector<Source>& sources, const CompileOptions& o,
                                                const ImportOptions& import) {
  std::vector<EntryPrograms> out;
  bool unbounded = false;
  for (const Source& s : sources) {
    ASSIGN_OR_RETURN(auto variants, LoadVariants(s, o, import));
    unbounded = unbounded || variants[0].batch;
    out.push_back({sources.size() == 1 ? "" : s.name, std::move(variants)});
  }
  if (!o.model.batch_sizes.empty() && !unbounded)
    return InvalidArgument(sources[0].file, ": error: batch sizes are given, and no dimension is unbounded");
  return out;
}

}  // namespace

std::string WhyNoSource(const Arguments& args) {
  const std::vector<std::string> entries = args.All("entry");
  const bool files = std::any_of(entries.begin(), entries.end(), NamesAFile);
  if (args.positional.empty() && !files) return "a MODULE, or --entry NAME=FILE for each entry, is missing";
  if (!args.positional.empty() && files)
    return "--entry NAME=FILE stands for a MODULE, and one is given too; --entry NAME chooses among its functions";
  if (files && !std::all_of(entries.begin(), entries.end(), NamesAFile))
    return "some --entry name a FILE, and some do not";
  return "";
}

absl::StatusOr<std::vector<EntryPrograms>> LoadEntries(const Arguments& args, const CompileOptions& o,
                                                       ImportOptions import) {
  if (!o.model.batch_sizes.empty() && import.dim >= 0)
    return InvalidArgument("error: --dim and batch sizes contradict each other");
  import.entry.clear();
  std::vector<std::string> wanted = args.All("entry");
  std::vector<Source> sources;
  if (args.positional.empty()) {
    ASSIGN_OR_RETURN(sources, FromFiles(wanted));
    return Load(sources, o, import);
  }
  const std::string& file = args.positional[0];
  if (wanted.empty()) wanted = o.model.entries;
  if (!wanted.empty()) {
    ASSIGN_OR_RETURN(sources, FromFunctions(wanted, file));
    return Load(sources, o, import);
  }
  auto only = Load({{"", file, ""}}, o, import);
  if (only.ok() || file == "-") return only;
  const auto functions = FunctionsOf(file);
  if (!functions.ok() || functions->size() < 2) return only;
  ASSIGN_OR_RETURN(sources, FromFunctions(*functions, file));
  return Load(sources, o, import);
}

}  // namespace kiln
