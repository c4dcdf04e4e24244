#include <algorithm>

#include "compiler/hlo/infer_rules.h"
#include "compiler/hlo/limits.h"

namespace kiln {
namespace infer {

absl::Status CheckDims(const Ints& dims, int64_t rank, absl::string_view what, bool sorted) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (size_t i = 0; i < dims.size(); ++i) {
    REQUIRE(dims[i] >= 0 && dims[i] < rank, what, " ", dims[i], " is out of range for rank ", rank);
    REQUIRE(!seen[dims[i]], what, " ", dims[i], " appears twice");
    seen[dims[i]] = true;
    if (sorted && i) REQUIRE(dims[i] > dims[i - 1], what, " must be ascending");
  }
  return absl::OkStatus();
}

bool SameExtents(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (!SameExtent(a.dim(d), b.dim(d)) && !a.is_dynamic(d) && !b.is_dynamic(d)) return false;
  return true;
}

Shape OneOrTuple(std::vector<Shape> parts, Given given) {
  return parts.size() == 1 && !(given && given->IsTuple()) ? parts[0] : Shape::Tuple(std::move(parts));
}

namespace {

struct RuleOfOpcode {
  Opcode opcode;
  Rule* rule;
};

constexpr RuleOfOpcode kRules[] = {
    {Opcode::AddDependency, AddDependency},
    {Opcode::AfterAll, AfterAll},
    {Opcode::AsyncDone, Asynchronous},
    {Opcode::AsyncStart, Asynchronous},
    {Opcode::AsyncUpdate, Asynchronous},
    {Opcode::BatchNormGrad, BatchNorm},
    {Opcode::BatchNormInference, BatchNorm},
    {Opcode::BatchNormTraining, BatchNorm},
    {Opcode::Bitcast, Bitcast},
    {Opcode::BitcastConvert, BitcastConvert},
    {Opcode::Broadcast, Broadcast},
    {Opcode::Call, Call},
    {Opcode::Cholesky, Cholesky},
    {Opcode::Concatenate, Concatenate},
    {Opcode::Conditional, Conditional},
    {Opcode::Convolution, Convolution},
    {Opcode::CopyDone, Asynchronous},
    {Opcode::CopyStart, Asynchronous},
    {Opcode::Domain, SameAsOperand},
    {Opcode::Dot, Dot},
    {Opcode::DynamicReshape, DynamicReshape},
    {Opcode::DynamicSlice, DynamicSlice},
    {Opcode::DynamicUpdateSlice, DynamicUpdateSlice},
    {Opcode::Fft, Fft},
    {Opcode::Fusion, Fusion},
    {Opcode::Gather, Gather},
    {Opcode::GetDimensionSize, GetDimensionSize},
    {Opcode::GetTupleElement, GetTupleElement},
    {Opcode::Infeed, Transfer},
    {Opcode::Iota, Iota},
    {Opcode::Map, Map},
    {Opcode::OptimizationBarrier, SameAsOperand},
    {Opcode::Outfeed, Transfer},
    {Opcode::Pad, Pad},
    {Opcode::PartitionId, DeviceId},
    {Opcode::RaggedDot, RaggedDot},
    {Opcode::Recv, Transfer},
    {Opcode::RecvDone, Transfer},
    {Opcode::Reduce, Reduce},
    {Opcode::ReduceWindow, ReduceWindow},
    {Opcode::ReplicaId, DeviceId},
    {Opcode::Reshape, Reshape},
    {Opcode::Reverse, Reverse},
    {Opcode::Rng, Rng},
    {Opcode::RngBitGenerator, RngBitGenerator},
    {Opcode::RngGetAndUpdateState, RngGetAndUpdateState},
    {Opcode::ScaledDot, Dot},
    {Opcode::Scan, Scan},
    {Opcode::Scatter, Scatter},
    {Opcode::SelectAndScatter, SelectAndScatter},
    {Opcode::Send, Transfer},
    {Opcode::SendDone, Transfer},
    {Opcode::SetDimensionSize, SetDimensionSize},
    {Opcode::Slice, Slice},
    {Opcode::Sort, Sort},
    {Opcode::TopK, TopK},
    {Opcode::Transpose, Transpose},
    {Opcode::TriangularSolve, TriangularSolve},
    {Opcode::Tuple, Tuple},
    {Opcode::While, While},
};

// Null for what is elementwise, a collective, or states its shape.
Rule* RuleOf(Opcode opcode) {
  static const auto* const rules = [] {
    auto* table = new std::vector<Rule*>(static_cast<size_t>(OpcodeCount()));
    for (const RuleOfOpcode& r : kRules) (*table)[static_cast<size_t>(r.opcode)] = r.rule;
    return table;
  }();
  return (*rules)[static_cast<size_t>(opcode)];
}

absl::StatusOr<Shape> Infer(const Instruction& i, Given given) {
  if (i.IsElementwise()) return Elementwise(i, given);
  if (Rule* rule = RuleOf(i.opcode())) return rule(i, given);
  if (i.HasTrait(kiln::Collective)) return infer::Collective(i, given);
  REQUIRE(given, "needs a shape");
  return *given;
}

}  // namespace
}  // namespace infer

bool HasUnbounded(const Shape& s) {
  return std::any_of(s.dims().begin(), s.dims().end(), [](int64_t d) { return d < 0; }) ||
         std::any_of(s.tuple().begin(), s.tuple().end(), HasUnbounded);
}

int64_t BitsInMemory(PrimitiveType t) { return t == PrimitiveType::Pred ? 8 : InfoOf(t).bits; }

bool WindowFits(int64_t input, const WindowDim& w) {
  constexpr int64_t kMost = Limits().elements;
  const auto dilated = [](int64_t extent, int64_t dilation, int64_t* places) {
    return !__builtin_mul_overflow(std::max<int64_t>(extent - 1, 0), dilation, places) && *places < kMost;
  };
  int64_t places;
  return dilated(input, w.lhs_dilate, &places) && dilated(w.size, w.rhs_dilate, &places) && w.pad_low >= -kMost &&
         w.pad_low <= kMost && w.pad_high >= -kMost && w.pad_high <= kMost;
}

int64_t WindowedExtent(int64_t input, const WindowDim& w) {
  const int64_t base = input == 0 ? 0 : (input - 1) * w.lhs_dilate + 1;
  const int64_t padded = base + w.pad_low + w.pad_high;
  const int64_t win = w.DilatedSize();
  if (padded < win || padded <= 0) return (padded == 0 && win == 0) ? 1 : 0;
  return (padded - win) / w.stride + 1;
}

absl::StatusOr<Shape> InferShape(const Instruction& i) { return infer::Infer(i, &i.shape()); }

absl::StatusOr<Shape> InferOmittedShape(const Instruction& i) {
  ASSIGN_OR_RETURN(Shape s, infer::Infer(i, nullptr));
  s.ClearLayouts();
  return s;
}

}  // namespace kiln
