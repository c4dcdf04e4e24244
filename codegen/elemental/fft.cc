#include "codegen/elemental/fft.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/elemental/fft_tables.h"
#include "codegen/kernels/fft_limits.h"

namespace kiln {
namespace {

int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// What is left of n without the factors up to `most`.
int64_t WithoutFactors(int64_t n, int64_t most) {
  for (int64_t r = 2; r <= most; ++r)
    while (n % r == 0) n /= r;
  return n;
}

// The divisor of n next to its root, from below.
int64_t MiddleDivisor(int64_t n) {
  int64_t best = 1;
  for (int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0) best = d;
  return best;
}

// Rows and columns are multiples of `lanes`.
void MakeConvolution(int64_t n, int64_t lanes, FftPlan* plan) {
  constexpr int64_t kMostFactor = 5;  // a larger one costs more than a longer convolution
  int64_t blocks = (2 * n - 1 + lanes * lanes - 1) / (lanes * lanes);
  while (WithoutFactors(blocks, kMostFactor) > 1) ++blocks;
  plan->rows = lanes * MiddleDivisor(blocks);
  plan->columns = lanes * lanes * blocks / plan->rows;
}

// Numbers for a convolution of n in the lanes of vectors: every pass goes over all of them.
int64_t ConvolutionInLanes(int64_t n) {
  constexpr int64_t kMostFactor = 5;
  int64_t best = 0, least = 0;
  for (int64_t m = 2 * n - 1; m < 4 * n; ++m) {
    if (WithoutFactors(m, kMostFactor) > 1) continue;
    int64_t passes = 0;
    for (int64_t left = m; left > 1; ++passes) left /= left % 4 == 0 ? 4 : left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : 5;
    if (best == 0 || passes * m < least) best = m, least = passes * m;
  }
  return best;
}

// Rows and columns that fill vectors, if n has such divisors.
void MakeMatrix(int64_t n, int64_t lanes, FftPlan* plan) {
  if (n % (lanes * lanes)) return;
  plan->rows = lanes * MiddleDivisor(n / (lanes * lanes));
  plan->columns = n / plan->rows;
}

// What fft_lines works in.
int64_t VectorBytes(int64_t n) { return FFT_VECTOR_BYTES * (4 * n + 8); }

// What fft_axis works in: a line, its matrix or another line, and vectors for a column or a row, twice.
int64_t AxisBytes(int64_t n, const FftPlan& plan, PrimitiveType component) {
  const int64_t lanes = FFT_VECTOR_BYTES / ByteWidth(component);
  const int64_t matrix = std::max(n, plan.rows * plan.columns), longer = std::max(plan.rows, plan.columns);
  const int64_t bytes = 2 * (RoundUp(n, lanes) + RoundUp(matrix, lanes)) * ByteWidth(component);
  return bytes + (longer ? VectorBytes(longer) : 0);
}

llvm::Value* Table(Ir& ir, const std::string& name, PrimitiveType t, const std::vector<double>& table) {
  const std::vector<float> singles(table.begin(), table.end());
  llvm::Constant* data = t == PrimitiveType::F64 ? llvm::ConstantDataArray::get(ir.ctx, table)
                                                 : llvm::ConstantDataArray::get(ir.ctx, singles);
  auto* g = new llvm::GlobalVariable(ir.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, name);
  g->setAlignment(llvm::Align(FFT_VECTOR_BYTES));
  return g;
}

llvm::Value* TableOf(Ir& ir, int64_t n, const FftPlan& plan, PrimitiveType t) {
  if (plan.rows == 0) return FftRoots(ir, n, t);
  const std::string name =
      absl::StrCat("fft_", plan.in_vectors ? "chirp_" : "matrix_", TextOf(t), "_", n, "_", plan.rows);
  if (llvm::GlobalVariable* g = ir.module.getGlobalVariable(name, true)) return g;
  const int64_t lanes = FFT_VECTOR_BYTES / ByteWidth(t);
  return Table(
      ir, name, t,
      plan.in_vectors ? FftChirpTable(n, plan.columns, lanes) : FftMatrixTable(n, plan.rows, plan.columns, lanes));
}

}  // namespace

FftPlan PlanFftThread(const FftAxis& axis, PrimitiveType component) {
  FftPlan plan;
  if (WithoutFactors(axis.n, FFT_MOST_RADIX) > 1)
    MakeConvolution(axis.n, FFT_VECTOR_BYTES / ByteWidth(component), &plan);
  plan.work_bytes = RoundUp(AxisBytes(axis.n, plan, component), FFT_VECTOR_BYTES);
  return plan;
}

FftPlan PlanFftLines(const FftAxis& axis, PrimitiveType component) {
  constexpr int64_t kFewLines = 4, kSecondCache = int64_t{2} << 20, kShort = 1024;
  constexpr int64_t kConvolved = 128 << 10;  // a line alone fills vectors too, and stays in the first cache
  const int64_t lanes = FFT_VECTOR_BYTES / ByteWidth(component);
  FftPlan alone = PlanFftThread(axis, component);
  if (alone.rows) {
    const int64_t numbers = ConvolutionInLanes(axis.n), filled = 4 * axis.lines / RoundUp(axis.lines, lanes);
    if (filled >= 3 && VectorBytes(numbers) <= kConvolved) return {true, 1, numbers, VectorBytes(numbers)};
    return alone;
  }
  if (axis.lines >= kFewLines && VectorBytes(axis.n) <= kSecondCache) return {true, 0, 0, VectorBytes(axis.n)};
  if (axis.n >= kShort) MakeMatrix(axis.n, lanes, &alone);
  alone.work_bytes = AxisBytes(axis.n, alone, component);
  return alone;
}

llvm::Value* FftRoots(Ir& ir, int64_t n, PrimitiveType t) {
  const std::string name = absl::StrCat("fft_roots_", TextOf(t), "_", n);
  if (llvm::GlobalVariable* g = ir.module.getGlobalVariable(name, true)) return g;
  return Table(ir, name, t, FftRootTable(n, FFT_VECTOR_BYTES / ByteWidth(t)));
}

int64_t FftHalfBytes(const Instruction* i) {
  const bool between = *i->attrs().fft_type == FftType::IRFFT && i->attrs().fft_length->size() > 1;
  return between ? i->operand(0)->shape().ByteSize() : 0;
}

std::vector<FftAxis> FftAxes(const Instruction* i) {
  const FftType type = *i->attrs().fft_type;
  const Ints& length = *i->attrs().fft_length;
  const Shape &in = i->operand(0)->shape(), &out = i->shape();
  const int64_t rank = out.rank(), axes = static_cast<int64_t>(length.size());
  std::vector<FftAxis> list;
  const auto add = [&](FftAxis::Place from, FftAxis::Place to, const Ints& dims, int64_t axis, int kind) {
    const int64_t d = rank - axes + axis;
    int64_t outer = 1, inner = 1;
    for (int64_t q = 0; q < d; ++q) outer *= dims[q];
    for (int64_t q = d + 1; q < rank; ++q) inner *= dims[q];
    list.push_back({from, to, outer * inner, length[axis], inner, kind});
  };
  if (type == FftType::IRFFT && axes > 1) {
    for (int64_t k = 0; k + 1 < axes; ++k) add(k ? FftAxis::kHalf : FftAxis::kOperand, FftAxis::kHalf, in.dims(), k, 0);
    add(FftAxis::kHalf, FftAxis::kResult, out.dims(), axes - 1, 2);
    return list;
  }
  add(FftAxis::kOperand, FftAxis::kResult, out.dims(), axes - 1,
      type == FftType::RFFT    ? 1
      : type == FftType::IRFFT ? 2
                               : 0);
  for (int64_t k = axes - 2; k >= 0; --k) add(FftAxis::kResult, FftAxis::kResult, out.dims(), k, 0);
  return list;
}

void EmitFftLines(Ir& ir, const Instruction* i, const FftAxis& axis, const FftPlan& plan, llvm::Value* from,
                  llvm::Value* to, llvm::Value* work, llvm::Value* first, llvm::Value* last) {
  const FftType type = *i->attrs().fft_type;
  const PrimitiveType c = ComponentType(i->shape().type());
  std::vector<llvm::Value*> arguments = {from,
                                         to,
                                         work,
                                         TableOf(ir, axis.n, plan, c),
                                         ir.I64(axis.n),
                                         ir.I64(axis.inner),
                                         first,
                                         last,
                                         ir.b.getInt32(type == FftType::IFFT || type == FftType::IRFFT),
                                         ir.b.getInt32(static_cast<uint32_t>(axis.kind))};
  if (plan.in_vectors)
    arguments.push_back(ir.I64(plan.rows ? plan.columns : axis.n));
  else
    arguments.insert(arguments.end(), {ir.I64(plan.rows), ir.I64(plan.columns)});
  ir.CallLibrary(absl::StrCat("kiln_fft_", plan.in_vectors ? "lines_" : "axis_", TextOf(c)), ir.b.getVoidTy(),
                 arguments);
}

}  // namespace kiln
