// kiln compile MODULE: writes the library, its headers and the manifest.
#include <unistd.h>

#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "aot/compile.h"
#include "aot/package/manifest.h"
#include "aot/package/names.h"
#include "aot/package/safetensors.h"
#include "aot/tools/commands.h"
#include "aot/tools/output_files.h"
#include "aot/tuning/results.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

absl::Status Run(const Arguments& args) {
  if (!args.Has("name") || !args.Has("out")) return InvalidArgument("error: --name and --out are needed");
  CompileOptions o;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(o, ParseConfig(text, args.Get("config")));
  }
  o.name = args.Get("name");
  RETURN_IF_ERROR(CheckLibraryName(o.name));
  if (args.Has("target")) {
    o.cpu_levels.clear();
    o.gpu_targets.clear();
    for (std::string t : args.All("target")) {
      absl::string_view v = t;
      absl::ConsumePrefix(&v, "cpu:");
      if (v == "cpu") {
        for (const char* l : {"v2", "v3", "v4"}) o.cpu_levels.push_back(l);
      } else if (v == "cuda") {
        for (const char* g : {"sm_80", "sm_90", "sm_100"}) o.gpu_targets.push_back(g);
      } else if (absl::StartsWith(v, "sm_")) {
        o.gpu_targets.emplace_back(v);
      } else {
        o.cpu_levels.emplace_back(v);
      }
    }
  }
  if (args.Has("check-plan")) o.check_plan = true;
  if (args.Has("tuning")) {
    ASSIGN_OR_RETURN(o.tuning, LoadTuning(args.All("tuning"), "", o.tuning.get(), &o.library_algorithms));
  }
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, &import));
  import.limits = o.limits;
  std::vector<BatchVariant> variants;
  if (!o.batch_sizes.empty() && import.dim >= 0)
    return InvalidArgument("error: --dim and batch_sizes contradict each other");
  for (int64_t batch : o.batch_sizes.empty() ? std::vector<int64_t>{0} : o.batch_sizes) {
    if (batch) import.dim = batch;
    ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
    variants.push_back({batch, std::move(module)});
  }
  const bool tty = isatty(2);
  ASSIGN_OR_RETURN(CompiledModel m, Compile(std::move(variants), o, [&](const std::string& stage) {
                     if (tty) std::fprintf(stderr, "\r\033[Kkiln: %s: %s", o.name.c_str(), stage.c_str());
                   }));
  if (tty) std::fprintf(stderr, "\r\033[K");
  for (const std::string& n : m.notes) std::fprintf(stderr, "note: %s\n", n.c_str());
  const std::string dir = args.Get("out");
  std::vector<OutputFile> files = {{absl::StrCat(dir, "/lib", m.name, ".a"), {m.archive}},
                                   {absl::StrCat(dir, "/", m.name, ".h"), {m.header}},
                                   {absl::StrCat(dir, "/", m.name, "_c.h"), {m.c_header}},
                                   {absl::StrCat(dir, "/", m.name, ".manifest.json"), {m.manifest}}};
  std::string weights_header;
  if (!m.weight_constants.empty())
    files.push_back(
        {absl::StrCat(dir, "/", m.name, ".safetensors"), SafetensorsPieces(m.weight_constants, &weights_header)});
  for (const auto& [file, text] : m.texts) files.push_back({absl::StrCat(dir, "/", file), {text}});
  RETURN_IF_ERROR(WriteFiles(files));
  if (args.Has("json")) {
    std::printf("{%s,\"compile_ms\":%.3f}\n", StatsJson(m).c_str(), m.compile_ms);
  } else {
    std::printf("%s: %lld kernels, %lld bytes of code, %lld of weights, arena %lld bytes, %.0f ms\n", m.name.c_str(),
                static_cast<long long>(m.kernels), static_cast<long long>(m.code_bytes),
                static_cast<long long>(m.constant_bytes), static_cast<long long>(m.temp_bytes), m.compile_ms);
  }
  return absl::OkStatus();
}

}  // namespace

int CompileCommand(const Arguments& args) {
  if (absl::Status s = Run(args); !s.ok()) {
    std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace kiln
