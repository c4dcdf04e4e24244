#include "aot/tools/manifest_facts.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/base/status.h"

namespace kiln {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// Null where there is no such member.
const Value* Find(const Struct& object, const char* key) {
  const auto it = object.fields().find(key);
  return it == object.fields().end() ? nullptr : &it->second;
}

std::string Text(const Struct& object, const char* key) {
  const Value* v = Find(object, key);
  return v ? v->string_value() : "";
}

int64_t Number(const Struct& object, const char* key, int64_t otherwise = 0) {
  const Value* v = Find(object, key);
  return v ? static_cast<int64_t>(v->number_value()) : otherwise;
}

std::vector<int64_t> Numbers(const Struct& object, const char* key) {
  std::vector<int64_t> out;
  if (const Value* v = Find(object, key))
    for (const Value& n : v->list_value().values()) out.push_back(static_cast<int64_t>(n.number_value()));
  return out;
}

absl::StatusOr<std::vector<ManifestPort>> Ports(const Struct& manifest, const char* key, const std::string& file) {
  std::vector<ManifestPort> out;
  const Value* ports = Find(manifest, key);
  if (!ports) return InvalidArgument(file, ":1:1: error: the manifest has no '", key, "'");
  for (const Value& v : ports->list_value().values()) {
    const Struct& port = v.struct_value();
    const std::optional<PrimitiveType> type = TypeFromText(Text(port, "dtype"));
    if (!type) return InvalidArgument(file, ":1:1: error: no element type is named '", Text(port, "dtype"), "'");
    ManifestPort p;
    p.type = *type;
    p.elements = 1;
    for (int64_t d : Numbers(port, "shape")) p.elements *= d;
    if (const std::vector<int64_t> bounds = Numbers(port, "bounds"); bounds.size() == 2) p.full_size = bounds[1];
    p.donated = Find(port, "becomes_result");
    out.push_back(p);
  }
  return out;
}

absl::StatusOr<ManifestFacts> Entry(const Struct& e, const ManifestFacts& library, const std::string& file) {
  ManifestFacts out = library;
  out.entries.clear();
  out.library = library.name;
  out.entry = Text(e, "name");
  out.name = absl::StrCat(library.name, "_", out.entry);
  out.temp_bytes = Number(e, "temp_bytes");
  out.slow_arena_bytes = Number(e, "slow_arena_bytes");
  out.argument_bytes = Number(e, "argument_bytes");
  out.output_bytes = Number(e, "output_bytes");
  out.batch_sizes = Numbers(e, "batch_sizes");
  ASSIGN_OR_RETURN(out.arguments, Ports(e, "arguments", file));
  ASSIGN_OR_RETURN(out.results, Ports(e, "results", file));
  return out;
}

}  // namespace

absl::StatusOr<ManifestFacts> ReadManifest(const std::string& text, const std::string& file) {
  Struct m;
  if (!google::protobuf::util::JsonStringToMessage(text, &m).ok() || Text(m, "symbols").empty())
    return InvalidArgument(file, ":1:1: error: this is no manifest (NAME.manifest.json) of a compile");
  ManifestFacts out;
  out.name = Text(m, "name");
  out.build = Text(m, "symbols");
  out.target = Text(m, "target");
  for (const auto& [key, value] : {std::pair<const char*, int64_t*>{"code_bytes", &out.code_bytes},
                                   {"constant_bytes", &out.constant_bytes},
                                   {"temp_bytes", &out.temp_bytes},
                                   {"slow_arena_bytes", &out.slow_arena_bytes},
                                   {"argument_bytes", &out.argument_bytes},
                                   {"output_bytes", &out.output_bytes},
                                   {"archive_bytes", &out.archive_bytes},
                                   {"threads", &out.threads}})
    *value = Number(m, key);
  out.devices = Number(m, "devices", 1);
  const Value* levels = Find(m, "cpu_levels");
  out.has_cpu_program = levels && levels->list_value().values_size() > 0;
  out.batch_sizes = Numbers(m, "batch_sizes");
  ASSIGN_OR_RETURN(out.arguments, Ports(m, "arguments", file));
  ASSIGN_OR_RETURN(out.results, Ports(m, "results", file));
  if (const Value* entries = Find(m, "entries"))
    for (const Value& v : entries->list_value().values()) {
      ASSIGN_OR_RETURN(ManifestFacts entry, Entry(v.struct_value(), out, file));
      out.entries.push_back(std::move(entry));
    }
  return out;
}

absl::StatusOr<ManifestFacts> ProgramOf(const ManifestFacts& library, const std::string& entry) {
  std::vector<std::string> names;
  for (const ManifestFacts& e : library.entries) {
    if (e.entry == entry) return e;
    names.push_back(e.entry);
  }
  if (entry.empty() && names.empty()) return library;
  if (names.empty()) return InvalidArgument("error: --entry ", entry, ": ", library.name, " has one function");
  return InvalidArgument("error: ", entry.empty() ? "--entry NAME is missing" : absl::StrCat("no --entry ", entry),
                         ": ", library.name, " has the entries ", absl::StrJoin(names, ", "));
}

}  // namespace kiln
