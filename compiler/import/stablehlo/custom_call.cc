// stablehlo.custom_call: its convention, its configuration and the layouts it asks for.
//
// Source: StablehloLegalizeToHlo's fixupMhloBackendConfig and mlir_hlo_to_hlo's ExportXlaOp. JAX states a typed call as
//   version 1 with a dictionary `mhlo.backend_config`; where XLA drops a configuration without a word, this fails.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/import/mhlo_sharding.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {

namespace {

// [dense<[0, 1]> : tensor<2xindex>, array<i64: 1>]: one layout for each array, minor to major.
absl::StatusOr<std::vector<Ints>> Layouts(Call& call, absl::string_view key) {
  std::vector<Ints> out;
  const std::string text = call.Resolve(call.op.Attr(key));
  for (size_t at = 0; at < text.size();) {
    const size_t dense = text.find("dense<", at), array = text.find("array<", at);
    const size_t start = std::min(dense, array);
    if (start == std::string::npos) break;
    const size_t close = text.find('>', start);
    if (close == std::string::npos) break;
    Ints layout;
    for (absl::string_view word : absl::StrSplit(absl::string_view(text).substr(start + 6, close - start - 6),
                                                 absl::ByAnyChar("[]:, "), absl::SkipEmpty())) {
      int64_t d;
      if (absl::SimpleAtoi(word, &d)) layout.push_back(d);
    }
    out.push_back(std::move(layout));
    at = start == dense ? text.find("tensor<", close) : close;
    if (at != std::string::npos) at = text.find('>', at);
  }
  return out;
}

// `s` in the layout; the one number of a splat stands for a vector's.
absl::StatusOr<Shape> InLayout(Call& call, Shape s, const Ints& layout) {
  if (!s.IsArray() || s.rank() == 0) return s;
  Ints sorted = layout;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = static_cast<int64_t>(sorted.size()) == s.rank();
  for (size_t k = 0; permutation && k < sorted.size(); ++k) permutation = sorted[k] == static_cast<int64_t>(k);
  if (!permutation) return call.Fail(absl::StrCat("a layout does not fit ", s.ToString(false)));
  s.set_layout(Layout{layout, ""});
  return s;
}

// Layouts that the function asks for, kept where one is not row major.
absl::Status KeepLayouts(Call& call, Instruction* i) {
  if (call.op.Has("operand_layouts")) {
    ASSIGN_OR_RETURN(std::vector<Ints> layouts, Layouts(call, "operand_layouts"));
    // Operands that state extents have layouts too.
    Ints gone = call.List("indices_of_shape_operands");
    std::sort(gone.rbegin(), gone.rend());
    gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
    if (layouts.size() != call.x.size() + gone.size())
      return call.Fail("has another number of operand layouts than operands");
    for (int64_t k : gone) layouts.erase(layouts.begin() + k);
    std::vector<std::string> parts;
    bool any = false;
    for (size_t k = 0; k < layouts.size(); ++k) {
      ASSIGN_OR_RETURN(Shape s, InLayout(call, call.x[k]->shape(), layouts[k]));
      any = any || (s.IsArray() && !s.HasDefaultLayout());
      parts.push_back(s.ToString());
    }
    if (any)
      i->mutable_attrs().operand_layout_constraints = attr::Raw(absl::StrCat("{", absl::StrJoin(parts, ", "), "}"));
  }
  if (call.op.Has("result_layouts")) {
    ASSIGN_OR_RETURN(std::vector<Ints> layouts, Layouts(call, "result_layouts"));
    if (layouts.size() != call.types.size()) return call.Fail("has another number of result layouts than results");
    std::vector<Shape> parts;
    bool any = false;
    for (size_t k = 0; k < layouts.size(); ++k) {
      ASSIGN_OR_RETURN(Shape s, InLayout(call, call.types[k], layouts[k]));
      any = any || (s.IsArray() && !s.HasDefaultLayout());
      parts.push_back(std::move(s));
    }
    if (any) i->mutable_shape() = parts.size() == 1 ? parts[0] : Shape::Tuple(parts);
  }
  return absl::OkStatus();
}

constexpr int64_t kOriginal = 1, kTyped = 4;

// One, and nothing behind it.
bool IsDictionary(absl::string_view text) {
  Scanner s(text, "");
  return s.Eat("{") && s.Balanced("").ok() && s.Eat("}") && s.AtEnd();
}
bool IsString(absl::string_view text) { return absl::StartsWith(text, "\""); }

// Text that HLO keeps as it is, with the spaces that HLO text would keep.
absl::StatusOr<attr::Raw> RawText(Call& call, absl::string_view key, absl::string_view text) {
  Scanner s(text, "");
  auto out = s.Balanced("");
  if (!out.ok() || !s.AtEnd()) return call.Fail(absl::StrCat(key, " has brackets that do not match"));
  return attr::Raw(*std::move(out));
}

// The calling convention, with its configuration: a dictionary for typed calls, a string for the others.
absl::Status SetConvention(Call& call, Instruction* i) {
  int64_t version = kOriginal;
  if (call.op.Has("api_version")) {
    version = call.One("api_version", 0);
    if (version < kOriginal || version > kTyped)
      return call.Fail(absl::StrCat("api_version ", call.op.Attr("api_version"), " is not 1, 2, 3 or 4"));
  }
  std::string config = call.Resolve(call.op.Attr("backend_config"));
  if (call.op.Has("mhlo.backend_config")) {
    const std::string typed = call.Resolve(call.op.Attr("mhlo.backend_config"));
    if (!IsDictionary(typed)) return call.Fail("mhlo.backend_config is not a dictionary");
    if (version != kOriginal)
      return call.Fail(absl::StrCat("mhlo.backend_config belongs to api_version 1; with api_version ", version,
                                    " the configuration is backend_config"));
    if (!config.empty() && config != "\"\"") return call.Fail("has both backend_config and mhlo.backend_config");
    version = kTyped;
    config = typed;
  }
  if (version == kTyped) {
    if (!config.empty() && !IsDictionary(config))
      return call.Fail("backend_config of a typed call (api_version 4) is not a dictionary");
    if (!config.empty()) {
      ASSIGN_OR_RETURN(i->mutable_attrs().backend_config, RawText(call, "backend_config", config));
    }
  } else {
    if (!config.empty() && !IsString(config))
      return call.Fail(absl::StrCat("backend_config of api_version ", version, " is not a string"));
    if (const std::string text = MlirStringValue(config); !text.empty())
      i->mutable_attrs().backend_config = attr::Raw(QuoteHlo(text));
  }
  if (version != kOriginal) i->mutable_attrs().api_version = static_cast<ApiVersion>(version - kOriginal);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Values> ConvertCustomCall(Call& call) {
  const std::string target =
      call.op.Has("callee") ? call.op.Attr("callee") : MlirStringValue(call.op.Attr("call_target_name"));
  if (target == "shape_assertion") {
    // JAX states what its dimension variables must satisfy: with static shapes that is known here.
    if (call.x.empty()) return call.Fail("takes a condition");
    auto holds = call.converter.Evaluate(call.x[0]);
    if (!holds.ok()) return call.Fail(holds.status().message(), holds.status().code());
    if (!holds->Get(0).i) return call.Fail(MlirStringValue(call.op.Attr("error_message")));
    return Values{};
  }
  if (IsEncoded(call, target)) return ConvertEncoded(call, target);
  RETURN_IF_ERROR(TakeShapeOperands(call));
  if (target == "ApproxTopK") return ConvertApproxTopK(call);
  if (target == "stablehlo.dynamic_approx_top_k") return ConvertDynamicApproxTopK(call);
  if (target == "stablehlo.dynamic_reduce_window") return ConvertDynamicReduceWindow(call);
  if (target == "stablehlo.dynamic_rng_bit_generator") return ConvertDynamicRngBitGenerator(call);
  if (target == "stablehlo.dynamic_top_k") return ConvertDynamicTopK(call);
  if (const std::string called = call.Resolve(call.op.Attr("called_computations")); absl::StrContains(called, '@'))
    return call.Fail(absl::StrCat("'", target, "' is given computations of the program (", called,
                                  "), which no calling convention of C functions passes on"),
                     absl::StatusCode::kUnimplemented);
  Instruction* i =
      call.Add(Opcode::CustomCall, call.types.size() == 1 ? call.result() : Shape::Tuple(call.types), call.x);
  i->mutable_attrs().custom_call_target = attr::Str(target);
  if (call.Flag("has_side_effect", false)) i->mutable_attrs().custom_call_has_side_effect = true;
  RETURN_IF_ERROR(SetConvention(call, i));
  if (call.op.Has("mhlo.frontend_attributes")) {
    ASSIGN_OR_RETURN(i->mutable_attrs().frontend_attributes,
                     RawText(call, "mhlo.frontend_attributes", call.op.Attr("mhlo.frontend_attributes")));
  }
  const std::string sharding = ShardingOfMhlo(MlirStringValue(call.op.Attr("mhlo.sharding")));
  if (!sharding.empty()) {
    ASSIGN_OR_RETURN(i->mutable_attrs().sharding, RawText(call, "mhlo.sharding", sharding));
  }
  RETURN_IF_ERROR(KeepLayouts(call, i));
  return call.types.size() == 1 ? Values{i} : call.Split(i);
}

}  // namespace kiln::stablehlo
