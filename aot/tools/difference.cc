#include "aot/tools/difference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

bool IsReal(PrimitiveType t) { return IsFloat(t) || IsComplex(t); }

void Raise(double value, int64_t element, WorstElement* worst) {
  if (value > worst->value) *worst = {value, element};
}

// Of floats: where a NaN or an infinity stands for something else, infinite.
double Distance(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  return std::isfinite(got) && std::isfinite(want) ? std::fabs(got - want) : HUGE_VAL;
}

// Of integers, never 0 where they differ.
double Distance(PrimitiveType t, int64_t got, int64_t want) {
  const bool below = IsUnsigned(t) ? static_cast<uint64_t>(got) < static_cast<uint64_t>(want) : got < want;
  const auto large = static_cast<uint64_t>(below ? want : got), small = static_cast<uint64_t>(below ? got : want);
  return static_cast<double>(large - small);
}

double Value(PrimitiveType t, int64_t i) {
  return IsUnsigned(t) ? static_cast<double>(static_cast<uint64_t>(i)) : static_cast<double>(i);
}

double LargestMagnitude(const Literal& l) {
  double out = 0;
  for (int64_t k = 0; k < l.size(); ++k) {
    const Element e = l.Get(k);
    for (double v : {e.re, e.im})
      if (std::isfinite(v)) out = std::max(out, std::fabs(v));
  }
  return out;
}

std::string NumberText(double value) { return std::isinf(value) ? "\"inf\"" : absl::StrFormat("%.9g", value); }

std::string WorstJson(const WorstElement& w, const Literal& got, const Literal& want) {
  if (w.element < 0) return "{\"value\":0}";
  const std::string index = IndexText(want.shape(), w.element);
  return absl::StrCat("{\"value\":", NumberText(w.value), ",\"element\":", w.element,
                      ",\"index\":", index.empty() ? "[]" : index, ",\"got\":", JsonQuote(ElementText(got, w.element)),
                      ",\"want\":", JsonQuote(ElementText(want, w.element)), "}");
}

}  // namespace

Difference CompareArrays(const Literal& got, const Literal& want) {
  Difference out;
  WorstElement of_zero;  // differences relative to nothing
  const PrimitiveType t = want.type();
  const bool real = IsReal(t);
  const int mantissa = real ? InfoOf(ComponentType(t)).mantissa_bits : 0;
  const double least = real ? std::max(LargestMagnitude(want) * 0x1p-20, 1e-300) : 0;
  const auto add = [&](double distance, double wanted, int64_t k) {
    Raise(distance, k, &out.absolute);
    if (std::isinf(distance)) {
      Raise(distance, k, &out.relative);
      Raise(distance, k, &out.ulps);
      return;
    }
    Raise(wanted == 0 ? distance : distance / std::fabs(wanted), k, wanted == 0 ? &of_zero : &out.relative);
    const double unit = real ? std::scalbn(1.0, std::ilogb(std::max(std::fabs(wanted), least)) - mantissa) : 1;
    Raise(distance / unit, k, &out.ulps);
  };
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element g = got.Get(k), w = want.Get(k);
    const double re = real ? Distance(g.re, w.re) : Distance(t, g.i, w.i), im = Distance(g.im, w.im);
    if (re == 0 && im == 0) continue;
    ++out.differing;
    if (re > 0) add(re, real ? w.re : Value(t, w.i), k);
    if (im > 0) add(im, w.im, k);
  }
  if (out.relative.element < 0 && of_zero.element >= 0) out.relative = {HUGE_VAL, of_zero.element};
  return out;
}

std::string ElementText(const Literal& l, int64_t element) {
  const Element e = l.Get(element);
  const PrimitiveType t = l.type();
  if (IsUnsigned(t)) return absl::StrCat(static_cast<uint64_t>(e.i));
  if (!IsReal(t)) return absl::StrCat(e.i);
  const PrimitiveType part = ComponentType(t);
  if (!IsComplex(t)) return FloatText(part, e.re);
  return absl::StrCat("(", FloatText(part, e.re), ", ", FloatText(part, e.im), ")");
}

std::string IndexText(const Shape& shape, int64_t element) {
  if (shape.rank() == 0) return "";
  Ints index(static_cast<size_t>(shape.rank()));
  for (int64_t d = shape.rank(); d-- > 0;) {
    index[static_cast<size_t>(d)] = element % shape.dim(d);
    element /= shape.dim(d);
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

std::string Describe(const Difference& d, const Literal& got, const Literal& want) {
  const auto place = [&](const WorstElement& w) {
    const std::string index = IndexText(want.shape(), w.element);
    return index.empty() ? "" : " at " + index;
  };
  const std::string index = IndexText(want.shape(), d.ulps.element);
  return absl::StrCat("element ", d.ulps.element, index.empty() ? "" : " " + index, " is ",
                      ElementText(got, d.ulps.element), ", not ", ElementText(want, d.ulps.element), "; ", d.differing,
                      " of ", want.size(), " differ, by up to ",
                      absl::StrFormat("%.3g absolute%s, %.3g relative%s", d.absolute.value, place(d.absolute),
                                      d.relative.value, place(d.relative)));
}

std::string DifferenceJson(const Difference& d, const Literal& got, const Literal& want) {
  return absl::StrCat("\"differing\":", d.differing, ",\"absolute\":", WorstJson(d.absolute, got, want),
                      ",\"relative\":", WorstJson(d.relative, got, want), ",\"ulps\":", WorstJson(d.ulps, got, want));
}

}  // namespace kiln
