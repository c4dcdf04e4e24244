#include "compiler/hlo/library_calls.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/attention_call.h"
#include "compiler/hlo/block_scaling.h"
#include "compiler/hlo/graph_builder.h"

namespace kiln {
namespace {

constexpr absl::string_view kPrecise = ",\"precision_config\":{\"operand_precision\":[\"HIGHEST\",\"HIGHEST\"]}";

std::string List(const Ints& v) {
  return absl::StrCat("[", absl::StrJoin(v, ",", [](std::string* s, int64_t n) { absl::StrAppend(s, "\"", n, "\""); }),
                      "]");
}

std::string Number(double v) { return absl::StrFormat("%.17g", v); }

Ints ListField(absl::string_view config, absl::string_view key) {
  Ints out;
  const std::string quoted = absl::StrCat("\"", std::string(key), "\":[");
  const size_t at = config.find(quoted);
  if (at == config.npos) return out;
  const size_t from = at + quoted.size();
  for (absl::string_view part :
       absl::StrSplit(config.substr(from, config.find(']', from) - from), ',', absl::SkipEmpty())) {
    int64_t n = 0;
    const std::string digits = std::string(part.substr(1, part.size() < 2 ? 0 : part.size() - 2));
    if (absl::SimpleAtoi(digits, &n)) out.push_back(n);
  }
  return out;
}

double NumberField(absl::string_view config, absl::string_view key, double otherwise) {
  double v = otherwise;
  if (const auto text = ConfigField(config, key)) (void)absl::SimpleAtod(*text, &v);
  return v;
}

absl::string_view ConfigText(const Instruction* call) {
  const auto& c = call->attrs().backend_config;
  return c ? absl::string_view(c->text) : absl::string_view();
}

PrimitiveType Wide(PrimitiveType t) { return IsFloat(t) && InfoOf(t).bits < 32 ? PrimitiveType::F32 : t; }

Expr Gelu(Expr x) {  // the tanh form
  Expr inner = (x + x * x * x * 0.044715) * 0.79788456080286535588;
  return x * 0.5 * (Unary(Opcode::Tanh, inner) + 1.0);
}

absl::StatusOr<Instruction*> Gemm(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  ASSIGN_OR_RETURN(GemmConfig g, GemmConfigOf(call));
  const Shape& out = call->shape();
  const PrimitiveType t = Wide(out.type());
  // A broadcast operand becomes one matrix for each position of the batch.
  const auto whole = [&](Instruction* v, bool broadcast) -> Expr {
    if (!broadcast) return v;
    const int64_t batch = out.rank() - 2;
    Ints dims(out.dims().begin(), out.dims().begin() + batch), mapped;
    for (int64_t d : v->shape().dims()) {
      mapped.push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(d);
    }
    return BroadcastTo(v, dims, mapped);
  };
  Expr a = whole(x[0], g.lhs_broadcast), b = whole(x[1], g.rhs_broadcast);
  size_t next = 2;
  if (IsCallTo(call, kGemmF8Target))
    for (Expr* side : {&a, &b}) {
      *side = ConvertTo(PrimitiveType::F32, *side);
      *side = *side * BroadcastTo(x[next++], side->shape().dims());
    }
  Instruction* dot = c->Add(Opcode::Dot, Shape::Array(t, out.dims()), {a.get(), b.get()});
  dot->mutable_attrs().lhs_batch_dims = g.lhs_batch;
  dot->mutable_attrs().rhs_batch_dims = g.rhs_batch;
  dot->mutable_attrs().lhs_contracting_dims = g.lhs_contracting;
  dot->mutable_attrs().rhs_contracting_dims = g.rhs_contracting;
  Expr v = dot;
  if (g.alpha != 1) v = v * g.alpha;
  if (g.beta != 0) {
    Expr added = ConvertTo(t, x[next++]);
    v = v + (g.beta == 1 ? added : added * g.beta);
  }
  if (g.HasBias()) v = v + BroadcastTo(ConvertTo(t, x[next++]), out.dims(), {out.rank() - 1});
  if (g.HasRelu()) v = Binary(Opcode::Maximum, v, v.Like(0));
  if (g.HasGelu()) v = Gelu(v);
  return ConvertTo(out.type(), v).get();
}

Expr EmptyBytes(Computation* c, int64_t n) {
  return n == 0 ? Expr(c->AddConstant(Literal(Shape::Array(PrimitiveType::U8, {0}))))
                : BroadcastTo(IntegerIn(c, PrimitiveType::U8, 0), {n});
}

absl::StatusOr<Instruction*> Convolution(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  ASSIGN_OR_RETURN(ConvConfig g, ConvConfigOf(call));
  const Shape& out = call->shape().tuple()[0];
  const PrimitiveType in = x[0]->shape().type();
  // Integers multiply into s32, scales are in f32.
  const PrimitiveType t = IsFloat(in) ? Wide(in) : PrimitiveType::S32;
  Instruction* conv = c->Add(Opcode::Convolution, Shape::Array(t, out.dims()), {x[0], x[1]});
  conv->mutable_attrs().window = call->attrs().window;
  conv->mutable_attrs().dim_labels = call->attrs().dim_labels;
  conv->mutable_attrs().feature_group_count = call->attrs().feature_group_count;
  conv->mutable_attrs().batch_group_count = call->attrs().batch_group_count;
  Expr v = conv;
  if (IsCallTo(call, kConvBiasActivationTarget)) {
    const PrimitiveType wide = t == PrimitiveType::F64 ? t : PrimitiveType::F32;
    v = ConvertTo(wide, v);
    if (g.conv_scale != 1) v = v * g.conv_scale;
    if (x.size() > 3) {
      Expr side = ConvertTo(wide, x[3]);
      v = v + (g.side_scale == 1 ? side : side * g.side_scale);
    }
    v = v + BroadcastTo(ConvertTo(wide, x[2]), out.dims(), {call->attrs().dim_labels->output_feature});
    if (g.activation == "kRelu") v = Binary(Opcode::Maximum, v, v.Like(0));
    if (out.type() == PrimitiveType::S8) {
      v = Binary(Opcode::Minimum, Binary(Opcode::Maximum, v, v.Like(-128)), v.Like(127));
      v = Unary(Opcode::RoundNearestEven, v);
    }
  }
  v = ConvertTo(out.type(), v);
  return TupleOf({v, EmptyBytes(c, call->shape().tuple()[1].ElementCount())});
}

absl::StatusOr<Instruction*> Cholesky(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  // (factor, workspace, info): info is not 0 where a matrix is not positive definite.
  const std::vector<Shape>& parts = call->shape().tuple();
  Instruction* factor = c->Add(Opcode::Cholesky, parts[0], {x[0]});
  factor->mutable_attrs().lower = ConfigField(ConfigText(call), "lower").value_or("true") == "true";
  const int64_t n = parts[0].dims().back();
  Ints first(static_cast<size_t>(parts[0].rank()), 0), limit = parts[0].dims();
  Expr probe = factor;
  if (IsComplex(parts[0].type())) probe = Unary(Opcode::Real, probe);
  // The last pivot of a failed factorisation is not a number.
  first[first.size() - 1] = first[first.size() - 2] = n - 1;
  Expr last = ReshapeTo(SliceOf(probe, first, limit), parts[2].dims());
  Expr bad = CompareExpr(Direction::NE, last, last);
  Expr info = ConvertTo(PrimitiveType::S32, bad);
  return TupleOf({Expr(factor), EmptyBytes(c, parts[1].ElementCount()), info});
}

absl::StatusOr<Instruction*> TriangularSolve(const Instruction* call, Computation* c,
                                             const std::vector<Instruction*>& x) {
  const std::vector<Shape>& parts = call->shape().tuple();
  Instruction* solve = c->Add(Opcode::TriangularSolve, parts[0], {x[0], x[1]});
  const absl::string_view config = ConfigText(call);
  const auto flag = [&](const char* key) { return ConfigField(config, key).value_or("false") == "true"; };
  solve->mutable_attrs().left_side = flag("left_side");
  solve->mutable_attrs().lower = flag("lower");
  solve->mutable_attrs().unit_diagonal = flag("unit_diagonal");
  const auto form = WordFromText<TransposeA>(ConfigField(config, "transpose_a").value_or("NO_TRANSPOSE"));
  if (!form.ok()) return ErrorAt(call, absl::StrCat("transpose_a ", form.status().message()));
  solve->mutable_attrs().transpose_a = *form;
  return TupleOf({Expr(solve), EmptyBytes(c, parts[1].ElementCount())});
}

absl::StatusOr<Instruction*> RadixSort(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  const std::vector<Shape>& parts = call->shape().tuple();
  if (x.empty() || x.size() > 2 || parts.size() != x.size() + 1)
    return ErrorAt(call, "a sort by digits takes keys and at most one value for each");
  Computation* less = c->module()->AddComputation("radix_less");
  std::vector<Instruction*> parameters;
  for (const Instruction* operand : x)
    for (int side = 0; side < 2; ++side)
      parameters.push_back(less->AddParameter(static_cast<int64_t>(parameters.size()),
                                              Shape::Scalar(operand->shape().type()), side ? "b" : "a"));
  const bool descending = ConfigField(ConfigText(call), "descending").value_or("false") == "true";
  Expr before = CompareExpr(descending ? Direction::GT : Direction::LT, parameters[0], parameters[1]);
  if (IsFloat(x[0]->shape().type())) before.get()->mutable_attrs().compare_type = CompareType::TOTALORDER;
  less->set_root(before.get());
  const Shape shape = x.size() == 1 ? parts[0] : Shape::Tuple({parts[0], parts[1]});
  Instruction* sort = c->Add(Opcode::Sort, shape, x);
  sort->mutable_attrs().dimensions = Ints{parts[0].rank() - 1};
  sort->mutable_attrs().is_stable = true;
  sort->mutable_attrs().to_apply = less;
  std::vector<Expr> out;
  for (size_t k = 0; k < x.size(); ++k)
    out.push_back(x.size() == 1 ? Expr(sort) : PartOf(sort, static_cast<int64_t>(k)));
  out.push_back(EmptyBytes(c, parts.back().ElementCount()));
  return TupleOf(out);
}

// Epsilon and the feature's position are trailing operands, and in the configuration; the training form gives 1 /
// sqrt(variance + epsilon).
absl::StatusOr<Instruction*> BatchNorm(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  const double eps = NumberField(ConfigText(call), "epsilon", 0);
  const auto index = static_cast<int64_t>(NumberField(ConfigText(call), "feature_index", 0));
  const auto add = [&](Opcode op, const Shape& s, std::vector<Instruction*> operands) {
    Instruction* i = c->Add(op, s, std::move(operands));
    i->mutable_attrs().epsilon = eps;
    i->mutable_attrs().feature_index = index;
    return i;
  };
  if (IsCallTo(call, kBatchNormInferenceTarget))
    return add(Opcode::BatchNormInference, call->shape(), {x[0], x[1], x[2], x[3], x[4]});
  const std::vector<Shape>& parts = call->shape().tuple();
  if (IsCallTo(call, kBatchNormTrainingTarget)) {
    Instruction* i = add(Opcode::BatchNormTraining, Shape::Tuple({parts[0], parts[1], parts[2]}), {x[0], x[1], x[2]});
    Expr inverse = Unary(Opcode::Rsqrt, PartOf(i, 2) + eps);
    return TupleOf({PartOf(i, 0), PartOf(i, 1), inverse});
  }
  // Backward takes 1 / sqrt(variance + epsilon) in the variance's place.
  Expr inverse = x[3];
  Expr variance = 1.0 / (inverse * inverse) - eps;
  Instruction* i = add(Opcode::BatchNormGrad, Shape::Tuple({parts[0], parts[1], parts[2]}),
                       {x[0], x[1], x[2], variance.get(), x[4]});
  return TupleOf({PartOf(i, 0), PartOf(i, 1), PartOf(i, 2)});
}

}  // namespace

std::optional<std::string> ConfigField(absl::string_view config, absl::string_view key) {
  const std::string quoted = absl::StrCat("\"", std::string(key), "\":");
  const size_t at = config.find(quoted);
  if (at == config.npos) return std::nullopt;
  const size_t from = at + quoted.size();
  std::string text(config.substr(from, config.find_first_of(",}]", from) - from));
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  return text;
}

std::string ToText(const GemmConfig& c) {
  return absl::StrCat("{\"gemm_backend_config\":{\"alpha_real\":", Number(c.alpha), ",\"beta\":", Number(c.beta),
                      ",\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":", List(c.lhs_contracting),
                      ",\"rhs_contracting_dimensions\":", List(c.rhs_contracting),
                      ",\"lhs_batch_dimensions\":", List(c.lhs_batch), ",\"rhs_batch_dimensions\":", List(c.rhs_batch),
                      "},\"epilogue\":\"", c.epilogue, "\"", c.lhs_broadcast ? ",\"lhs_stride\":\"0\"" : "",
                      c.rhs_broadcast ? ",\"rhs_stride\":\"0\"" : "", c.precise ? kPrecise : "",
                      ",\"selected_algorithm\":\"", c.algorithm, "\"}}");
}

bool AsksForPrecision(const Instruction* dot) {
  const auto &precision = dot->attrs().operand_precision, &algorithm = dot->attrs().algorithm;
  if (algorithm && (algorithm->text == "dot_f32_f32_f32" || algorithm->text == "dot_tf32_tf32_f32_x3")) return true;
  return precision && absl::StrContains(precision->text, "high");
}

absl::StatusOr<GemmConfig> GemmConfigOf(const Instruction* call) {
  const absl::string_view text = ConfigText(call);
  if (!absl::StrContains(text, "\"gemm_backend_config\"")) return ErrorAt(call, "has no configuration of a product");
  GemmConfig c;
  c.alpha = NumberField(text, "alpha_real", 1);
  c.beta = NumberField(text, "beta", 0);
  c.lhs_contracting = ListField(text, "lhs_contracting_dimensions");
  c.rhs_contracting = ListField(text, "rhs_contracting_dimensions");
  c.lhs_batch = ListField(text, "lhs_batch_dimensions");
  c.rhs_batch = ListField(text, "rhs_batch_dimensions");
  c.epilogue = ConfigField(text, "epilogue").value_or("DEFAULT");
  c.lhs_broadcast = ConfigField(text, "lhs_stride").value_or("") == "0";
  c.rhs_broadcast = ConfigField(text, "rhs_stride").value_or("") == "0";
  c.precise = absl::StrContains(text, "\"HIGH");
  c.algorithm = ConfigField(text, "selected_algorithm").value_or("-1");
  const size_t operands = (IsCallTo(call, kGemmF8Target) ? 4 : 2) + (c.beta != 0) + c.HasBias();
  if (call->operands().size() != operands)
    return ErrorAt(call, absl::StrCat("a product of this configuration takes ", operands, " operands"));
  return c;
}

std::string ToText(const ConvConfig& c) {
  return absl::StrCat("{\"cudnn_conv_backend_config\":{\"activation_mode\":\"", c.activation,
                      "\",\"conv_result_scale\":", Number(c.conv_scale), ",\"side_input_scale\":", Number(c.side_scale),
                      ",\"selected_algorithm\":\"", c.algorithm, "\"}}");
}

absl::StatusOr<ConvConfig> ConvConfigOf(const Instruction* call) {
  const absl::string_view text = ConfigText(call);
  if (!absl::StrContains(text, "\"cudnn_conv_backend_config\""))
    return ErrorAt(call, "has no configuration of a convolution");
  ConvConfig c;
  c.conv_scale = NumberField(text, "conv_result_scale", 1);
  c.side_scale = NumberField(text, "side_input_scale", 0);
  c.activation = ConfigField(text, "activation_mode").value_or("kNone");
  c.algorithm = ConfigField(text, "selected_algorithm").value_or("-1");
  return c;
}

int64_t ChosenAlgorithm(const Instruction* i, absl::string_view target) {
  const std::optional<std::string> choice = ConfigField(ConfigText(i), "selected_algorithm");
  int64_t n = -1;
  if (!choice) return n;
  for (absl::string_view part : absl::StrSplit(*choice, ';')) {
    const std::pair<absl::string_view, absl::string_view> of = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (absl::StrContains(part, '=') && of.first != target) continue;
    if (absl::SimpleAtoi(absl::StrContains(part, '=') ? of.second : part, &n)) return n;
  }
  return -1;
}

void SetAlgorithm(Instruction* i, const std::string& choice) {
  std::string text(ConfigText(i));
  const std::string field = absl::StrCat("\"selected_algorithm\":\"", choice, "\"");
  if (const auto old = ConfigField(text, "selected_algorithm"))
    text = absl::StrReplaceAll(text, {{absl::StrCat("\"selected_algorithm\":\"", *old, "\""), field}});
  else if (text.empty())
    text = absl::StrCat("{", field, "}");
  else
    text.insert(text.size() - 1, absl::StrCat(",", field));
  i->mutable_attrs().backend_config = text;
}

bool IsCallTo(const Instruction* i, absl::string_view target) {
  return i->Is(Opcode::CustomCall) && i->attrs().custom_call_target && i->attrs().custom_call_target->text == target;
}

bool IsGemmCall(const Instruction* i) { return IsCallTo(i, kGemmTarget) || IsCallTo(i, kGemmF8Target); }

bool IsLibraryCall(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target) return false;
  const absl::string_view t = i->attrs().custom_call_target->text;
  return absl::StartsWith(t, "__cublas$") || absl::StartsWith(t, "__cudnn$") || absl::StartsWith(t, "__cusolver$") ||
         absl::StartsWith(t, "__cub$") || absl::StartsWith(t, "__cufft");
}

absl::StatusOr<Instruction*> MeaningOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& x) {
  if (IsGemmCall(call)) return Gemm(call, c, x);
  if (IsCallTo(call, kConvForwardTarget) || IsCallTo(call, kConvBiasActivationTarget) ||
      IsCallTo(call, kConvBackwardInputTarget) || IsCallTo(call, kConvBackwardFilterTarget))
    return Convolution(call, c, x);
  if (IsCallTo(call, kCholeskyTarget)) return Cholesky(call, c, x);
  if (IsCallTo(call, kTriangularSolveTarget)) return TriangularSolve(call, c, x);
  if (IsCallTo(call, kRadixSortTarget)) return RadixSort(call, c, x);
  if (IsCallTo(call, kBatchNormInferenceTarget) || IsCallTo(call, kBatchNormTrainingTarget) ||
      IsCallTo(call, kBatchNormGradTarget))
    return BatchNorm(call, c, x);
  if (IsAttentionCall(call)) return AttentionOf(call, c, x);
  if (IsBlockScaling(call)) return BlockScalingOf(call, c, x);
  return ErrorAt(call, "is no library routine that kiln knows", absl::StatusCode::kUnimplemented);
}

}  // namespace kiln
