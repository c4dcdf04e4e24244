// A program over whole arrays becomes the program of one device over its parts.
//
// Every computation that control flow reaches is built anew, over parts as the shardings say; an operation is cut by
// its rule (compiler/sharding/op_rule.h), moved where its neighbours disagree, and computed whole where it has none.
// Arguments and results of the entry take one device's shapes; the module's header keeps what they are parts of.
#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/sharding/partitioned_op.h"
#include "compiler/passes/sharding/remake.h"
#include "compiler/passes/sharding/shardings.h"
#include "compiler/passes/sharding/tile_boundary.h"
#include "compiler/sharding/partitioned_entry.h"

namespace kiln {
namespace {

using Parts = std::vector<Part>;  // of a value, leaf by leaf

class Partitioner {
 public:
  Partitioner(Module* m, ModuleShardings* shardings)
      : m_(m), all_(*shardings), mesh_(shardings->mesh()), next_channel_(FreshChannel(*m)) {}

  absl::Status Run();

 private:
  // A computation that is being built.
  struct Scope {
    Resharder reshard;
    std::map<const Instruction*, Parts> parts;
    Scope(Computation* c, Partitioner* p) : reshard(c, p->mesh_, &p->next_channel_) {}
    Computation* computation() const { return reshard.computation(); }
  };

  std::vector<Tiling> Wanted(const Instruction* i) {
    std::vector<Tiling> out;
    for (const LeafSharding& l : all_.Of(i)) out.push_back(l.tiling);
    return out;
  }
  absl::StatusOr<Parts> Build(const Computation* from, Scope* s);
  absl::StatusOr<Parts> Emit(const Instruction* i, Scope* s);
  absl::StatusOr<Parts> EmitOperation(const Instruction* i, Scope* s);
  Parts EmitConstant(const Instruction* i, Scope* s);
  absl::StatusOr<Parts> EmitBoundary(const Instruction* i, const ManualBoundary& b, Scope* s);
  Part EnterRegion(const Part& whole, const std::optional<Tiling>& region, const Sharding& written,
                   const LeafSharding& tile, Scope* s);
  Part LeaveRegion(const Part& tile, const std::optional<Tiling>& region, const Sharding& written,
                   const LeafSharding& whole, Scope* s);
  absl::StatusOr<Parts> EmitWhile(const Instruction* i, Scope* s);
  absl::StatusOr<Parts> EmitConditional(const Instruction* i, Scope* s);
  absl::StatusOr<Parts> EmitCall(const Instruction* i, Scope* s);
  // A computation over one tuple of the leaves of `like`, whose root is `finish` of the parts of its old root.
  template <typename Finish>
  absl::StatusOr<Computation*> BuildBody(const Computation* from, const Parts& like, const Finish& finish);
  Parts OperandParts(const Instruction* i, Scope* s);
  // `exactly`: uneven parts too, on all paths into a loop and out of a branch alike.
  Parts To(const Parts& parts, const std::vector<Tiling>& wanted, Scope* s, bool exactly = false);
  Instruction* TupleOfParts(const Parts& parts, Computation* c);
  Parts ElementsOf(Instruction* tuple, const Parts& like);
  absl::StatusOr<Part> Enter(Instruction* value, const Shape& whole, const TileSharding* written);
  absl::Status BuildParameters(Scope* s);
  Instruction* Nest(const Shape& shape, const std::vector<Instruction*>& leaves, size_t* next, Computation* c);
  void KeepControlEdges(const Computation* from, Scope* s);

