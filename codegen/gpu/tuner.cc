#include "codegen/gpu/tuner.h"

#include "absl/strings/str_cat.h"
#include "codegen/gpu/library_call.h"
#include "codegen/gpu/tiles.h"
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

class Tables {
 public:
  Tables(Ir& ir, const std::string& name) : ir_(ir), b_(ir.b), name_(name) {}

  llvm::Constant* Number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(b_.getPtrTy()); }
  llvm::Constant* Struct(const std::vector<llvm::Constant*>& fields) {
    return llvm::ConstantStruct::getAnon(ir_.ctx, fields);
  }
  llvm::Constant* Global(llvm::Constant* init) {
    return new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::InternalLinkage, init,
                                    name_ + "_tune_data");
  }
  llvm::Constant* Text(const std::string& s) { return Global(llvm::ConstantDataArray::getString(ir_.ctx, s)); }
  llvm::Constant* Array(const std::vector<llvm::Constant*>& v) {
    if (v.empty()) return Null();
    return Global(llvm::ConstantArray::get(llvm::ArrayType::get(v[0]->getType(), v.size()), v));
  }
  llvm::Constant* Numbers(const std::vector<int64_t>& v) {
    std::vector<llvm::Constant*> out;
    for (int64_t n : v) out.push_back(Number(n));
    return Array(out);
  }

 private:
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const std::string& name_;
};

}  // namespace

absl::StatusOr<std::vector<TuneSubject>> EmitCandidates(Ir& ir, const GpuTarget& target, const std::string& name,
                                                        const std::vector<Instruction*>& subjects,
                                                        const TuningResults* denied, Program* program) {
  std::vector<TuneSubject> out;
  for (Instruction* i : subjects) {
    const std::string key = TuningKey(i);
    TuneSubject subject{i, {}};
    const auto allowed = [&](int64_t algorithm) { return !denied || !denied->Denied(target.name, key, algorithm); };
    ASSIGN_OR_RETURN(const std::optional<ProductShape> product, ProductOf(i));
    if (product) {
      for (int64_t tile : TilesFor(*product, target)) {
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

absl::Status EmitTuneTables(Ir& ir, const std::string& name, const std::string& target, int64_t level, size_t images,
                            const std::vector<TuneSubject>& subjects) {
  Tables t(ir, name);
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
        launch = t.Global(t.Struct({t.Number(static_cast<int64_t>(c.start->kernel)), t.Numbers(grid),
                                    t.Number(c.start->launch.number), t.Number(count)}));
      } else {
        ASSIGN_OR_RETURN(const RoutineCall routine, RoutineOf(s.instruction));
        call = t.Global(t.Struct({t.Number(routine.routine), t.Number(count),
                                  t.Number(static_cast<int64_t>(routine.numbers.size())), t.Numbers(routine.numbers),
                                  t.Numbers(std::vector<int64_t>(images, c.algorithm))}));
      }
      candidates.push_back(t.Struct({t.Number(c.algorithm), launch, call}));
    }
    list.push_back(t.Struct({t.Text(TuningKey(s.instruction)), t.Text(TuningText(s.instruction)), t.Number(count),
                             t.Array(arrays), t.Number(static_cast<int64_t>(candidates.size())), t.Array(candidates)}));
  }
  llvm::Constant* init = t.Struct(
      {t.Text(name), t.Text(target), t.Number(level), t.Number(static_cast<int64_t>(subjects.size())), t.Array(list)});
  auto* g = new llvm::GlobalVariable(ir.module, init->getType(), true, llvm::GlobalValue::ExternalLinkage, init,
                                     name + "_tune_program");
  g->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return absl::OkStatus();
}

}  // namespace kiln::gpu
