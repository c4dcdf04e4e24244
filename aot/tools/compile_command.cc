// kiln compile MODULE: writes the library, its headers and the manifest.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "aot/compile.h"
#include "aot/package/manifest.h"
#include "aot/package/names.h"
#include "aot/package/safetensors.h"
#include "aot/package/shared_library.h"
#include "aot/tools/commands.h"
#include "aot/tools/compile_cache.h"
#include "aot/tools/entry_sources.h"
#include "aot/tools/output_files.h"
#include "aot/tools/stages.h"
#include "aot/tuning/results.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

void SetTargets(const std::vector<std::string>& targets, CompileOptions* o) {
  o->cpu.levels.clear();
  o->gpu.targets.clear();
  for (absl::string_view t : targets) {
    absl::ConsumePrefix(&t, "cpu:");
    if (t == "cpu") {
      for (const std::string& l : DefaultCpuLevels()) o->cpu.levels.push_back(l);
    } else if (t == "cuda") {
      for (const char* g : {"sm_80", "sm_90", "sm_100"}) o->gpu.targets.push_back(g);
    } else if (absl::StartsWith(t, "sm_")) {
      o->gpu.targets.emplace_back(t);
    } else {
      o->cpu.levels.emplace_back(t);
    }
  }
}

// --batch: sizes beside those of the config, in order and each once.
absl::Status AddBatchSizes(const std::vector<std::string>& sizes, CompileOptions* o) {
  for (const std::string& text : sizes) {
    int64_t n = 0;
    if (!absl::SimpleAtoi(text, &n) || n < 1) return InvalidArgument("error: --batch takes a number of at least 1");
    const auto place = std::lower_bound(o->model.batch_sizes.begin(), o->model.batch_sizes.end(), n);
    if (place == o->model.batch_sizes.end() || *place != n) o->model.batch_sizes.insert(place, n);
  }
  constexpr size_t kMost = 64;
  if (o->model.batch_sizes.size() > kMost) return InvalidArgument("error: more than ", kMost, " batch sizes");
  return absl::OkStatus();
}

// The passes that took most of the time.
std::string SlowestPasses(const std::vector<PassRecord>& records) {
  std::map<std::string, double> by_name;
  for (const PassRecord& r : records) by_name[r.pass] += r.ms;
  std::vector<std::pair<std::string, double>> passes(by_name.begin(), by_name.end());
  std::stable_sort(passes.begin(), passes.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  constexpr size_t kShown = 5;
  for (size_t k = 0; k < std::min(kShown, passes.size()); ++k)
    absl::StrAppendFormat(&out, "  pass %-32s %8.1f ms\n", passes[k].first, passes[k].second);
  return out;
}

// What the command line and the configuration ask for; `config` gets the latter's text.
absl::StatusOr<CompileOptions> ReadOptions(const Arguments& args, std::string* config) {
  CompileOptions o;
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(*config, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(o, ParseConfig(*config, args.Get("config")));
  }
  o.model.name = args.Get("name");
  RETURN_IF_ERROR(CheckLibraryName(o.model.name));
  if (args.Has("target")) SetTargets(args.All("target"), &o);
  RETURN_IF_ERROR(AddBatchSizes(args.All("batch"), &o));
  if (args.Has("tuning")) {
    ASSIGN_OR_RETURN(o.gpu.tuning.results, LoadTuning(args.All("tuning"), "", o.gpu.tuning.results.get(),
                                                      &o.gpu.tuning.algorithms, &o.gpu.tuning.texts));
  }
  return o;
}

std::string Summary(const CompiledModel& m) {
  const std::string entries = m.entries.empty() ? "" : absl::StrCat(" (", EntryList(m), ")");
  return absl::StrFormat("%s%s: %d kernels, %d bytes of code, %d of weights, arena %d bytes, %.0f ms\n", m.name,
                         entries, m.report.kernels, m.report.code_bytes, m.report.constant_bytes, m.report.temp_bytes,
                         m.report.compile_ms);
}

// A compiled program, and its product, which points into it.
struct Compiled {
  CompiledModel model;
  std::string weights_header;
  CachedProduct product;
};

absl::Status CompileProgram(const Arguments& args, CompileOptions o, Stages* stages, Compiled* out) {
  ImportOptions import;
  RETURN_IF_ERROR(ReadImportOptions(args, o, &import));
  stages->Begin("reading");
  ASSIGN_OR_RETURN(std::vector<EntryPrograms> entries, LoadEntries(args, o, import));
  o.pipeline.on_change = [&](const std::string& pass, const Module&) { stages->Note("after " + pass); };
  o.on_object = [&](size_t done, size_t all) { stages->Advance(done, all); };
  CompiledModel& m = out->model;
  ASSIGN_OR_RETURN(m, Compile(std::move(entries), o, [&](const std::string& stage) { stages->Begin(stage); }));
  CachedProduct& p = out->product;
  p.files = {{absl::StrCat("lib", m.name, ".a"), {m.code.archive}},
             {m.name + ".h", {m.code.header}},
             {m.name + "_c.h", {m.code.c_header}},
             {m.name + ".manifest.json", {m.code.manifest}}};
  if (!m.code.weight_constants.empty())
    p.files.push_back({m.name + ".safetensors", SafetensorsPieces(m.code.weight_constants, &out->weights_header)});
  for (const auto& [file, text] : m.code.texts) p.files.push_back({file, {text}});
  p.notes = m.report.notes;
  p.summary = Summary(m);
  p.json = absl::StrFormat("{%s,\"compile_ms\":%.3f}\n", StatsJson(m), m.report.compile_ms);
  return absl::OkStatus();
}

absl::Status Run(const Arguments& args) {
  std::string config;
  ASSIGN_OR_RETURN(CompileOptions o, ReadOptions(args, &config));
  const std::string dir = args.Get("out"), stem = absl::StrCat(dir, "/lib", CIdentifier(o.model.name));
  Stages stages(o.model.name, args.Has("verbose"));
  ASSIGN_OR_RETURN(const CompileCache cache, CompileCache::Open(args, o, config));
  Compiled compiled;
  std::optional<CachedProduct> found = cache.Find();
  if (!found) RETURN_IF_ERROR(CompileProgram(args, std::move(o), &stages, &compiled));
  const CachedProduct& product = found ? *found : compiled.product;
  stages.Begin("writing");
  for (const std::string& n : product.notes) std::fprintf(stderr, "note: %s\n", n.c_str());
  std::vector<OutputFile> files;
  for (const CachedProduct::File& f : product.files) files.push_back({absl::StrCat(dir, "/", f.name), f.pieces});
  RETURN_IF_ERROR(WriteFiles(files));
  if (!found) cache.Keep(product);
  if (args.Has("shared")) {
    stages.Begin("linking");
    RETURN_IF_ERROR(LinkModels({stem + ".a"}, stem + ".so"));
  }
  stages.End(SlowestPasses(compiled.model.report.passes));
  std::fputs((args.Has("json") ? product.json : product.summary).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int CompileCommand(const Arguments& args) {
  if (const std::string why = WhyNoSource(args); !why.empty()) {
    std::fprintf(stderr, "kiln compile: %s\n", why.c_str());
    return 2;
  }
  return ExitCode(Run(args));
}

}  // namespace kiln
