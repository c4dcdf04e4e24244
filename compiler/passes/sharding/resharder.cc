#include "compiler/passes/sharding/resharder.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/status.h"

namespace kiln {
namespace {

bool IsPrefix(const Axes& a, const Axes& b) {
  return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
}

size_t CommonPrefix(const Axes& a, const Axes& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Axes are added and none is taken away, and parts divide into parts.
bool IsSlice(const DeviceMesh& mesh, const Part& from, const Tiling& target) {
  for (size_t d = 0; d < target.dims.size(); ++d) {
    const Axes &has = from.tiling.dims[d], &wants = target.dims[d];
    if (!IsPrefix(has, wants)) return false;
    const int64_t extent = from.whole.dims()[d], part = CeilDiv(extent, mesh.SizeOf(wants)) * mesh.SizeOf(wants);
    if (!has.empty() && part != CeilDiv(extent, mesh.SizeOf(has)) * mesh.SizeOf(has)) return false;
  }
  return true;
}

// `x` with zeros behind dimension `d`, or cut off there, so that it has `extent` elements.
Expr Resized(Expr x, size_t d, int64_t extent) {
  Ints dims = x.shape().dims();
  const int64_t more = extent - dims[d];
  dims[d] = more < 0 ? extent : more;
  if (more < 0) return SliceOf(x, Ints(dims.size(), 0), dims);
  if (more == 0) return x;
  Expr zero = x.computation()->AddConstant(Literal::Of(x.type(), 0));
  return ConcatOf({x, BroadcastTo(zero, dims)}, static_cast<int64_t>(d));
}

// Arguments of computations are there as long as these run.
bool Stays(const Instruction& i) {
  return i.Is(Opcode::Parameter) || (i.Is(Opcode::GetTupleElement) && i.operand(0)->Is(Opcode::Parameter));
}

// The same value at every place along dimension `d`.
bool IsAlikeAlong(const Instruction& i, size_t d) {
  if (!i.Is(Opcode::Broadcast)) return false;
  const Ints& mapped = *i.attrs().dimensions;
  return std::find(mapped.begin(), mapped.end(), static_cast<int64_t>(d)) == mapped.end();
}

}  // namespace

Expr Resharder::Place(const Axes& axes) {
  if (axes.empty()) return IntegerIn(c_, PrimitiveType::S32, 0);
  if (const auto known = places_.find(axes); known != places_.end()) return known->second;
  if (!partition_)
    partition_ =
        ConvertTo(PrimitiveType::S32, c_->Add(Opcode::PartitionId, Shape::Scalar(PrimitiveType::U32), {})).get();
  // Neighbouring axes are one digit.
  std::optional<Expr> sum;
  for (size_t k = 0; k < axes.size();) {
    size_t end = k + 1;
    while (end < axes.size() && axes[end] == axes[end - 1] + 1) ++end;
    const Axes run(axes.begin() + static_cast<std::ptrdiff_t>(k), axes.begin() + static_cast<std::ptrdiff_t>(end));
    const int64_t stride = mesh_.stride(run.back()), size = mesh_.SizeOf(run);
    Expr digit = partition_;
    if (stride > 1) digit = digit / static_cast<double>(stride);
    if (run[0] > 0) digit = Binary(Opcode::Remainder, digit, digit.Like(static_cast<double>(size)));
    sum = sum ? *sum * static_cast<double>(size) + digit : digit;
    k = end;
  }
  places_[axes] = sum->get();
  return *sum;
}

Instruction* Resharder::Collective(Opcode op, Shape shape, Expr x, const Axes& axes) {
  Instruction* i = c_->Add(op, std::move(shape), {x.get()});
  // An all-to-all with a channel numbers partitions, the others all devices.
  const int64_t replicas = op == Opcode::AllToAll ? 1 : c_->module()->replica_count;
  std::vector<std::string> groups;
  for (int64_t r = 0; r < replicas; ++r)
    for (Ints group : mesh_.Groups(axes)) {
      for (int64_t& d : group) d += r * mesh_.devices();
      groups.push_back(absl::StrCat("{", absl::StrJoin(group, ","), "}"));
    }
  i->mutable_attrs().replica_groups = attr::Raw(absl::StrCat("{", absl::StrJoin(groups, ","), "}"));
  if (op != Opcode::AllToAll) i->mutable_attrs().use_global_device_ids = true;
  i->mutable_attrs().channel_id = (*next_channel_)++;
  return i;
}

const Part* Resharder::Known(const Part& from, const Tiling& target) const {
  const auto known = moved_.find(from.value->id());
  if (known == moved_.end()) return nullptr;
  for (const auto& [part, moved] : known->second)
    if (part.whole.dims() == from.whole.dims() && part.tiling == from.tiling && moved.tiling.dims == target.dims)
      return &moved;
  return nullptr;
}

Part Resharder::To(const Part& from, const Tiling& target) {
  if (from.tiling.dims == target.dims) return from;
  if (const Part* known = Known(from, target)) return *known;
  if (const Part* origin = OriginOf(from); origin && !IsSlice(mesh_, from, target) && IsSlice(mesh_, *origin, target)) {
    const Part p = To(*origin, target);
    Keep(from, p);
    return p;
  }
  Part p = from;
  if (const ReshardPath* path = PathOf(from, target)) Follow(*path, &p);
  while (p.tiling.dims != target.dims)
    if (!SliceFree(&p, target) && !Exchange(&p, target) && !Permute(&p, target)) GatherOne(&p, target);
  Keep(from, p);
  const Part* origin = OriginOf(from);
  if (IsSlice(mesh_, from, target)) KeepOrigin(p, origin ? *origin : from);
  return p;
}

const ReshardPath* Resharder::PathOf(const Part& from, const Tiling& target) const {
  // What is alike along a dimension that is cut is not gathered.
  for (size_t d = 0; d < from.tiling.dims.size(); ++d)
    if (!from.tiling.dims[d].empty() && IsAlikeAlong(*from.value, d)) return nullptr;
  Ints array = from.whole.dims();
  array.push_back(static_cast<int64_t>(from.whole.type()));
  const auto [at, fresh] = paths_.try_emplace({array, from.tiling.manual, from.tiling.dims, target.dims});
  if (fresh) at->second = CheapestPath(mesh_, from.whole, from.tiling, target);
  return at->second ? &*at->second : nullptr;
}

void Resharder::Follow(const ReshardPath& path, Part* p) {
  for (size_t k = 0; k < path.moves.size(); ++k) {
    const ReshardMove& m = path.moves[k];
    switch (m.kind) {
      case ReshardMove::kSlice:
        if (k + 1 == path.moves.size() || path.moves[k + 1].kind != ReshardMove::kSlice) SliceFree(p, m.after);
        break;
      case ReshardMove::kPermute:
        Permute(p, m.after);
        break;
      case ReshardMove::kExchange:
        AllToAll(p, m.from, m.to, m.axes);
        break;
      case ReshardMove::kGather:
        Gather(p, m.from, m.after.dims[m.from].size());
        break;
    }
  }
}

int64_t Resharder::BytesTo(const Part& from, const Tiling& target) const {
  if (const ReshardPath* path = PathOf(from, target)) return path->cost;
  return std::max(from.value->shape().ByteSize(), LocalShape(mesh_, from.whole, target).ByteSize());
}

bool Resharder::IsFree(const Part& from, const Tiling& target) const {
  const Part* origin = OriginOf(from);
  return IsSlice(mesh_, from, target) || (origin && IsSlice(mesh_, *origin, target));
}

void Resharder::KeepOrigin(const Part& cut, const Part& origin) {
  if (Stays(*origin.value) && cut.value != origin.value) origins_.insert({{cut.value->id(), cut.whole.dims()}, origin});
}

const Part* Resharder::OriginOf(const Part& p) const {
  const auto known = origins_.find({p.value->id(), p.whole.dims()});
  return known != origins_.end() ? &known->second : nullptr;
}

bool Resharder::SliceFree(Part* p, const Tiling& target) {
  Tiling next = p->tiling;
  std::vector<Expr> starts(p->tiling.dims.size(), IntegerIn(c_, PrimitiveType::S32, 0));
  bool any = false;
  for (size_t d = 0; d < target.dims.size(); ++d) {
    if (!IsPrefix(p->tiling.dims[d], target.dims[d])) continue;
    Axes added;
    for (size_t k = p->tiling.dims[d].size(); k < target.dims[d].size(); ++k) {
      if (next.Used() >> target.dims[d][k] & 1) break;
      added.push_back(target.dims[d][k]);
      next.dims[d].push_back(target.dims[d][k]);
    }
    if (added.empty()) continue;
    const int64_t extent = CeilDiv(p->whole.dims()[d], mesh_.SizeOf(next.dims[d]));
    const bool nested = p->value->shape().dims()[d] == extent * mesh_.SizeOf(added);
    if (!nested && !p->tiling.dims[d].empty()) {
      next.dims[d] = p->tiling.dims[d];
      continue;
    }
    any = true;
    starts[d] = Place(added) * static_cast<double>(extent);
  }
  if (!any) return false;
  const Ints sizes = LocalDims(mesh_, p->whole.dims(), next);
  // A splat has the same value everywhere.
  if (p->value->Is(Opcode::Broadcast) && p->value->operand(0)->shape().IsScalar())
    p->value = BroadcastTo(p->value->operand(0), sizes).get();
  else {
    Expr padded = p->value;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (p->tiling.dims[d].empty()) padded = Resized(padded, d, sizes[d] * mesh_.SizeOf(next.dims[d]));
    p->value = DynamicSliceOf(padded, starts, sizes).get();
  }
  p->tiling = next;
  return true;
}

bool Resharder::Exchange(Part* p, const Tiling& target) {
  for (size_t i = 0; i < target.dims.size(); ++i) {
    const Axes& from = p->tiling.dims[i];
    const size_t kept = CommonPrefix(from, target.dims[i]);
    for (size_t j = 0; j < target.dims.size(); ++j) {
      const Axes &has = p->tiling.dims[j], &wants = target.dims[j];
      if (i == j || !IsPrefix(has, wants)) continue;
      // The longest run at the end of `from` that comes next in `wants`.
      for (size_t n = std::min(from.size() - kept, wants.size() - has.size()); n > 0; --n)
        if (std::equal(from.end() - static_cast<std::ptrdiff_t>(n), from.end(),
                       wants.begin() + static_cast<std::ptrdiff_t>(has.size()))) {
          const Axes moved(from.end() - static_cast<std::ptrdiff_t>(n), from.end());
          if (!CanMove(*p, i, j, mesh_.SizeOf(moved))) continue;
          AllToAll(p, i, j, moved);
          return true;
        }
    }
  }
  return false;
}

// Parts of `from` join to parts, or to the whole, and those of `to` divide.
bool Resharder::CanMove(const Part& p, size_t from, size_t to, int64_t n) const {
  const Ints &whole = p.whole.dims(), &local = p.value->shape().dims();
  const int64_t left = mesh_.SizeOf(p.tiling.dims[from]) / n;
  const int64_t had = mesh_.SizeOf(p.tiling.dims[to]);
  return (left == 1 || local[from] * n == CeilDiv(whole[from], left)) && (had == 1 || whole[to] % (had * n) == 0);
}

// From a cut along dimension `from` to one along `to`.
void Resharder::AllToAll(Part* p, size_t from, size_t to, const Axes& axes) {
  const int64_t n = mesh_.SizeOf(axes);
  p->value = Resized(p->value, to, CeilDiv(p->value->shape().dims()[to], n) * n).get();
  const Ints dims = p->value->shape().dims();
  Ints split = dims;
  split[to] /= n;
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(to), n);
  Expr all = SwapBlocks(ReshapeTo(p->value, split), to, axes);
  // The dimension of members goes in front of the one that they are parts of.
  Ints order;
  for (size_t d = 0; d < split.size(); ++d)
    if (d != to) order.push_back(static_cast<int64_t>(d));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(from), static_cast<int64_t>(to));
  Ints joined = dims;
  joined[to] /= n;
  joined[from] *= n;
  p->value = ReshapeTo(TransposeBy(all, order), joined).get();
  p->tiling.dims[from].resize(p->tiling.dims[from].size() - axes.size());
  if (p->tiling.dims[from].empty()) p->value = Resized(p->value, from, p->whole.dims()[from]).get();
  p->tiling.dims[to].insert(p->tiling.dims[to].end(), axes.begin(), axes.end());
}

