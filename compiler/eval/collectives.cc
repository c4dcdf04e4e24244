// Evaluator: operations between devices, and the host program's queues.
#include <algorithm>

#include "compiler/eval/evaluator.h"
#include "compiler/eval/families.h"
#include "compiler/eval/world.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

// What one device sees of a collective: the values of its group's members, and its own place among them.
struct Meeting {
  std::vector<Literal> values;
  int64_t position = -1;  // -1: in no group
};

absl::StatusOr<Meeting> Meet(const Instruction& i, const Literal& mine) {
  const Participant* self = Participant::Current();
  const int64_t replicas = self ? self->world->replicas : 1, partitions = self ? self->world->partitions : 1;
  auto groups = DeviceGroups(i, replicas, partitions);
  if (!groups.ok()) return ErrorAt(&i, groups.status().message());
  const int64_t device = self ? self->device : 0;
  Meeting m;
  for (const Ints& g : *groups) {
    const auto at = std::find(g.begin(), g.end(), device);
    if (at == g.end()) continue;
    m.position = at - g.begin();
    if (!self) {
      m.values = {mine};
    } else {
      ASSIGN_OR_RETURN(m.values, self->world->Exchange(device, g, mine));
    }
  }
  return m;
}

absl::StatusOr<Literal> AllReduce(const Instruction& i, const Literal& x) {
  ASSIGN_OR_RETURN(Meeting m, Meet(i, x));
  if (m.position < 0) return Literal(x.shape());
  Literal out = m.values[0];
  for (size_t k = 1; k < m.values.size(); ++k)
    for (int64_t n = 0; n < out.size(); ++n) {
      ASSIGN_OR_RETURN(Literal r, CallScalar(**i.attrs().to_apply, {out.Get(n), m.values[k].Get(n)}));
      out.Set(n, r.Get(0));
    }
  return out;
}

// Blocks of `parts` one behind the other along dimension `d`.
Literal Join(const std::vector<Literal>& parts, int64_t d, const Shape& shape) {
  Literal out(shape);
  const IndexSpace os(shape.dims());
  int64_t start = 0;
  for (const Literal& p : parts) {
    const IndexSpace ps(p.shape().dims());
    for (int64_t n = 0; n < p.size(); ++n) {
      Ints at = ps.At(n);
      at[d] += start;
      out.Set(os.Linear(at), p.Get(n));
    }
    start += p.shape().dim(d);
  }
  return out;
}

// Block `k` of `count` along dimension `d`.
Literal Block(const Literal& x, int64_t d, int64_t k, int64_t count) {
  Ints dims = x.shape().dims();
  dims[d] /= count;
  Literal out(Shape::Array(x.type(), dims));
  const IndexSpace is(x.shape().dims()), os(dims);
  for (int64_t n = 0; n < out.size(); ++n) {
    Ints at = os.At(n);
    at[d] += k * dims[d];
    out.Set(n, x.Get(is.Linear(at)));
  }
  return out;
}

absl::StatusOr<Literal> AllToAll(const Instruction& i, const std::vector<const Literal*>& x) {
  if (!i.attrs().dimensions) {  // tuple form: operand k goes to member k
    std::vector<Literal> mine;
    for (const Literal* l : x) mine.push_back(*l);
    ASSIGN_OR_RETURN(Meeting m, Meet(i, Literal::Tuple(mine)));
    if (m.position < 0 || m.values.size() != x.size())
      return ErrorAt(&i, "operands and group members differ in number");
    std::vector<Literal> out;
    for (const Literal& v : m.values) out.push_back(v.elements()[m.position]);
    return Literal::Tuple(std::move(out));
  }
  const int64_t d = (*i.attrs().dimensions)[0];
  ASSIGN_OR_RETURN(Meeting m, Meet(i, *x[0]));
  if (m.position < 0) return Literal(i.shape());
  std::vector<Literal> blocks;
  for (const Literal& v : m.values) blocks.push_back(Block(v, d, m.position, static_cast<int64_t>(m.values.size())));
  return Join(blocks, d, i.shape());
}

