// kiln inspect FILE: what a compiled library says of itself. kiln link: several libraries as one shared object.
#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aot/package/model_reader.h"
#include "aot/package/shared_library.h"
#include "aot/tools/commands.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

std::string Json(const std::vector<std::string>& texts) {
  return absl::StrCat("[", absl::StrJoin(texts, ",", [](std::string* s, const auto& t) { *s += JsonQuote(t); }), "]");
}
std::string Json(const std::vector<int64_t>& numbers) { return absl::StrCat("[", absl::StrJoin(numbers, ","), "]"); }

// Keys as in the manifest.
std::string Json(const ArrayFacts& a, bool result) {
  std::string out = absl::StrCat("{\"name\":", JsonQuote(a.name), ",\"path\":", JsonQuote(a.path),
                                 ",\"dtype\":", JsonQuote(a.type), ",\"shape\":", Json(a.extents));
  if (!a.minor_to_major.empty()) absl::StrAppend(&out, ",\"minor_to_major\":", Json(a.minor_to_major));
  absl::StrAppend(&out, ",\"bytes\":", a.bytes, ",\"alignment\":", a.alignment);
  if (a.alias >= 0) absl::StrAppend(&out, result ? ",\"donated_argument\":" : ",\"becomes_result\":", a.alias);
  if (a.weight) out += ",\"weight\":true";
  if (a.low <= a.high) absl::StrAppend(&out, ",\"low\":", a.low, ",\"high\":", a.high);
  if (!a.tile_of_partition.empty())
    absl::StrAppend(&out, ",\"whole_shape\":", Json(a.whole_extents), ",\"tiles\":", Json(a.tiles),
                    ",\"tile_of_partition\":", Json(a.tile_of_partition));
  return out + "}";
}

std::string Json(const std::vector<ArrayFacts>& arrays, bool results) {
  return absl::StrCat(
      "[", absl::StrJoin(arrays, ",", [&](std::string* s, const ArrayFacts& a) { *s += Json(a, results); }), "]");
}

std::string Json(const ModelFacts& m) {
  std::string variants;
  for (const VariantFacts& v : m.variants)
    absl::StrAppend(&variants, variants.empty() ? "" : ",", "\n{\"batch\":", v.batch,
                    ",\"arena_bytes\":", v.arena_bytes, ",\"arguments\":", Json(v.arguments, false),
                    ",\"results\":", Json(v.results, true), "}");
  const std::string entry =
      m.entry.empty() ? "" : absl::StrCat(",\"library\":", JsonQuote(m.library), ",\"entry\":", JsonQuote(m.entry));
  return absl::StrCat("{\"name\":", JsonQuote(m.name), entry, ",\"kiln\":", JsonQuote(m.kiln_version),
                      ",\"model_version\":", m.model_version, ",\"abi_version\":", m.abi_version,
                      ",\"symbols\":", JsonQuote(m.build), ",\"on_cpu\":", m.on_cpu ? "true" : "false",
                      ",\"cpu_levels\":", Json(m.cpu_levels), ",\"gpu_targets\":", Json(m.gpu_targets),
                      ",\"callbacks\":", Json(m.callbacks), ",\"arena_bytes\":", m.arena_bytes,
                      ",\"arena_alignment\":", m.arena_alignment, ",\"slow_arena_bytes\":", m.slow_arena_bytes,
                      ",\"gpu_arena_bytes\":", m.gpu_arena_bytes, ",\"gpu_host_arena_bytes\":", m.gpu_host_arena_bytes,
                      ",\"constant_bytes\":", m.constant_bytes, ",\"stack_bytes\":", m.stack_bytes,
                      ",\"threads\":", m.threads, ",\"devices\":", m.devices,
                      ",\"communicates\":", m.communicates ? "true" : "false", ",\"variants\":[", variants, "]}");
}

std::string Text(const ArrayFacts& a, size_t k, bool result) {
  std::string out = absl::StrCat("  ", k, " ", a.name, ": ", a.type, "[", absl::StrJoin(a.extents, ","), "]");
  if (!a.minor_to_major.empty()) absl::StrAppend(&out, "{", absl::StrJoin(a.minor_to_major, ","), "}");
  if (a.path != a.name) absl::StrAppend(&out, ", ", a.path);
  absl::StrAppend(&out, ", ", a.bytes, " bytes aligned to ", a.alignment);
  if (a.alias >= 0)
    absl::StrAppend(&out, result ? ", lives in argument " : ", donated: holds result ", a.alias,
                    result ? "" : " afterwards");
  if (a.weight) out += ", a weight";
  if (a.low <= a.high) absl::StrAppend(&out, ", a size from ", a.low, " to ", a.high);
  if (!a.tile_of_partition.empty())
    absl::StrAppend(&out, ", part of [", absl::StrJoin(a.whole_extents, ","), "] in tiles of [",
                    absl::StrJoin(a.tiles, ","), "]");
  return out + "\n";
}

