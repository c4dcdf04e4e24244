// Products of matrices for what no library takes: dots, convolutions as products, and what is computed of the operands
// before and of the result after. product_kernel.h multiplies.
#include <numeric>

#include "codegen/elemental/element.h"
#include "codegen/gpu/epilogue.h"
#include "codegen/gpu/product_kernel.h"

namespace kiln::gpu {
namespace {

// An operand of a dot [batch, k, m or n] or [batch, m or n, k].
Source OperandOf(const Instruction* dot, int64_t k, ElementEmitter& elements, llvm::Value* array,
                 const Instruction* computed) {
  const Shape& s = dot->operand(k)->shape();
  const bool depth_first = (k == 0 ? *dot->attrs().lhs_contracting_dims : *dot->attrs().rhs_contracting_dims)[0] == 1;
  const auto index = [depth_first](llvm::Value* batch, llvm::Value* line, llvm::Value* depth) {
    return depth_first ? Index{{batch, depth, line}} : Index{{batch, line, depth}};
  };
  Source out{s.type(), depth_first, s.HasDefaultLayout() ? s.dim(2) : 1, array, nullptr, nullptr};
  if (array)
    out.place = [&elements, &s, index](llvm::Value* batch, llvm::Value* line, llvm::Value* depth) {
      return Place{elements.Offset(s, index(batch, line, depth))};
    };
  else
    out.element = [&elements, computed, index](llvm::Value* batch, llvm::Value* line, llvm::Value* depth) {
      return elements.Emit(computed, index(batch, line, depth));
    };
  return out;
}

// The operands of convolution `i`, given their arrays: windows of the input, and the kernel's features.
std::pair<Source, Source> OperandsOfConvolution(Ir& ir, const Instruction* i, const ProductShape& shape,
                                                llvm::Value* input_array, llvm::Value* kernel_array) {
  llvm::IRBuilder<>& b = ir.b;
  const Shape &x = i->operand(0)->shape(), &kernel = i->operand(1)->shape(), &o = i->shape();
  const int64_t spatial = x.rank() - 2, features = o.dims().back(), in_features = kernel.dim(spatial);
  const attr::Win w = i->attrs().window.value_or(attr::Win(static_cast<size_t>(spatial)));
  // The input's element under a tap (depth) of the window of an output (line).
  const auto window = [&ir, &b, &x, &o, w, in_features](llvm::Value* group, llvm::Value* line, llvm::Value* depth) {
    Ints outputs(o.dims().begin(), o.dims().end() - 1), taps, order, tap_order;
    for (const WindowDim& d : w) taps.push_back(d.size);
    taps.push_back(in_features);
    for (size_t k = 0; k < outputs.size(); ++k) order.push_back(static_cast<int64_t>(k));
    for (size_t k = 0; k < taps.size(); ++k) tap_order.push_back(static_cast<int64_t>(k));
    const std::vector<llvm::Value*> out = Delinearize(ir, line, outputs, order),
                                    tap = Delinearize(ir, depth, taps, tap_order);
    const Ints strides = Shape::Array(x.type(), x.dims()).Strides();
    llvm::Value *offset = ir.Add(ir.Mul(out[0], strides[0]), ir.Add(ir.Mul(group, in_features), tap.back())),
                *inside = b.getTrue();
    for (size_t d = 0; d < w.size(); ++d) {
      const WindowDim& q = w[d];
      llvm::Value* t = q.reversed ? b.CreateSub(ir.I64(q.size - 1), tap[d]) : tap[d];
      llvm::Value* p = b.CreateSub(ir.Add(ir.Mul(out[d + 1], q.stride), ir.Mul(t, q.rhs_dilate)), ir.I64(q.pad_low));
      if (q.lhs_dilate > 1) {
        inside = b.CreateAnd(inside, b.CreateICmpEQ(b.CreateSRem(p, ir.I64(q.lhs_dilate)), ir.I64(0)));
        inside = b.CreateAnd(inside, b.CreateICmpSGE(p, ir.I64(0)));
        p = b.CreateSDiv(p, ir.I64(q.lhs_dilate));
      }
      inside = b.CreateAnd(inside, b.CreateICmpULT(p, ir.I64(x.dim(static_cast<int64_t>(d) + 1))));
      offset = b.CreateAdd(offset, b.CreateMul(p, ir.I64(strides[d + 1])));
    }
    return Place{offset, inside};
  };
  const Source input{x.type(), false, in_features, input_array, window, nullptr};
  const Source filter{kernel.type(),
                      true,
                      std::gcd(features, shape.n),
                      kernel_array,
                      [&ir, features, n = shape.n](llvm::Value* group, llvm::Value* line, llvm::Value* depth) {
                        return Place{ir.Add(ir.Mul(depth, features), ir.Add(ir.Mul(group, n), line))};
                      },
                      nullptr};
  return {input, filter};
}

// The place in the result of convolution `i` of a row and column of its product.
std::vector<llvm::Value*> OutputOf(Ir& ir, const Instruction* i, const ProductShape& shape, llvm::Value* group,
                                   llvm::Value* row, llvm::Value* column) {
  const Ints outputs(i->shape().dims().begin(), i->shape().dims().end() - 1);
  Ints order;
  for (size_t k = 0; k < outputs.size(); ++k) order.push_back(static_cast<int64_t>(k));
  std::vector<llvm::Value*> at = Delinearize(ir, row, outputs, order);
  at.push_back(ir.Add(ir.Mul(group, shape.n), column));
  return at;
}

}  // namespace

absl::Status EmitDot(Body& body) {
  ElementEmitter elements(body.ir, body.operands);
  ASSIGN_OR_RETURN(const std::vector<ProductShape> products, ProductsOf(body.i));
  ASSIGN_OR_RETURN(const Tile tile, TileOf(body.i, products, body.target));
  SharedTiles shared;
  const Term term{OperandOf(body.i, 0, elements, body.operands[0], nullptr),
                  OperandOf(body.i, 1, elements, body.operands[1], nullptr), products[0].k};
  const auto store = [&](llvm::Value* batch, llvm::Value* row, llvm::Value* column, const std::vector<Val>& v) {
    const Shape& o = body.i->shape();
    body.ir.Store(o.type(), v[0], body.results[0], elements.Offset(o, {{batch, row, column}}));
    return absl::OkStatus();
  };
  return EmitProduct(body, {products[0], {term}, 1, store}, tile, &shared);
}

absl::Status EmitConvolutionAsProduct(Body& body, const ProductShape& shape) {
  const Instruction* i = body.i;
  const auto [input, filter] = OperandsOfConvolution(body.ir, i, shape, body.operands[0], body.operands[1]);
  ElementEmitter elements(body.ir, body.operands);
  ASSIGN_OR_RETURN(const Tile tile, TileOf(i, {shape}, body.target));
  SharedTiles shared;
  const auto store = [&](llvm::Value* group, llvm::Value* row, llvm::Value* column, const std::vector<Val>& v) {
    const Index at{OutputOf(body.ir, i, shape, group, row, column)};
    body.ir.Store(i->shape().type(), v[0], body.results[0], elements.Offset(i->shape(), at));
    return absl::OkStatus();
  };
  return EmitProduct(body, {shape, {{input, filter, shape.k}}, 1, store}, tile, &shared);
}

absl::Status EmitProductResult(Body& body, const FusedProduct& p, const Tile& tile, SharedTiles* shared) {
  const Instruction* root = p.root;
  ElementEmitter elements(body.ir, body.operands);
  const std::vector<ProductSum> sums = SumsBehind(root);
  Product product{p.shape, {}, sums.size(), nullptr};
  const bool convolves = p.hero->Is(Opcode::Convolution);
  for (size_t k = 0; k < sums.size(); ++k)
    for (const Instruction* hero : sums[k].products) {
      const auto array = [&](int64_t operand) {
        const Instruction* o = hero->operand(operand);
        return o->Is(Opcode::Parameter) ? body.operands[static_cast<size_t>(*o->attrs().parameter_number)] : nullptr;
      };
      if (convolves && (!array(0) || !array(1)))
        return ErrorAt(body.i, "computes an operand of its convolution, which no kernel does",
                       absl::StatusCode::kInternal);
      if (hero->opcode() != p.hero->opcode() || hero->shape() != p.hero->shape() ||
          hero->operand(0)->shape().type() != p.shape.a || hero->operand(1)->shape().type() != p.shape.b)
        return ErrorAt(body.i, "is made of products of several shapes or types", absl::StatusCode::kInternal);
      const auto [a, b] = convolves ? OperandsOfConvolution(body.ir, hero, p.shape, array(0), array(1))
                                    : std::pair(OperandOf(hero, 0, elements, array(0), hero->operand(0)),
                                                OperandOf(hero, 1, elements, array(1), hero->operand(1)));
      const int64_t depth =
          convolves ? p.shape.k : hero->operand(0)->shape().dim((*hero->attrs().lhs_contracting_dims)[0]);
      product.terms.push_back({a, b, depth, k});
    }
  product.store = [&](llvm::Value* batch, llvm::Value* row, llvm::Value* column,
                      const std::vector<Val>& values) -> absl::Status {
    const Index at{convolves ? OutputOf(body.ir, p.hero, p.shape, batch, row, column)
                             : std::vector<llvm::Value*>{batch, row, column}};
    for (size_t k = 0; k < sums.size(); ++k) elements.Preset(sums[k].value, values[k]);
    const Shape &o = root->shape(), &first = sums[0].value->shape();
    Index place = at;
    if (first.dims() != p.hero->shape().dims())
      place.dims = Delinearize(body.ir, elements.Offset(p.hero->shape(), at), first.dims(), MemoryOrder(first));
    const Index to = PlaceInRoot(elements, root, sums[0].value, place);
    ASSIGN_OR_RETURN(Val out, elements.Emit(root, to));
    body.ir.Store(o.type(), out, body.results[0], elements.Offset(o, to));
    return absl::OkStatus();
  };
  return EmitProduct(body, product, tile, shared);
}

}  // namespace kiln::gpu