  Module* m_;
  ModuleShardings& all_;
  const DeviceMesh& mesh_;
  int64_t next_channel_;
  PartitionedEntry entry_;
};

Tiling WholeTiling(const Shape& s, AxisMask manual = 0) {
  Tiling t;
  t.dims.resize(static_cast<size_t>(s.rank()));
  t.manual = manual;
  return t;
}

Parts Partitioner::OperandParts(const Instruction* i, Scope* s) {
  Parts out;
  for (const Instruction* o : i->operands()) {
    const Parts& p = s->parts[o];
    out.insert(out.end(), p.begin(), p.end());
  }
  return out;
}

Parts Partitioner::To(const Parts& parts, const std::vector<Tiling>& wanted, Scope* s, bool exactly) {
  Parts out;
  for (size_t k = 0; k < parts.size(); ++k) {
    out.push_back(parts[k]);
    if (parts[k].whole.IsArray()) out[k] = Bring(parts[k], Settled(mesh_, parts[k], wanted[k], exactly), &s->reshard);
    out.back().tiling.manual = parts[k].tiling.manual | wanted[k].manual;
  }
  return out;
}

Instruction* Partitioner::TupleOfParts(const Parts& parts, Computation* c) {
  std::vector<Instruction*> values;
  std::vector<Shape> shapes;
  for (const Part& p : parts) {
    values.push_back(p.value);
    shapes.push_back(p.value->shape());
  }
  return c->Add(Opcode::Tuple, Shape::Tuple(shapes), values);
}

Parts Partitioner::ElementsOf(Instruction* tuple, const Parts& like) {
  Parts out = like;
  for (size_t k = 0; k < out.size(); ++k) out[k].value = PartOf(tuple, static_cast<int64_t>(k)).get();
  return out;
}

// Without what only a view of an operand had passed through (RuleOperands).
std::set<const Instruction*> Used(const Computation& c) {
  std::set<const Instruction*> out;
  std::vector<const Instruction*> next{c.root()};
  for (const auto& i : c.instructions())
    if (i->HasSideEffect()) next.push_back(&*i);
  while (!next.empty()) {
    const Instruction* i = next.back();
    next.pop_back();
    if (!out.insert(i).second) continue;
    for (const Instruction* o : RuleOperands(*i)) next.push_back(o);
  }
  return out;
}

absl::StatusOr<Parts> Partitioner::Build(const Computation* from, Scope* s) {
  const std::set<const Instruction*> used = Used(*from);
  for (const Instruction* i : from->PostOrder()) {
    if (i->Is(Opcode::Parameter) || !used.count(i)) continue;
    ASSIGN_OR_RETURN(s->parts[i], Emit(i, s));
  }
  KeepControlEdges(from, s);
  return s->parts[from->root()];
}

void Partitioner::KeepControlEdges(const Computation* from, Scope* s) {
  for (const auto& i : from->instructions())
    for (const Instruction* after : i->control_successors()) {
      const Parts &a = s->parts[&*i], &b = s->parts[after];
      if (!a.empty() && !b.empty() && a[0].value->id() < b[0].value->id())
        a[0].value->AddControlDependencyTo(b[0].value);
    }
}

absl::StatusOr<Parts> Partitioner::Emit(const Instruction* i, Scope* s) {
  ASSIGN_OR_RETURN(const std::optional<ManualBoundary> boundary, ManualBoundaryOf(*i));
  if (boundary) return EmitBoundary(i, *boundary, s);
  switch (i->opcode()) {
    case Opcode::Tuple:
      return OperandParts(i, s);
    case Opcode::GetTupleElement: {
      const Parts& all = s->parts[i->operand(0)];
      size_t at = 0;
      for (int64_t k = 0; k < *i->attrs().tuple_index; ++k)
        at += LeafCount(i->operand(0)->shape().tuple()[static_cast<size_t>(k)]);
      return Parts(all.begin() + static_cast<std::ptrdiff_t>(at),
                   all.begin() + static_cast<std::ptrdiff_t>(at + LeafCount(i->shape())));
    }
    case Opcode::OptimizationBarrier: {
      const Parts operand = OperandParts(i, s);
      Instruction* tuple = TupleOfParts(operand, s->computation());
      return ElementsOf(s->computation()->Add(Opcode::OptimizationBarrier, tuple->shape(), {tuple}), operand);
    }
    case Opcode::Constant:
      return EmitConstant(i, s);
    case Opcode::While:
      return EmitWhile(i, s);
    case Opcode::Conditional:
      return EmitConditional(i, s);
    case Opcode::Call:
      return EmitCall(i, s);
    default:
      if (IsShardingCall(*i)) return To(OperandParts(i, s), Wanted(i), s);
      return EmitOperation(i, s);
  }
}

absl::StatusOr<Parts> Partitioner::EmitOperation(const Instruction* i, Scope* s) {
  const std::vector<const Instruction*> operands_of = RuleOperands(*i);
  Parts leaves;
  for (const Instruction* o : operands_of) leaves.insert(leaves.end(), s->parts[o].begin(), s->parts[o].end());
  Parts operands;
  size_t next = 0;
  for (const Instruction* o : operands_of) {
    if (!o->shape().IsTuple()) {
      operands.push_back(leaves[next++]);
      continue;
    }
    // An operation over a tuple is computed whole.
    std::vector<Instruction*> values;
    AxisMask manual = 0;
    for (size_t n = LeafCount(o->shape()), k = 0; k < n; ++k, ++next) {
      values.push_back(s->reshard.To(leaves[next], WholeTiling(leaves[next].whole)).value);
      manual |= leaves[next].tiling.manual;
    }
    size_t at = 0;
    operands.push_back({Nest(o->shape(), values, &at, s->computation()), WholeTiling(o->shape(), manual), o->shape()});
  }
  return PartitionOp(*i, operands, Wanted(i), &s->reshard);
}

Parts Partitioner::EmitConstant(const Instruction* i, Scope* s) {
  if (i->shape().IsTuple()) {
    Parts out;
    ForEachLeaf(i->shape(), [&](const ShapeIndex& index, const Shape& leaf) {
      const Literal* l = &i->literal();
      for (int64_t k : index) l = &l->elements()[static_cast<size_t>(k)];
      out.push_back({s->computation()->AddConstant(*l), WholeTiling(leaf), leaf});
    });
    return To(out, Wanted(i), s);
  }
  Tiling wanted = Wanted(i)[0];
  MakeEven(mesh_, i->shape().dims(), &wanted);
  if (wanted.IsWhole() || i->literal().size() == 0 || !i->literal().IsSplat()) {
    Instruction* c = s->computation()->AddClone(i, i->shape(), {});
    if (c->attrs().sharding) c->mutable_attrs().sharding.reset();
    return To({{c, WholeTiling(i->shape()), i->shape()}}, {wanted}, s);
  }
  Literal one(Shape::Scalar(i->shape().type()));
  one.Set(0, i->literal().Get(0));
  const Shape local = LocalShape(mesh_, i->shape(), wanted);
  return Parts{{s->computation()->AddConstant(Literal::Splat(local, one)), wanted, i->shape()}};
}

// `region`: the even tiles that the region's axes make, which axes of the compiler's may cut further.
Part Partitioner::EnterRegion(const Part& whole, const std::optional<Tiling>& region, const Sharding& written,
                              const LeafSharding& tile, Scope* s) {
  Part out{nullptr, WholeTiling(tile.shape, tile.tiling.manual), tile.shape};
  if (!region) {
    out.value = TileOf(s->reshard.To(whole, WholeTiling(whole.whole)).value, written, tile.shape).get();
    return out;
  }
  Tiling inside = tile.tiling, outside = *region;
  MakeEven(mesh_, tile.shape.dims(), &inside);
  for (size_t d = 0; d < inside.dims.size(); ++d)
    outside.dims[d].insert(outside.dims[d].end(), inside.dims[d].begin(), inside.dims[d].end());
  out.tiling.dims = inside.dims;
  out.value = s->reshard.To(whole, outside).value;
  if (s->reshard.IsFree(whole, *region))
    s->reshard.KeepOrigin(out, {s->reshard.To(whole, *region).value, WholeTiling(tile.shape), tile.shape});
  return out;
}

Part Partitioner::LeaveRegion(const Part& tile, const std::optional<Tiling>& region, const Sharding& written,
                              const LeafSharding& whole, Scope* s) {
  Part out{nullptr, WholeTiling(whole.shape, whole.tiling.manual), whole.shape};
  Tiling inside = tile.tiling;
  MakeEven(mesh_, tile.whole.dims(), &inside);
  if (!region) inside = WholeTiling(tile.whole);
  const Part moved = s->reshard.To(tile, inside);
  if (!region) {
    out.value = WholeOf(moved.value, written, whole.shape).get();
    next_channel_ = std::max(next_channel_, FreshChannel(*m_));
    return out;
  }
  out.value = moved.value;
  out.tiling.dims = region->dims;
  for (size_t d = 0; d < inside.dims.size(); ++d)
    out.tiling.dims[d].insert(out.tiling.dims[d].end(), inside.dims[d].begin(), inside.dims[d].end());
  return out;
}

// Inwards a part becomes a value of its own; outwards a value becomes a part.
absl::StatusOr<Parts> Partitioner::EmitBoundary(const Instruction* i, const ManualBoundary& b, Scope* s) {
  const Parts operands = OperandParts(i, s);
  Parts out;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape& to = i->shape().IsTuple() ? i->shape().tuple()[k] : i->shape();
    const TileSharding written = FromTable(b.shardings[k]);
    const Shape& whole = b.inwards ? operands[k].whole : to;
    auto tiling = mesh_.Express(written, whole.rank());
    if (written.kind == TileSharding::kUnknown)
      return ErrorAt(i, "has a sharding that does not cut an array into tiles");
    if (written.IsTiled() && static_cast<int64_t>(written.devices.size()) != m_->partition_count)
      return ErrorAt(i, absl::StrCat("is sharded over ", written.devices.size(), " devices, the module has ",
                                     m_->partition_count, " partitions"));
    if (tiling) tiling->manual = 0;
    const bool even = tiling && CutsEvenly(mesh_, whole.dims(), *tiling);
    const Shape tile = tiling ? LocalShape(mesh_, whole, *tiling) : b.inwards ? to : operands[k].whole;
    if (!tile.Compatible(b.inwards ? to : operands[k].whole))
      return ErrorAt(i, absl::StrCat("a tile of ", whole.ToString(false), " is ", tile.ToString(false), ", not ",
                                     (b.inwards ? to : operands[k].whole).ToString(false)));
    out.push_back(b.inwards ? EnterRegion(operands[k], even ? tiling : std::nullopt, b.shardings[k], all_.Of(i)[k], s)
                            : LeaveRegion(operands[k], even ? tiling : std::nullopt, b.shardings[k], all_.Of(i)[k], s));
  }
  return b.inwards ? out : To(out, Wanted(i), s);
}

template <typename Finish>
absl::StatusOr<Computation*> Partitioner::BuildBody(const Computation* from, const Parts& like, const Finish& finish) {
  Computation* c = m_->AddComputation(from->name());
  Scope s(c, this);
  std::vector<Shape> shapes;
  for (const Part& p : like) shapes.push_back(p.value->shape());
  Instruction* parameter = c->AddParameter(0, Shape::Tuple(shapes), from->parameter(0)->name());
  s.parts[from->parameter(0)] = ElementsOf(parameter, like);
  ASSIGN_OR_RETURN(const Parts root, Build(from, &s));
  c->set_root(finish(root, &s));
  return c;
}

absl::StatusOr<Parts> Partitioner::EmitWhile(const Instruction* i, Scope* s) {
  const std::vector<Tiling> wanted = Wanted(i);
  const Parts init = To(OperandParts(i, s), wanted, s, true);
  ASSIGN_OR_RETURN(Computation * body, BuildBody(*i->attrs().body, init, [&](const Parts& root, Scope* inner) {
                     return TupleOfParts(To(root, wanted, inner, true), inner->computation());
                   }));
  ASSIGN_OR_RETURN(Computation * condition,
                   BuildBody(*i->attrs().condition, init, [&](const Parts& root, Scope* inner) {
                     return inner->reshard.To(root[0], WholeTiling(root[0].whole)).value;
                   }));
  Instruction* tuple = TupleOfParts(init, s->computation());
  Instruction* loop = s->computation()->AddClone(i, tuple->shape(), {tuple});
  loop->mutable_attrs().sharding.reset();
  loop->mutable_attrs().body = body;
  loop->mutable_attrs().condition = condition;
  return ElementsOf(loop, init);
}

absl::StatusOr<Parts> Partitioner::EmitConditional(const Instruction* i, Scope* s) {
  const std::vector<Tiling> wanted = Wanted(i);
  const Part& predicate = s->parts[i->operand(0)][0];
  std::vector<Instruction*> operands{s->reshard.To(predicate, WholeTiling(predicate.whole)).value};
  const std::vector<Computation*> branches = i->called();
  std::map<const Computation*, Computation*> built;
  Parts result;
  for (size_t k = 0; k < branches.size(); ++k) {
    const Parts given = s->parts[i->operand(static_cast<int64_t>(k) + 1)];
    operands.push_back(TupleOfParts(given, s->computation()));
    ASSIGN_OR_RETURN(built[branches[k]], BuildBody(branches[k], given, [&](const Parts& root, Scope* inner) {
                       result = To(root, wanted, inner, true);
                       return TupleOfParts(result, inner->computation());
                     }));
  }
  Instruction* chosen = s->computation()->AddClone(i, built[branches[0]]->root()->shape(), std::move(operands));
  chosen->mutable_attrs().sharding.reset();
  chosen->MapCalled([&](Computation* c) { return built[c]; });
  return ElementsOf(chosen, result);
}

// In the place of the call.
absl::StatusOr<Parts> Partitioner::EmitCall(const Instruction* i, Scope* s) {
  const Computation* callee = *i->attrs().to_apply;
  for (int64_t k = 0; k < i->operand_count(); ++k) s->parts[callee->parameter(k)] = s->parts[i->operand(k)];
  ASSIGN_OR_RETURN(const Parts root, Build(callee, s));
  return To(root, Wanted(i), s);
}

Instruction* Partitioner::Nest(const Shape& shape, const std::vector<Instruction*>& leaves, size_t* next,
                               Computation* c) {
  if (!shape.IsTuple()) return leaves[(*next)++];
  std::vector<Instruction*> elements;
  std::vector<Shape> shapes;
  for (const Shape& e : shape.tuple()) {
    elements.push_back(Nest(e, leaves, next, c));
    shapes.push_back(elements.back()->shape());
  }
  return c->Add(Opcode::Tuple, Shape::Tuple(shapes), elements);
}

// `value`: a leaf of the entry's parameters, already of one device's shape.
absl::StatusOr<Part> Partitioner::Enter(Instruction* value, const Shape& whole, const TileSharding* written) {
  if (!written || !written->IsTiled()) return Part{value, WholeTiling(whole), whole};
  if (auto t = mesh_.Express(*written, whole.rank())) {
    t->manual = 0;
    return Part{value, *t, whole};
  }
  Instruction* all = WholeOf(value, ToTable(*written), whole).get();
  next_channel_ = std::max(next_channel_, FreshChannel(*m_));
  return Part{all, WholeTiling(whole), whole};
}

// One device's shape of each leaf of `whole`.
Shape EntryShape(const Shape& whole, const std::vector<TileSharding>& written, size_t* next) {
  if (whole.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& e : whole.tuple()) elements.push_back(EntryShape(e, written, next));
    return Shape::Tuple(elements);
  }
  const size_t k = written.size() == 1 ? 0 : *next;
  ++*next;
  Shape out = whole;
  if (k >= written.size() || !written[k].IsTiled() || !whole.IsArray()) return out;
  for (size_t d = 0; d < written[k].tiles.size(); ++d) {
    const int64_t n = written[k].tiles[d];
    out.mutable_dims()[d] = (out.dims()[d] + n - 1) / n;
  }
  return out;
}

