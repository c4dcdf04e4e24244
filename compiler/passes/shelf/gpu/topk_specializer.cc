// A small topk of a long row: of each piece of the row first, then of the pieces' winners.
//
// Pieces keep their order, so that ties still go to the lower index. For k of at most 16 and rows of at least 1024.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kMostK = 16, kShortest = 1024, kPiece = 256;

int64_t PieceOf(const Instruction* i) {
  const int64_t n = i->operand(0)->shape().dims().back();
  for (int64_t piece = kPiece; piece <= 2 * kPiece; ++piece)
    if (n % piece == 0) return piece;
  for (int64_t piece = kPiece; piece >= 4 * kMostK; --piece)
    if (n % piece == 0) return piece;
  return -1;
}

}  // namespace

absl::StatusOr<bool> TopkSpecializer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        return i->Is(Opcode::TopK) && !i->shape().HasDynamic() && *i->attrs().k <= kMostK && *i->attrs().k > 0 &&
               i->operand(0)->shape().dims().back() >= kShortest && PieceOf(i) > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        const Shape& s = i->operand(0)->shape();
        const int64_t n = s.dims().back(), rows = s.ElementCount() / n, k = *i->attrs().k, piece = PieceOf(i),
                      pieces = n / piece;
        const auto topk = [&](Expr x) {
          Ints dims = x.shape().dims();
          dims.back() = k;
          return c->AddClone(i, Shape::Tuple({Shape::Array(s.type(), dims), Shape::Array(PrimitiveType::S32, dims)}),
                             {x.get()});
        };
        Instruction* first = topk(ReshapeTo(i->operand(0), {rows * pieces, piece}));
        Expr base = IotaOf(c, PrimitiveType::S32, {rows, pieces, k}, 1) * static_cast<double>(piece);
        Expr places = ReshapeTo(ReshapeTo(PartOf(first, 1), {rows, pieces, k}) + base, {rows, pieces * k});
        Instruction* second = topk(ReshapeTo(PartOf(first, 0), {rows, pieces * k}));
        // Where the winners' winners stood: places[row, position].
        Expr row = IotaOf(c, PrimitiveType::S32, {rows, k, 1}, 0);
        Expr index = ConcatOf({row, ReshapeTo(PartOf(second, 1), {rows, k, 1})}, 2);
        Instruction* gather =
            c->Add(Opcode::Gather, Shape::Array(PrimitiveType::S32, {rows, k}), {places.get(), index.get()});
        gather->mutable_attrs().offset_dims = Ints{};
        gather->mutable_attrs().collapsed_slice_dims = Ints{0, 1};
        gather->mutable_attrs().start_index_map = Ints{0, 1};
        gather->mutable_attrs().index_vector_dim = 2;
        gather->mutable_attrs().slice_sizes = Ints{1, 1};
        Ints dims = s.dims();
        dims.back() = k;
        return TupleOf({ReshapeTo(PartOf(second, 0), dims), ReshapeTo(gather, dims)});
      });
}

}  // namespace kiln
