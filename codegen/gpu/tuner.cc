#include "codegen/gpu/tuner.h"

#include "absl/strings/str_cat.h"
#include "codegen/gpu/library_call.h"
#include "codegen/gpu/tiles.h"
#include "codegen/llvm/tables.h"
#include "compiler/hlo/library_calls.h"
#include "runtime_min/gpu/tune.h"

namespace kiln::gpu {
namespace {

// The arrays of an instruction as its kernel or routine takes them, without scratch.
std::vector<std::pair<Shape, int64_t>> ArraysOf(const Instruction* i) {
  std::vector<std::pair<Shape, int64_t>> out;
  const auto add = [&](const Shape& s, int64_t kind) {
    ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) {
      if (leaf.IsArray()) out.push_back({leaf, kind});
    });
  };
  for (const Instruction* o : i->operands()) add(o->shape(), KILN_TUNE_OPERAND);
  add(i->shape(), KILN_TUNE_RESULT);
  return out;
}

}  // namespace

absl::StatusOr<std::vector<TuneSubject>> EmitCandidates(Ir& ir, const GpuTarget& target, const std::string& name,
                                                        const std::vector<Instruction*>& subjects,
                                                        const TuningResults* denied, Program* program) {
  std::vector<TuneSubject> out;
  for (Instruction* i : subjects) {
    const std::string key = TuningKey(i);
    TuneSubject subject{i, {}};
    const auto allowed = [&](int64_t algorithm) { return !denied || !denied->Denied(target.name, key, algorithm); };
    ASSIGN_OR_RETURN(const std::vector<ProductShape> products, ProductsOf(i));
    if (!products.empty()) {
      for (int64_t tile : TilesFor(products[0], target)) {
        if (!allowed(tile)) continue;
        SetAlgorithm(i, absl::StrCat(tile));
        const std::string symbol = absl::StrCat(name, "_s", out.size(), "_t", tile);
        ASSIGN_OR_RETURN(const std::vector<Launch> launches, EmitKernel(ir, target, symbol, i, {}));
        std::vector<int64_t> bytes;
        for (const auto& [array, kind] : ArraysOf(i)) bytes.push_back(array.ByteSize());
        bytes.push_back(ScratchBytes(i));
        subject.candidates.push_back({tile, Program::Start{program->kernels.size(), launches[0]}});
        program->kernels.push_back({symbol, i, bytes});
      }
      SetAlgorithm(i, "-1");
    } else {
      const int64_t count = LibraryCandidates(i);
      for (int64_t k = 0; k < count; ++k)
        if (allowed(k)) subject.candidates.push_back({k, std::nullopt});
    }
    out.push_back(std::move(subject));
  }
  return out;
}

absl::Status EmitTuneTables(Ir& ir, const std::string& name, const std::string& target, int64_t level, bool tf32,
                            size_t images, const std::vector<TuneSubject>& subjects) {
  Tables t(ir, name + "_tune_data");
  std::vector<llvm::Constant*> list;
  for (const TuneSubject& s : subjects) {
    std::vector<llvm::Constant*> arrays, candidates;
    for (const auto& [shape, kind] : ArraysOf(s.instruction))
      arrays.push_back(t.Struct({t.Number(shape.ByteSize()), t.Number(InfoOf(shape.type()).proto), t.Number(kind)}));
    if (s.candidates[0].start)
      arrays.push_back(t.Struct({t.Number(ScratchBytes(s.instruction)), t.Number(0), t.Number(KILN_TUNE_SCRATCH)}));
    const auto count = static_cast<int64_t>(arrays.size());
    for (const TuneCandidate& c : s.candidates) {
      llvm::Constant *launch = t.Null(), *call = t.Null();
      if (c.start) {
        std::vector<int64_t> grid;
        for (size_t k = 0; k < images; ++k) grid.insert(grid.end(), {c.start->launch.blocks, c.start->launch.threads});
        launch =
            t.Global(t.Struct({t.Number(static_cast<int64_t>(c.start->kernel)), t.Numbers(grid), t.Number(count)}));
      } else {
        ASSIGN_OR_RETURN(const RoutineCall routine, RoutineOf(s.instruction, tf32));
        // The alignment that programs promise at least: what is measured serves them all.
        constexpr int64_t kAlignment = 16;
        const std::vector<llvm::Constant*> algorithms(images, t.Struct({t.Number(c.algorithm), t.Number(0), t.Null()}));
        call = t.Global(
            t.Struct({t.Number(routine.routine), t.Number(count),
                      t.Number(static_cast<int64_t>(routine.numbers.size())), t.Numbers(routine.numbers),
                      t.Array(algorithms), t.Numbers(std::vector<int64_t>(arrays.size(), kAlignment)), t.Null()}));
      }
      candidates.push_back(t.Struct({t.Number(c.algorithm), launch, call}));
    }
    list.push_back(t.Struct({t.Text(TuningKey(s.instruction)), t.Text(TuningText(s.instruction)), t.Number(count),
                             t.Array(arrays), t.Number(static_cast<int64_t>(candidates.size())), t.Array(candidates)}));
  }
  t.Publish(name + "_tune_program", t.Struct({t.Text(name), t.Text(target), t.Number(level),
                                              t.Number(static_cast<int64_t>(subjects.size())), t.Array(list)}));
  return absl::OkStatus();
}

}  // namespace kiln::gpu