bool Resharder::Permute(Part* p, const Tiling& target) {
  for (size_t d = 0; d < target.dims.size(); ++d)
    if (mesh_.SizeOf(p->tiling.dims[d]) != mesh_.SizeOf(target.dims[d])) return false;
  Axes gone, come;
  const AxisMask before = p->tiling.Used(), after = target.Used() | p->tiling.manual;
  for (int a = 0; a < mesh_.axis_count(); ++a) {
    if ((before >> a & 1) && !(after >> a & 1)) gone.push_back(a);
    if (!(before >> a & 1) && (after >> a & 1)) come.push_back(a);
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t device = 0; device < mesh_.devices(); ++device) {
    int64_t source = device;
    const auto set = [&](const Axes& axes, int64_t place) {
      for (size_t k = axes.size(); k-- > 0;) {
        source += (place % mesh_.size(axes[k]) - mesh_.Digit(source, axes[k])) * mesh_.stride(axes[k]);
        place /= mesh_.size(axes[k]);
      }
    };
    for (size_t d = 0; d < target.dims.size(); ++d) set(p->tiling.dims[d], mesh_.PlaceOn(device, target.dims[d]));
    set(come, mesh_.PlaceOn(device, gone));
    pairs.push_back({source, device});
  }
  p->value = PermuteTo(p->value, pairs).get();
  p->tiling.dims = target.dims;
  return true;
}