absl::Status Partitioner::BuildParameters(Scope* s) {
  for (const Instruction* p : m_->entry()->parameters()) {
    ASSIGN_OR_RETURN(const std::vector<TileSharding> written, WrittenShardings(*p));
    size_t next = 0;
    const Shape shape = EntryShape(p->shape(), written, &next);
    Instruction* local = s->computation()->AddParameter(*p->attrs().parameter_number, shape, p->name());
    local->set_loc(p->loc());
    size_t k = 0;
    absl::Status failed;
    ForEachLeaf(p->shape(), [&](const ShapeIndex& index, const Shape& whole) {
      Expr leaf = local;
      for (int64_t n : index) leaf = PartOf(leaf, n);
      const size_t w = written.size() == 1 ? 0 : k;
      ++k;
      const TileSharding* of = w < written.size() ? &written[w] : nullptr;
      auto part = Enter(leaf.get(), whole, of);
      if (!part.ok()) {
        failed = part.status();
        return;
      }
      s->parts[p].push_back(*part);
      entry_.arguments.push_back({whole, of && of->IsTiled() ? ToTable(*of) : Sharding()});
    });
    RETURN_IF_ERROR(failed);
  }
  return absl::OkStatus();
}

absl::Status Partitioner::Run() {
  Computation* old = m_->entry();
  Scope s(m_->AddComputation(absl::StrCat(old->name(), "_spmd")), this);
  RETURN_IF_ERROR(BuildParameters(&s));
  ASSIGN_OR_RETURN(const Parts root, Build(old, &s));
  ASSIGN_OR_RETURN(const std::vector<TileSharding> written, WrittenShardings(*old->root()));
  std::vector<Instruction*> leaves;
  for (size_t k = 0; k < root.size(); ++k) {
    const size_t w = written.size() == 1 ? 0 : k;
    const bool cut = w < written.size() && written[w].IsTiled() && root[k].whole.IsArray();
    auto tiling = cut ? mesh_.Express(written[w], root[k].whole.rank()) : std::nullopt;
    Part p = root[k];
    Sharding table;
    if (cut && !tiling) {
      size_t first = 0;
      p = s.reshard.To(p, WholeTiling(p.whole));
      table = ToTable(written[w]);
      p.value = TileOf(p.value, table, EntryShape(p.whole, {written[w]}, &first)).get();
    } else if (p.whole.IsArray()) {
      Tiling asked = tiling ? *tiling : p.tiling;
      if (!tiling) MakeEven(mesh_, p.whole.dims(), &asked);
      p = Bring(p, p.tiling.manual == 0 ? asked : WholeTiling(p.whole), &s.reshard);
      if (p.tiling.manual)
        table.kind = Sharding::kManual;
      else if (!p.tiling.IsWhole())
        table = ToTable(mesh_.Written(p.tiling));
    }
    leaves.push_back(p.value);
    entry_.results.push_back({p.whole, table});
  }
  size_t next = 0;
  s.computation()->set_root(Nest(old->root()->shape(), leaves, &next, s.computation()));
  const std::string name = old->name();
  std::vector<std::string> parameters;
  for (const Instruction* p : old->parameters()) parameters.push_back(p->name());
  m_->set_entry(s.computation());
  m_->RemoveUnreachableComputations();
  for (size_t k = 0; k < parameters.size(); ++k)
    s.computation()->parameter(static_cast<int64_t>(k))->Rename(parameters[k]);
  RecordPartitionedEntry(entry_, m_);
  return absl::OkStatus();
}

bool DropShardings(Module* m) {
  bool any = false;
  for (const auto& c : m->computations())
    for (const auto& i : c->instructions()) {
      if (!i->attrs().sharding || i->Is(Opcode::CustomCall) || i->HasSideEffect()) continue;
      i->mutable_attrs().sharding.reset();
      any = true;
    }
  return any;
}

}  // namespace

absl::StatusOr<bool> SpmdPartitioner(Module& m, PassContext& ctx) {
  RETURN_IF_ERROR(CheckPartitionedEntry(m));
  if (ReadPartitionedEntry(m) || ctx.fuel == 0) return false;
  // On one device shardings say nothing, and would only keep instructions from being replaced.
  if (m.partition_count < 2) return DropShardings(&m) && ctx.Take();
  ModuleShardings shardings;
  RETURN_IF_ERROR(shardings.Read(&m));
  if (!shardings.cuts_anything() || shardings.mesh().axis_count() == 0) return shardings.separated();
  ctx.Take();
  RETURN_IF_ERROR(Partitioner(&m, &shardings).Run());
  DropShardings(&m);
  return true;
}

}  // namespace kiln
