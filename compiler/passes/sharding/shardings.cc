#include "compiler/passes/sharding/shardings.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_replace.h"
#include "compiler/hlo/annotation.h"

namespace kiln {
namespace {

const std::string kMeshKey = "xla.sdy.sharding=";

// Attributes without the mesh sharding, whose place the written form takes.
void DropMeshSharding(Instruction* i) {
  if (!i->attrs().frontend_attributes) return;
  std::string text = i->attrs().frontend_attributes->text;
  const size_t start = text.find(kMeshKey);
  if (start == std::string::npos) return;
  size_t end = start + kMeshKey.size() + 1;
  while (end < text.size() && !(text[end] == '"' && text[end - 1] != '\\')) ++end;
  if (end < text.size()) ++end;
  if (end < text.size() && text[end] == ',') ++end;
  text.erase(start, end - start);
  if (text.size() <= 2)
    i->mutable_attrs().frontend_attributes.reset();
  else
    i->mutable_attrs().frontend_attributes = attr::Raw(text);
}

// Dimensions that backend_config="unspecified_dims=[0,2]" leaves to the compiler.
std::vector<bool> Unspecified(const Instruction& i, int64_t rank) {
  std::vector<bool> out(static_cast<size_t>(rank), false);
  if (!i.attrs().backend_config) return out;
  const std::string& text = i.attrs().backend_config->text;
  const size_t at = text.find("unspecified_dims=[");
  if (at == std::string::npos) return out;
  for (size_t p = at + 18; p < text.size() && text[p] != ']'; ++p)
    if (text[p] >= '0' && text[p] <= '9' && text[p] - '0' < rank) out[static_cast<size_t>(text[p] - '0')] = true;
  return out;
}

}  // namespace

void MakeEven(const DeviceMesh& mesh, const Ints& dims, Tiling* t) {
  for (size_t d = 0; d < t->dims.size(); ++d)
    while (!t->dims[d].empty() && dims[d] % mesh.SizeOf(t->dims[d])) t->dims[d].pop_back();
}

bool IsShardingCall(const Instruction& i) {
  return IsShardingAnnotation(i) && i.shape().Compatible(i.operand(0)->shape());
}

bool IsIdentityCall(const Instruction& i) { return IsAnnotation(i) && i.shape().Compatible(i.operand(0)->shape()); }

size_t LeafCount(const Shape& s) {
  size_t n = 0;
  ForEachLeaf(s, [&](const ShapeIndex&, const Shape&) { ++n; });
  return n;
}

std::vector<Computation*> SeparateBodies(Module* m, bool* changed) {
  std::vector<Computation*> out{m->entry()};
  std::set<const Computation*> seen{m->entry()};
  for (size_t k = 0; k < out.size(); ++k)
    for (Instruction* i : out[k]->PostOrder()) {
      if (!i->Is(Opcode::While) && !i->Is(Opcode::Conditional) && !i->Is(Opcode::Call)) continue;
      i->MapCalled([&](Computation* c) {
        Computation* own = seen.insert(c).second ? c : m->CloneComputation(c);
        if (own != c) *changed = true;
        seen.insert(own);
        out.push_back(own);
        return own;
      });
    }
  return out;
}

absl::Status ModuleShardings::Read(Module* m) {
  m_ = m;
  computations_ = SeparateBodies(m, &separated_);
  std::vector<TileSharding> all;
  std::set<std::pair<Ints, Ints>> seen;  // the order of axes follows from those that differ
  int64_t devices = m->partition_count;
  for (const Computation* c : computations_)
    for (const auto& i : c->instructions()) {
      ASSIGN_OR_RETURN(const std::vector<TileSharding> of, WrittenShardings(*i));
      for (const TileSharding& s : of) {
        if (s.kind == TileSharding::kManual) {  // a module that does not say for how many devices
          devices = std::max<int64_t>(devices, 2);
          cuts_anything_ = true;
        }
        if (!s.IsTiled()) continue;
        if (const auto n = static_cast<int64_t>(s.devices.size()); m->partition_count > 1 && n != m->partition_count)
          return ErrorAt(i.get(), absl::StrCat("has a sharding over ", n, " devices in a module of ",
                                               m->partition_count, " partitions"));
        devices = std::max(devices, static_cast<int64_t>(s.devices.size()));
        cuts_anything_ = true;
        if (seen.insert({s.tiles, s.devices}).second) all.push_back(s);
      }
      ASSIGN_OR_RETURN(const auto boundary, ManualBoundaryOf(*i));
      if (!boundary) continue;
      cuts_anything_ = true;
      ASSIGN_OR_RETURN(const TileSharding region, RegionSharding(*i));
      if (region.IsTiled() && seen.insert({region.tiles, region.devices}).second) all.push_back(region);
    }
  mesh_ = DeviceMesh::Fit(devices, all);
  for (const Computation* c : computations_)
    for (const auto& i : c->instructions()) RETURN_IF_ERROR(ReadInstruction(&*i));
  for (const Computation* c : computations_)
    for (const auto& i : c->instructions()) RETURN_IF_ERROR(ReadBoundary(&*i));
  for (const Computation* c : computations_)
    for (const Instruction* i : c->PostOrder()) AddEdges(i);
  for (auto& [leaf, operand] : entries_)
    if (leaves_[operand].size() == 1) edges_.push_back({&leaves_[operand][0], &leaf});
  MarkManual();
  return absl::OkStatus();
}

absl::Status ModuleShardings::ReadInstruction(const Instruction* i) {
  ASSIGN_OR_RETURN(const std::vector<TileSharding> of, WrittenShardings(*i));
  std::vector<LeafSharding>& leaves = leaves_[i];
  const bool fixed = i->Is(Opcode::Parameter) && i->parent() == m_->entry();
  ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& s) {
    LeafSharding leaf;
    leaf.shape = s;
    leaf.tiling.dims.resize(static_cast<size_t>(s.rank()));
    leaf.closed.assign(static_cast<size_t>(s.rank()), fixed || !s.IsArray());
    const size_t k = of.size() == 1 ? 0 : leaves.size();
    const TileSharding* w = k < of.size() ? &of[k] : nullptr;
    if (w && w->kind != TileSharding::kUnknown && s.IsArray()) {
      leaf.written = true;
      const auto open = w->open.empty() ? Unspecified(*i, s.rank()) : w->open;
      for (size_t d = 0; d < leaf.closed.size() && d < open.size(); ++d) leaf.closed[d] = !open[d];
      if (auto t = mesh_.Express(*w, s.rank())) leaf.tiling = *t;
    }
    leaves.push_back(std::move(leaf));
  });
  return absl::OkStatus();
}

