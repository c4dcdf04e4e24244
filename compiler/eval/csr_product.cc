// Evaluator: JAX's product of a sparse matrix in compressed rows, entry by entry.
#include "compiler/hlo/csr_product.h"

#include <algorithm>

#include "compiler/eval/families.h"

namespace kiln {

absl::StatusOr<Literal> EvalCsrProduct(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  if (!IsCsrProduct(&i)) return absl::NotFoundError("");
  const Literal &data = *x[0], &starts = *x[1], &columns = *x[2], &dense = *x[3];
  const int64_t last = dense.shape().dim(0) - 1;
  const int64_t width = last < 0 ? 0 : dense.size() / (last + 1);
  Literal out(shape);
  for (int64_t k = 0; k < data.size(); ++k) {
    int64_t row = 0;
    for (int64_t r = 1; r <= shape.dim(0); ++r) row += starts.Get(r).i >= 0 && starts.Get(r).i <= k;
    if (row == shape.dim(0)) continue;
    const int64_t column = std::clamp<int64_t>(columns.Get(k).i, 0, last);
    for (int64_t c = 0; c < width; ++c) {
      const Element a = data.Get(k), b = dense.Get(column * width + c);
      Element sum = out.Get(row * width + c);
      sum.re += a.re * b.re - a.im * b.im;
      sum.im += a.re * b.im + a.im * b.re;
      sum.i =
          static_cast<int64_t>(static_cast<uint64_t>(sum.i) + static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i));
      out.Set(row * width + c, sum);
    }
  }
  return out;
}

}  // namespace kiln
