#include "codegen/llvm/debug_info.h"

#include "llvm/BinaryFormat/Dwarf.h"

namespace kiln {
namespace {

constexpr unsigned kDwarfVersion = 5;

void SetLines(llvm::Function& f, const llvm::DebugLoc& line, bool replace) {
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : block)
      if (replace || !i.getDebugLoc()) i.setDebugLoc(line);
}

}  // namespace

DebugInfo::DebugInfo(llvm::Module& module, const std::string& directory)
    : builder_(module), directory_(directory.empty() ? "." : directory) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", kDwarfVersion);
}

void DebugInfo::Use(const DebugProgram* program) {
  program_ = program;
  if (unit_) return;
  // No tables of names: linkers only put them behind one another.
  unit_ = builder_.createCompileUnit(llvm::dwarf::DW_LANG_C11, File(program->file), "kiln", /*isOptimized=*/true, "",
                                     /*RV=*/0, "", llvm::DICompileUnit::FullDebug, /*DWOId=*/0,
                                     /*SplitDebugInlining=*/true, /*DebugInfoForProfiling=*/false,
                                     llvm::DICompileUnit::DebugNameTableKind::None);
}

llvm::DebugLoc DebugInfo::At(const DebugOp& op) {
  llvm::DIScope* scope = scope_;
  if (op.file != scope_->getFilename()) scope = builder_.createLexicalBlockFile(scope_, File(op.file));
  return llvm::DILocation::get(scope_->getContext(), static_cast<unsigned>(op.line), 0, scope);
}

DebugInfo::Function::Function(Ir& ir, const std::string& name, const Instruction* op)
    : ir_(ir), saved_(ir.b.getCurrentDebugLocation()) {
  DebugInfo* d = ir.debug;
  if (!d) return;
  outer_ = d->scope_;
  functions_before_ = ir.module.size();
  const DebugOp* known = op ? d->program_->Find(op) : nullptr;
  const bool placed = known && !known->file.empty();
  const unsigned line = placed ? static_cast<unsigned>(known->line) : 1;
  llvm::DIFile* file = d->File(placed ? known->file : d->program_->file);
  llvm::DISubroutineType* type = d->builder_.createSubroutineType(d->builder_.getOrCreateTypeArray({}));
  d->scope_ = d->builder_.createFunction(file, name, "", file, line, type, line, llvm::DINode::FlagPrototyped,
                                         llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  ir.b.SetCurrentDebugLocation(llvm::DILocation::get(ir.ctx, line, 0, d->scope_));
}

DebugInfo::Function::~Function() {
  if (ir_.debug) ir_.debug->scope_ = outer_;
  ir_.b.SetCurrentDebugLocation(saved_);
}

void DebugInfo::Function::Becomes(llvm::Function* f, const llvm::Function* body) {
  DebugInfo* d = ir_.debug;
  if (!d) return;
  f->setSubprogram(d->scope_);
  const llvm::DebugLoc first = llvm::DILocation::get(ir_.ctx, d->scope_->getLine(), 0, d->scope_);
  // The body of a kernel is inlined into it: its lines are the kernel's already. Register tiles and the like serve
  // several kernels; they keep their own names, and no lines.
  size_t k = 0;
  for (llvm::Function& g : ir_.module) {
    if (k++ < functions_before_ || g.isDeclaration() || &g == f || g.getSubprogram()) continue;
    SetLines(g, &g == body ? first : llvm::DebugLoc(), &g != body);
  }
  if (!body) SetLines(*f, first, false);
}

DebugInfo::Line::Line(Ir& ir, const Instruction* op) : ir_(ir), saved_(ir.b.getCurrentDebugLocation()) {
  DebugInfo* d = ir.debug;
  if (!d || !d->scope_) return;
  if (const DebugOp* known = d->program_->Find(op); known && !known->file.empty())
    ir.b.SetCurrentDebugLocation(d->At(*known));
}

DebugInfo::Line::~Line() { ir_.b.SetCurrentDebugLocation(saved_); }

}  // namespace kiln
