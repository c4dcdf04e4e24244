#include "compiler/passes/expand/collective_form.h"

#include "compiler/hlo/exchange.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/passes/expand/collective_gathers.h"

namespace kiln {
namespace {

class Canonicalizer {
 public:
  Canonicalizer(Instruction* i, const Module& m) : i_(i), c_(i->parent()), m_(m) {}

  // Null: it has the form.
  absl::StatusOr<Instruction*> Run() {
    const auto form = ExchangeOf(*i_, m_.replica_count, m_.partition_count);
    if (!form.ok()) return ErrorAt(i_, form.status().message());
    const std::optional<Exchange>& exchange = *form;
    if (exchange && (exchange->members() > 1 || i_->Is(Opcode::CollectivePermute))) return nullptr;
    if (exchange) return Itself();
    if (IsPlainGather(i_, m_)) return nullptr;
    const auto can_be = CanBeExchange(*i_, m_.replica_count, m_.partition_count);
    if (!can_be.ok()) return ErrorAt(i_, can_be.status().message());
    if (*can_be) {
      if (i_->Is(Opcode::CollectivePermute)) {
        members_ = m_.replica_count * m_.partition_count;
      } else {
        ASSIGN_OR_RETURN(const std::vector<Ints> groups, DeviceGroups(*i_, m_.replica_count, m_.partition_count));
        members_ = static_cast<int64_t>(groups[0].size());
      }
      if (Instruction* other = InTheForm()) return other;
    }
    return AsGather(i_, m_);
  }

 private:
  Instruction* Itself() {
    std::vector<Instruction*> parts(i_->operands());
    return i_->shape().IsTuple() ? c_->Add(Opcode::Tuple, i_->shape(), parts) : parts[0];
  }

  static std::vector<Instruction*> Instructions(const std::vector<Expr>& values) {
    std::vector<Instruction*> out;
    for (const Expr& v : values) out.push_back(v.get());
    return out;
  }

  // The collective over `operands`, made anew as one of results `shapes`.
  std::vector<Expr> Exchanged(const std::vector<Expr>& operands, const std::vector<Shape>& shapes) {
    const Shape shape = shapes.size() == 1 ? shapes[0] : Shape::Tuple(shapes);
    Instruction* x = c_->AddClone(i_, shape, Instructions(operands));
    if (!i_->Is(Opcode::AllReduce) && !i_->Is(Opcode::CollectivePermute)) x->mutable_attrs().dimensions = Ints{0};
    x->mutable_attrs().constrain_layout.reset();
    if (!shape.IsTuple()) return {Expr(x)};
    std::vector<Expr> out;
    for (size_t k = 0; k < shapes.size(); ++k) {
      Instruction* part = c_->Add(Opcode::GetTupleElement, shapes[k], {x});
      part->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      out.push_back(part);
    }
    return out;
  }

  // Operand k goes to member k: rows of one array.
  Instruction* RowsInTheForm() {
    const Ints dims = i_->operand(0)->shape().dims();
    Ints one = dims;
    one.insert(one.begin(), 1);
    std::vector<Expr> rows;
    for (Instruction* o : i_->operands()) {
      if (o->shape().dims() != dims || o->shape().type() != i_->operand(0)->shape().type()) return nullptr;
      rows.push_back(ReshapeTo(o, one));
    }
    const Expr all = ConcatOf(rows, 0), moved = Exchanged({all}, {all.shape()})[0];
    std::vector<Instruction*> parts;
    for (int64_t k = 0; k < members_; ++k) {
      Ints from(one.size(), 0), to = one;
      from[0] = k;
      to[0] = k + 1;
      const Expr part = ReshapeTo(SliceOf(moved, from, to), dims);
      parts.push_back(ConvertTo(i_->shape().tuple()[static_cast<size_t>(k)].type(), part).get());
    }
    return c_->Add(Opcode::Tuple, i_->shape(), parts);
  }

  // Dimension `d` of x as blocks of the members, in front: [members, ..., block, ...].
  static Expr BlocksInFront(Expr x, int64_t d, int64_t members) {
    Ints split = x.shape().dims(), order = {d};
    split[static_cast<size_t>(d)] /= members;
    split.insert(split.begin() + d, members);
    for (int64_t k = 0; k < static_cast<int64_t>(split.size()); ++k)
      if (k != d) order.push_back(k);
    return TransposeBy(ReshapeTo(x, split), order);
  }

  // The other way: [members, ..., block, ...] to [..., members * block, ...].
  static Expr BlocksInPlace(Expr x, int64_t d, const Ints& dims) {
    Ints order;
    for (int64_t k = 1; k < x.shape().rank(); ++k) order.push_back(k);
    order.insert(order.begin() + d, 0);
    return ReshapeTo(TransposeBy(x, order), dims);
  }

  // Null: its arrays cannot have the form.
  Instruction* InTheForm() {
    const std::vector<Shape> results = ResultsOf(*i_);
    if (static_cast<int64_t>(results.size()) != i_->operand_count()) return nullptr;
    if (i_->Is(Opcode::AllToAll) && !i_->attrs().dimensions) return i_->shape().IsTuple() ? RowsInTheForm() : nullptr;
    std::vector<Expr> operands;
    std::vector<Shape> shapes;
    for (int64_t k = 0; k < i_->operand_count(); ++k) {
      operands.push_back(OperandFor(i_->operand(k)));
      Ints dims = operands.back().shape().dims();
      if (i_->Is(Opcode::ReduceScatter)) dims[0] /= members_;
      if (i_->Is(Opcode::AllGather)) dims[0] *= members_;
      shapes.push_back(Shape::Array(operands.back().shape().type(), dims));
    }
    std::vector<Expr> parts = members_ > 1 ? Exchanged(operands, shapes) : operands;
    for (size_t k = 0; k < parts.size(); ++k) parts[k] = ConvertTo(results[k].type(), Restored(parts[k], results[k]));
    if (!i_->shape().IsTuple()) return parts[0].get();
    return c_->Add(Opcode::Tuple, i_->shape(), Instructions(parts));
  }

  int64_t Dimension() const { return (*i_->attrs().dimensions)[0]; }

  Expr OperandFor(Instruction* operand) const {
    Expr x = operand;
    if (i_->attrs().to_apply) x = ConvertTo((*i_->attrs().to_apply)->root()->shape().type(), x);
    if (i_->Is(Opcode::AllReduce) || i_->Is(Opcode::CollectivePermute) || Dimension() == 0) return x;
    if (!i_->Is(Opcode::AllGather)) return BlocksInFront(x, Dimension(), members_);
    Ints one = x.shape().dims();
    one.insert(one.begin(), 1);
    return ReshapeTo(x, one);
  }

  Expr Restored(Expr x, const Shape& result) const {
    if (i_->Is(Opcode::AllReduce) || i_->Is(Opcode::CollectivePermute) || Dimension() == 0) return x;
    if (i_->Is(Opcode::ReduceScatter)) return ReshapeTo(x, result.dims());
    return BlocksInPlace(x, Dimension(), result.dims());
  }

  Instruction* i_;
  Computation* c_;
  const Module& m_;
  int64_t members_ = 0;
};

}  // namespace

absl::StatusOr<Instruction*> AsExchange(Instruction* collective, const Module& m) {
  return Canonicalizer(collective, m).Run();
}

}  // namespace kiln
