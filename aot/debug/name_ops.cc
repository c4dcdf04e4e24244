#include "aot/debug/name_ops.h"

#include "codegen/host/ops_object.h"

namespace kiln {

void NameOps(std::vector<Planned>* programs, Compilation* c) {
  const DebugOptions& options = c->options.debug;
  if (!options.NamesOps()) return;
  int64_t first = 0;
  for (Planned& p : *programs) {
    const std::string file = absl::StrCat(c->out.name, p.suffix, ".hlo");
    p.ops = MakeOpTable(*p.program.module, p.program.thunks, file, options);
    p.ops.first = first;
    CompiledModel& entry = c->ModelOf(p.entry);
    if (entry.code.ops_end == 0) entry.code.ops_begin = first;
    entry.code.ops_end = first + static_cast<int64_t>(p.ops.ops.size());
    first += static_cast<int64_t>(p.ops.ops.size());
    for (ProgramOp op : p.ops.ops) {
      if (op.parent >= 0) op.parent += p.ops.first;
      c->out.code.ops.push_back(std::move(op));
    }
    if (options.line_tables == LineTables::kHlo || options.profile) c->out.code.texts.push_back({file, p.ops.hlo});
  }
}

absl::StatusOr<std::string> OpsMember(const CompiledModel& m) {
  std::vector<OpRow> rows;
  for (const ProgramOp& op : m.code.ops)
    rows.push_back({op.name, op.label, op.kind, op.opcode, op.source.op_name, op.source.file, op.source.line,
                    op.hlo_line, op.parent, op.flops, op.bytes});
  return OpsObject(m.symbols, rows);
}

void AddNamedOps(const std::vector<Planned>& programs, const DebugOptions& o, Fingerprint* fingerprint) {
  if (!o.NamesOps()) return;
  fingerprint->AddNumbers({o.symbols, static_cast<int64_t>(o.line_tables), o.profile, o.check_numerics});
  fingerprint->AddText(o.line_directory);
  for (const Planned& p : programs) {
    fingerprint->AddText(p.ops.hlo);
    fingerprint->AddText(p.program.module->file.substr(p.program.module->file.rfind('/') + 1));
    for (const auto& computation : p.program.module->computations())
      for (const auto& i : computation->instructions()) fingerprint->AddNumbers({i->loc().line});
  }
}

}  // namespace kiln
