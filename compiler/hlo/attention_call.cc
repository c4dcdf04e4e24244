#include "compiler/hlo/attention_call.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"

namespace kiln {
namespace {

constexpr PrimitiveType kF32 = PrimitiveType::F32, kS32 = PrimitiveType::S32;
// The dimensions of scores.
constexpr int64_t kRows = 2, kColumns = 3;

// A call, by its target and configuration.
struct Form {
  bool backward = false, bias = false, lengths = false, causal = false;
  bool heads_first = false;  // of q, k, v and, backward, o
  double scale = 1;
  int64_t window = 0;  // columns up to the row's own that it sees; 0: all
  Ints extents;        // batch, heads, rows, columns
};

// A field of a configuration as JAX prints it, with a blank behind the colon.
std::string Field(absl::string_view config, absl::string_view key) {
  return std::string(absl::StripAsciiWhitespace(ConfigField(config, key).value_or("")));
}

double NumberField(absl::string_view config, absl::string_view key, double otherwise) {
  double v = otherwise;
  return absl::SimpleAtod(Field(config, key), &v) ? v : otherwise;
}

std::optional<Form> FormOf(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target || !i->attrs().backend_config) return std::nullopt;
  const std::string& target = i->attrs().custom_call_target->text;
  if (!absl::StartsWith(target, "__cudnn$fmha")) return std::nullopt;
  // JAX writes it as a string.
  const std::string config = absl::StrReplaceAll(i->attrs().backend_config->text, {{"\\\"", "\""}});
  Form f;
  f.bias = absl::StartsWith(target, "__cudnn$fmhaScaleBiasSoftmax");
  f.backward = absl::EndsWith(target, "Backward");
  if (target != absl::StrCat("__cudnn$fmha", f.bias ? "ScaleBias" : "", "Softmax", f.backward ? "Backward" : ""))
    return std::nullopt;
  const std::string mask = Field(config, "mask_type");
  f.lengths = absl::StartsWith(mask, "PADDING");
  f.causal = absl::EndsWith(mask, "CAUSAL");
  f.scale = NumberField(config, "fmha_scale", 1);
  f.window = static_cast<int64_t>(NumberField(config, "sliding_window_length", 0));
  const bool known = f.lengths || f.causal || mask == "NO_MASK";
  if (!known || NumberField(config, "dropout_rate", 0) != 0 || NumberField(config, "max_seg_per_batch", 1) != 1 ||
      Field(config, "is_paged_attention") == "true")
    return std::nullopt;
  // The product of q and k, or backward of the gradient and v, says which dimensions are heads.
  const size_t product =
      config.find(f.backward ? "bmm2_grad_gemm2_dot_dimension_numbers" : "bmm1_dot_dimension_numbers");
  if (product == config.npos) return std::nullopt;
  const size_t batch = config.find("\"lhs_batch_dimensions\"", product), end = config.find(']', batch);
  if (end == config.npos) return std::nullopt;
  const absl::string_view dims = absl::string_view(config).substr(batch, end - batch);
  f.heads_first = absl::StrContains(dims, "\"1\"");
  return f.heads_first || absl::StrContains(dims, "\"2\"") ? std::optional<Form>(f) : std::nullopt;
}

// [batch, heads, length, width] of an operand.
Ints HeadsFirst(const Shape& s, const Form& f) {
  Ints d = s.dims();
  if (!f.heads_first) std::swap(d[1], d[2]);
  return d;
}

bool Has(const Shape& s, PrimitiveType t, const Ints& dims) { return s.Compatible(Shape::Array(t, dims)); }

// Sets `extents`; false: the operands or results do not fit.
bool Fits(const Instruction* i, Form* f) {
  const std::vector<Instruction*>& x = i->operands();
  const size_t operands = (f->backward ? 6 : 3) + (f->bias ? 1 : 0) + (f->lengths ? 2 : 0);
  if (x.size() != operands || !i->shape().IsTuple()) return false;
  const std::vector<Shape>& out = i->shape().tuple();
  for (size_t k = 0; k < 3; ++k)
    if (!x[k]->shape().IsArray() || x[k]->shape().rank() != 4 || x[k]->shape().HasDynamic()) return false;
  const PrimitiveType t = x[0]->shape().type();
  if (t != PrimitiveType::F16 && t != PrimitiveType::BF16 && t != kF32) return false;
  const Ints q = HeadsFirst(x[0]->shape(), *f), k = HeadsFirst(x[1]->shape(), *f), v = HeadsFirst(x[2]->shape(), *f);
  f->extents = {q[0], q[1], q[2], k[2]};
  if (x[0]->shape().ElementCount() == 0 || x[2]->shape().ElementCount() == 0 || q[1] % k[1] != 0) return false;
  if (x[1]->shape().type() != t || x[2]->shape().type() != t || k != Ints{q[0], k[1], k[2], q[3]} ||
      v != Ints{q[0], k[1], k[2], v[3]})
    return false;
  const Ints o = {q[0], q[1], q[2], v[3]}, statistics = {q[0], q[1], q[2]};
  size_t next = 3;
  const Instruction* bias = nullptr;
  if (f->backward) {
    if (!Has(x[next++]->shape(), kF32, statistics)) return false;
    if (HeadsFirst(x[next]->shape(), *f) != o || x[next]->shape().type() != t) return false;
    ++next;
  }
  if (f->bias) {
    bias = x[next++];
    const Shape& b = bias->shape();
    if (!b.IsArray() || b.rank() != 4 || !IsFloat(b.type()) || b.dim(2) != q[2] || b.dim(3) != k[2]) return false;
    if ((b.dim(0) != 1 && b.dim(0) != q[0]) || (b.dim(1) != 1 && b.dim(1) != q[1])) return false;
  }
  if (f->backward && !x[next++]->shape().Compatible(x[4]->shape())) return false;
  for (; next < x.size(); ++next)
    if (!Has(x[next]->shape(), kS32, {q[0]})) return false;
  // The last result is the library's workspace.
  if (!f->backward) {
    if (out.size() < 2 || out.size() > 3 || !Has(out[0], t, o)) return false;
    return out.size() == 2 || Has(out[1], kF32, statistics);
  }
  if (out.size() < 4 || !Has(out[0], t, q) || !Has(out[1], t, k) || !Has(out[2], t, v)) return false;
  return out.size() == 4 || (out.size() == 5 && bias && out[3].Compatible(bias->shape()));
}

class Attention {
 public:
  Attention(const Instruction* call, Form form, Computation* c, const std::vector<Instruction*>& x)
      : call_(call), f_(std::move(form)), c_(c), x_(x), t_(x[0]->shape().type()) {}

