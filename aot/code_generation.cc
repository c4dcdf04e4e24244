#include "aot/code_generation.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "codegen/cpu/combine.h"
#include "codegen/llvm/debug_info.h"
#include "compiler/base/parallel.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

// The share of one object in a program's kernels: places in each program's plan.
using Part = std::vector<std::vector<size_t>>;

// The heaviest kernel first, each to the part that has least. The first part also has the entries.
std::vector<Part> Divide(const std::vector<ProgramToGenerate>& programs, const std::vector<KernelPlan>& plans) {
  constexpr int64_t kPerPart = 250, kMostParts = 16, kCallsPerWeight = 4;
  struct Item {
    int64_t weight;
    size_t program, place;
  };
  std::vector<Item> items;
  int64_t total = 0, entries = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    entries += static_cast<int64_t>(programs[p].thunks->size()) / kCallsPerWeight;
    for (size_t k = 0; k < plans[p].kernels.size(); ++k) {
      items.push_back({plans[p].kernels[k].weight, p, k});
      total += items.back().weight;
    }
  }
  const int64_t count = std::clamp<int64_t>((total + entries) / kPerPart, 1, kMostParts);
  std::vector<Part> parts(static_cast<size_t>(count), Part(plans.size()));
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.weight > b.weight; });
  std::vector<int64_t> load(parts.size(), 0);
  load[0] = entries;
  for (const Item& i : items) {
    const size_t least = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += i.weight;
    parts[least][i.program].push_back(i.place);
  }
  for (Part& part : parts)
    for (std::vector<size_t>& places : part) std::sort(places.begin(), places.end());
  return parts;
}

// Which kernels a level has of its own, by program and place; a level of x86-64 has all. The others it borrows from its
// plain level.
struct LevelKernels {
  std::optional<size_t> plain;
  std::vector<std::vector<bool>> borrowed;
};

std::vector<LevelKernels> ShareKernels(const std::vector<CpuLevel>& levels, const std::vector<KernelPlan>& plans) {
  std::vector<LevelKernels> out(levels.size());
  for (size_t l = 0; l < levels.size(); ++l) {
    const std::string plain = PlainLevelOf(levels[l]);
    for (size_t k = 0; k < levels.size(); ++k)
      if (levels[k].name == plain) out[l].plain = k;
    for (const KernelPlan& plan : plans) {
      out[l].borrowed.emplace_back(plan.kernels.size(), false);
      for (size_t k = 0; out[l].plain && k < plan.kernels.size(); ++k)
        out[l].borrowed.back()[k] = !cpu::GainsByLevel(levels[l], levels[*out[l].plain], plan.kernels[k].instruction);
    }
  }
  return out;
}

// Kernels of `level` that others borrow, by program and place.
std::vector<std::vector<bool>> LentBy(size_t level, const std::vector<LevelKernels>& shares) {
  std::vector<std::vector<bool>> out = shares[level].borrowed;  // none of them
  for (const LevelKernels& other : shares) {
    if (other.plain != level) continue;
    for (size_t q = 0; q < out.size(); ++q)
      for (size_t k = 0; k < out[q].size(); ++k) out[q][k] = out[q][k] || other.borrowed[q][k];
  }
  return out;
}

// One object file in the making.
struct Piece {
  size_t level, part;
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<Ir> ir;
  std::unique_ptr<DebugInfo> debug;  // if code has lines
  absl::Status status;
  std::string object, text;
  int64_t code_bytes = 0;
};

// What makes a module's code visible to debuggers and profilers, as far as the options say.
void BeginDebugInfo(const DebugOptions& options, Piece* p) {
  if (!options.KeepsKernels()) return;
  p->module->setUwtable(llvm::UWTableKind::Async);
  if (options.line_tables == LineTables::kNone) return;
  p->debug = std::make_unique<DebugInfo>(*p->module, options.line_directory);
  p->ir->debug = p->debug.get();
}

}  // namespace

