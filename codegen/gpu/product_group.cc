// Fusions around products: one, or a group of them in one launch, each in blocks of its own.
//
// Products of a group that differ in nothing but their arrays are one piece of code, in which a block picks its arrays:
// queries, keys and values are three times the blocks, not three times the code. What differs otherwise, as widths of
// grouped queries do, has code of its own; all share the same part of shared memory, since a block computes one.
#include "codegen/elemental/alike.h"
#include "codegen/gpu/product_kernel.h"

namespace kiln::gpu {
namespace {

// The blocks from the body's on compute what is alike.
absl::Status EmitAlike(Body& body, const std::vector<FusedProduct>& products, const Alike& alike, const Tile& tile,
                       SharedTiles* shared) {
  Ir& ir = body.ir;
  const FusedProduct& first = products[alike.results[0]];
  const int64_t each = BlocksOf(first.shape, tile), all = each * static_cast<int64_t>(alike.results.size());
  llvm::Value* own = ir.b.CreateSub(body.grid.Block(), ir.I64(body.blocks));
  absl::Status status;
  ir.If(ir.b.CreateICmpULT(own, ir.I64(all)), [&] {
    llvm::Value *which = ir.b.CreateUDiv(own, ir.I64(each)), *block = ir.b.CreateURem(own, ir.I64(each));
    Body part{ir, body.target, Grid(ir, block), body.i, body.operands, {body.results[alike.results[0]]}, body.scratch};
    for (size_t k = 1; k < alike.results.size(); ++k) {
      llvm::Value* is = ir.b.CreateICmpEQ(which, ir.I64(static_cast<int64_t>(k)));
      part.results[0] = ir.b.CreateSelect(is, body.results[alike.results[k]], part.results[0]);
      for (size_t p = 0; p < part.operands.size(); ++p)
        if (const size_t other = alike.parameters[k][p]; other != p)
          part.operands[p] = ir.b.CreateSelect(is, body.operands[other], part.operands[p]);
    }
    status = EmitProductResult(part, first, tile, shared);
    body.threads = part.threads;
  });
  body.blocks += all;
  return status;
}

}  // namespace

absl::Status EmitProductFusion(Body& body, const Computation& f) {
  const std::vector<const Instruction*> heroes = HeroesOf(body.i);
  const Outputs roots = OutputsOf(f);
  ASSIGN_OR_RETURN(const std::vector<ProductShape> shapes, ProductsOf(body.i));
  if (heroes.size() != roots.size() || shapes.size() != roots.size())
    return ErrorAt(body.i, "has a result that is made of no product", absl::StatusCode::kInternal);
  ASSIGN_OR_RETURN(const Tile tile, TileOf(body.i, shapes, body.target));
  std::vector<FusedProduct> products;
  for (size_t k = 0; k < roots.size(); ++k) products.push_back({roots[k], heroes[k], shapes[k]});
  SharedTiles shared;
  if (products.size() == 1) return EmitProductResult(body, products[0], tile, &shared);
  body.blocks = 0;
  for (const Alike& alike : GroupAlike(f, roots)) RETURN_IF_ERROR(EmitAlike(body, products, alike, tile, &shared));
  return absl::OkStatus();
}

}  // namespace kiln::gpu
