#include "compiler/hlo/attributes.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {

std::string QuoteHlo(absl::string_view text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

std::string AttrText(const attr::Ints& v) { return absl::StrCat("{", absl::StrJoin(v, ","), "}"); }
std::string AttrText(attr::Int v) { return absl::StrCat(v); }
std::string AttrText(attr::Num v) {
  char buf[64];
  return std::string(buf, std::to_chars(buf, buf + sizeof buf, static_cast<float>(v)).ptr);
}
std::string AttrText(attr::Bool v) { return v ? "true" : "false"; }
std::string AttrText(const attr::Raw& v) { return v.text; }
std::string AttrText(const attr::Str& v) { return QuoteHlo(v.text); }

std::string AttrText(const attr::Slices& v) {
  return absl::StrCat("{",
                      absl::StrJoin(v, ", ",
                                    [](std::string* out, const SliceDim& d) {
                                      absl::StrAppend(out, "[", d.start, ":", d.limit);
                                      if (d.stride != 1) absl::StrAppend(out, ":", d.stride);
                                      absl::StrAppend(out, "]");
                                    }),
                      "}");
}

std::string AttrText(const attr::Padding& v) {
  return absl::StrJoin(v, "x", [](std::string* out, const PadDim& d) {
    absl::StrAppend(out, d.low, "_", d.high);
    if (d.interior != 0) absl::StrAppend(out, "_", d.interior);
  });
}

std::string AttrText(const attr::Win& v) {
  std::string out = "{";
  auto part = [&](const char* name, auto is_default, auto render) {
    bool any = false;
    for (const WindowDim& d : v) any |= !is_default(d);
    if (!any) return;
    absl::StrAppend(&out, out.size() > 1 ? " " : "", name, "=");
    for (size_t i = 0; i < v.size(); ++i) absl::StrAppend(&out, i ? "x" : "", render(v[i]));
  };
  if (!v.empty()) {
    part(
        "size", [](const WindowDim&) { return false; }, [](const WindowDim& d) { return absl::StrCat(d.size); });
  }
  part(
      "stride", [](const WindowDim& d) { return d.stride == 1; },
      [](const WindowDim& d) { return absl::StrCat(d.stride); });
  part(
      "pad", [](const WindowDim& d) { return d.pad_low == 0 && d.pad_high == 0; },
      [](const WindowDim& d) { return absl::StrCat(d.pad_low, "_", d.pad_high); });
  part(
      "lhs_dilate", [](const WindowDim& d) { return d.lhs_dilate == 1; },
      [](const WindowDim& d) { return absl::StrCat(d.lhs_dilate); });
  part(
      "rhs_dilate", [](const WindowDim& d) { return d.rhs_dilate == 1; },
      [](const WindowDim& d) { return absl::StrCat(d.rhs_dilate); });
  part(
      "rhs_reversal", [](const WindowDim& d) { return !d.reversed; },
      [](const WindowDim& d) { return absl::StrCat(d.reversed ? 1 : 0); });
  return out + "}";
}

std::string ConvDimensionNumbers::ToString() const {
  const size_t n = input_spatial.size() + 2;
  const auto unnamed = [&](int64_t others) { return std::string(n + static_cast<size_t>(others), '?'); };
  std::string in = unnamed(input_others), ker = unnamed(kernel_others), out = unnamed(output_others);
  in[input_batch] = 'b';
  in[input_feature] = 'f';
  ker[kernel_input] = 'i';
  ker[kernel_output] = 'o';
  out[output_batch] = 'b';
  out[output_feature] = 'f';
  for (size_t i = 0; i + 2 < n; ++i) {
    const char c = static_cast<char>('0' + i);
    in[input_spatial[i]] = ker[kernel_spatial[i]] = out[output_spatial[i]] = c;
  }
  return absl::StrCat(in, "_", ker, "->", out);
}

std::optional<ConvDimensionNumbers> ParseConvDims(absl::string_view text) {
  const size_t us = text.find('_'), arrow = text.find("->");
  if (us == absl::string_view::npos || arrow == absl::string_view::npos || arrow < us) return std::nullopt;
  const absl::string_view parts[3] = {text.substr(0, us), text.substr(us + 1, arrow - us - 1), text.substr(arrow + 2)};
  ConvDimensionNumbers d;
  int64_t* first[3] = {&d.input_batch, &d.kernel_input, &d.output_batch};
  int64_t* second[3] = {&d.input_feature, &d.kernel_output, &d.output_feature};
  int64_t* others[3] = {&d.input_others, &d.kernel_others, &d.output_others};
  Ints* spatial[3] = {&d.input_spatial, &d.kernel_spatial, &d.output_spatial};
  for (int p = 0; p < 3; ++p) {
    const size_t n = parts[p].size();
    *others[p] = std::count(parts[p].begin(), parts[p].end(), '?');
    const size_t named = n - static_cast<size_t>(*others[p]);
    if (named < 2 || n > 12) return std::nullopt;
    spatial[p]->assign(named - 2, -1);
    *first[p] = *second[p] = -1;
    for (size_t i = 0; i < n; ++i) {
      const char c = parts[p][i];
      if (c == '?') continue;
      int64_t* slot = nullptr;
      if (c == (p == 1 ? 'i' : 'b'))
        slot = first[p];
      else if (c == (p == 1 ? 'o' : 'f'))
        slot = second[p];
      else if (c >= '0' && static_cast<size_t>(c - '0') < named - 2)
        slot = &(*spatial[p])[c - '0'];
      if (!slot || *slot != -1) return std::nullopt;
      *slot = static_cast<int64_t>(i);
    }
  }
  if (d.kernel_spatial.size() != d.input_spatial.size() || d.output_spatial.size() != d.input_spatial.size())
    return std::nullopt;
  return d;
}

std::string AttrText(const attr::ConvDims& v) { return v.ToString(); }
std::string AttrText(const Shape& v) { return v.ToString(); }

}  // namespace kiln