// Where a manual region ends, its values are cut as the boundary says; where one begins, what goes in had better be.
absl::Status ModuleShardings::ReadBoundary(const Instruction* i) {
  ASSIGN_OR_RETURN(const auto boundary, ManualBoundaryOf(*i));
  if (!boundary) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TileSharding region, RegionSharding(*i));
  const auto written = mesh_.Express(region, static_cast<int64_t>(region.tiles.size()));
  const AxisMask axes = written ? written->manual : mesh_.all_axes();
  regions_[i] = {boundary->inwards, axes, boundary->inwards || leaves_[i].empty() ? 0 : leaves_[i][0].tiling.manual};
  for (size_t k = 0; k < boundary->shardings.size(); ++k) {
    // Outside of the region a manual subgroup is that of the region around it, which its values show.
    const Instruction* operand = i->operand(static_cast<int64_t>(k));
    std::vector<LeafSharding>& outside = leaves_[boundary->inwards ? operand : i];
    if (const size_t leaf = boundary->inwards ? 0 : k; leaf < outside.size()) outside[leaf].tiling.manual = 0;
    const Shape& whole = boundary->inwards ? operand->shape() : leaves_[i][k].shape;
    const auto tiling = mesh_.Express(FromTable(boundary->shardings[k]), whole.rank());
    if (!tiling || tiling->manual || !CutsEvenly(mesh_, whole.dims(), *tiling)) continue;
    LeafSharding* outer = &leaves_[i][k];
    LeafSharding* inner = &leaves_[operand][0];
    if (boundary->inwards) {
      inner = outer;
      const bool closed = axes == mesh_.all_axes();
      LeafSharding leaf{*tiling, std::vector<bool>(tiling->dims.size(), closed), true, 0, whole};
      entries_.push_back({std::move(leaf), operand});
      outer = &entries_.back().first;
    } else if (!outer->written) {
      outer->tiling = *tiling;
    }
    if (axes != mesh_.all_axes() && inner->shape.IsArray()) boundaries_.push_back({outer, inner});
  }
  return absl::OkStatus();
}

void ModuleShardings::Connect(const Instruction* from, size_t first, const Instruction* to, size_t to_first,
                              size_t count) {
  auto &a = leaves_[from], &b = leaves_[to];
  for (size_t k = 0; k < count; ++k)
    if (first + k < a.size() && to_first + k < b.size()) edges_.push_back({&a[first + k], &b[to_first + k]});
}

void ModuleShardings::ConnectAll(const Instruction* from, const Instruction* to) {
  Connect(from, 0, to, 0, leaves_[from].size());
}

