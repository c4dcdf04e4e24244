#include "codegen/host/program_object.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "codegen/llvm/object.h"
#include "runtime_min/abi.h"

namespace kiln {

absl::StatusOr<std::string> ProgramObject(const std::string& name, const std::vector<std::string>& levels,
                                          bool any_machine, const CallChecks& checks) {
  std::vector<DataAddress> entries;
  size_t at = offsetof(kiln_program, entries);
  for (const char* level : KILN_CPU_LEVELS) {
    if (std::find(levels.begin(), levels.end(), level) != levels.end())
      entries.push_back({at, absl::StrCat(name, "_entry_", level)});
    at += sizeof(kiln_entry*);
  }
  if (any_machine) entries = {{offsetof(kiln_program, entries), entries.back().symbol}};
  kiln_program head = {};
  head.arguments = static_cast<int64_t>(checks.arguments.size());
  head.results = static_cast<int64_t>(checks.results.size());
  head.arena_bytes = checks.arena_bytes;
  head.slow_arena_bytes = checks.slow_arena_bytes;
  head.devices = checks.devices;
  head.flush_subnormals = checks.flush_subnormals;
  head.x87 = checks.x87;
  head.check_overlap = checks.overlap;
  for (size_t k = 0; k < checks.arguments.size(); ++k)
    if (checks.arguments[k].low <= checks.arguments[k].high) head.extents = static_cast<int64_t>(k) + 1;
  std::string bytes(reinterpret_cast<const char*>(&head), offsetof(kiln_program, port));
  for (const auto* list : {&checks.arguments, &checks.results})
    for (const CallChecks::Port& p : *list) {
      const kiln_port port = {p.bytes, p.alignment, p.alias, p.low, p.high};
      bytes.append(reinterpret_cast<const char*>(&port), sizeof port);
    }
  return ConstantObject(name + "_program", bytes, entries);
}

std::string DeviceTimeoutObject(const std::string& name, int64_t milliseconds) {
  std::string bytes(sizeof milliseconds, '\0');
  std::memcpy(bytes.data(), &milliseconds, sizeof milliseconds);
  return DataObject(name + "_device_timeout_ms", {{0, bytes}}, false);
}

std::string MpiProgramObject(const std::string& name, int64_t devices) {
  std::string bytes(sizeof devices, '\0');
  std::memcpy(bytes.data(), &devices, sizeof devices);
  bytes.append(name.c_str(), name.size() + 1);
  return DataObject(name + "_mpi_program", {{0, bytes}}, false);
}

}  // namespace kiln