Expr Resharder::GatherOver(Expr x, const Axes& axes) {
  Ints dims = x.shape().dims();
  dims[0] *= mesh_.SizeOf(axes);
  Instruction* all = Collective(Opcode::AllGather, Shape::Array(x.type(), dims), x, axes);
  all->mutable_attrs().dimensions = Ints{0};
  return all;
}

Expr Resharder::SwapBlocks(Expr x, size_t dim, const Axes& axes) {
  Instruction* all = Collective(Opcode::AllToAll, Shape::Array(x.type(), x.shape().dims()), x, axes);
  all->mutable_attrs().dimensions = Ints{static_cast<int64_t>(dim)};
  return all;
}

Expr Resharder::PermuteTo(Expr x, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [source, target] : pairs) texts.push_back(absl::StrCat("{", source, ",", target, "}"));
  Instruction* i = c_->Add(Opcode::CollectivePermute, x.shape(), {x.get()});
  i->mutable_attrs().source_target_pairs = attr::Raw(absl::StrCat("{", absl::StrJoin(texts, ","), "}"));
  i->mutable_attrs().channel_id = (*next_channel_)++;
  return i;
}

void Resharder::GatherOne(Part* p, const Tiling& target) {
  // A dimension that holds axes which the target has elsewhere goes first: to gather one whose cuts begin as the
  // target's do would undo what SliceFree did.
  const size_t none = target.dims.size();
  size_t d = none;
  for (size_t k = none; k-- > 0 && d == none;)
    if (!IsPrefix(p->tiling.dims[k], target.dims[k])) d = k;
  // Where there is none, parts do not divide into those of the target, and are put together.
  const bool prefixes = d == none;
  for (size_t k = none; k-- > 0 && d == none;)
    if (p->tiling.dims[k] != target.dims[k] && !p->tiling.dims[k].empty()) d = k;
  KILN_CHECK(d != none);
  Axes& has = p->tiling.dims[d];
  size_t kept = prefixes ? 0 : CommonPrefix(has, target.dims[d]);
  const Axes rest(has.begin(), has.begin() + static_cast<std::ptrdiff_t>(kept));
  const int64_t joined = p->value->shape().dims()[d] * mesh_.SizeOf(has) / mesh_.SizeOf(rest);
  if (joined != CeilDiv(p->whole.dims()[d], mesh_.SizeOf(rest))) kept = 0;
  Gather(p, d, kept);
}

