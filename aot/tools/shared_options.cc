// Options that several commands take.
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "aot/compile.h"
#include "aot/tools/commands.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

absl::Status ReadImportOptions(const Arguments& args, ImportOptions* import) {
  import->entry = args.Get("entry");
  if (args.Has("dim") && (!absl::SimpleAtoi(args.Get("dim"), &import->dim) || import->dim < 0))
    return InvalidArgument("error: --dim takes a number of at least 0");
  return absl::OkStatus();
}

absl::Status ReadImportOptions(const Arguments& args, const CompileOptions& config, ImportOptions* import) {
  RETURN_IF_ERROR(ReadImportOptions(args, import));
  if (import->entry.empty() && config.model.entries.size() == 1) import->entry = config.model.entries[0];
  import->limits = config.limits;
  return absl::OkStatus();
}

absl::Status SettleDevices(const Arguments& args, Module* m) {
  RETURN_IF_ERROR(SettleDeviceCounts(m));
  if (!args.Has("devices")) return absl::OkStatus();
  int wanted = 0;
  constexpr int kMost = 4096;
  if (!absl::SimpleAtoi(args.Get("devices"), &wanted) || wanted < 1 || wanted > kMost)
    return InvalidArgument("error: --devices takes a number from 1 to ", kMost);
  const int64_t has = m->replica_count * m->partition_count;
  bool sharded = false;
  for (const auto& c : m->computations())
    for (const auto& i : c->instructions()) sharded = sharded || i->attrs().sharding;
  if (has == 1) (sharded ? m->partition_count : m->replica_count) = wanted;
  if (has != 1 && has != wanted)
    return InvalidArgument("error: --devices ", wanted, ": the program is one of ", has, " devices");
  return absl::OkStatus();
}

}  // namespace kiln
