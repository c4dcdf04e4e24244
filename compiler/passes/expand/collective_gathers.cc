#include "compiler/passes/expand/collective_gathers.h"

#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

class Expander {
 public:
  Expander(Instruction* i, const Module& m) : i_(i), c_(i->parent()), m_(m) {}

  absl::StatusOr<Instruction*> Run() {
    if (i_->Is(Opcode::CollectivePermute)) return Each([&](Expr x) { return Permute(x); });
    auto groups = DeviceGroups(*i_, m_.replica_count, m_.partition_count);
    if (!groups.ok()) return ErrorAt(i_, groups.status().message());
    groups_ = std::move(*groups);
    for (const Ints& g : groups_) members_ = std::max(members_, static_cast<int64_t>(g.size()));
    switch (i_->opcode()) {
      case Opcode::AllReduce:
        return Each([&](Expr x) { return AllReduce(x); });
      case Opcode::ReduceScatter:
        return Each([&](Expr x) { return ReduceScatter(x); });
      case Opcode::AllGather:
        return IsOneType() && i_->operand_count() > 1 ? PackedAllGather() : Each([&](Expr x) { return AllGather(x); });
      case Opcode::CollectiveBroadcast:
        return Each([&](Expr x) -> absl::StatusOr<Expr> {
          ASSIGN_OR_RETURN(Expr all, Gather(x));
          return Member(all, 0, x.shape().dims());
        });
      case Opcode::AllToAll:
        if (i_->attrs().dimensions) return Each([&](Expr x) { return AllToAll(x); });
        return TupleAllToAll();
      default:
        return RaggedAllToAll();
    }
  }

 private:
  template <typename Fn>
  absl::StatusOr<Instruction*> Each(const Fn& fn) {
    std::vector<Expr> out;
    for (Instruction* x : i_->operands()) {
      absl::StatusOr<Expr> e = fn(Expr(x));
      if (!e.ok()) return e.status();
      out.push_back(*e);
    }
    return Results(out);
  }

  // In the precision that the collective states, which need not be its operands'.
  Instruction* Results(const std::vector<Expr>& out) {
    if (!i_->shape().IsTuple()) return ConvertTo(i_->shape().type(), out[0]).get();
    std::vector<Instruction*> parts;
    for (size_t k = 0; k < out.size(); ++k) parts.push_back(ConvertTo(i_->shape().tuple()[k].type(), out[k]).get());
    return c_->Add(Opcode::Tuple, i_->shape(), parts);
  }

  int64_t Devices() const { return m_.replica_count * m_.partition_count; }

  Expr Device() {
    const Shape id = Shape::Scalar(PrimitiveType::U32);
    Expr r = c_->Add(Opcode::ReplicaId, id, {}), p = c_->Add(Opcode::PartitionId, id, {});
    return ConvertTo(PrimitiveType::S32, r * static_cast<double>(m_.partition_count) + p);
  }

  // The entry of `table` for the device that runs, as s32[].
  Expr OfDevice(const Ints& table) {
    Literal l(Shape::Array(PrimitiveType::S32, {static_cast<int64_t>(table.size())}));
    for (size_t k = 0; k < table.size(); ++k) {
      Element e;
      e.i = table[k];
      l.Set(static_cast<int64_t>(k), e);
    }
    return ReshapeTo(DynamicSliceOf(c_->AddConstant(std::move(l)), {Device()}, {1}), {});
  }

  // The device's place in its group; 0 outside every group.
  Expr Position() {
    Ints table(Devices(), 0);
    for (const Ints& g : groups_)
      for (size_t k = 0; k < g.size(); ++k) table[g[k]] = static_cast<int64_t>(k);
    return OfDevice(table);
  }

  // [members, dims of x]; zeros for a device outside every group.
  absl::StatusOr<Expr> GatherOver(Expr x, const std::vector<Ints>& groups, int64_t members) {
    Ints one = x.shape().dims();
    one.insert(one.begin(), 1);
    x = ReshapeTo(x, one);
    if (Devices() == 1 && members == 1) return x;
    Ints all = one;
    all[0] = members;
    Instruction* g = c_->Add(Opcode::AllGather, Shape::Array(x.type(), all), {x.get()});
    std::string text = "{";
    for (const Ints& group : groups) {
      // A device of a short group gets fewer blocks than there is room for, and reads no others.
      absl::StrAppend(&text, text.size() > 1 ? ",{" : "{");
      for (size_t k = 0; k < group.size(); ++k) absl::StrAppend(&text, k ? "," : "", group[k]);
      text += "}";
    }
    g->mutable_attrs().replica_groups = attr::Raw(text + "}");
    g->mutable_attrs().dimensions = Ints{0};
    g->mutable_attrs().use_global_device_ids = true;
    g->mutable_attrs().channel_id = std::max<int64_t>(i_->attrs().channel_id.value_or(1), 1);
    g->set_loc(i_->loc());
    return Expr(g);
  }
  absl::StatusOr<Expr> Gather(Expr x) { return GatherOver(x, groups_, members_); }

