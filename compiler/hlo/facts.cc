#include "compiler/hlo/facts.h"

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

absl::Status CheckCore(const Module& m) {
  for (const Computation* c : m.PostOrder())
    for (const auto& i : c->instructions())
      if (InfoOf(i->opcode()).lowering == Lowering::Expanded)
        return ErrorAt(i.get(), "is not supported", absl::StatusCode::kUnimplemented);
  return absl::OkStatus();
}

absl::Status CheckLaidOut(const Module& m) {
  for (const Computation* c : Running(m))
    for (const auto& i : c->instructions()) {
      bool bare = false;
      ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& s) { bare = bare || (s.IsArray() && !s.layout()); });
      if (bare) return ErrorAt(i.get(), "has no layout", absl::StatusCode::kInternal);
    }
  return absl::OkStatus();
}

absl::Status CheckFused(const Module& m) {
  for (const Computation* c : Running(m))
    for (const auto& i : c->instructions())
      if (InfoOf(i->opcode()).lowering == Lowering::Elemental && !i->Is(Opcode::Copy))
        return ErrorAt(i.get(), "is outside every fusion", absl::StatusCode::kInternal);
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