void Resharder::Gather(Part* p, size_t d, size_t kept) {
  Axes& has = p->tiling.dims[d];
  const Axes axes(has.begin() + static_cast<std::ptrdiff_t>(kept), has.end());
  Ints dims = p->value->shape().dims();
  has.resize(kept);
  if (IsAlikeAlong(*p->value, d)) {
    dims[d] = CeilDiv(p->whole.dims()[d], mesh_.SizeOf(has));
    p->value = BroadcastTo(p->value->operand(0), dims, *p->value->attrs().dimensions).get();
    return;
  }
  dims[d] *= mesh_.SizeOf(axes);
  Instruction* all = Collective(Opcode::AllGather, Shape::Array(p->value->shape().type(), dims), p->value, axes);
  all->mutable_attrs().dimensions = Ints{static_cast<int64_t>(d)};
  p->value = kept == 0 ? Resized(all, d, p->whole.dims()[d]).get() : all;
}

Part Resharder::Combine(const Part& partial, const Axes& axes, Computation* function, const Tiling& target) {
  Part p = partial;
  Axes rest = axes;
  // What the target cuts along these axes is scattered as it is combined.
  for (size_t d = 0; d < target.dims.size(); ++d) {
    if (!IsPrefix(p.tiling.dims[d], target.dims[d])) continue;
    Axes scattered;
    for (size_t k = p.tiling.dims[d].size(); k < target.dims[d].size(); ++k) {
      const auto at = std::find(rest.begin(), rest.end(), target.dims[d][k]);
      const int64_t parts = mesh_.SizeOf(scattered) * mesh_.size(target.dims[d][k]);
      if (at == rest.end() || p.value->shape().dims()[d] % parts) break;
      scattered.push_back(*at);
      rest.erase(at);
    }
    if (scattered.empty()) continue;
    Ints dims = p.value->shape().dims();
    dims[d] /= mesh_.SizeOf(scattered);
    Instruction* i = Collective(Opcode::ReduceScatter, Shape::Array(p.value->shape().type(), dims), p.value, scattered);
    i->mutable_attrs().dimensions = Ints{static_cast<int64_t>(d)};
    i->mutable_attrs().to_apply = function;
    p.value = i;
    p.tiling.dims[d].insert(p.tiling.dims[d].end(), scattered.begin(), scattered.end());
  }
  if (rest.empty()) return p;
  std::sort(rest.begin(), rest.end());
  Instruction* i = Collective(Opcode::AllReduce, p.value->shape(), p.value, rest);
  i->mutable_attrs().to_apply = function;
  p.value = i;
  return p;
}

}  // namespace kiln