  Expr Member(Expr all, int64_t k, const Ints& dims) {
    Ints from(all.shape().rank(), 0), to = all.shape().dims();
    from[0] = k;
    to[0] = k + 1;
    return ReshapeTo(SliceOf(all, from, to), dims);
  }

  // Block `at` of `count` along dimension `d`.
  Expr BlockAt(Expr x, int64_t d, int64_t count, Expr at) {
    Ints sizes = x.shape().dims();
    sizes[d] /= count;
    std::vector<Expr> starts(x.shape().rank(), IntegerIn(c_, PrimitiveType::S32, 0));
    starts[d] = at * static_cast<double>(sizes[d]);
    return DynamicSliceOf(x, starts, sizes);
  }

  absl::StatusOr<Expr> AllReduce(Expr x) {
    x = ConvertTo((*i_->attrs().to_apply)->root()->shape().type(), x);
    ASSIGN_OR_RETURN(Expr all, Gather(x));
    const Ints dims = x.shape().dims();
    bool uneven = false;
    for (const Ints& g : groups_) uneven = uneven || static_cast<int64_t>(g.size()) != members_;
    Expr size = IntegerIn(c_, PrimitiveType::S32, 0);
    if (uneven) {
      Ints table(Devices(), 1);
      for (const Ints& g : groups_)
        for (int64_t d : g) table[d] = static_cast<int64_t>(g.size());
      size = OfDevice(table);
    }
    Expr sum = Member(all, 0, dims);
    for (int64_t k = 1; k < members_; ++k) {
      Expr next = Member(all, k, dims);
      Instruction* map = c_->Add(Opcode::Map, Shape::Array(x.type(), dims), {sum.get(), next.get()});
      Ints every;
      for (size_t d = 0; d < dims.size(); ++d) every.push_back(static_cast<int64_t>(d));
      map->mutable_attrs().dimensions = every;
      map->mutable_attrs().to_apply = *i_->attrs().to_apply;
      sum = uneven
                ? SelectExpr(BroadcastTo(CompareExpr(Direction::GT, size, IntegerIn(c_, PrimitiveType::S32, k)), dims),
                             map, sum)
                : Expr(map);
    }
    return sum;
  }

  absl::StatusOr<Expr> ReduceScatter(Expr x) {
    ASSIGN_OR_RETURN(Expr sum, AllReduce(x));
    return BlockAt(sum, (*i_->attrs().dimensions)[0], members_, Position());
  }

  absl::StatusOr<Expr> AllGather(Expr x) {
    ASSIGN_OR_RETURN(Expr all, Gather(x));
    return SideBySide(all, x.shape().dims());
  }

  // The arrays of all members, [members, dims], along the dimension that the collective names.
  Expr SideBySide(Expr all, Ints dims) {
    const int64_t d = (*i_->attrs().dimensions)[0];
    Ints order;
    for (int64_t k = 1; k <= static_cast<int64_t>(dims.size()); ++k) order.push_back(k);
    order.insert(order.begin() + d, 0);
    dims[static_cast<size_t>(d)] *= members_;
    return ReshapeTo(TransposeBy(all, order), dims);
  }

  bool IsOneType() const {
    return std::all_of(i_->operands().begin(), i_->operands().end(),
                       [&](const Instruction* o) { return o->shape().type() == i_->operand(0)->shape().type(); });
  }

  // Several arrays as one, one behind the other.
  absl::StatusOr<Instruction*> PackedAllGather() {
    std::vector<Expr> lines, out;
    for (Instruction* o : i_->operands()) lines.push_back(ReshapeTo(o, {o->shape().ElementCount()}));
    ASSIGN_OR_RETURN(Expr all, Gather(ConcatOf(lines, 0)));
    int64_t from = 0;
    for (Instruction* o : i_->operands()) {
      const int64_t to = from + o->shape().ElementCount();
      Ints dims = o->shape().dims();
      dims.insert(dims.begin(), members_);
      out.push_back(SideBySide(ReshapeTo(SliceOf(all, {0, from}, {members_, to}), dims), o->shape().dims()));
      from = to;
    }
    return Results(out);
  }

  absl::StatusOr<Expr> AllToAll(Expr x) {
    const int64_t d = (*i_->attrs().dimensions)[0];
    if (x.shape().dim(d) % members_)
      return ErrorAt(i_, absl::StrCat(members_, " members do not divide the extent ", x.shape().dim(d)));
    ASSIGN_OR_RETURN(Expr all, Gather(x));
    Expr mine = BlockAt(all, d + 1, members_, Position());  // [members, ..., block, ...]
    Ints order;
    for (int64_t k = 1; k <= x.shape().rank(); ++k) order.push_back(k);
    order.insert(order.begin() + d, 0);
    return ReshapeTo(TransposeBy(mine, order), x.shape().dims());
  }

