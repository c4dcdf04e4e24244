// A product of one slice of an array in each iteration, by weights that stay, is one product of all slices before the
// loop, whose rows the iterations take.
//
// A recurrence multiplies each step's input so, a row or a few at a time: that reads all of the weights for little
// work. Keeps: every result, but for the order in which a product is summed up. Cost: the products' results take
// memory, as many rows as there are steps: at most four times the arrays that the loop goes through step by step, or
// what the weights take; on CPUs, where the weights stay in a cache, once those arrays. On a GPU a step has a kernel
// less, where the product is not a part of a sum of two. Wherever the slice lies, clamped or not, the result's slice
// lies there too; the product may run although the loop does not.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/step_arrays.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

// The slice of whole rows that the left side of `dot` is, if it is one along the first dimension.
Instruction* SliceOfRows(const Instruction* dot) {
  Instruction* slice = dot->operand(0);
  while (slice->Is(Opcode::Reshape)) slice = slice->operand(0);
  if (!slice->Is(Opcode::DynamicSlice)) return nullptr;
  const Shape &from = slice->operand(0)->shape(), &to = slice->shape();
  if (from.rank() < 2 || to.dim(0) != 1) return nullptr;
  for (int64_t d = 1; d < from.rank(); ++d)
    if (to.dim(d) != from.dim(d)) return nullptr;
  return to.dims().back() == dot->operand(0)->shape().dims().back() ? slice : nullptr;
}

int64_t Columns(const Instruction* dot) { return dot->shape().dims().back(); }
// Rows of a step.
int64_t Rows(const Instruction* dot) { return dot->shape().ElementCount() / Columns(dot); }

// Whether what all steps take is worth it, of weights of so many bytes and of what the loop goes through anyway.
bool MayTake(int64_t bytes, int64_t weights, int64_t known, bool on_gpu) {
  constexpr int64_t kSmallWeights = 256 << 10;  // stay in the second cache over the steps
  if (on_gpu) return bytes <= 4 * known;
  return bytes <= (weights < kSmallWeights ? known : std::max(4 * known, weights));
}

// One kernel of a GPU makes sums of products.
bool IsPartOfSum(const Instruction* dot) {
  const Instruction* u = dot->users().size() == 1 ? dot->users()[0] : dot;
  return u->Is(Opcode::Add) && u->operand(0)->Is(Opcode::Dot) && u->operand(1)->Is(Opcode::Dot);
}

bool Gains(const Instruction* loop, const Instruction* dot, bool on_gpu) {
  constexpr int64_t kMostRows = 32;  // of a step: more are worth reading the weights again
  constexpr int64_t kFewestSteps = 4;
  const auto& a = dot->attrs();
  const auto plain = [](const std::optional<Ints>& dims) { return !dims || dims->empty(); };
  const Shape &left = dot->operand(0)->shape(), &right = dot->operand(1)->shape();
  const bool rows_by_matrix = plain(a.lhs_batch_dims) && plain(a.rhs_batch_dims) &&
                              (left.rank() == 1 || left.rank() == 2) && right.rank() == 2 &&
                              a.lhs_contracting_dims == Ints{left.rank() - 1} && a.rhs_contracting_dims->size() == 1;
  if (!rows_by_matrix || dot->shape().HasDynamic() || dot->shape().ElementCount() == 0 || Rows(dot) > kMostRows ||
      !IsFixed(loop, dot->operand(1)) || (on_gpu && IsPartOfSum(dot)))
    return false;
  const Instruction* slice = SliceOfRows(dot);
  if (!slice || slice->operand(0)->shape().HasDynamic() || !IsFixed(loop, slice->operand(0))) return false;
  const int64_t steps = slice->operand(0)->shape().dim(0);
  const auto induction = FindInduction(loop);
  return steps >= kFewestSteps && induction && 2 * induction->trips >= steps &&
         MayTake(steps * dot->shape().ByteSize(), right.ByteSize(), StepArrays(loop, *induction).known_bytes(), on_gpu);
}

// The product of all rows before the loop: [steps, rows of a step, columns].
Instruction* ProductOfAll(Instruction* loop, const Instruction* dot) {
  const Expr array = BeforeLoop(loop, SliceOfRows(dot)->operand(0));
  const int64_t steps = array.shape().dim(0), rows = Rows(dot), columns = Columns(dot);
  const Expr matrix = ReshapeTo(array, {steps * rows, array.shape().dims().back()});
  Instruction* product = loop->parent()->AddClone(dot, Shape::Array(dot->shape().type(), {steps * rows, columns}),
                                                  {matrix.get(), BeforeLoop(loop, dot->operand(1))});
  product->mutable_attrs().lhs_contracting_dims = Ints{1};
  return ReshapeTo(product, {steps, rows, columns}).get();
}

// In the body: the step's rows of `all` in the place of `dot`.
void TakeRows(Instruction* dot, Instruction* all) {
  const Expr begin = SliceOfRows(dot)->operand(1);
  const Expr zero = IntegerIn(dot->parent(), begin.type(), 0);
  const Expr part = DynamicSliceOf(all, {begin, zero, zero}, {1, Rows(dot), Columns(dot)});
  dot->ReplaceAllUsesWith(ReshapeTo(part, Ints(dot->shape().dims())).get());
}

bool BatchProducts(Module& m, Instruction* loop, bool on_gpu, PassContext& ctx) {
  std::vector<size_t> places;  // in the body's order, which its clone has too
  std::vector<Instruction*> products;
  const std::vector<Instruction*> in_body = (*loop->attrs().body)->PostOrder();
  for (size_t k = 0; k < in_body.size(); ++k) {
    if (!in_body[k]->Is(Opcode::Dot) || !Gains(loop, in_body[k], on_gpu) || !ctx.Take()) continue;
    places.push_back(k);
    products.push_back(ProductOfAll(loop, in_body[k]));
  }
  if (places.empty()) return false;
  ExposeState(loop);
  Computation* body = m.CloneComputation(*loop->attrs().body);
  loop->mutable_attrs().body = body;
  const std::vector<Instruction*> order = body->PostOrder();
  std::vector<Shape> shapes = loop->shape().tuple();
  const auto before = static_cast<int64_t>(shapes.size());
  for (const Instruction* p : products) shapes.push_back(p->shape());
  body->parameter(0)->mutable_shape() = Shape::Tuple(shapes);
  for (size_t k = 0; k < places.size(); ++k)
    TakeRows(order[places[k]], PartOf(body->parameter(0), before + static_cast<int64_t>(k)).get());
  ExtendLoop(loop, products);
  return true;
}

absl::StatusOr<bool> BatchAll(Module& m, bool on_gpu, PassContext& ctx) {
  if (ctx.algebra == Algebra::kExact) return false;
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      const bool arrays = std::all_of(loop->shape().tuple().begin(), loop->shape().tuple().end(),
                                      [](const Shape& s) { return s.IsArray(); });
      if (!arrays || !HasFlatBodies(loop) || !loop->control_predecessors().empty() ||
          !loop->control_successors().empty())
        continue;
      changed |= BatchProducts(m, loop, on_gpu, ctx);
    }
  if (changed) {
    m.RemoveUnreachableComputations();
    RETURN_IF_ERROR(Dce(m, ctx).status());
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> WhileLoopProductBatching(Module& m, PassContext& ctx) { return BatchAll(m, false, ctx); }

absl::StatusOr<bool> GpuWhileLoopProductBatching(Module& m, PassContext& ctx) { return BatchAll(m, true, ctx); }

}  // namespace kiln
