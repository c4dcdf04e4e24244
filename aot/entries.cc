#include "aot/entries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "aot/package/model_object.h"
#include "aot/package/names.h"
#include "aot/package/weights_table.h"
#include "codegen/llvm/runtime_object.h"

namespace kiln {
namespace {

absl::Status AddParts(unsigned needs, const CompiledModel& m, Compilation* c) {
  for (const RuntimeMember& part : RuntimeMembers(needs)) {
    ASSIGN_OR_RETURN(std::string object, RuntimeObject(m.symbols, c->out.symbols, part.part, c->options.debug.sanitizer,
                                                       c->options.debug.KeepsKernels()));
    c->members.push_back({absl::StrCat(m.name, "_", part.member, ".o"), std::move(object)});
  }
  return absl::OkStatus();
}

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void AddFigures(const CompiledModel& entry, CompiledModel* library) {
  const ModelReport& of = entry.report;
  ModelReport& all = library->report;
  for (int64_t ModelReport::*sum : {&ModelReport::flops, &ModelReport::gpu_flops, &ModelReport::bytes_accessed,
                                    &ModelReport::thunks, &ModelReport::fusions})
    all.*sum += of.*sum;
  for (int64_t ModelReport::*most :
       {&ModelReport::temp_bytes, &ModelReport::slow_bytes, &ModelReport::gpu_temp_bytes, &ModelReport::gpu_host_bytes})
    all.*most = std::max(all.*most, of.*most);
  library->devices = std::max(library->devices, entry.devices);
  library->communicates = library->communicates || entry.communicates;
  Append(of.collectives, &all.collectives);
  Append(of.passes, &all.passes);
  Append(of.rematerialized, &all.rematerialized);
}

}  // namespace

std::vector<const CompiledModel*> ProgramsOf(const CompiledModel& library) {
  if (library.entries.empty()) return {&library};
  std::vector<const CompiledModel*> out;
  for (const CompiledModel& e : library.entries) out.push_back(&e);
  return out;
}

std::string SharedSymbolOf(const CompiledModel& m, absl::string_view function) {
  absl::string_view library = m.symbols;
  if (!m.entry.empty()) library.remove_suffix(m.entry.size() + 1);
  return absl::StrCat(library, "_", function);
}

bool HasSumsInF16(const CompiledModel& model) {
  const std::vector<std::string>& levels = model.code.cpu_levels;
  return model.sums_in_f16 && std::find(levels.begin(), levels.end(), "v4fp16") != levels.end();
}

std::string EntryList(const CompiledModel& library) {
  return absl::StrJoin(library.entries, ", ", [](std::string* s, const CompiledModel& e) { *s += e.entry; });
}

absl::Status BeginEntries(const std::vector<EntryPrograms>& programs, const CompileOptions& o, CompiledModel* library) {
  if (programs.size() < 2) return absl::OkStatus();
  if (Emulates(o))
    return Unimplemented("error: the emulator runs one entry, and these are ", programs.size(),
                         "; --entry NAME chooses one");
  for (const auto& [names, field] :
       {std::pair{&o.model.argument_names, "argument_names"}, {&o.model.result_names, "result_names"}})
    if (!names->empty())
      return InvalidArgument("error: ", field, " does not say which entry's they are, and there are ", programs.size());
  std::vector<std::string> names;
  for (const EntryPrograms& p : programs) names.push_back(p.name);
  ASSIGN_OR_RETURN(names, NameEntries(names, library->name));
  for (const std::string& name : names) {
    CompiledModel entry;
    entry.name = absl::StrCat(library->name, "_", name);
    entry.library = library->name;
    entry.entry = name;
    entry.threads = library->threads;
    entry.flush_subnormals = library->flush_subnormals;
    entry.algebra = library->algebra;
    entry.keeps_excess = library->keeps_excess;
    entry.sums_in_f16 = library->sums_in_f16;
    entry.pass_changes = library->pass_changes;
    entry.on_cpu = library->on_cpu;
    entry.debug = library->debug;
    library->entries.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::Status SayWhichEntry(const absl::Status& error, const CompiledModel& entry) {
  absl::string_view text = error.message();
  if (entry.entry.empty() || !absl::ConsumePrefix(&text, "error: ")) return error;
  return absl::Status(error.code(), absl::StrCat("error: entry ", entry.entry, ": ", text));
}

absl::Status JoinEntries(const CompileOptions& o, CompiledModel* library) {
  for (const CompiledModel& e : library->entries) {
    if (e.devices > 1)
      return Unimplemented("error: entry ", e.entry, " is a program of ", e.devices,
                           " devices: a library of several entries is for one; --entry NAME chooses one of them");
    AddFigures(e, library);
  }
  return JoinWeights(o, library);
}

void NameSymbolsOfEntries(CompiledModel* library) {
  for (CompiledModel& e : library->entries) {
    e.symbols = absl::StrCat(library->symbols, "_", e.entry);
    e.report.constant_bytes = library->report.constant_bytes;
  }
}

absl::Status AddInterfaceObjects(Compilation* c) {
  for (CompiledModel& e : c->out.entries) e.code.cpu_levels = c->out.code.cpu_levels;
  for (const CompiledModel* m : ProgramsOf(c->out)) {
    if (HasWeights(*m)) {
      RETURN_IF_ERROR(AddParts(RuntimeNeed::WeightedRuns, *m, c));
      c->members.push_back({m->name + "_weight_arguments.o", WeightArgumentsObject(*m, c->out.ports.weights)});
    }
    if (Emulates(c->options)) continue;
    if (!c->out.entries.empty()) RETURN_IF_ERROR(AddParts(RuntimeNeed::Hosts, *m, c));
    ASSIGN_OR_RETURN(std::string object, ModelObject(*m));
    c->members.push_back({m->name + "_descriptor.o", std::move(object)});
  }
  if (c->out.entries.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(AddParts(RuntimeNeed::Entries, c->out, c));
  std::vector<std::string> descriptors;
  for (const CompiledModel& e : c->out.entries) descriptors.push_back(SymbolOf(e, "descriptor"));
  ASSIGN_OR_RETURN(std::string list, ModelListObject(SymbolOf(c->out, "models_list"), descriptors));
  c->members.push_back({c->out.name + "_models_list.o", std::move(list)});
  return absl::OkStatus();
}

}  // namespace kiln