void ModuleShardings::AddEdges(const Instruction* i) {
  const Attributes& a = i->attrs();
  if (i->Is(Opcode::Tuple)) {
    size_t at = 0;
    for (const Instruction* o : i->operands()) {
      Connect(o, 0, i, at, LeafCount(o->shape()));
      at += LeafCount(o->shape());
    }
  } else if (i->Is(Opcode::GetTupleElement)) {
    size_t at = 0;
    for (int64_t k = 0; k < *a.tuple_index; ++k)
      at += LeafCount(i->operand(0)->shape().tuple()[static_cast<size_t>(k)]);
    Connect(i->operand(0), at, i, 0, LeafCount(i->shape()));
  } else if (i->Is(Opcode::OptimizationBarrier) || IsIdentityCall(*i)) {
    ConnectAll(i->operand(0), i);
  } else if (i->Is(Opcode::While)) {
    ConnectAll(i->operand(0), i);
    ConnectAll(i->operand(0), (*a.body)->parameter(0));
    ConnectAll((*a.body)->root(), i);
    ConnectAll((*a.body)->root(), (*a.body)->parameter(0));
    ConnectAll((*a.body)->parameter(0), (*a.condition)->parameter(0));
  } else if (i->Is(Opcode::Conditional)) {
    const std::vector<Computation*> branches = i->called();
    for (size_t k = 0; k < branches.size(); ++k) {
      ConnectAll(i->operand(static_cast<int64_t>(k) + 1), branches[k]->parameter(0));
      ConnectAll(branches[k]->root(), i);
    }
  } else if (i->Is(Opcode::Call)) {
    for (int64_t k = 0; k < i->operand_count(); ++k) ConnectAll(i->operand(k), (*a.to_apply)->parameter(k));
    ConnectAll((*a.to_apply)->root(), i);
  }
}

bool ModuleShardings::Mark(LeafSharding* leaf, AxisMask axes) {
  if ((leaf->tiling.manual | axes) == leaf->tiling.manual) return false;
  leaf->tiling.manual |= axes;
  if (!leaf->written) ++leaf->changes;
  for (Axes& d : leaf->tiling.dims)
    d.erase(std::remove_if(d.begin(), d.end(), [&](int a) { return axes >> a & 1; }), d.end());
  return true;
}

void ModuleShardings::MarkRegion(const Instruction* i, const Region& r, bool* changed) {
  std::vector<LeafSharding>& leaves = leaves_[i];
  for (size_t k = 0; k < leaves.size(); ++k) {
    const std::vector<LeafSharding>& operand = leaves_[i->operand(static_cast<int64_t>(k))];
    const AxisMask of = operand.empty() ? 0 : operand[0].tiling.manual;
    *changed = Mark(&leaves[k], r.inwards ? of | r.axes : (of & ~r.axes) | r.outside) || *changed;
  }
}

// What depends on a manual region's values, or on the device's own number, is written for each device.
void ModuleShardings::MarkManual() {
  for (bool again = true; again;) {
    again = false;
    for (const Computation* c : computations_)
      for (const auto& i : c->instructions()) {
        if (const auto region = regions_.find(&*i); region != regions_.end()) {
          MarkRegion(&*i, region->second, &again);
          continue;
        }
        if (i->Is(Opcode::PartitionId)) again = Mark(&leaves_[&*i][0], mesh_.all_axes()) || again;
        const bool flow = i->Is(Opcode::Tuple) || i->Is(Opcode::GetTupleElement) || i->Is(Opcode::While) ||
                          i->Is(Opcode::Conditional) || i->Is(Opcode::Call);
        if (flow) continue;
        AxisMask mask = 0;
        for (const Instruction* o : i->operands())
          for (const LeafSharding& leaf : leaves_[o]) mask |= leaf.tiling.manual;
        if (mask)
          for (LeafSharding& leaf : leaves_[&*i]) again = Mark(&leaf, mask) || again;
      }
    for (const LeafEdge& e : edges_) again = Mark(e.to, e.from->tiling.manual) || again;
  }
}

bool ModuleShardings::Write() {
  bool any = false;
  for (const Computation* c : computations_)
    for (const auto& i : c->instructions()) {
      std::vector<LeafSharding>& leaves = leaves_[&*i];
      // Callers are given no uneven results that they did not ask for.
      if (&*i == m_->entry()->root())
        for (LeafSharding& l : leaves)
          if (!l.written) MakeEven(mesh_, l.shape.dims(), &l.tiling);
      std::string text;
      for (const LeafSharding& l : leaves) absl::StrAppend(&text, text.empty() ? "" : ", ", mesh_.TextOf(l.tiling));
      if (i->shape().IsTuple()) text = absl::StrCat("{", text, "}");
      const bool changed =
          std::any_of(leaves.begin(), leaves.end(), [](const LeafSharding& l) { return l.changes > 0; });
      if (!changed || (i->attrs().sharding && i->attrs().sharding->text == text)) continue;
      DropMeshSharding(&*i);
      i->mutable_attrs().sharding = attr::Raw(text);
      any = true;
    }
  return any;
}

}  // namespace kiln
