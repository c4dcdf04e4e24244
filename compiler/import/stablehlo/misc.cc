// StableHLO operations with attributes of their own that belong to no larger family.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "compiler/import/chlo.h"
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {

absl::StatusOr<Values> ConvertCompare(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  Shape s = Shape::Array(PrimitiveType::Pred, call.x[0]->shape().dims());
  Instruction* i = call.Add(Opcode::Compare, s, call.x);
  std::string dir = call.op.words.empty() ? EnumWord(call.op.Attr("comparison_direction")) : call.op.words[0];
  std::string type = call.op.words.size() > 1      ? call.op.words[1]
                     : call.op.Has("compare_type") ? EnumWord(call.op.Attr("compare_type"))
                                                   : "";
  RETURN_IF_ERROR(call.Word("comparison_direction", dir, &i->mutable_attrs().direction));
  if (type == "TOTALORDER") i->mutable_attrs().compare_type = CompareType::TOTALORDER;
  return Values{i};
}

absl::StatusOr<Values> ConvertFft(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Instruction* i = call.Add(Opcode::Fft, call.result(), call.x);
  const std::string type = EnumWord(call.op.Has("type") ? call.op.Attr("type") : call.op.Attr("fft_type"));
  RETURN_IF_ERROR(call.Word("fft_type", type, &i->mutable_attrs().fft_type));
  i->mutable_attrs().fft_length = call.op.Has("length") ? call.List("length") : call.List("fft_length");
  return Values{i};
}

absl::StatusOr<Values> ConvertCholesky(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Instruction* i = call.Add(Opcode::Cholesky, call.result(), call.x);
  i->mutable_attrs().lower = call.Flag("lower", false);
  return Values{i};
}

absl::StatusOr<Values> ConvertTriangularSolve(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  Instruction* i = call.Add(Opcode::TriangularSolve, call.result(), call.x);
  i->mutable_attrs().left_side = call.Flag("left_side", false);
  i->mutable_attrs().lower = call.Flag("lower", false);
  if (call.Flag("unit_diagonal", false)) i->mutable_attrs().unit_diagonal = true;
  RETURN_IF_ERROR(call.Word("transpose_a", EnumWord(call.op.Attr("transpose_a")), &i->mutable_attrs().transpose_a));
  return Values{i};
}

absl::StatusOr<Values> ConvertRng(Call& call) {
  RETURN_IF_ERROR(call.Need(3));
  Instruction* i = call.Add(Opcode::Rng, call.result(), {call.x[0], call.x[1]});
  const std::string d =
      EnumWord(call.op.Has("distribution") ? call.op.Attr("distribution") : call.op.Attr("rng_distribution"));
  i->mutable_attrs().distribution = d == "NORMAL" ? Distribution::rng_normal : Distribution::rng_uniform;
  return Values{i};
}

absl::StatusOr<Values> ConvertRngBitGenerator(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Instruction* i = call.Add(Opcode::RngBitGenerator, Shape::Tuple(call.types), call.x);
  const std::string alg =
      EnumWord(call.op.Has("algorithm") ? call.op.Attr("algorithm") : call.op.Attr("rng_algorithm"));
  i->mutable_attrs().algorithm = attr::Raw(alg == "THREE_FRY" ? "rng_three_fry"
                                           : alg == "PHILOX"  ? "rng_philox"
                                                              : "rng_default");
  return call.Split(i);
}

absl::StatusOr<Values> ConvertReducePrecision(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Instruction* i = call.Add(Opcode::ReducePrecision, call.result(), call.x);
  int64_t e = call.One("exponent_bits", -1), m = call.One("mantissa_bits", -1);
  const std::string f = call.op.Attr("format");
  if (const size_t at = f.find('m'); f.size() > 3 && f[0] == 'e' && at != std::string::npos) {
    (void)absl::SimpleAtoi(f.substr(1, at - 1), &e);
    (void)absl::SimpleAtoi(f.substr(at + 1), &m);
  }
  if (e < 1 || m < 0) return call.Fail("format is not understood");
  i->mutable_attrs().exponent_bits = e;
  i->mutable_attrs().mantissa_bits = m;
  return Values{i};
}

absl::StatusOr<Values> ConvertBatchNorm(Call& call) {
  auto o = OpcodeFromText(absl::StrReplaceAll(call.name, {{"_", "-"}}));
  Instruction* i = call.Add(*o, call.types.size() > 1 ? Shape::Tuple(call.types) : call.result(), call.x);
  i->mutable_attrs().feature_index = call.One("feature_index", 0);
  const std::string e = call.op.Attr("epsilon");
  double eps = 0;
  (void)absl::SimpleAtod(e.substr(0, e.find(' ')), &eps);
  i->mutable_attrs().epsilon = eps;
  return call.types.size() > 1 ? call.Split(i) : Values{i};
}

absl::StatusOr<Values> ConvertElementwise(Call& call) {
  // The rest is named as in HLO and takes no attribute that matters.
  auto o = OpcodeFromText(absl::StrReplaceAll(call.name, {{"_", "-"}}));
  if (!o || (InfoOf(*o).arity >= 0 && InfoOf(*o).arity != static_cast<int>(call.x.size())) ||
      (!(InfoOf(*o).traits & Elementwise) && *o != Opcode::Reshape && *o != Opcode::BitcastConvert &&
       *o != Opcode::DynamicUpdateSlice && *o != Opcode::PartitionId && *o != Opcode::ReplicaId))
    return call.Fail("this operation is not supported", absl::StatusCode::kUnimplemented);
  return Values{call.Add(*o, call.result(), call.x)};
}

absl::StatusOr<Values> ConvertChlo(Call& call) {
  auto built = BuildChlo(call.name, std::vector<Expr>(call.x.begin(), call.x.end()));
  if (!built.ok())
    return call.Fail(built.status().message(), built.status().code() == absl::StatusCode::kNotFound
                                                   ? absl::StatusCode::kUnimplemented
                                                   : built.status().code());
  return Values{call.Finish(built->get())};
}

namespace {

absl::StatusOr<Values> TopK(Call& call, int64_t k) {
  Shape s = call.x[0]->shape();
  if (s.rank() == 0 || k < 0 || k > s.dims().back()) return call.Fail("k is out of range");
  s.mutable_dims().back() = k;
  Instruction* t = call.Add(Opcode::TopK, Shape::Tuple({s, Shape::Array(PrimitiveType::S32, s.dims())}), {call.x[0]});
  t->mutable_attrs().k = k;
  t->mutable_attrs().largest = call.Flag("largest", true);
  return call.Split(t);
}

}  // namespace

absl::StatusOr<Values> ConvertTopK(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  return TopK(call, call.One("k", -1));
}

absl::StatusOr<Values> ConvertDynamicTopK(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  ASSIGN_OR_RETURN(const Ints k, call.Known(1));
  if (k.size() != 1) return call.Fail("k is not one number");
  return TopK(call, k[0]);
}

// uniform_quantize (of a real or another quantized value) and uniform_dequantize.
absl::StatusOr<Values> ConvertQuantization(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  const QuantizedPtr from = call.converter.QuantizationOf(call.x[0]);
  const QuantizedPtr to = call.op.result_types.empty() ? nullptr : call.op.result_types[0].quantized;
  const bool quantize = call.name == "uniform_quantize";
  if (quantize ? !to : (!from || to)) return call.Fail("its types do not fit");
  Expr real = call.x[0];
  auto wrong = [&](const absl::Status& s) { return call.Fail(s.message(), s.code()); };
  if (from) {
    auto r = Dequantize(real, *from);
    if (!r.ok()) return wrong(r.status());
    real = *r;
  }
  if (!quantize) return Values{call.Finish(ConvertTo(call.result().type(), real).get())};
  auto stored = Quantize(real, *to);
  if (!stored.ok()) return wrong(stored.status());
  call.converter.Mark(stored->get(), to);
  return Values{call.Finish(stored->get())};
}

}  // namespace kiln::stablehlo