absl::StatusOr<GeneratedCode> GenerateCode(const std::string& library, const std::vector<ProgramToGenerate>& programs,
                                           const std::vector<CpuLevel>& levels, const CompileOptions& options) {
  GeneratedCode out;
  const std::string file = CIdentifier(options.model.name);
  std::vector<KernelPlan> plans;
  std::vector<std::unique_ptr<Module>> combinations;  // which the plans point into
  for (const ProgramToGenerate& p : programs) {
    plans.push_back(PlanKernels(p.name, *p.thunks, p.ops ? &p.ops->debug : nullptr));
    combinations.push_back(cpu::PlanCombinations(p.name, *p.thunks, &plans.back()));
    out.kernels += static_cast<int64_t>(plans.back().kernels.size());
  }
  const std::vector<Part> parts = Divide(programs, plans);
  const std::vector<LevelKernels> shares = ShareKernels(levels, plans);
  std::vector<Piece> pieces;
  for (size_t level = 0; level < levels.size(); ++level)
    for (size_t part = 0; part < parts.size(); ++part) pieces.push_back({level, part});
  // How many units each kernel has: by level and program, at its place.
  std::vector<std::vector<std::vector<int64_t>>> units(levels.size());
  for (auto& of_level : units)
    for (const KernelPlan& plan : plans) of_level.emplace_back(plan.kernels.size(), 0);

  ParallelFor(pieces.size(), [&](size_t k) {
    Piece& p = pieces[k];
    p.module = std::make_unique<llvm::Module>(library, *p.context);
    p.ir = std::make_unique<Ir>(*p.context, *p.module, levels[p.level]);
    p.ir->keeps_excess = KeepsExcess(options);
    if (options.debug.bounds_check) p.ir->on_overrun = library + "_out_of_bounds";
    BeginDebugInfo(options.debug, &p);
    const std::vector<std::vector<bool>> lent = LentBy(p.level, shares);
    for (size_t q = 0; q < programs.size() && p.status.ok(); ++q) {
      if (p.debug) p.debug->Use(&programs[q].ops->debug);
      std::vector<size_t> own = parts[p.part][q];
      const std::vector<bool>& borrowed = shares[p.level].borrowed[q];
      own.erase(std::remove_if(own.begin(), own.end(), [&](size_t k) { return borrowed[k]; }), own.end());
      const cpu::KernelLinkage linkage = {parts.size() == 1, options.debug.KeepsKernels(), lent[q]};
      p.status = cpu::EmitKernels(*p.ir, plans[q], own, linkage, &units[p.level][q]);
    }
  });
  for (const Piece& p : pieces) RETURN_IF_ERROR(p.status);
  for (size_t level = 0; level < levels.size(); ++level)
    for (size_t q = 0; q < programs.size(); ++q)
      for (size_t k = 0; k < units[level][q].size(); ++k)
        if (shares[level].borrowed[q][k]) units[level][q][k] = units[*shares[level].plain][q][k];
  const bool want_text = !options.pipeline.dump_dir.empty();
  std::atomic<size_t> made = 0;
  ParallelFor(pieces.size(), [&](size_t k) {
    Piece& p = pieces[k];
    for (size_t q = 0; q < programs.size() && p.part == 0 && p.status.ok(); ++q) {
      const ProgramToGenerate& program = programs[q];
      EntryOptions entry;
      entry.library = library;
      entry.threads = options.cpu.threads;
      entry.poison_freed = options.debug.poison_freed;
      entry.large_weights = program.large_weights;
      entry.replicas = program.replicas;
      entry.partitions = program.partitions;
      entry.kernels_elsewhere = parts.size() > 1;
      entry.constant_offsets = *program.constant_offsets;
      if (program.ops) {
        entry.ops = &program.ops->of;
        entry.first_op = program.ops->first;
        entry.profile = options.debug.profile;
        entry.check_numerics = options.debug.check_numerics;
      }
      if (p.debug) p.debug->Use(&program.ops->debug);
      cpu::BorrowedKernels borrowed;
      if (const std::optional<size_t> plain = shares[p.level].plain)
        borrowed = {levels[*plain].name, shares[p.level].borrowed[q]};
      p.status = cpu::EmitEntry(*p.ir, program.name, *program.thunks, plans[q], units[p.level][q], borrowed, entry);
    }
    if (!p.status.ok()) return;
    if (p.debug) p.debug->Finish();
    auto object = CompileToObject(*p.module, levels[p.level], options.debug.sanitizer, &p.code_bytes,
                                  want_text ? &p.text : nullptr);
    p.status = object.status();
    if (object.ok()) p.object = *std::move(object);
    p.debug.reset();
    p.ir.reset();
    p.module.reset();
    p.context.reset();
    if (options.on_object) options.on_object(++made, pieces.size());
  });
  for (Piece& p : pieces) {
    RETURN_IF_ERROR(p.status);
    const std::string& level = levels[p.level].name;
    const std::string part = parts.size() == 1 ? "" : absl::StrCat("_", p.part);
    out.members.push_back({absl::StrCat(file, "_", level, part, ".o"), std::move(p.object)});
    out.code_bytes += p.code_bytes;
    if (want_text)
      RETURN_IF_ERROR(
          WriteFile(absl::StrCat(options.pipeline.dump_dir, "/", file, ".", level, part, ".ir-with-opt.ll"), p.text));
  }
  return out;
}

}  // namespace kiln
