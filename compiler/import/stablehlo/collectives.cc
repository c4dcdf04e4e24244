// StableHLO operations between devices, and the queues of the host program.
#include "absl/strings/str_replace.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {
namespace {

absl::Status Groups(Call& call, Attributes* a) {
  if (call.op.Has("replica_groups")) {
    const std::string t = call.Resolve(call.op.Attr("replica_groups"));
    // dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, -1 pads a short group.
    const size_t lt = t.find('<');
    int depth = 0;
    size_t e = lt;
    for (; e < t.size(); ++e) {
      if (t[e] == '<') ++depth;
      if (t[e] == '>' && --depth == 0) break;
    }
    std::string groups = lt == std::string::npos ? "" : t.substr(lt + 1, e - lt - 1);
    groups = absl::StrReplaceAll(groups, {{"[", "{"}, {"]", "}"}, {" ", ""}, {"\n", ""}});
    groups = absl::StrReplaceAll(groups, {{",-1", ""}});
    if (groups.empty())
      groups = "{}";
    else if (groups[0] != '{')
      groups = absl::StrCat("{{", groups, "}}");
    a->replica_groups = attr::Raw(groups);
  }
  if (call.op.Has("channel_handle")) {
    if (auto h = FieldInts(call.Resolve(call.op.Attr("channel_handle")), "handle"); h && !h->empty() && (*h)[0] > 0)
      a->channel_id = (*h)[0];
  }
  if (const int64_t channel = call.One("channel_id", 0); channel > 0) a->channel_id = channel;
  if (call.Flag("use_global_device_ids", false)) a->use_global_device_ids = true;
  if (call.op.Has("source_target_pairs")) {
    const Ints pairs = ParseIntList(call.Resolve(call.op.Attr("source_target_pairs"))).value_or(Ints());
    std::string t = "{";
    for (size_t k = 0; k + 1 < pairs.size(); k += 2)
      absl::StrAppend(&t, k ? "," : "", "{", pairs[k], ",", pairs[k + 1], "}");
    a->source_target_pairs = attr::Raw(t + "}");
  }
  return absl::OkStatus();
}

// A scalar of `table` chosen by the device that runs: its position in a group, or whether it is a root.
Expr OfDevice(Call& call, const Ints& table, PrimitiveType t) {
  Module* m = call.converter.module();
  Literal l(Shape::Array(t, {static_cast<int64_t>(table.size())}));
  for (size_t k = 0; k < table.size(); ++k) {
    Element e;
    e.i = table[k];
    l.Set(static_cast<int64_t>(k), e);
  }
  const Shape id = Shape::Scalar(PrimitiveType::U32);
  Expr device = call.Add(Opcode::ReplicaId, id, {});
  device = device * static_cast<double>(m->partition_count) + Expr(call.Add(Opcode::PartitionId, id, {}));
  Instruction* slice =
      call.Add(Opcode::DynamicSlice, Shape::Array(t, {1}), {call.c->AddConstant(std::move(l)), device.get()});
  slice->mutable_attrs().dynamic_slice_sizes = Ints{1};
  return ReshapeTo(slice, {});
}

absl::StatusOr<std::vector<Ints>> GroupsOf(Call& call, const Instruction* i) {
  const Module* m = call.converter.module();
  auto groups = DeviceGroups(*i, m->replica_count, m->partition_count);
  if (!groups.ok()) return call.Fail(groups.status().message());
  return groups;
}

// Effects on one computation's queues happen in the order of the text.
Instruction* Ordered(Call& call, Instruction* i) {
  const auto& all = call.c->instructions();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    Instruction* before = it->get();
    if (before == i) continue;
    if (before->HasTrait(SideEffect)) {
      before->AddControlDependencyTo(i);
      break;
    }
  }
  return i;
}

// Dimension `d` holds blocks for each pair of `outer` and `inner` indices; the pairs change their order.
Expr Swapped(Expr x, int64_t d, int64_t outer, int64_t inner) {
  Ints dims = x.shape().dims(), split = dims, order;
  split[d] /= outer * inner;
  split.insert(split.begin() + d, {outer, inner});
  for (size_t k = 0; k < split.size(); ++k) order.push_back(static_cast<int64_t>(k));
  std::swap(order[d], order[d + 1]);
  return ReshapeTo(TransposeBy(ReshapeTo(x, split), order), dims);
}

// Replicas of one group when it also spans all partitions, else one: StableHLO numbers the members of such a group
// partition by partition, HLO replica by replica.
int64_t ReplicasAcrossPartitions(const Instruction* i) {
  const Attributes& a = i->attrs();
  if (!a.channel_id || a.use_global_device_ids.value_or(false) || !a.replica_groups) return 1;
  const auto groups = ParseReplicaGroups(a.replica_groups->text);
  return groups.ok() && !groups->empty() ? static_cast<int64_t>((*groups)[0].size()) : 1;
}

}  // namespace