  absl::StatusOr<Instruction*> TupleAllToAll() {
    if (i_->operand_count() != members_) return ErrorAt(i_, "operands and group members differ in number");
    const Ints dims = i_->operand(0)->shape().dims();
    Ints one = dims;
    one.insert(one.begin(), 1);
    std::vector<Expr> rows;
    for (Instruction* o : i_->operands()) rows.push_back(ReshapeTo(o, one));
    ASSIGN_OR_RETURN(Expr all, Gather(ConcatOf(rows, 0)));
    Expr mine = BlockAt(all, 1, members_, Position());
    std::vector<Expr> parts;
    for (int64_t k = 0; k < members_; ++k) parts.push_back(Member(mine, k, dims));
    return Results(parts);
  }

  absl::StatusOr<Expr> Permute(Expr x) {
    auto pairs = DevicePairs(*i_, m_.replica_count, m_.partition_count);
    if (!pairs.ok()) return ErrorAt(i_, pairs.status().message());
    Ints source(Devices(), -1), everyone;
    for (const auto& [from, to] : *pairs) source[to] = from;
    for (int64_t d = 0; d < Devices(); ++d) everyone.push_back(d);
    ASSIGN_OR_RETURN(Expr all, GatherOver(x, {everyone}, Devices()));
    Expr from = OfDevice(source);  // a start of -1 is clamped to 0
    Ints one = all.shape().dims();
    one[0] = 1;
    std::vector<Expr> starts(all.shape().rank(), IntegerIn(c_, PrimitiveType::S32, 0));
    starts[0] = from;
    Expr moved = ReshapeTo(DynamicSliceOf(all, starts, one), x.shape().dims());
    return SelectExpr(BroadcastTo(CompareExpr(Direction::GE, from, from.Like(0)), x.shape().dims()), moved,
                      moved.Like(0));
  }

  // input, output, input offsets, send sizes, output offsets (in the receiver), receive sizes: rows that member k sends
  // to this device land at the offset that k states.
  absl::StatusOr<Instruction*> RaggedAllToAll() {
    Expr out = i_->operand(1);
    ASSIGN_OR_RETURN(Expr data, Gather(i_->operand(0)));
    std::vector<Expr> lists;
    for (int k : {2, 3, 4}) {
      ASSIGN_OR_RETURN(Expr all, Gather(i_->operand(k)));
      lists.push_back(ConvertTo(PrimitiveType::S32, BlockAt(all, 1, members_, Position())));
    }
    const Ints dims = out.shape().dims();
    Ints rest = dims;
    rest.erase(rest.begin());
    const int64_t rows = dims[0];
    for (int64_t k = 0; k < members_; ++k) {
      auto scalar = [&](int which) { return Member(lists[which], k, {}); };
      Expr from = scalar(0), count = scalar(1), to = scalar(2);
      Expr row = IotaOf(c_, PrimitiveType::S32, {rows}, 0);
      auto all_rows = [&](Expr s) { return BroadcastTo(s, {rows}); };
      Expr inside =
          (CompareExpr(Direction::GE, row, all_rows(to)) & CompareExpr(Direction::LT, row, all_rows(to + count)));
      Expr index = row - all_rows(to) + all_rows(from);
      Ints input_dims = i_->operand(0)->shape().dims();
      Expr member = Member(data, k, input_dims);
      Instruction* g = c_->Add(Opcode::Gather, Shape::Array(out.type(), dims), {member.get(), index.get()});
      Ints offset, slice = input_dims;
      for (int64_t d = 1; d < out.shape().rank(); ++d) offset.push_back(d);
      slice[0] = 1;
      g->mutable_attrs().offset_dims = offset;
      g->mutable_attrs().collapsed_slice_dims = Ints{0};
      g->mutable_attrs().start_index_map = Ints{0};
      g->mutable_attrs().index_vector_dim = 1;
      g->mutable_attrs().slice_sizes = slice;
      out = SelectExpr(BroadcastTo(inside, dims, {0}), g, out);
    }
    return out.get();
  }

  Instruction* i_;
  Computation* c_;
  const Module& m_;
  std::vector<Ints> groups_;
  int64_t members_ = 1;
};

}  // namespace

absl::StatusOr<Instruction*> AsGather(Instruction* collective, const Module& m) {
  return Expander(collective, m).Run();
}

bool IsPlainGather(const Instruction* i, const Module& m) {
  return i->Is(Opcode::AllGather) && m.replica_count * m.partition_count > 1 && !i->shape().IsTuple() &&
         i->operand_count() == 1 && *i->attrs().dimensions == Ints{0} && i->operand(0)->shape().dim(0) == 1 &&
         i->attrs().use_global_device_ids.value_or(false) && i->attrs().channel_id && i->attrs().replica_groups;
}

}  // namespace kiln
