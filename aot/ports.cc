#include "aot/ports.h"

#include <algorithm>

#include "aot/package/names.h"
#include "compiler/sharding/partitioned_entry.h"

namespace kiln {
namespace {

// Named as the config says, or else as the program does, or by number.
absl::StatusOr<std::vector<Port>> MakePorts(const std::vector<Shape>& shapes, const std::vector<std::string>& wanted,
                                            const std::vector<std::string>& own, const char* stem) {
  if (!wanted.empty() && wanted.size() != shapes.size())
    return InvalidArgument("error: the config names ", wanted.size(), " ", stem, "s, the module has ", shapes.size());
  std::vector<std::string> names = wanted;
  for (size_t k = names.size(); k < shapes.size(); ++k)
    names.push_back(k < own.size() && !own[k].empty() ? own[k] : absl::StrCat(stem, k));
  ASSIGN_OR_RETURN(names, NamePorts(names, !wanted.empty(), stem));
  std::vector<Port> ports;
  for (size_t k = 0; k < shapes.size(); ++k) ports.push_back({names[k], shapes[k]});
  return ports;
}

// The arrays: tokens have no storage and no place in the interface.
std::vector<Shape> Leaves(const std::vector<Shape>& shapes) {
  std::vector<Shape> out;
  for (const Shape& s : shapes)
    ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) {
      if (leaf.IsArray()) out.push_back(leaf);
    });
  return out;
}

int64_t LeafNumber(const Shape& tuple, const ShapeIndex& index) {
  int64_t n = 0, found = -1;
  ForEachLeaf(tuple, [&](const ShapeIndex& idx, const Shape& leaf) {
    if (idx == index) found = n;
    n += leaf.IsArray();
  });
  return found;
}

PortTiling TilingOf(const PartitionedLeaf& leaf, int64_t partitions) {
  PortTiling t{leaf.whole, Ints(leaf.whole.dims().size(), 1), Ints(static_cast<size_t>(partitions), 0)};
  const Sharding& s = leaf.sharding;
  if (s.kind != Sharding::kTiled) return t;
  t.tiles = s.tiles;
  for (size_t k = 0; k < s.devices.size(); ++k)
    if (s.devices[k] < partitions) t.tile_of_partition[s.devices[k]] = static_cast<int64_t>(k) / s.copies;
  return t;
}

void SetTilings(const std::vector<PartitionedLeaf>& leaves, int64_t partitions, std::vector<Port>* ports) {
  size_t k = 0;
  for (const PartitionedLeaf& leaf : leaves)
    if (leaf.whole.IsArray() && k < ports->size()) (*ports)[k++].tiling = TilingOf(leaf, partitions);
}

}  // namespace

void AlignPorts(const BufferAssignment& buffers, std::vector<Port>* arguments, std::vector<Port>* results) {
  constexpr int64_t kScratchAlignment = 16;
  for (auto* ports : {arguments, results})
    for (Port& p : *ports) p.alignment = ByteWidth(ComponentType(p.shape.type()));
  for (const Allocation& a : buffers.temps()) {
    if (a.slice.kind != Slice::kResult) continue;
    int64_t& alignment = (*results)[a.slice.index].alignment;
    if (a.index == ShapeIndex{BufferAssignment::kScratchIndex}) {
      alignment = std::max(alignment, kScratchAlignment);
      continue;
    }
    const Shape* leaf = &a.value->shape();
    for (int64_t k : a.index) leaf = &leaf->tuple()[k];
    alignment = std::max<int64_t>(alignment, ByteWidth(ComponentType(leaf->type())));
  }
}

absl::Status DescribePorts(const Module& module, const CompileOptions& o, size_t stated, std::vector<Port>* arguments,
                           std::vector<Port>* results) {
  const Computation* entry = module.entry();
  std::vector<Shape> params;
  for (const Instruction* p : entry->parameters()) params.push_back(p->shape());
  const std::vector<Shape> argument_shapes = Leaves(params), result_shapes = Leaves({entry->root()->shape()});
  std::vector<std::string> own = module.argument_names;
  if (own.empty())
    for (const Instruction* p : entry->parameters()) own.push_back(p->name());
  if (own.size() != argument_shapes.size()) own.clear();
  ASSIGN_OR_RETURN(*arguments, MakePorts(argument_shapes, o.argument_names, own, "argument"));
  ASSIGN_OR_RETURN(*results, MakePorts(result_shapes, o.result_names, {}, "result"));
  if (const auto entry = ReadPartitionedEntry(module)) {
    SetTilings(entry->arguments, module.partition_count, arguments);
    SetTilings(entry->results, module.partition_count, results);
  }
  for (const AliasEntry& a : module.aliases) {
    int64_t base = 0;
    for (int64_t p = 0; p < a.parameter; ++p) base += static_cast<int64_t>(Leaves({params[p]}).size());
    const int64_t arg = base + LeafNumber(params[a.parameter], a.parameter_index),
                  res = LeafNumber(entry->root()->shape(), a.output);
    (*arguments)[arg].alias = res;
    (*results)[res].alias = arg;
  }
  for (size_t k = 0; k < module.dimension_arguments.size(); ++k) {
    const auto& [parameter, value] = module.dimension_arguments[k];
    Port& p = (*arguments)[Leaves({params.begin(), params.begin() + static_cast<ptrdiff_t>(parameter)}).size()];
    p.low = k < stated ? value : 0;
    p.high = value;
  }
  return absl::OkStatus();
}

int64_t PortBytes(const std::vector<Port>& ports) {
  int64_t n = 0;
  for (const Port& p : ports) n += p.shape.ByteSize();
  return n;
}

}  // namespace kiln