absl::StatusOr<Values> ConvertCollective(Call& call) {
  auto o = OpcodeFromText(absl::StrReplaceAll(call.name, {{"_", "-"}}));
  const bool tuple = call.types.size() > 1;
  Instruction* i = call.Add(*o, tuple ? Shape::Tuple(call.types) : call.result(), call.x);
  RETURN_IF_ERROR(Groups(call, &i->mutable_attrs()));
  if (!call.op.regions.empty()) {
    ASSIGN_OR_RETURN(Computation * f, call.ScalarRegion(call.op.regions[0], "region"));
    i->mutable_attrs().to_apply = f;
  }
  if (call.op.Has("all_gather_dim")) i->mutable_attrs().dimensions = Ints{call.One("all_gather_dim", 0)};
  if (call.op.Has("scatter_dimension")) i->mutable_attrs().dimensions = Ints{call.One("scatter_dimension", 0)};
  const int64_t replicas = ReplicasAcrossPartitions(i);
  if (replicas == 1 || (*o != Opcode::AllGather && *o != Opcode::ReduceScatter))
    return tuple ? call.Split(i) : Values{i};
  if (!i->attrs().dimensions) return call.Fail("names no dimension");
  const int64_t d = (*i->attrs().dimensions)[0];
  Values results = tuple ? call.Split(i) : Values{i};
  for (size_t k = 0; k < results.size() && k < call.x.size(); ++k) {
    const Shape &whole = (*o == Opcode::AllGather ? results[k] : call.x[k])->shape(),
                &part = (*o == Opcode::AllGather ? call.x[k] : results[k])->shape();
    if (d < 0 || d >= whole.rank() || d >= part.rank() || part.dim(d) == 0) continue;
    const int64_t partitions = whole.dim(d) / part.dim(d) / replicas;
    if (partitions < 2 || whole.dim(d) != part.dim(d) * partitions * replicas) continue;
    if (*o == Opcode::AllGather)
      results[k] = call.Finish(Swapped(results[k], d, replicas, partitions).get());
    else
      i->ReplaceOperand(static_cast<int64_t>(k), Swapped(call.x[k], d, partitions, replicas).get());
  }
  return results;
}

// HLO exchanges blocks of one dimension in place; blocks that join along another move there afterwards.
absl::StatusOr<Values> ConvertAllToAll(Call& call) {
  const int64_t split = call.One("split_dimension", 0), join = call.One("concat_dimension", 0),
                count = call.One("split_count", 1);
  Values out;
  for (Instruction* x : call.x) {
    const Shape s = x->shape();
    if (split < 0 || split >= s.rank() || join < 0 || join >= s.rank()) return call.Fail("a dimension is out of range");
    if (count < 1 || s.dim(split) % count) return call.Fail("split_count does not divide the dimension");
    Instruction* i = call.Add(Opcode::AllToAll, Shape::Array(s.type(), s.dims()), {x});
    RETURN_IF_ERROR(Groups(call, &i->mutable_attrs()));
    i->mutable_attrs().dimensions = Ints{split};
    Expr e = i;
    if (split != join) {
      Ints dims = s.dims();
      dims[split] /= count;
      dims.insert(dims.begin() + split, count);  // [..., count, block, ...]
      e = ReshapeTo(e, dims);
      Ints order;
      for (int64_t d = 0; d < s.rank() + 1; ++d)
        if (d != split) order.push_back(d);
      order.insert(order.begin() + join, split);
      e = TransposeBy(e, order);
      Ints joined = s.dims();
      joined[split] /= count;
      joined[join] *= count;
      e = ReshapeTo(e, joined);
    }
    out.push_back(call.Finish(e.get()));
  }
  return out;
}

absl::StatusOr<Values> ConvertCollectiveBroadcast(Call& call) {
  if (!call.Flag("has_dynamic_root", false)) return ConvertCollective(call);
  // The last operand says, for each of the others, which member of the group it comes from: gather all, take one.
  if (call.x.size() < 2) return call.Fail("takes data and the position of its root");
  const Instruction* roots = call.x.back();
  Values out;
  for (size_t k = 0; k + 1 < call.x.size(); ++k) {
    const Shape s = call.x[k]->shape();
    Ints one = s.dims();
    one.insert(one.begin(), 1);
    Instruction* g = call.Add(Opcode::AllGather, Shape::Array(s.type(), one), {ReshapeTo(call.x[k], one).get()});
    RETURN_IF_ERROR(Groups(call, &g->mutable_attrs()));
    g->mutable_attrs().dimensions = Ints{0};
    ASSIGN_OR_RETURN(auto groups, GroupsOf(call, g));
    Ints all = one;
    all[0] = static_cast<int64_t>(groups[0].size());
    g->mutable_shape() = Shape::Array(s.type(), all);
    const int64_t at = static_cast<int64_t>(k);
    Expr root =
        roots->shape().rank() == 0 ? Expr(call.x.back()) : ReshapeTo(SliceOf(call.x.back(), {at}, {at + 1}), {});
    Values operands = {g, root.get()};
    for (int64_t d = 0; d < s.rank(); ++d) operands.push_back(call.c->AddConstant(Literal::Int(root.type(), 0)));
    Instruction* slice = call.Add(Opcode::DynamicSlice, Shape::Array(s.type(), one), operands);
    slice->mutable_attrs().dynamic_slice_sizes = one;
    out.push_back(call.Finish(ReshapeTo(slice, s.dims()).get()));
  }
  return out;
}

