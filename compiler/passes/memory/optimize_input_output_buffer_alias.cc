// Outputs take the storage of donated inputs: first where the output is made of the donor by updates or a loop, which
// then work in place, then the first donor of the same shape that is still free.
// Source: XLA's OptimizeInputOutputBufferAlias, which takes donors by size alone.
#include <algorithm>

#include "compiler/pass/pass.h"

namespace kiln {
namespace {

using Donor = std::pair<int64_t, ShapeIndex>;  // parameter and leaf

Shape LeafOf(const Shape& s, const ShapeIndex& index) {
  const Shape* at = &s;
  for (int64_t k : index) at = &at->tuple()[static_cast<size_t>(k)];
  return *at;
}

// The parameter's leaf whose storage a result could keep all along.
std::optional<Donor> KeptFrom(const Instruction* i, ShapeIndex index) {
  for (;;) {
    switch (i->opcode()) {
      case Opcode::Parameter:
        return Donor{*i->attrs().parameter_number, index};
      case Opcode::Tuple:
        i = i->operand(index[0]);
        index.erase(index.begin());
        break;
      case Opcode::GetTupleElement:
        index.insert(index.begin(), *i->attrs().tuple_index);
        i = i->operand(0);
        break;
      case Opcode::DynamicUpdateSlice:
      case Opcode::While:
      case Opcode::Bitcast:
      case Opcode::Reshape:
      case Opcode::Copy:
        i = i->operand(0);
        break;
      case Opcode::Scatter:
        i = i->operand(index.empty() ? 0 : index[0]);
        index.clear();
        break;
      default:
        return std::nullopt;
    }
  }
}

}  // namespace

absl::StatusOr<bool> OptimizeInputOutputBufferAlias(Module& m, PassContext& ctx) {
  if (m.buffer_donors.empty()) return false;
  bool changed = false;
  std::vector<ShapeIndex> outputs;
  const Instruction* root = m.entry()->root();
  ForEachLeaf(root->shape(), [&](const ShapeIndex& index, const Shape& s) {
    const bool taken = std::any_of(m.aliases.begin(), m.aliases.end(), [&](auto& a) { return a.output == index; });
    if (s.IsArray() && !taken) outputs.push_back(index);
  });
  const auto fits = [&](const Donor& d, const ShapeIndex& output) {
    const Instruction* p = m.entry()->parameter(d.first);
    return LeafOf(p->shape(), d.second) == LeafOf(root->shape(), output);
  };
  for (const bool kept : {true, false}) {
    std::vector<ShapeIndex> left;
    for (const ShapeIndex& output : outputs) {
      const std::optional<Donor> from = kept ? KeptFrom(root, output) : std::nullopt;
      const auto donor = std::find_if(m.buffer_donors.begin(), m.buffer_donors.end(),
                                      [&](const Donor& d) { return fits(d, output) && (!kept || d == from); });
      if (donor == m.buffer_donors.end() || !ctx.Take()) {
        left.push_back(output);
        continue;
      }
      m.aliases.push_back({output, donor->first, donor->second, false});
      m.buffer_donors.erase(donor);
      changed = true;
    }
    outputs = std::move(left);
  }
  return changed;
}

}  // namespace kiln