  Instruction* Forward() {
    const Expr scores = Scores(3);
    const std::optional<Expr> seen = Seen(f_.bias ? 4 : 3);
    const Expr visible = seen ? SelectExpr(*seen, scores, scores.Like(kLowest)) : scores;
    const Expr top = Reduced(visible, Opcode::Maximum, kLowest);
    Expr powers = Unary(Opcode::Exponential, visible - AlongRows(top));
    if (seen) powers = SelectExpr(*seen, powers, powers.Like(0));
    Expr sum = Reduced(powers, Opcode::Add, 0);
    // Rows that see nothing give zeros.
    const Expr divisor = seen ? SelectExpr(sum > 0, sum, sum.Like(1)) : sum;
    const Expr weights = ConvertTo(t_, powers / AlongRows(divisor));
    std::vector<Expr> out = {
        ReshapeTo(Product(Grouped(weights), Operand(2), 3, 2, t_), call_->shape().tuple()[0].dims())};
    if (call_->shape().tuple().size() == 3) out.push_back(top + Unary(Opcode::Log, sum));
    return Results(out);
  }

  Instruction* Backward() {
    const size_t o = f_.bias ? 6 : 5;
    const Expr scores = Scores(5), gradient = Operand(4);
    Expr weights = Unary(Opcode::Exponential, scores - AlongRows(x_[3]));
    if (const std::optional<Expr> seen = Seen(o + 1)) weights = SelectExpr(*seen, weights, weights.Like(0));
    const Expr of_weights = Scored(Product(Grouped(gradient), Operand(2), 3, 3, kF32));
    const Expr paired = ConvertTo(kF32, gradient) * ConvertTo(kF32, Operand(o));
    const Expr of_scores = weights * (of_weights - AlongRows(Reduced(paired, Opcode::Add, 0)));
    const Expr scaled = Grouped(ConvertTo(t_, of_scores * f_.scale));
    const auto shaped = [&](Expr x, size_t k) { return ReshapeTo(x, call_->shape().tuple()[k].dims()); };
    std::vector<Expr> out = {shaped(Product(scaled, Operand(1), 3, 2, t_), 0),
                             shaped(Product(scaled, Grouped(Operand(0)), 2, 2, t_), 1),
                             shaped(Product(Grouped(ConvertTo(t_, weights)), Grouped(gradient), 2, 2, t_), 2)};
    if (call_->shape().tuple().size() == 5) {
      const Shape& bias = call_->shape().tuple()[3];
      Ints repeated;
      for (int64_t d = 0; d < 2; ++d)
        if (bias.dim(d) != f_.extents[static_cast<size_t>(d)]) repeated.push_back(d);
      const Expr sum = repeated.empty() ? of_scores : ReduceOf(of_scores, Zero(), repeated, Function(Opcode::Add));
      out.push_back(ConvertTo(bias.type(), ReshapeTo(sum, bias.dims())));
    }
    return Results(out);
  }

