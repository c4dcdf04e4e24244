#include "compiler/hlo/csr_product.h"

#include "compiler/hlo/library_calls.h"

namespace kiln {

bool IsCsrProduct(const Instruction* i) {
  if (!IsCallTo(i, "cpu_csr_sparse_dense_ffi") || i->operand_count() != 4) return false;
  for (const Instruction* o : i->operands())
    if (!o->shape().IsArray() || o->shape().rank() < 1 || o->shape().HasDynamic()) return false;
  const Shape &data = i->operand(0)->shape(), &starts = i->operand(1)->shape(), &columns = i->operand(2)->shape();
  const Shape& dense = i->operand(3)->shape();
  if (data.rank() != 1 || starts.rank() != 1 || starts.dim(0) < 1 || dense.rank() > 2) return false;
  if (!IsIntegral(starts.type()) || data.type() == PrimitiveType::Pred || dense.type() != data.type()) return false;
  Ints dims = dense.dims();
  dims[0] = starts.dim(0) - 1;
  return columns.Compatible(Shape::Array(starts.type(), data.dims())) &&
         i->shape().Compatible(Shape::Array(data.type(), dims));
}

}  // namespace kiln
