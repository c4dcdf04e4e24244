#include "aot/ports.h"

#include <algorithm>

#include "aot/package/names.h"
#include "compiler/hlo/interface_names.h"
#include "compiler/sharding/partitioned_entry.h"

namespace kiln {
namespace {

// Named as the config says, or else as the front end does, or by number; the last ones, which are sizes of results,
// after the dimension unless the config names them too.
absl::StatusOr<std::vector<Port>> MakePorts(const std::vector<Shape>& shapes, const std::vector<std::string>& wanted,
                                            const std::vector<std::string>& paths,
                                            const std::vector<std::string>& names,
                                            const std::vector<ResultDimension>& sizes, bool results) {
  const char* stem = results ? "result" : "argument";
  const size_t arrays = shapes.size() - sizes.size();
  if (!wanted.empty() && wanted.size() != shapes.size() && wanted.size() != arrays)
    return InvalidArgument("error: the config names ", wanted.size(), " ", stem, "s, the module has ", arrays);
  std::vector<Port> ports;
  std::vector<std::string> flat = wanted;
  for (size_t k = 0; k < shapes.size(); ++k) {
    Port p;
    p.shape = shapes[k];
    if (k < wanted.size()) {
      // named
    } else if (k >= arrays) {
      flat.push_back(absl::StrCat(flat[sizes[k - arrays].result], "_size", sizes[k - arrays].dimension));
    } else if (k < paths.size() && !paths[k].empty()) {
      p.path = paths[k];
      p.steps = results ? ParseResultPath(p.path) : ParsePortPath(p.path);
      flat.push_back(FlatName(p.steps));
    } else {
      flat.push_back(k < names.size() ? names[k] : absl::StrCat(stem, k));
    }
    ports.push_back(std::move(p));
  }
  ASSIGN_OR_RETURN(flat, NamePorts(flat, !wanted.empty(), stem));
  for (size_t k = 0; k < ports.size(); ++k) {
    ports[k].name = flat[k];
    if (!ports[k].steps.empty()) continue;
    ports[k].path = flat[k];
    ports[k].steps = {{flat[k]}};
  }
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
  std::vector<std::string> paths = module.argument_names, names;
  if (paths.size() != argument_shapes.size()) paths.clear();
  for (const Instruction* p : entry->parameters()) names.push_back(p->name());
  if (names.size() != argument_shapes.size()) names.clear();
  ASSIGN_OR_RETURN(*arguments, MakePorts(argument_shapes, o.model.argument_names, paths, names, {}, false));
  std::vector<std::string> result_paths = ResultNames(module);
  if (result_paths.size() > result_shapes.size()) result_paths.clear();
  std::vector<ResultDimension> sizes = SizeResults(module);
  const int64_t arrays = static_cast<int64_t>(result_shapes.size()) - static_cast<int64_t>(sizes.size());
  if (std::any_of(sizes.begin(), sizes.end(),
                  [&](const ResultDimension& d) { return d.result < 0 || d.result >= arrays; }))
    sizes.clear();
  ASSIGN_OR_RETURN(*results, MakePorts(result_shapes, o.model.result_names, result_paths, {}, sizes, true));
  if (const auto partitioned = ReadPartitionedEntry(module)) {
    SetTilings(partitioned->arguments, module.partition_count, arguments);
    SetTilings(partitioned->results, module.partition_count, results);
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
