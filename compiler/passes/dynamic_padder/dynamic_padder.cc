// Bounded dynamic dimensions as static ones: arrays keep their bounds, sizes become scalars beside them, and what lies
// past a size is masked wherever it could reach a result.
//
// Sizes are inferred operation by operation. They travel with their values: through tuples, and as further elements of
// loop state, branch arguments and branch results. An argument's dynamic dimension gets its size from a new s32[]
// argument, a result's is returned as a new s32[] result; both come last, in order.
// Source: XLA's DynamicDimensionInference and DynamicPadder.
#include <algorithm>

#include "compiler/hlo/interface_names.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln {
namespace padding {
namespace {

absl::Status Visit(SizedComputation& f, Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Parameter:
      return absl::OkStatus();
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::OptimizationBarrier:
    case Opcode::Copy:
    case Opcode::AddDependency:
    case Opcode::Domain:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
      return PadControlFlow(f, i);
    case Opcode::SetDimensionSize:
    case Opcode::GetDimensionSize:
    case Opcode::DynamicReshape:
      return PadShapeOperation(f, i);
    default:
      break;
  }
  const auto dynamic = [&](const Instruction* o) { return f.IsDynamic(o); };
  if (std::none_of(i->operands().begin(), i->operands().end(), dynamic))
    return i->shape().HasDynamic() ? RefuseDynamic(f, i) : absl::OkStatus();
  if (i->IsElementwise() || i->Is(Opcode::Map)) {
    Sizes out;
    for (Instruction* o : i->operands())
      if (o->shape().rank() == i->shape().rank()) out.insert(f.Of(o).begin(), f.Of(o).end());
    f.Set(i, out);
    return absl::OkStatus();
  }
  switch (i->opcode()) {
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Dot:
    case Opcode::Convolution:
    case Opcode::SelectAndScatter:
      return PadContraction(f, i);
    case Opcode::Sort:
      return PadSort(f, i);
    default:
      return PadShapeOperation(f, i);
  }
}

std::string SizeName(const Module& m, const Instruction* p, const ShapeIndex& leaf, int64_t dim) {
  const int64_t number = *p->attrs().parameter_number;
  std::string name = number < static_cast<int64_t>(m.argument_names.size()) ? m.argument_names[number] : p->name();
  for (int64_t k : leaf) absl::StrAppend(&name, "_", k);
  return absl::StrCat(name, "_size", dim);
}

void AddArguments(SizedComputation& f) {
  Module& m = *f.module();
  const std::vector<Instruction*> given = f.computation()->parameters();
  int64_t arrays = 0;
  for (const Instruction* p : given)
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) { arrays += s.IsArray(); });
  for (Instruction* p : given) {
    LeafSizes sizes;
    for (const auto& [leaf, dim] : DeclaredDims(p->shape())) {
      const Shape* s = &p->shape();
      for (int64_t k : leaf) s = &s->tuple()[k];
      const int64_t number = static_cast<int64_t>(f.computation()->parameters().size());
      const std::string name = SizeName(m, p, leaf, dim);
      Instruction* size = f.computation()->AddParameter(number, Shape::Scalar(PrimitiveType::S32), name);
      sizes[leaf][dim] = size;
      m.dimension_arguments.push_back({arrays++, s->dim(dim)});
      if (!m.argument_names.empty()) m.argument_names.push_back(name);
      if (m.entry_layout) m.entry_layout->parameters.push_back(size->shape());
    }
    f.SetAll(p, sizes);
  }
  if (m.entry_layout)
    for (Shape& s : m.entry_layout->parameters) StripDynamic(&s);
}

void AddResults(SizedComputation& f) {
  Module& m = *f.module();
  Instruction* root = f.computation()->root();
  const DynamicDims dims = KnownDims(f.All(root));
  if (!dims.empty()) {
    std::map<ShapeIndex, int64_t> number;
    ForEachLeaf(root->shape(), [&](const ShapeIndex& leaf, const Shape& s) {
      if (s.IsArray()) number.emplace(leaf, static_cast<int64_t>(number.size()));
    });
    std::vector<ResultDimension> of;
    for (const auto& [leaf, dim] : dims) of.push_back({number[leaf], dim});
    SetSizeResults(of, &m);
    f.computation()->set_root(WithSizes(f, root, dims));
    if (m.entry_layout) {
      Shape& result = m.entry_layout->result;
      std::vector<Shape> parts = result.IsTuple() ? result.tuple() : std::vector<Shape>{result};
      parts.resize(parts.size() + dims.size(), Shape::Scalar(PrimitiveType::S32));
      result = Shape::Tuple(parts);
    }
    if (!root->shape().IsTuple())
      for (AliasEntry& a : m.aliases) a.output.insert(a.output.begin(), 0);
  }
  if (m.entry_layout) StripDynamic(&m.entry_layout->result);
}

}  // namespace

absl::Status PadComputation(SizedComputation& f) {
  for (Instruction* i : f.computation()->PostOrder()) RETURN_IF_ERROR(Visit(f, i));
  return absl::OkStatus();
}

}  // namespace padding

absl::StatusOr<bool> DynamicPadder(Module& m, PassContext& ctx) {
  if (!padding::IsDynamicComputation(m.entry()) || !ctx.Take()) return false;
  padding::SizedComputation entry(&m, m.entry());
  padding::AddArguments(entry);
  RETURN_IF_ERROR(padding::PadComputation(entry));
  padding::AddResults(entry);
  // Computations that took sizes along were copied for each caller.
  m.RemoveUnreachableComputations();
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) padding::StripDynamic(&i->mutable_shape());
  return true;
}

}  // namespace kiln