 private:
  static constexpr double kLowest = std::numeric_limits<float>::lowest();

  Computation* Function(Opcode op) { return ScalarFunction(c_->module(), op, kF32); }
  Expr Zero() { return c_->AddConstant(Literal::Of(kF32, 0)); }

  // [batch, heads, length, width].
  Expr Operand(size_t k) { return f_.heads_first ? Expr(x_[k]) : TransposeBy(x_[k], {0, 2, 1, 3}); }

  // Rows of all heads of q that one head of k serves are one matrix.
  Expr Grouped(Expr x) {
    const Ints& d = x.shape().dims();
    const int64_t heads = HeadsFirst(x_[1]->shape(), f_)[1];
    return ReshapeTo(x, {d[0], heads, d[1] / heads * d[2], d[3]});
  }

  Expr Scored(Expr x) { return ReshapeTo(x, f_.extents); }

  Expr Product(Expr a, Expr b, int64_t a_contracting, int64_t b_contracting, PrimitiveType t) {
    const Ints &x = a.shape().dims(), &y = b.shape().dims();
    Instruction* dot = c_->Add(Opcode::Dot, Shape::Array(t, {x[0], x[1], x[5 - a_contracting], y[5 - b_contracting]}),
                               {a.get(), b.get()});
    dot->mutable_attrs().lhs_batch_dims = dot->mutable_attrs().rhs_batch_dims = Ints{0, 1};
    dot->mutable_attrs().lhs_contracting_dims = Ints{a_contracting};
    dot->mutable_attrs().rhs_contracting_dims = Ints{b_contracting};
    return dot;
  }

  Expr Scores(size_t bias) {
    Expr scores = Scored(Product(Grouped(Operand(0)), Operand(1), 3, 3, kF32)) * f_.scale;
    if (!f_.bias) return scores;
    Ints kept, mapped;
    for (int64_t d = 0; d < 4; ++d)
      if (x_[bias]->shape().dim(d) == f_.extents[static_cast<size_t>(d)]) {
        kept.push_back(x_[bias]->shape().dim(d));
        mapped.push_back(d);
      }
    return scores + BroadcastTo(ReshapeTo(ConvertTo(kF32, x_[bias]), kept), f_.extents, mapped);
  }

  // Which columns a row sees; nothing: all.
  std::optional<Expr> Seen(size_t lengths) {
    std::optional<Expr> out;
    const auto demand = [&](Expr p) { out = out ? *out & p : p; };
    const Expr row = IotaOf(c_, kS32, f_.extents, kRows), column = IotaOf(c_, kS32, f_.extents, kColumns);
    if (f_.causal) demand(CompareExpr(Direction::LE, column, row));
    if (f_.window > 0) demand(row - column < static_cast<double>(f_.window));
    for (size_t k = 0; f_.lengths && k < 2; ++k)
      demand(CompareExpr(Direction::LT, k == 0 ? row : column, BroadcastTo(x_[lengths + k], f_.extents, {0})));
    return out;
  }

  Expr Reduced(Expr x, Opcode op, double init) {
    return ReduceOf(x, c_->AddConstant(Literal::Of(kF32, init)), {kColumns}, Function(op));
  }
  Expr AlongRows(Expr x) { return BroadcastTo(x, f_.extents, {0, 1, kRows}); }

  Instruction* Results(std::vector<Expr> out) {
    const Shape& workspace = call_->shape().tuple().back();
    out.push_back(BroadcastTo(c_->AddConstant(Literal::Of(workspace.type(), 0)), workspace.dims()));
    return TupleOf(out);
  }

  const Instruction* call_;
  const Form f_;
  Computation* c_;
  const std::vector<Instruction*>& x_;
  const PrimitiveType t_;
};

}  // namespace

bool IsAttentionCall(const Instruction* i) {
  std::optional<Form> f = FormOf(i);
  return f && Fits(i, &*f);
}

Instruction* AttentionOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  Form f = *FormOf(call);
  Fits(call, &f);
  Attention attention(call, f, c, x);
  return f.backward ? attention.Backward() : attention.Forward();
}

}  // namespace kiln
