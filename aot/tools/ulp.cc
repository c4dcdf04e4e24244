#include "aot/tools/ulp.h"

#include <algorithm>
#include <cmath>

namespace kiln {

UlpError LargestUlpError(const Literal& got, const Literal& want) {
  UlpError worst;
  const PrimitiveType t = want.type();
  const PrimitiveType part = ComponentType(t);
  const bool real = IsFloat(t) || IsComplex(t);
  const int mantissa = real ? InfoOf(part).mantissa_bits : 0;
  double scale = 0;
  if (real)
    for (int64_t k = 0; k < want.size(); ++k) {
      const Element e = want.Get(k);
      for (double v : {e.re, e.im})
        if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
    }
  auto distance = [&](double g, double w) -> double {
    if (std::isnan(g) && std::isnan(w)) return 0;
    if (g == w) return 0;
    if (!std::isfinite(g) || !std::isfinite(w)) return INFINITY;
    const double magnitude = std::max({std::fabs(w), scale * 0x1p-20, 1e-300});
    return std::fabs(g - w) / std::scalbn(1.0, std::ilogb(magnitude) - mantissa);
  };
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element g = got.Get(k), w = want.Get(k);
    const double d = real ? std::max(distance(g.re, w.re), distance(g.im, w.im))
                          : std::fabs(static_cast<double>(g.i) - static_cast<double>(w.i));
    if (d > worst.ulps) {
      worst.ulps = d;
      worst.element = k;
      worst.got = real ? FloatText(part, g.re) : std::to_string(g.i);
      worst.want = real ? FloatText(part, w.re) : std::to_string(w.i);
    }
  }
  return worst;
}

}  // namespace kiln