absl::StatusOr<Literal> Permute(const Instruction& i, const Literal& x) {
  const Participant* self = Participant::Current();
  const int64_t replicas = self ? self->world->replicas : 1, partitions = self ? self->world->partitions : 1,
                device = self ? self->device : 0;
  auto pairs = DevicePairs(i, replicas, partitions);
  if (!pairs.ok()) return ErrorAt(&i, pairs.status().message());
  Ints everyone;
  for (int64_t d = 0; d < replicas * partitions; ++d) everyone.push_back(d);
  std::vector<Literal> all = {x};
  if (self) {
    ASSIGN_OR_RETURN(all, self->world->Exchange(device, everyone, x));
  }
  for (const auto& [from, to] : *pairs)
    if (to == device) return all[from];
  return Literal(x.shape());
}

absl::StatusOr<Literal> RaggedAllToAll(const Instruction& i, const std::vector<const Literal*>& x) {
  // input, output, input offsets, send sizes, output offsets (in the receiver), receive sizes
  ASSIGN_OR_RETURN(Meeting m, Meet(i, Literal::Tuple({*x[0], *x[2], *x[3], *x[4]})));
  Literal out = *x[1];
  if (m.position < 0) return out;
  const int64_t row = out.shape().dim(0) ? out.size() / out.shape().dim(0) : 0;
  for (const Literal& v : m.values) {
    const Literal& data = v.elements()[0];
    const int64_t from = v.elements()[1].Get(m.position).i, rows = v.elements()[2].Get(m.position).i,
                  to = v.elements()[3].Get(m.position).i;
    if (from < 0 || to < 0 || rows < 0 || from + rows > data.shape().dim(0) || to + rows > out.shape().dim(0))
      return ErrorAt(&i, "rows outside the arrays");
    for (int64_t n = 0; n < rows * row; ++n) out.Set(to * row + n, data.Get(from * row + n));
  }
  return out;
}

template <typename Fn>
absl::StatusOr<Literal> Each(const Instruction& i, const std::vector<const Literal*>& x, const Fn& fn) {
  std::vector<Literal> out;
  for (size_t k = 0; k < x.size(); ++k) {
    ASSIGN_OR_RETURN(Literal l, fn(*x[k], i.shape().IsTuple() ? i.shape().tuple()[k] : i.shape()));
    out.push_back(std::move(l));
  }
  if (!i.shape().IsTuple()) return std::move(out[0]);
  return Literal::Tuple(std::move(out));
}

// What a start hands to its done as given: the operand, or a tuple of several.
Literal Given(const std::vector<const Literal*>& x) {
  if (x.size() == 1) return *x[0];
  std::vector<Literal> all;
  for (const Literal* l : x) all.push_back(*l);
  return Literal::Tuple(std::move(all));
}

absl::StatusOr<const Participant*> Queues(const Instruction& i) {
  if (!Participant::Current()) return ErrorAt(&i, "needs a host program's queues", absl::StatusCode::kUnimplemented);
  return Participant::Current();
}

}  // namespace

