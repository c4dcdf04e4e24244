#include "codegen/elemental/reduced.h"

#include <algorithm>

#include "compiler/hlo/unrounded_sums.h"

namespace kiln {

absl::StatusOr<std::vector<Val>> Combine(ElementEmitter& elements, const Instruction* i,
                                         const std::vector<Val>& arguments) {
  if (SumsUnrounded(i)) return std::vector<Val>{Val{elements.ir().b.CreateFAdd(arguments[0].re, arguments[1].re)}};
  return elements.Apply(**i->attrs().to_apply, arguments);
}

absl::StatusOr<Accumulator> Accumulator::Begin(ElementEmitter& elements, const Instruction* i) {
  Accumulator a(elements, i);
  const auto arrays = static_cast<size_t>(i->operand_count() / 2);
  for (size_t k = 0; k < arrays; ++k) {
    ASSIGN_OR_RETURN(Val init, elements.Emit(i->operand(static_cast<int64_t>(arrays + k)), Index{}));
    a.slots_.push_back(elements.ir().Alloca(elements.ir().RegType(a.Type(k)), 2, 16));
    a.Put(k, init);
  }
  return a;
}

void Accumulator::Put(size_t k, const Val& v) {
  Ir& ir = elements_.ir();
  ir.b.CreateStore(v.re, slots_[k]);
  if (v.im) ir.b.CreateStore(v.im, ir.b.CreateGEP(ir.RegType(Type(k)), slots_[k], ir.I64(1)));
}

std::vector<Val> Accumulator::SoFar() {
  Ir& ir = elements_.ir();
  std::vector<Val> out;
  for (size_t k = 0; k < slots_.size(); ++k) {
    llvm::Type* part = ir.RegType(Type(k));
    out.push_back({ir.b.CreateLoad(part, slots_[k])});
    if (IsComplex(Type(k))) out.back().im = ir.b.CreateLoad(part, ir.b.CreateGEP(part, slots_[k], ir.I64(1)));
  }
  return out;
}

std::vector<Val> Accumulator::Get() {
  std::vector<Val> out = SoFar();
  if (SumsUnrounded(i_)) out[0].re = elements_.ir().Round(Type(0), out[0].re);
  return out;
}

absl::Status Accumulator::Take(const Index& at) {
  std::vector<Val> values = SoFar();
  for (size_t k = 0; k < slots_.size(); ++k) {
    ASSIGN_OR_RETURN(const Val v, elements_.Emit(i_->operand(static_cast<int64_t>(k)), at));
    values.push_back(v);
  }
  ASSIGN_OR_RETURN(const std::vector<Val> combined, Combine(elements_, i_, values));
  for (size_t k = 0; k < slots_.size(); ++k) Put(k, combined[k]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Val>> EmitReduced(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  ASSIGN_OR_RETURN(Accumulator reduced, Accumulator::Begin(elements, i));
  const Shape& s = i->operand(0)->shape();
  const Ints& dims = *i->attrs().dimensions;
  Index at{std::vector<llvm::Value*>(static_cast<size_t>(s.rank()))};
  size_t kept = 0;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) at.dims[static_cast<size_t>(d)] = index.dims[kept++];
  absl::Status status;
  const std::function<void(size_t)> nest = [&](size_t k) {
    if (!status.ok()) return;
    if (k == dims.size()) {
      status = reduced.Take(at);
      return;
    }
    ir.Loop(ir.I64(0), ir.I64(s.dim(dims[k])), 1, [&](llvm::Value* p) {
      at.dims[static_cast<size_t>(dims[k])] = p;
      nest(k + 1);
    });
  };
  nest(0);
  RETURN_IF_ERROR(status);
  return reduced.Get();
}

}  // namespace kiln
