// StableHLO products: dot, dot_general, convolution, ragged_dot.
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {
namespace {

// precision = [HIGHEST, DEFAULT], precision_config = [#stablehlo<precision HIGHEST>, ...]: kept where not all default.
absl::Status KeepPrecision(Call& call, Instruction* i) {
  const std::string& text = call.op.Has("precision") ? call.op.Attr("precision") : call.op.Attr("precision_config");
  std::string list;
  bool any = false;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("[],"), absl::SkipWhitespace())) {
    const std::string word = absl::AsciiStrToLower(EnumWord(absl::StripAsciiWhitespace(part)));
    if (word != "default" && word != "high" && word != "highest")
      return call.Fail(absl::StrCat("precision '", part, "' is not one of DEFAULT, HIGH, HIGHEST"));
    any = any || word != "default";
    absl::StrAppend(&list, list.empty() ? "" : ",", word);
  }
  if (any) i->mutable_attrs().operand_precision = attr::Raw(absl::StrCat("{", list, "}"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Values> ConvertDot(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  Instruction* d = call.Add(Opcode::Dot, call.result(), call.x);
  Attributes& a = d->mutable_attrs();
  auto pair = [&](const std::string& t, std::optional<Ints>* l, std::optional<Ints>* r) {
    const size_t mid = t.find(" x ");
    *l = ParseIntList(t.substr(0, mid)).value_or(Ints());
    *r = mid == std::string::npos ? Ints() : ParseIntList(t.substr(mid + 3)).value_or(Ints());
  };
  if (call.name == "dot") {
    a.lhs_contracting_dims = Ints{call.x[0]->shape().rank() - 1};
    a.rhs_contracting_dims = Ints{0};
  } else if (call.op.Has("dot_dimension_numbers")) {
    const std::string t = call.Resolve(call.op.Attr("dot_dimension_numbers"));
    a.lhs_batch_dims = FieldInts(t, "lhs_batching_dimensions");
    a.rhs_batch_dims = FieldInts(t, "rhs_batching_dimensions");
    a.lhs_contracting_dims = FieldInts(t, "lhs_contracting_dimensions").value_or(Ints());
    a.rhs_contracting_dims = FieldInts(t, "rhs_contracting_dimensions").value_or(Ints());
  } else {
    if (call.op.Has("batching_dims")) pair(call.op.Attr("batching_dims"), &a.lhs_batch_dims, &a.rhs_batch_dims);
    pair(call.op.Attr("contracting_dims"), &a.lhs_contracting_dims, &a.rhs_contracting_dims);
  }
  if (a.lhs_batch_dims && a.lhs_batch_dims->empty()) {
    a.lhs_batch_dims.reset();
    a.rhs_batch_dims.reset();
  }
  RETURN_IF_ERROR(KeepPrecision(call, d));
  return Values{d};
}

absl::StatusOr<Values> ConvertConvolution(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  std::string dims =
      call.Resolve(call.op.Has("dim_numbers") ? call.op.Attr("dim_numbers") : call.op.Attr("dimension_numbers"));
  absl::string_view d = dims;
  absl::ConsumePrefix(&d, "#stablehlo.conv<");
  absl::ConsumeSuffix(&d, ">");
  // [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]  ->  b01f_01io->b01f
  std::string label;
  int group = 0;
  for (char ch : d) {
    if (ch == '[') {
      if (group == 1) label += '_';
      if (group == 2) label += "->";
      ++group;
    } else if (absl::ascii_isalnum(ch) && ch != 'x') {
      label += ch;
    }
  }
  auto numbers = ParseConvDims(label);
  if (!numbers) return call.Fail(absl::StrCat("dimension numbers '", d, "' are not understood"));
  const size_t n = numbers->input_spatial.size();
  for (int k = 0; k < 2; ++k)
    if (call.x[k]->shape().rank() != static_cast<int64_t>(n) + 2)
      return call.Fail(absl::StrCat("dimension numbers '", d, "' do not fit ", call.x[k]->shape().ToString(false)));
  attr::Win w(n);
  const std::string win = call.op.Attr("window");
  auto list = [&](const char* pretty, const char* generic) -> std::optional<Ints> {
    if (!win.empty())
      if (auto v = FieldInts(win, pretty)) return v;
    if (call.op.Has(generic)) return ParseIntList(call.op.Attr(generic));
    return std::nullopt;
  };
  auto apply = [&](std::optional<Ints> v, auto set) -> absl::Status {
    if (!v) return absl::OkStatus();
    if (v->size() != n) return call.Fail(absl::StrCat("a window field has ", v->size(), " entries, not ", n));
    for (size_t k = 0; k < n; ++k) set(&w[k], (*v)[k]);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(apply(list("stride", "window_strides"), [](WindowDim* q, int64_t v) { q->stride = v; }));
  RETURN_IF_ERROR(apply(list("lhs_dilate", "lhs_dilation"), [](WindowDim* q, int64_t v) { q->lhs_dilate = v; }));
  RETURN_IF_ERROR(apply(list("rhs_dilate", "rhs_dilation"), [](WindowDim* q, int64_t v) { q->rhs_dilate = v; }));
  std::optional<Ints> pad;
  if (const size_t at = win.find("pad ="); at != std::string::npos) {
    size_t e = win.find("]]", at);
    if (e != std::string::npos) pad = ParseIntList(absl::string_view(win).substr(at + 5, e + 2 - at - 5));
  } else if (call.op.Has("padding")) {
    pad = ParseIntList(call.op.Attr("padding"));
  }
  if (pad && pad->size() == 2 * n)
    for (size_t k = 0; k < n; ++k) {
      w[k].pad_low = (*pad)[2 * k];
      w[k].pad_high = (*pad)[2 * k + 1];
    }
  std::string rev = call.op.Has("window_reversal") ? call.op.Attr("window_reversal") : "";
  if (const size_t at = win.find("reverse"); at != std::string::npos) rev = win.substr(at);
  if (!rev.empty()) {
    size_t k = 0;
    for (absl::string_view word : absl::StrSplit(rev, absl::ByAnyChar("[]<>{},=: "), absl::SkipEmpty())) {
      if (k >= n) break;
      if (word == "true" || word == "1")
        w[k++].reversed = true;
      else if (word == "false" || word == "0")
        w[k++].reversed = false;
    }
  }
  for (size_t k = 0; k < n; ++k) w[k].size = call.x[1]->shape().dim(numbers->kernel_spatial[k]);
  Instruction* i = call.Add(Opcode::Convolution, call.result(), {call.x[0], call.x[1]});
  i->mutable_attrs().window = std::move(w);
  i->mutable_attrs().dim_labels = *numbers;
  auto count = [&](const char* key) -> std::optional<int64_t> {
    if (!call.op.Has(key)) return std::nullopt;
    const Ints v = ParseIntList(call.op.Attr(key)).value_or(Ints());
    return v.empty() || v[0] == 1 ? std::optional<int64_t>() : v[0];
  };
  i->mutable_attrs().feature_group_count = count("feature_group_count");
  i->mutable_attrs().batch_group_count = count("batch_group_count");
  RETURN_IF_ERROR(KeepPrecision(call, i));
  return Values{i};
}

// A product whose left rows (or contracted extents, or batches) fall into groups of run-time sizes.
absl::StatusOr<Values> ConvertRaggedDot(Call& call) {
  RETURN_IF_ERROR(call.Need(3));
  const std::string t = call.Resolve(call.op.Attr("ragged_dot_dimension_numbers"));
  Instruction* i = call.Add(Opcode::RaggedDot, call.result(), call.x);
  Attributes& a = i->mutable_attrs();
  auto list = [&](const char* key) { return FieldInts(t, key).value_or(Ints()); };
  a.lhs_batch_dims = list("lhs_batching_dimensions");
  a.rhs_batch_dims = list("rhs_batching_dimensions");
  a.lhs_contracting_dims = list("lhs_contracting_dimensions");
  a.rhs_contracting_dims = list("rhs_contracting_dimensions");
  a.lhs_ragged_dims = list("lhs_ragged_dimensions");
  a.rhs_group_dims = list("rhs_group_dimensions");
  if (a.lhs_ragged_dims->size() != 1) return call.Fail("needs one ragged dimension");
  return Values{i};
}

}  // namespace kiln::stablehlo
