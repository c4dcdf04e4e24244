#include "compiler/hlo/block_scaling.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"

namespace kiln {
namespace {

constexpr char kQuantize[] = "__op$quantize", kDequantize[] = "__op$dequantize", kDot[] = "__op$block_scaled_dot";

bool IsWide(const Shape& s) { return s.IsArray() && IsFloat(s.type()) && BitWidth(s.type()) >= 16 && !s.HasDynamic(); }
bool IsPlain(const Shape& s) { return s.IsArray() && IsFloat(s.type()) && s.rank() > 0 && !s.HasDynamic(); }

// The length of a block that the configuration names; nothing: what the extents say.
std::optional<int64_t> NamedBlock(const Instruction* call) {
  if (!call->attrs().backend_config) return std::nullopt;
  absl::string_view text = call->attrs().backend_config->text;
  constexpr absl::string_view kKey = "block_size";
  const size_t at = text.find(kKey);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + kKey.size());
  text.remove_prefix(std::min(text.size(), text.find_first_not_of("\\\": \t")));
  int64_t n = 0;
  if (!absl::SimpleAtoi(text.substr(0, text.find_first_not_of("0123456789")), &n)) return std::nullopt;
  return n;
}

// The length of the blocks of `values`, 0 if `scales` are not theirs. `padded`: scales may have more rows than that.
int64_t BlockLength(const Shape& values, const Shape& scales, std::optional<int64_t> named, bool padded) {
  if (!IsPlain(values) || !IsPlain(scales) || values.rank() != scales.rank()) return 0;
  const int64_t last = values.rank() - 1, length = values.dim(last), blocks = scales.dim(last);
  if (blocks < 1 || length < 1) return 0;
  for (int64_t d = 0; d < last; ++d)
    if (values.dim(d) != scales.dim(d) && (!padded || d < last - 1 || values.dim(d) > scales.dim(d))) return 0;
  if (named) return *named > 0 && (length + *named - 1) / *named <= blocks ? *named : 0;
  return length % blocks == 0 ? length / blocks : 0;
}

// Each of `scales` for all of its block, as an array of the extents `dims`.
Expr Spread(Expr scales, int64_t block, const Ints& dims) {
  Ints split = dims, mapped;
  split.back() = (dims.back() + block - 1) / block;
  if (scales.shape().dims() != split) scales = SliceOf(scales, Ints(dims.size(), 0), split);
  for (size_t d = 0; d < dims.size(); ++d) mapped.push_back(static_cast<int64_t>(d));
  Ints whole = split;
  whole.back() *= block;
  split.push_back(block);
  const Expr spread = ReshapeTo(BroadcastTo(scales, split, mapped), whole);
  return whole == dims ? spread : SliceOf(spread, Ints(dims.size(), 0), dims);
}

Expr Scaled(Expr values, Expr scales, int64_t block, PrimitiveType t) {
  return ConvertTo(t, values) * Spread(ConvertTo(t, scales), block, values.shape().dims());
}

// The largest power of two of a type.
double LargestPower(PrimitiveType t) {
  const TypeInfo& f = InfoOf(t);
  const int top = (1 << f.exponent_bits) - (f.flavour == FloatFlavour::Ieee ? 2 : 1);
  return std::ldexp(1.0, top - ExponentBias(t));
}

Instruction* Quantized(const Instruction* call, Computation* c, Expr x) {
  const Shape &values = call->shape().tuple()[0], &scales = call->shape().tuple()[1];
  const PrimitiveType t = x.type();
  Ints blocks = scales.dims();
  blocks.push_back(values.dims().back() / scales.dims().back());
  const Expr magnitudes = ReshapeTo(Unary(Opcode::Abs, x), blocks);
  const Expr largest = ReduceOf(magnitudes, c->AddConstant(Literal::Of(t, 0)), {scales.rank()},
                                ScalarFunction(c->module(), Opcode::Maximum, t));
  Expr wanted = largest / LargestPower(values.type());
  // Of zeros alone: the least scale, and what has a scale of zero is not divided by it.
  if (InfoOf(scales.type()).flavour == FloatFlavour::Exponent)
    wanted = Binary(Opcode::Maximum, wanted, wanted.Like(std::ldexp(1.0, 1 - ExponentBias(t))));
  const Expr scale = ConvertTo(scales.type(), wanted), rounded = ConvertTo(t, scale);
  const Expr divisor = SelectExpr(rounded == rounded.Like(0), rounded.Like(1), rounded);
  const Expr divisors = Spread(divisor, blocks.back(), values.dims());
  return TupleOf({ConvertTo(values.type(), x / divisors), scale});
}

Instruction* Product(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  const PrimitiveType t = call->shape().type();
  std::vector<Instruction*> sides;
  for (size_t k = 0; k < 2; ++k) {
    if (k + 2 >= x.size()) {
      sides.push_back(x[k]);
      continue;
    }
    const int64_t block = BlockLength(x[k]->shape(), x[k + 2]->shape(), NamedBlock(call), true);
    sides.push_back(Scaled(x[k], x[k + 2], block, t).get());
  }
  Instruction* dot = c->Add(Opcode::Dot, Shape::Array(t, call->shape().dims()), sides);
  const int64_t last = x[0]->shape().rank() - 1;
  Attributes& a = dot->mutable_attrs();
  a.lhs_contracting_dims = a.rhs_contracting_dims = Ints{last};
  if (last == 2) a.lhs_batch_dims = a.rhs_batch_dims = Ints{0};
  if (x.size() < 5) return dot;
  return (Expr(dot) * BroadcastTo(x[4], dot->shape().dims())).get();
}

bool IsQuantize(const Instruction* i) {
  if (!IsCallTo(i, kQuantize) || i->operand_count() != 1 || !i->shape().IsTuple() || i->shape().tuple().size() != 2)
    return false;
  const Shape &x = i->operand(0)->shape(), &values = i->shape().tuple()[0], &scales = i->shape().tuple()[1];
  return IsWide(x) && BlockLength(values, scales, std::nullopt, false) != 0 && values.dims() == x.dims() &&
         InfoOf(values.type()).flavour != FloatFlavour::Exponent;
}

bool IsDequantize(const Instruction* i) {
  return IsCallTo(i, kDequantize) && i->operand_count() == 2 && IsWide(i->shape()) &&
         i->shape().dims() == i->operand(0)->shape().dims() &&
         BlockLength(i->operand(0)->shape(), i->operand(1)->shape(), std::nullopt, false) != 0;
}

bool IsProduct(const Instruction* i) {
  const int64_t operands = i->operand_count();
  if (!IsCallTo(i, kDot) || operands < 3 || operands > 5 || !IsWide(i->shape())) return false;
  const Shape &a = i->operand(0)->shape(), &b = i->operand(1)->shape();
  if (!IsPlain(a) || !IsPlain(b) || a.rank() != b.rank() || (a.rank() != 2 && a.rank() != 3)) return false;
  Ints dims = a.dims();
  dims.back() = b.dim(b.rank() - 2);
  const bool batch = a.rank() == 2 || a.dim(0) == b.dim(0);
  if (!batch || a.dims().back() != b.dims().back() || i->shape().dims() != dims) return false;
  for (int64_t k = 0; k < 2 && k + 2 < operands; ++k)
    if (BlockLength(i->operand(k)->shape(), i->operand(k + 2)->shape(), NamedBlock(i), true) == 0) return false;
  return (operands > 3 || b.type() == i->shape().type()) &&
         (operands < 5 || i->operand(4)->shape().Compatible(Shape::Scalar(i->shape().type())));
}

}  // namespace

bool IsBlockScaling(const Instruction* i) { return IsQuantize(i) || IsDequantize(i) || IsProduct(i); }

Instruction* BlockScalingOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  if (IsCallTo(call, kQuantize)) return Quantized(call, c, x[0]);
  if (IsCallTo(call, kDot)) return Product(call, c, x);
  const int64_t block = BlockLength(x[0]->shape(), x[1]->shape(), std::nullopt, false);
  return Scaled(x[0], x[1], block, call->shape().type()).get();
}

}  // namespace kiln
