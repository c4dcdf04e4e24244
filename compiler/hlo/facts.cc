#include "compiler/hlo/facts.h"

#include "compiler/hlo/annotation.h"
#include "compiler/hlo/verify.h"

namespace kiln {
namespace {

// Computations whose instructions run one by one: the entry, loop bodies and conditions, branches.
std::vector<const Computation*> Running(const Module& m) {
  std::vector<const Computation*> out = {m.entry()};
  for (size_t k = 0; k < out.size(); ++k)
    for (const auto& i : out[k]->instructions())
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
        for (const Computation* c : i->called()) out.push_back(c);
  return out;
}

// The input in any order, the kernel in any in which its spatial dimensions follow one another: CPU kernels read them
// all. GPU kernels read b01f and 01io, and say so of others.
bool IsCanonical(const ConvDimensionNumbers& d) {
  const int64_t n = static_cast<int64_t>(d.output_spatial.size());
  for (int64_t s = 0; s < n; ++s)
    if (d.kernel_spatial[s] != d.kernel_spatial[0] + s || d.output_spatial[s] != s + 1) return false;
  return d.output_batch == 0 && d.output_feature == n + 1;
}

bool ConvolvesInAnotherOrder(const Instruction& i) {
  return i.Is(Opcode::Convolution) &&
         (!IsCanonical(*i.attrs().dim_labels) || i.attrs().batch_group_count.value_or(1) != 1);
}

bool MultipliesOtherRanks(const Instruction& i) {
  if (!i.Is(Opcode::Dot) || i.attrs().sparsity) return false;
  const auto one = [](const std::optional<Ints>& dims) { return dims && dims->size() == 1; };
  const Ints first = {0};
  return i.shape().rank() != 3 || i.attrs().lhs_batch_dims != first || i.attrs().rhs_batch_dims != first ||
         !one(i.attrs().lhs_contracting_dims) || !one(i.attrs().rhs_contracting_dims);
}

bool MultipliesVectors(const Instruction& i) {
  return MultipliesOtherRanks(i) && i.shape().rank() == 1 && i.operand(0)->shape().rank() == 2;
}

bool TakesIndicesAsVector(const Instruction& i) {
  const int64_t first = i.Is(Opcode::DynamicSlice) ? 1 : i.Is(Opcode::DynamicUpdateSlice) ? 2 : -1;
  return first >= 0 && i.operand_count() == first + 1 && i.operand(first)->shape().rank() == 1;
}

bool RegroupsBitsOfNarrowTypes(const Instruction& i) {
  if (!i.Is(Opcode::BitcastConvert)) return false;
  const int from = InfoOf(i.operand(0)->shape().type()).bits, to = InfoOf(i.shape().type()).bits;
  return from != to && (from < 8 || to < 8);
}

bool CarriesSharding(const Instruction& i) { return IsShardingAnnotation(i) || BoundaryOf(i) != Boundary::kNone; }

bool GathersFromNothing(const Instruction& i) {
  return i.Is(Opcode::Gather) && i.operand(0)->shape().ElementCount() == 0 && i.shape().ElementCount() > 0;
}

// Forms of legal operations that no kernel knows, and the pass that writes them in another.
struct Form {
  bool (*is)(const Instruction&);
  const char* what;
  const char* pass;
};
constexpr Form kExpandedForms[] = {
    {[](const Instruction& i) { return i.shape().HasDynamic(); }, "kernels know no dynamic dimensions",
     "dynamic-padder"},
    {ConvolvesInAnotherOrder, "kernels convolve to b01f without groups of batches", "convolution-canonicalization"},
    {MultipliesVectors, "kernels multiply matrices", "dot-normalizer"},
    {MultipliesOtherRanks, "kernels multiply one batch of matrices by another", "dot-decomposer"},
    {TakesIndicesAsVector, "kernels take one scalar for each index", "dynamic-index-splitter"},
    {RegroupsBitsOfNarrowTypes, "elements narrower than a byte lie in bytes of their own", "bitcast-dtypes-expander"},
    {GathersFromNothing, "there is no element to read", "zero-sized-hlo-elimination"},
    {CarriesSharding, "there is no such function", "manual-sharding-expander and sharding-remover"},
    {[](const Instruction& i) { return i.Is(Opcode::OptimizationBarrier); }, "no code orders values",
     "optimization-barrier-expander"},
    {IsAnnotation, "no code moves values to where they shall lie",
     "host-offloader, or for CPUs strip-memory-placement-annotations"},
    {[](const Instruction& i) { return i.Is(Opcode::Call); }, "no code calls a computation", "call-inliner"},
};

absl::Status CheckCore(const Module& m) {
  for (const Computation* c : m.PostOrder())
    for (const auto& i : c->instructions()) {
      for (const Form& f : kExpandedForms)
        if (f.is(*i))
          return ErrorAt(i.get(), absl::StrCat(f.what, "; the pass ", f.pass, " is needed"),
                         absl::StatusCode::kUnimplemented);
      if (InfoOf(i->opcode()).lowering == Lowering::Expanded)
        return ErrorAt(i.get(), "is not supported", absl::StatusCode::kUnimplemented);
    }
  return absl::OkStatus();
}

// Storage is planned once for each computation, so one caller may own it.
absl::Status CheckOwnComputations(const Module& m) {
  absl::flat_hash_set<const Computation*> owned;
  for (const Computation* c : m.PostOrder())
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::While) && !i->Is(Opcode::Conditional)) continue;
      for (const Computation* callee : i->called())
        if (!owned.insert(callee).second)
          return ErrorAt(i.get(),
                         absl::StrCat(callee->name(), " has another caller; the pass flatten-call-graph is needed"),
                         absl::StatusCode::kUnimplemented);
    }
  return absl::OkStatus();
}