absl::StatusOr<Literal> EvalCollective(const Instruction& i, const Shape& result,
                                       const std::vector<const Literal*>& x) {
  const Literal token = Literal(Shape::Token());
  switch (i.opcode()) {
    case Opcode::PartitionId:
    case Opcode::ReplicaId: {
      const Participant* self = Participant::Current();
      const int64_t device = self ? self->device : 0, partitions = self ? self->world->partitions : 1;
      return Literal::Int(PrimitiveType::U32, i.Is(Opcode::ReplicaId) ? device / partitions : device % partitions);
    }
    case Opcode::AllReduce:
      return Each(i, x, [&](const Literal& v, const Shape&) { return AllReduce(i, v); });
    case Opcode::AllReduceStart:
      return Each(i, x, [&](const Literal& v, const Shape&) { return AllReduce(i, v); });
    case Opcode::AllReduceDone:
      return *x[0];
    case Opcode::ReduceScatter:
      return Each(i, x, [&](const Literal& v, const Shape& s) -> absl::StatusOr<Literal> {
        ASSIGN_OR_RETURN(Literal sum, AllReduce(i, v));
        ASSIGN_OR_RETURN(Meeting m, Meet(i, Literal::Int(PrimitiveType::S32, 0)));
        const int64_t d = (*i.attrs().dimensions)[0];
        if (m.position < 0) return Literal(s);
        return Block(sum, d, m.position, static_cast<int64_t>(m.values.size()));
      });
    case Opcode::AllGather:
    case Opcode::AllGatherStart: {
      const bool start = i.Is(Opcode::AllGatherStart);
      // A start may be written with the gathered array alone as its result.
      const bool paired = start && result.IsTuple();
      const Shape& shape = paired ? result.tuple()[1] : result;
      std::vector<Literal> out;
      for (size_t k = 0; k < x.size(); ++k) {
        const Shape& s = shape.IsTuple() ? shape.tuple()[k] : shape;
        ASSIGN_OR_RETURN(Meeting m, Meet(i, *x[k]));
        out.push_back(m.position < 0 ? Literal(s) : Join(m.values, (*i.attrs().dimensions)[0], s));
      }
      Literal all = shape.IsTuple() ? Literal::Tuple(std::move(out)) : out[0];
      return paired ? Literal::Tuple({Given(x), all}) : all;
    }
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
      return i.operand(0)->shape().IsTuple() ? x[0]->elements()[1] : *x[0];
    case Opcode::AllToAll:
      return AllToAll(i, x);
    case Opcode::RaggedAllToAll:
      return RaggedAllToAll(i, x);
    case Opcode::CollectivePermute:
      return Each(i, x, [&](const Literal& v, const Shape&) { return Permute(i, v); });
    case Opcode::CollectivePermuteStart: {
      std::vector<Literal> moved;
      for (const Literal* l : x) {
        ASSIGN_OR_RETURN(Literal m, Permute(i, *l));
        moved.push_back(std::move(m));
      }
      if (!result.IsTuple()) return moved[0];
      std::vector<Literal> parts = {Given(x), x.size() == 1 ? moved[0] : Literal::Tuple(moved)};
      for (size_t k = 2; k < i.shape().tuple().size(); ++k) parts.emplace_back(i.shape().tuple()[k]);
      return Literal::Tuple(std::move(parts));
    }
    case Opcode::CollectiveBroadcast:
      return Each(i, x, [&](const Literal& v, const Shape& s) -> absl::StatusOr<Literal> {
        ASSIGN_OR_RETURN(Meeting m, Meet(i, v));
        return m.position < 0 ? Literal(s) : m.values[0];
      });
    case Opcode::Infeed: {
      ASSIGN_OR_RETURN(const Participant* self, Queues(i));
      ASSIGN_OR_RETURN(Literal v, self->world->Receive(World::kInfeed));
      if (!v.shape().Compatible(i.shape().tuple()[0]))
        return ErrorAt(&i, absl::StrCat("the queue holds ", v.shape().ToString(false)));
      return Literal::Tuple({std::move(v), token});
    }
    case Opcode::Outfeed: {
      ASSIGN_OR_RETURN(const Participant* self, Queues(i));
      self->world->Send(World::kOutfeed, *x[0]);
      return token;
    }
    case Opcode::Send: {
      ASSIGN_OR_RETURN(const Participant* self, Queues(i));
      self->world->Send(i.attrs().channel_id.value_or(0), *x[0]);
      return Literal::Tuple({*x[0], Literal::Int(PrimitiveType::U32, 0), token});
    }
    case Opcode::SendDone:
      return token;
    case Opcode::Recv: {
      ASSIGN_OR_RETURN(const Participant* self, Queues(i));
      ASSIGN_OR_RETURN(Literal v, self->world->Receive(i.attrs().channel_id.value_or(0)));
      if (!v.shape().Compatible(i.shape().tuple()[0]))
        return ErrorAt(&i, absl::StrCat("the channel holds ", v.shape().ToString(false)));
      return Literal::Tuple({std::move(v), Literal::Int(PrimitiveType::U32, 0), token});
    }
    case Opcode::RecvDone:
      return Literal::Tuple({x[0]->elements()[0], token});
    default:
      return absl::NotFoundError("");
  }
}

}  // namespace kiln