// The sum for the first member of the group, zeros for the rest.
absl::StatusOr<Values> ConvertCollectiveReduce(Call& call) {
  call.name = "all_reduce";
  ASSIGN_OR_RETURN(Values sums, ConvertCollective(call));
  const Module* m = call.converter.module();
  const Instruction* reduce = sums[0]->Is(Opcode::GetTupleElement) ? sums[0]->operand(0) : sums[0];
  ASSIGN_OR_RETURN(auto groups, GroupsOf(call, reduce));
  Ints root(m->replica_count * m->partition_count, 0);
  for (const Ints& g : groups) root[g[0]] = 1;
  Expr mine = OfDevice(call, root, PrimitiveType::S32) == 1.0;
  for (Instruction*& s : sums) {
    Expr sum = s;
    s = call.Finish(SelectExpr(BroadcastTo(mine, sum.shape().dims()), sum, sum.Like(0)).get());
  }
  return sums;
}

absl::StatusOr<Values> ConvertInfeed(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  std::vector<Shape> data(call.types.begin(), call.types.end() - 1);
  const Shape payload = data.size() == 1 ? data[0] : Shape::Tuple(data);
  Instruction* i = Ordered(call, call.Add(Opcode::Infeed, Shape::Tuple({payload, Shape::Token()}), call.x));
  Values parts = call.Split(i);
  if (data.size() == 1) return parts;
  Values out = call.Split(parts[0]);
  out.push_back(parts[1]);
  return out;
}

absl::StatusOr<Values> ConvertOutfeed(Call& call) {
  if (call.x.empty()) return call.Fail("takes data and a token");
  Instruction* token = call.x.back();
  call.x.pop_back();
  Instruction* data = call.x.size() == 1 ? call.x[0] : nullptr;
  if (!data) {
    std::vector<Shape> shapes;
    for (Instruction* i : call.x) shapes.push_back(i->shape());
    data = call.Add(Opcode::Tuple, Shape::Tuple(shapes), call.x);
  }
  return Values{Ordered(call, call.Add(Opcode::Outfeed, Shape::Token(), {data, token}))};
}

// One send for each value, in order; the tokens chain them.
absl::StatusOr<Values> ConvertSend(Call& call) {
  if (call.x.empty()) return call.Fail("takes data and a token");
  Instruction* token = call.x.back();
  for (size_t k = 0; k + 1 < call.x.size(); ++k) {
    const Shape s = call.x[k]->shape();
    Instruction* send =
        Ordered(call, call.Add(Opcode::Send, Shape::Tuple({s, Shape::Scalar(PrimitiveType::U32), Shape::Token()}),
                               {call.x[k], token}));
    RETURN_IF_ERROR(Groups(call, &send->mutable_attrs()));
    Instruction* done = Ordered(call, call.Add(Opcode::SendDone, Shape::Token(), {send}));
    for (Instruction* i : {send, done}) {
      i->mutable_attrs().channel_id = send->attrs().channel_id.value_or(0);
      if (call.Flag("is_host_transfer", false)) i->mutable_attrs().is_host_transfer = true;
    }
    token = done;
  }
  return Values{token};
}

absl::StatusOr<Values> ConvertRecv(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Instruction* token = call.x[0];
  Values out;
  for (size_t k = 0; k + 1 < call.types.size(); ++k) {
    const Shape s = call.types[k];
    if (Unbounded(s)) return call.Fail("the extents of what it receives are not known");
    Instruction* recv = Ordered(
        call, call.Add(Opcode::Recv, Shape::Tuple({s, Shape::Scalar(PrimitiveType::U32), Shape::Token()}), {token}));
    RETURN_IF_ERROR(Groups(call, &recv->mutable_attrs()));
    Instruction* done = Ordered(call, call.Add(Opcode::RecvDone, Shape::Tuple({s, Shape::Token()}), {recv}));
    for (Instruction* i : {recv, done}) {
      i->mutable_attrs().channel_id = recv->attrs().channel_id.value_or(0);
      if (call.Flag("is_host_transfer", false)) i->mutable_attrs().is_host_transfer = true;
    }
    Values parts = call.Split(done);
    out.push_back(parts[0]);
    token = parts[1];
  }
  out.push_back(token);
  return out;
}

}  // namespace kiln::stablehlo
