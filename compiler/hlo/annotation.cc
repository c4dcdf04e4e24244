#include "compiler/hlo/annotation.h"

#include <algorithm>

#include "absl/types/span.h"
#include "compiler/hlo/sharding.h"

namespace kiln {
namespace {

constexpr const char* kShardings[] = {"Sharding", "xla.sdy.FuncResultSharding"};
constexpr const char* kPlaces[] = {"annotate_device_placement", "MoveToDevice",    "MoveToHost", "PinToDevice",
                                   "PinToDeviceSram",           "LayoutConstraint"};

bool Calls(const Instruction& i, absl::Span<const char* const> targets) {
  return i.Is(Opcode::CustomCall) && i.attrs().custom_call_target &&
         std::find(targets.begin(), targets.end(), i.attrs().custom_call_target->text) != targets.end();
}

constexpr const char* kInto[] = {"SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"};
constexpr const char* kOutOf[] = {"SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"};

}  // namespace

bool IsShardingAnnotation(const Instruction& i) { return Calls(i, kShardings); }

bool IsAnnotation(const Instruction& i) { return IsShardingAnnotation(i) || Calls(i, kPlaces); }

bool PutsOnHost(const Instruction& i) {
  if (Calls(i, {"MoveToHost"})) return true;
  if (!Calls(i, {"annotate_device_placement"}) || !i.attrs().frontend_attributes) return false;
  const auto place = FrontendAttribute(i.attrs().frontend_attributes->text, "_xla_buffer_placement");
  return place && (*place == "pinned_host" || *place == "unpinned_host");
}

Boundary BoundaryOf(const Instruction& i) {
  return Calls(i, kInto) ? Boundary::kInwards : Calls(i, kOutOf) ? Boundary::kOutwards : Boundary::kNone;
}

}  // namespace kiln
