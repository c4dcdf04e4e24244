#include "codegen/host/ops_object.h"

#include "codegen/llvm/object.h"
#include "codegen/llvm/tables.h"

namespace kiln {

absl::StatusOr<std::string> OpsObject(const std::string& name, const std::vector<OpRow>& rows) {
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  ASSIGN_OR_RETURN(const CpuLevel level, FindCpuLevel("v2"));
  Ir ir(context, module, level);
  Tables t(ir, name + "_op_text");
  absl::flat_hash_map<std::string, llvm::Constant*> texts;  // each once
  const auto text = [&](const std::string& s) {
    llvm::Constant*& known = texts[s];
    if (!known) known = t.Text(s);
    return known;
  };
  std::vector<llvm::Constant*> ops;
  for (const OpRow& r : rows)
    ops.push_back(t.Struct({text(r.name), text(r.label), text(r.kind), text(r.opcode), text(r.op_name),
                            text(r.source_file), t.Number(r.source_line), t.Number(r.hlo_line), t.Number(r.parent),
                            t.Number(r.flops), t.Number(r.bytes)}));
  if (ops.empty()) return Internal("a library without operations has no table of them");
  auto* table = llvm::ArrayType::get(ops[0]->getType(), ops.size());
  t.Publish(name + "_ops", llvm::ConstantArray::get(table, ops));
  t.Publish(name + "_op_count", t.Number(static_cast<int64_t>(rows.size())));
  constexpr uint64_t kCounterWords = 3;  // kiln_profile_counter
  auto* counters = llvm::ArrayType::get(ir.b.getInt64Ty(), kCounterWords * rows.size());
  auto* zeroed = new llvm::GlobalVariable(module, counters, false, llvm::GlobalValue::ExternalLinkage,
                                          llvm::Constant::getNullValue(counters), name + "_profile_counters");
  zeroed->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return CompileToObject(module, level, Sanitizer::kNone, nullptr);
}

}  // namespace kiln
