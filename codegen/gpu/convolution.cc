// Convolutions without a library: products where there are features enough, else a thread for each output.
#include "codegen/elemental/convolution.h"

#include "codegen/gpu/kernels.h"
#include "codegen/gpu/tiles.h"

namespace kiln::gpu {

absl::Status EmitConvolution(Body& body) {
  ASSIGN_OR_RETURN(const std::vector<ProductShape> product, ProductsOf(body.i));
  if (!product.empty()) return EmitConvolutionAsProduct(body, product[0]);
  Ir& ir = body.ir;
  const Instruction* i = body.i;
  ElementEmitter elements(ir, {});
  const auto read = [&](int64_t operand, const Index& index) -> absl::StatusOr<Val> {
    const Shape& s = i->operand(operand)->shape();
    return ir.Load(s.type(), body.operands[static_cast<size_t>(operand)], elements.Offset(s, index));
  };
  return ForEach(body, i->shape().ElementCount(), [&](llvm::Value* place) -> absl::Status {
    const Shape& o = i->shape();
    ASSIGN_OR_RETURN(const Val v, EmitConvolutionAt(ir, i, Delinearize(ir, place, o.dims(), MemoryOrder(o)), read));
    ir.Store(o.type(), v, body.results[0], place);
    return absl::OkStatus();
  });
}

}  // namespace kiln::gpu