bool SameLayouts(const Shape& a, const Shape& b) {
  if (a.IsTuple() != b.IsTuple() || a.tuple().size() != b.tuple().size()) return false;
  for (size_t k = 0; k < a.tuple().size(); ++k)
    if (!SameLayouts(a.tuple()[k], b.tuple()[k])) return false;
  return !a.IsArray() || a.LayoutOrDefault().minor_to_major == b.LayoutOrDefault().minor_to_major;
}

// Two places that hold one value, or that a kernel walks as one.
struct Meeting {
  const Shape* from;
  const Shape* to;
};

std::vector<Meeting> MeetingsOf(const Instruction& i) {
  std::vector<Meeting> out;
  const auto enters = [&](const Computation* c, int64_t parameter, const Instruction* value) {
    out.push_back({&value->shape(), &c->parameter(parameter)->shape()});
  };
  if (i.Is(Opcode::Tuple)) {
    for (int64_t k = 0; k < i.operand_count(); ++k) out.push_back({&i.operand(k)->shape(), &i.shape().tuple()[k]});
  } else if (i.Is(Opcode::GetTupleElement)) {
    out.push_back({&i.operand(0)->shape().tuple()[*i.attrs().tuple_index], &i.shape()});
  } else if (i.Is(Opcode::While)) {
    for (const Computation* c : i.called()) enters(c, 0, i.operand(0));
    out.push_back({&(*i.attrs().body)->root()->shape(), &i.shape()});
    out.push_back({&i.operand(0)->shape(), &i.shape()});
  } else if (i.Is(Opcode::Conditional)) {
    int64_t operand = 1;
    for (const Computation* c : i.called()) {
      enters(c, 0, i.operand(operand++));
      out.push_back({&c->root()->shape(), &i.shape()});
    }
  } else if (i.Is(Opcode::Fusion) || i.Is(Opcode::Call)) {
    for (const Computation* c : i.called()) {
      for (int64_t k = 0; k < i.operand_count(); ++k) enters(c, k, i.operand(k));
      out.push_back({&c->root()->shape(), &i.shape()});
    }
  } else if (i.IsElementwise() && !i.Is(Opcode::Copy)) {
    for (const Instruction* o : i.operands())
      if (o->shape().rank() == i.shape().rank()) out.push_back({&o->shape(), &i.shape()});
  }
  return out;
}

absl::Status CheckLaidOut(const Module& m) {
  for (const Computation* c : Running(m))
    for (const auto& i : c->instructions()) {
      bool bare = false;
      ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& s) {
        bare = bare || (s.IsArray() && s.rank() > 0 && !s.layout());
      });
      if (bare)
        return ErrorAt(i.get(), "has no layout; the pass layout-assignment is needed",
                       absl::StatusCode::kUnimplemented);
      for (const Meeting& meeting : MeetingsOf(*i))
        if (!SameLayouts(*meeting.from, *meeting.to))
          return ErrorAt(i.get(),
                         absl::StrCat("takes ", meeting.from->ToString(), " for ", meeting.to->ToString(),
                                      "; the pass layout-assignment is needed"),
                         absl::StatusCode::kUnimplemented);
    }
  return absl::OkStatus();
}

absl::Status CheckFused(const Module& m) {
  RETURN_IF_ERROR(CheckOwnComputations(m));
  for (const Computation* c : Running(m))
    for (const auto& i : c->instructions())
      if (InfoOf(i->opcode()).lowering == Lowering::Elemental && !i->Is(Opcode::Copy))
        return ErrorAt(i.get(), "is outside every fusion; the pass fusion-wrapper is needed",
                       absl::StatusCode::kUnimplemented);
  return absl::OkStatus();
}

}  // namespace

std::string FactNames(Facts facts) {
  std::string out;
#define FACT(e, ...) \
  if (facts & fact::e) absl::StrAppend(&out, out.empty() ? "" : ", ", #e);
#include "compiler/hlo/facts.def"
  return out;
}

absl::Status CheckFacts(const Module& m, Facts facts) {
  if (facts & fact::Typed) RETURN_IF_ERROR(VerifyModule(m));
  if (facts & fact::Core) RETURN_IF_ERROR(CheckCore(m));
  if (facts & fact::LaidOut) RETURN_IF_ERROR(CheckLaidOut(m));
  if (facts & fact::Fused) RETURN_IF_ERROR(CheckFused(m));
  return absl::OkStatus();
}

}  // namespace kiln