std::string Text(const ModelFacts& m) {
  const auto list = [](const std::vector<std::string>& texts) {
    return texts.empty() ? std::string("none") : absl::StrJoin(texts, " ");
  };
  std::string out = absl::StrCat(m.name, ": kiln ", m.kiln_version, ", ABI ", m.abi_version, ", build ", m.build, "\n",
                                 m.entry.empty() ? "" : absl::StrCat("entry ", m.entry, " of ", m.library, "\n"),
                                 "CPU levels: ", list(m.cpu_levels), "; GPUs: ", list(m.gpu_targets), "\n",
                                 "arena: ", m.arena_bytes, " bytes aligned to ", m.arena_alignment);
  if (m.slow_arena_bytes) absl::StrAppend(&out, "; slow arena: ", m.slow_arena_bytes);
  if (m.gpu_arena_bytes) absl::StrAppend(&out, "; arena on the GPU: ", m.gpu_arena_bytes);
  if (m.gpu_host_arena_bytes) absl::StrAppend(&out, "; the GPU's in the host's memory: ", m.gpu_host_arena_bytes);
  absl::StrAppend(&out, "; weights: ", m.constant_bytes, " bytes; stack: at most ", m.stack_bytes,
                  "\nthreads: ", m.threads == 0 ? "as many as the pool has" : absl::StrCat("at most ", m.threads),
                  "\n");
  if (m.communicates) absl::StrAppend(&out, "devices: ", m.devices, "\n");
  if (!m.callbacks.empty()) absl::StrAppend(&out, "needs functions: ", list(m.callbacks), "\n");
  for (const VariantFacts& v : m.variants) {
    if (v.batch) absl::StrAppend(&out, "batch ", v.batch, ": arena ", v.arena_bytes, " bytes\n");
    for (const bool result : {false, true}) {
      const std::vector<ArrayFacts>& arrays = result ? v.results : v.arguments;
      absl::StrAppend(&out, result ? "results:" : "arguments:", arrays.empty() ? " none\n" : "\n");
      for (size_t k = 0; k < arrays.size(); ++k) out += Text(arrays[k], k, result);
    }
  }
  return out;
}

int Finish(const absl::Status& s) {
  if (s.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
  return 1;
}

absl::Status KeepEntry(const std::string& entry, std::vector<ModelFacts>* models) {
  std::vector<std::string> names;
  for (const ModelFacts& m : *models)
    if (!m.entry.empty()) names.push_back(m.entry);
  if (std::find(names.begin(), names.end(), entry) == names.end())
    return InvalidArgument("error: no --entry ", entry, ": there ",
                           names.empty() ? "are no entries" : absl::StrCat("are ", absl::StrJoin(names, ", ")));
  models->erase(std::remove_if(models->begin(), models->end(), [&](const ModelFacts& m) { return m.entry != entry; }),
                models->end());
  return absl::OkStatus();
}

absl::Status Inspect(const Arguments& args) {
  ASSIGN_OR_RETURN(std::vector<ModelFacts> models, ReadModels(args.positional[0]));
  if (args.Has("entry")) RETURN_IF_ERROR(KeepEntry(args.Get("entry"), &models));
  if (args.Has("json")) {
    std::printf("[%s]\n",
                absl::StrJoin(models, ",\n", [](std::string* s, const ModelFacts& m) { *s += Json(m); }).c_str());
  } else {
    std::printf("%s", absl::StrJoin(models, "\n", [](std::string* s, const ModelFacts& m) { *s += Text(m); }).c_str());
  }
  return absl::OkStatus();
}

absl::Status Link(const Arguments& args) {
  RETURN_IF_ERROR(MakeFolderOf(args.Get("out")));
  return LinkModels(args.positional, args.Get("out"));
}

}  // namespace

int InspectCommand(const Arguments& args) { return Finish(Inspect(args)); }
int LinkCommand(const Arguments& args) { return Finish(Link(args)); }

}  // namespace kiln
