// The call that jax.lax.approx_max_k and approx_min_k make: an exact answer is one of the approximate ones, so operands
// are sorted together and cut.
//
// Source: XLA's ApproxTopKFallback, which computes it on CPUs and GPUs. The initial values and the recall wanted matter
//   to reductions that give up recall for speed; how many elements are left is what the results' types say.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/sharding.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {

absl::StatusOr<Values> ConvertApproxTopK(Call& call) {
  const size_t arrays = call.types.size();
  if (arrays == 0 || call.x.size() != 2 * arrays)
    return call.Fail("ApproxTopK takes an array and an initial value for each result");
  const std::string config =
      call.Resolve(call.op.Attr(call.op.Has("mhlo.backend_config") ? "mhlo.backend_config" : "backend_config"));
  const std::optional<std::string> stated = FrontendAttribute(config, "reduction_dim");
  int64_t d = 0;
  if (!stated || !absl::SimpleAtoi(std::vector<std::string>(absl::StrSplit(*stated, ':'))[0], &d))
    return call.Fail("ApproxTopK's configuration has no reduction_dim");
  ASSIGN_OR_RETURN(Computation * less, call.CalledComputation());

  const Values operands(call.x.begin(), call.x.begin() + static_cast<std::ptrdiff_t>(arrays));
  std::vector<Shape> shapes;
  for (const Instruction* x : operands) {
    shapes.push_back(x->shape());
    if (!x->shape().IsArray() || d < 0 || d >= x->shape().rank())
      return call.Fail(absl::StrCat("reduction_dim ", d, " is no dimension of ", x->shape().ToString(false)));
  }
  Instruction* sort = call.Add(Opcode::Sort, arrays == 1 ? shapes[0] : Shape::Tuple(shapes), operands);
  sort->mutable_attrs().dimensions = Ints{d};
  sort->mutable_attrs().is_stable = true;
  sort->mutable_attrs().to_apply = less;
  Values sorted = arrays == 1 ? Values{sort} : call.Split(sort), out;
  for (size_t k = 0; k < arrays; ++k) {
    const int64_t kept = call.types[k].rank() == shapes[k].rank() ? call.types[k].dim(d) : -1;
    if (kept < 0 || kept > shapes[k].dim(d))
      return call.Fail(absl::StrCat("cannot take ", call.types[k].ToString(false), " of ", shapes[k].ToString(false)));
    std::vector<SliceDim> slices;
    Ints dims = shapes[k].dims();
    for (int64_t n : dims) slices.push_back({0, n, 1});
    slices[d].limit = dims[d] = kept;
    Instruction* slice = call.Add(Opcode::Slice, Shape::Array(shapes[k].type(), dims), {sorted[k]});
    slice->mutable_attrs().slice = slices;
    out.push_back(slice);
  }
  return out;
}

}  // namespace kiln::stablehlo
