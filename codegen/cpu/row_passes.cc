#include "codegen/cpu/row_passes.h"

#include <algorithm>

namespace kiln::cpu {
namespace {

// What is computed in the same loop as `values`, and the values of the row that it reads.
absl::flat_hash_set<const Instruction*> NeededFor(const std::vector<const Instruction*>& values) {
  absl::flat_hash_set<const Instruction*> needed;
  std::vector<const Instruction*> work(values.begin(), values.end());
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!needed.insert(i).second || i->Is(Opcode::Reduce)) continue;
    work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return needed;
}

}  // namespace

absl::StatusOr<RowPasses> RowPasses::Of(const FusionBody& fusion, bool together) {
  RowPasses out;
  out.outputs = ResultsOf(fusion.f.root());
  const std::vector<Instruction*> order = fusion.f.PostOrder();
  absl::flat_hash_map<const Instruction*, size_t> after;  // the loops that a value waits for
  for (const Instruction* i : order) {
    size_t loops = 0;
    for (const Instruction* o : i->operands()) loops = std::max(loops, after[o]);
    if (!i->Is(Opcode::Reduce)) {
      const bool of_row = i->shape().IsArray() && i->shape().ElementCount() == out.rows;
      if (loops > 0 && of_row) out.of_row.push_back(i);
      after[i] = loops;
      continue;
    }
    out.rows = i->shape().ElementCount();
    out.length = i->operand(0)->shape().ElementCount() / out.rows;
    const size_t p = together ? loops : out.passes.size();
    if (p == out.passes.size()) out.passes.emplace_back();
    out.passes[p].reduces.push_back(i);
    after[i] = p + 1;
  }
  if (out.length < 2) return ErrorAt(fusion.body.i, "reduces no rows", absl::StatusCode::kInternal);
  for (RowPass& p : out.passes) {
    std::vector<const Instruction*> values;
    for (const Instruction* r : p.reduces) values.push_back(r->operand(0));
    p.needed = NeededFor(values);
  }
  out.passes.push_back({{}, NeededFor(out.outputs)});
  return out;
}

std::vector<const Instruction*> RowPasses::WorthKeeping(const Computation& f) const {
  std::vector<const Instruction*> out;
  for (const Instruction* i : f.PostOrder()) {
    if (!i->IsElementwise() || !i->HasTrait(Transcendental) || !IsWhole(i->shape()) || IsComplex(i->shape().type()))
      continue;
    const auto readers =
        std::count_if(passes.begin(), passes.end(), [&](const RowPass& p) { return p.needed.contains(i); });
    if (readers > 1) out.push_back(i);
  }
  return out;
}

void RowPasses::KeepInBuffers(FusionBody& fusion, int64_t count) {
  int64_t bytes = 0;
  for (const Instruction* i : WorthKeeping(fusion.f)) {
    const int64_t more = count * std::max<int64_t>(4, ByteWidth(i->shape().type()));
    if (bytes + more > kMostKeptBytes) continue;
    bytes += more;
    kept.emplace_back(i, Slots(fusion.ir, i->shape().type(), count));
  }
}

absl::Status RowPasses::UseKept(FusionBody& fusion, size_t p, const PlaceIn& at, llvm::Value* slot) const {
  for (const auto& [value, slots] : kept) {
    const Instruction* i = value;
    if (!passes[p].needed.contains(i)) continue;
    const bool known = std::any_of(passes.begin(), passes.begin() + static_cast<ptrdiff_t>(p),
                                   [i](const RowPass& q) { return q.needed.contains(i); });
    if (known) {
      fusion.elements.Preset(i, slots.Get(slot));
      continue;
    }
    fusion.elements.Forget(i);
    ASSIGN_OR_RETURN(Val v, fusion.elements.Emit(i, at(i->shape())));
    slots.Put(slot, v);
  }
  return absl::OkStatus();
}

absl::Status RowPasses::StoreOutputs(FusionBody& fusion, bool whole, const PlaceIn& at) const {
  std::vector<Val> values(outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (IsWhole(outputs[o]->shape()) != whole) continue;
    ASSIGN_OR_RETURN(values[o], fusion.elements.Emit(outputs[o], at(outputs[o]->shape())));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Shape& s = outputs[o]->shape();
    if (values[o].re) fusion.StoreResult(o, s, values[o], at(s));
  }
  return absl::OkStatus();
}

bool RowPasses::HasOutputs(bool whole) const {
  return std::any_of(outputs.begin(), outputs.end(), [&](auto* o) { return IsWhole(o->shape()) == whole; });
}

std::vector<llvm::Value*> Delinearize(Ir& ir, llvm::Value* linear, const Ints& dims) {
  std::vector<llvm::Value*> at(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    // The outermost extent that counts takes what is left.
    const bool first =
        std::all_of(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(d), [](int64_t n) { return n == 1; });
    at[d] = dims[d] == 1 ? ir.I64(0) : first ? linear : ir.b.CreateURem(linear, ir.I64(dims[d]));
    if (dims[d] != 1 && !first) linear = ir.b.CreateUDiv(linear, ir.I64(dims[d]));
  }
  return at;
}

RowSums::RowSums(Ir& ir, ElementEmitter& elements, const Instruction* reduce, int64_t count)
    : ir_(ir),
      elements_(elements),
      reduce_(reduce),
      keys_(**reduce->attrs().to_apply),
      sum_(ir, reduce->shape().type(), keys_.Apply() ? 1 : count),
      highest_(ir, keys_.KeyType(), keys_.Apply() ? count : 1),
      least_(ir, keys_.KeyType(), keys_.Apply() ? count : 1) {}

absl::Status RowSums::Begin(llvm::Value* slot) const {
  ASSIGN_OR_RETURN(Val initial, elements_.Emit(reduce_->operand(1), Index{}));
  keys_.Apply() ? Put(slot, keys_.First(ir_, initial)) : sum_.Put(slot, initial);
  return absl::OkStatus();
}

absl::Status RowSums::Add(llvm::Value* slot, const Index& at) const {
  ASSIGN_OR_RETURN(Val v, elements_.Emit(reduce_->operand(0), at));
  if (!keys_.Apply()) return Add(slot, v);
  Put(slot, keys_.Next(ir_, SoFar(slot), v));
  return absl::OkStatus();
}

absl::Status RowSums::AddSum(llvm::Value* slot, const RowSums& from, llvm::Value* of) const {
  return Add(slot, from.sum_.Get(of));
}

absl::Status RowSums::Add(llvm::Value* slot, Val v) const {
  const PrimitiveType t = reduce_->shape().type();
  const Computation& f = **reduce_->attrs().to_apply;
  AllowReassociation(ir_, true);
  absl::StatusOr<std::vector<Val>> r = std::vector<Val>();
  if (f.root()->Is(Opcode::Add) && IsFloat(t) && InfoOf(t).bits < 32)
    r->push_back(Val{ir_.b.CreateFAdd(sum_.Get(slot).re, v.re)});
  else
    r = elements_.Apply(f, {sum_.Get(slot), v});
  AllowReassociation(ir_, false);
  RETURN_IF_ERROR(r.status());
  sum_.Put(slot, (*r)[0]);
  return absl::OkStatus();
}

Val RowSums::Result(llvm::Value* slot) const {
  const PrimitiveType t = reduce_->shape().type();
  Val out = keys_.Apply() ? keys_.Result(ir_, SoFar(slot)) : sum_.Get(slot);
  if (IsFloat(t)) out.re = ir_.Round(t, out.re);
  return out;
}

}  // namespace kiln::cpu
