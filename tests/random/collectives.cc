// Random operations between replicas.
#include "absl/strings/str_join.h"
#include "tests/random/growth.h"

namespace kiln {
namespace {

// Groups of one size that hold every replica, members in a random order; one group, sometimes written as none.
std::string Groups(Growth& g, int64_t* size) {
  const int64_t n = g.options.devices;
  *size = n % 2 == 0 && g.Chance(50) ? n / 2 : n;
  Ints ids(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) ids[k] = k;
  std::shuffle(ids.begin(), ids.end(), g.rng);
  std::vector<std::string> groups;
  for (int64_t k = 0; k < n; k += *size)
    groups.push_back(absl::StrCat("{", absl::StrJoin(ids.begin() + k, ids.begin() + k + *size, ","), "}"));
  return absl::StrCat("{", absl::StrJoin(groups, ","), "}");
}

bool Meets(Growth& g, Expr x) { return !g.diverging && Growth::Arithmetic(x.type()) && !Growth::Narrow(x.type()); }

std::optional<Expr> AllReduceOf(Growth& g, Computation* c, Expr x) {
  if (!Meets(g, x)) return std::nullopt;
  std::vector<Instruction*> operands = {g.Tame(x).get()};
  std::vector<Shape> shapes = {Shape::Array(x.type(), x.shape().dims())};
  if (g.Chance(40)) {
    operands.push_back(g.Fit(c, x.type(), g.AnyDims()).get());
    shapes.push_back(operands.back()->shape());
  }
  int64_t size = 0;
  Instruction* i = c->Add(Opcode::AllReduce, shapes.size() == 1 ? shapes[0] : Shape::Tuple(shapes), operands);
  i->mutable_attrs().replica_groups = attr::Raw(Groups(g, &size));
  i->mutable_attrs().to_apply = ScalarFunction(g.module, g.Reducer(x.type()), x.type());
  return g.Tame(shapes.size() == 1 ? Expr(i) : PartOf(i, g.Between(0, 1)));
}

std::optional<Expr> AllGatherOf(Growth& g, Computation* c, Expr x) {
  if (!Meets(g, x) || x.shape().rank() == 0) return std::nullopt;
  int64_t size = 0;
  const std::string groups = Groups(g, &size);
  const int64_t d = g.Between(0, x.shape().rank() - 1);
  Ints dims = x.shape().dims();
  dims[d] *= size;
  if (Product(dims) > g.most) return std::nullopt;
  Instruction* i = c->Add(Opcode::AllGather, Shape::Array(x.type(), dims), {x.get()});
  i->mutable_attrs().replica_groups = attr::Raw(groups);
  i->mutable_attrs().dimensions = Ints{d};
  return i;
}

std::optional<Expr> ReduceScatterOf(Growth& g, Computation* c, Expr x) {
  if (!Meets(g, x)) return std::nullopt;
  int64_t size = 0;
  const std::string groups = Groups(g, &size);
  const int64_t rows = g.Between(1, 3), cols = g.Between(1, 4);
  Expr operand = g.Fit(c, x.type(), {rows * size, cols});
  Instruction* i = c->Add(Opcode::ReduceScatter, Shape::Array(x.type(), {rows, cols}), {operand.get()});
  i->mutable_attrs().replica_groups = attr::Raw(groups);
  i->mutable_attrs().dimensions = Ints{0};
  i->mutable_attrs().to_apply = ScalarFunction(g.module, g.Reducer(x.type()), x.type());
  return g.Tame(i);
}

std::optional<Expr> AllToAllOf(Growth& g, Computation* c, Expr x) {
  if (!Meets(g, x)) return std::nullopt;
  int64_t size = 0;
  const std::string groups = Groups(g, &size);
  Expr operand = g.Fit(c, x.type(), {g.Between(1, 4), g.Between(1, 3) * size});
  Instruction* i = c->Add(Opcode::AllToAll, operand.shape(), {operand.get()});
  i->mutable_attrs().replica_groups = attr::Raw(groups);
  i->mutable_attrs().dimensions = Ints{1};
  return i;
}

std::optional<Expr> PermuteOf(Growth& g, Computation* c, Expr x) {
  if (!Meets(g, x)) return std::nullopt;
  Ints to(static_cast<size_t>(g.options.devices));
  for (size_t k = 0; k < to.size(); ++k) to[k] = static_cast<int64_t>(k);
  std::shuffle(to.begin(), to.end(), g.rng);
  std::vector<std::string> pairs;
  for (size_t k = 0; k < to.size(); ++k)
    if (g.Chance(80)) pairs.push_back(absl::StrCat("{", k, ",", to[k], "}"));
  Instruction* i = c->Add(Opcode::CollectivePermute, Shape::Array(x.type(), x.shape().dims()), {x.get()});
  i->mutable_attrs().source_target_pairs = attr::Raw(absl::StrCat("{", absl::StrJoin(pairs, ","), "}"));
  return i;
}

std::optional<Expr> Replica(Growth&, Computation* c, Expr) {
  return ConvertTo(PrimitiveType::S32, c->Add(Opcode::ReplicaId, Shape::Scalar(PrimitiveType::U32), {}));
}

}  // namespace

std::vector<Maker> CollectiveMakers() {
  return {{5, AllReduceOf}, {4, AllGatherOf}, {3, ReduceScatterOf}, {3, AllToAllOf}, {4, PermuteOf}, {2, Replica}};
}

}  // namespace kiln
