#include "compiler/thunk/check/values.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {
namespace {

bool HandsOn(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Bitcast:
    case Opcode::OptimizationBarrier:
    case Opcode::AddDependency:
    case Opcode::Domain:
      return true;
    case Opcode::Copy:
      return i->shape().IsTuple() ||
             i->shape().LayoutOrDefault().minor_to_major == i->operand(0)->shape().LayoutOrDefault().minor_to_major;
    default:
      return false;
  }
}

ShapeIndex Joined(int64_t k, const ShapeIndex& rest) {
  ShapeIndex out = {k};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

ShapeIndex Rest(const ShapeIndex& leaf) { return ShapeIndex(leaf.begin() + 1, leaf.end()); }

}  // namespace

ValueId ValueFrame::Of(const Instruction* i, const ShapeIndex& leaf) const { return of_.at(i).at(leaf); }

std::map<ShapeIndex, ValueId> ValueNumbers::All(const ValueFrame& frame, const Instruction* i) const {
  const auto it = frame.of_.find(i);
  return it == frame.of_.end() ? std::map<ShapeIndex, ValueId>() : it->second;
}

ValueId ValueNumbers::New(const Instruction* i, const ShapeIndex& leaf) {
  names_.push_back(leaf.empty() ? absl::StrCat("%", i->name())
                                : absl::StrCat("%", i->name(), "{", absl::StrJoin(leaf, ","), "}"));
  return static_cast<ValueId>(names_.size()) - 1;
}

ValueId ValueNumbers::OfConstant(const Instruction* constant, const ShapeIndex& leaf) {
  const auto [it, fresh] = constants_.insert({{constant->id(), leaf}, 0});
  if (fresh) it->second = New(constant, leaf);
  return it->second;
}

std::string ValueNumbers::Name(ValueId v) const { return v == kUnknownValue ? "nothing that is known" : names_[v]; }

bool ValueNumbers::ComesFromState(const Instruction* i, ShapeIndex leaf, const ShapeIndex& index) {
  for (;;) {
    if (i->Is(Opcode::Tuple)) {
      i = i->operand(leaf[0]);
      leaf = Rest(leaf);
    } else if (i->Is(Opcode::GetTupleElement)) {
      leaf = Joined(*i->attrs().tuple_index, leaf);
      i = i->operand(0);
    } else if (HandsOn(i) || (i->Is(Opcode::While) && IsInvariant(i, leaf))) {
      i = i->operand(0);
    } else {
      return i->Is(Opcode::Parameter) && leaf == index;
    }
  }
}

bool ValueNumbers::IsInvariant(const Instruction* loop, const ShapeIndex& leaf) {
  const auto [it, fresh] = invariant_.insert({{loop->id(), leaf}, false});
  if (fresh) {
    const bool same = ComesFromState((*loop->attrs().body)->root(), leaf, leaf);
    invariant_[{loop->id(), leaf}] = same;
    return same;
  }
  return it->second;
}

ValueFrame ValueNumbers::Enter(const Computation* c, const std::vector<std::map<ShapeIndex, ValueId>>& parameters) {
  ValueFrame f;
  for (const Instruction* i : c->PostOrder()) {
    std::map<ShapeIndex, ValueId>& mine = f.of_[i];
    ForEachLeaf(i->shape(), [&](const ShapeIndex& leaf, const Shape& s) {
      if (!s.IsArray()) return;
      if (i->Is(Opcode::Parameter)) {
        mine[leaf] = parameters[*i->attrs().parameter_number].at(leaf);
      } else if (i->Is(Opcode::Tuple)) {
        mine[leaf] = f.of_.at(i->operand(leaf[0])).at(Rest(leaf));
      } else if (i->Is(Opcode::GetTupleElement)) {
        mine[leaf] = f.of_.at(i->operand(0)).at(Joined(*i->attrs().tuple_index, leaf));
      } else if (HandsOn(i) || (i->Is(Opcode::While) && IsInvariant(i, leaf))) {
        mine[leaf] = f.of_.at(i->operand(0)).at(leaf);
      } else if (i->Is(Opcode::Constant)) {
        mine[leaf] = OfConstant(i, leaf);
      } else {
        mine[leaf] = New(i, leaf);
      }
    });
  }
  return f;
}

ValueFrame ValueNumbers::EnterEntry(const Module& m) {
  std::vector<std::map<ShapeIndex, ValueId>> parameters;
  for (const Instruction* p : m.entry()->parameters()) {
    parameters.emplace_back();
    ForEachLeaf(p->shape(), [&](const ShapeIndex& leaf, const Shape& s) {
      if (s.IsArray()) parameters.back()[leaf] = New(p, leaf);
    });
  }
  return Enter(m.entry(), parameters);
}

}  // namespace kiln
