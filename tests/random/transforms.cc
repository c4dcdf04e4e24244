// Random transforms: sums, products and conjugates of spectra, transformed back. Of whole numbers the way back gives
// whole numbers whatever the lengths; what is left a spectrum is rounded.
#include <cmath>

#include "tests/random/growth.h"

namespace kiln {
namespace {

struct Frame {
  PrimitiveType real = PrimitiveType::F32, complex = PrimitiveType::C64;
  Ints batch, lengths;
  bool of_real = false;

  // As many that sums of whole numbers stay far more exact than a half.
  int MostProducts() const {
    const int64_t n = Product(lengths);
    return real == PrimitiveType::F64 || n <= 12 ? 2 : n <= 256 ? 1 : 0;
  }
  Ints Time() const { return With(lengths); }
  Ints Spectral() const {
    Ints l = lengths;
    if (of_real) l.back() = l.back() / 2 + 1;
    return With(l);
  }

 private:
  Ints With(const Ints& tail) const {
    Ints out = batch;
    out.insert(out.end(), tail.begin(), tail.end());
    return out;
  }
};

Frame AnyFrame(Growth& g) {
  constexpr int64_t kLengths[] = {1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 12, 15, 16, 17, 20, 24, 32, 37, 48, 64};
  Frame f;
  if (g.Chance(20)) {
    f.real = PrimitiveType::F64;
    f.complex = PrimitiveType::C128;
  }
  f.of_real = g.Chance(45);
  const int64_t rank = g.Between(1, 3), room = g.most > 600 ? 2048 : 192;
  for (int64_t k = 0; k < rank; ++k) f.lengths.push_back(kLengths[g.Pick(std::size(kLengths))]);
  while (Product(f.lengths) > room) f.lengths[g.Pick(f.lengths.size())] = g.Between(2, 6);
  const int64_t rows = room / Product(f.lengths);
  if (rows > 1 && g.Chance(50)) f.batch.push_back(g.Between(1, std::min<int64_t>(rows, 5)));
  return f;
}

Expr Transform(Computation* c, const Frame& f, FftType type, Expr x) {
  Attributes a;
  a.fft_type = type;
  a.fft_length = f.lengths;
  return *Inferred(c, Opcode::Fft, {x}, a);
}

// Of numbers that are computed on the way, or as they are.
Expr Spectrum(Growth& g, Computation* c, const Frame& f) {
  const PrimitiveType t = f.of_real ? f.real : f.complex;
  Expr x = g.Fit(c, t, f.Time());
  if (g.Chance(40)) x = g.Chance(50) ? x + g.Fit(c, t, f.Time()) : g.Tame(x * g.Fit(c, t, f.Time()));
  return Transform(c, f, f.of_real ? FftType::RFFT : FftType::FFT, x);
}

struct Domain {
  Expr values;
  bool whole = true;  // the spectrum of whole numbers
  int degree = 1;     // products of so many spectra

  // Of small numbers, to be rounded as they are.
  Expr Small(const Frame& f) const {
    return values * std::pow(5 * std::sqrt(static_cast<double>(Product(f.lengths))), -degree);
  }
};

Domain Combined(Growth& g, Computation* c, const Frame& f, Expr s) {
  int degree = 1;
  bool whole = true, scaled = false;
  const int64_t steps = g.Between(0, 4);
  std::vector<Expr> spectra = {s};
  for (int64_t k = 0; k < steps; ++k) {
    Expr t = spectra[g.Pick(spectra.size())];
    if (g.Chance(50)) spectra.push_back(t = Spectrum(g, c, f));
    switch (g.Pick(7)) {
      case 0:
        s = s + t;
        break;
      case 1:
        s = t - s;
        break;
      case 2:
      case 3:
        if (degree > f.MostProducts()) break;
        ++degree;
        s = g.Chance(50) ? s * t : t * s;
        break;
      case 4: {
        Expr re = Unary(Opcode::Real, s), im = Unary(Opcode::Imag, s);
        s = c->Add(Opcode::Complex, s.shape(), {re.get(), (-im).get()});
        break;
      }
      case 5:
        if (scaled) break;
        scaled = true;
        s = s * BroadcastTo(g.Fit(c, f.complex, {}), f.Spectral());
        if (f.of_real) whole = false;  // not the spectrum of real numbers any more
        break;
      default:
        whole = false;
        s = g.Chance(50) ? s * g.Fit(c, f.complex, f.Spectral())
                         : SelectExpr(g.Fit(c, PrimitiveType::Pred, f.Spectral()), s, t);
    }
  }
  return {s, whole, degree};
}

std::optional<Expr> Transformed(Growth& g, Computation* c, Expr) {
  const Frame f = AnyFrame(g);
  Expr first = Spectrum(g, c, f);
  const Domain s = Combined(g, c, f, first);
  if (g.Chance(15)) g.pool.push_back(g.Rounded(g.Chance(50) ? s.Small(f) : Domain{first}.Small(f)));
  // A half spectrum that is not one of real numbers has no agreed way back.
  if (g.Chance(20) || (f.of_real && !s.whole)) return g.Rounded(s.Small(f));
  Expr y = Transform(c, f, f.of_real ? FftType::IRFFT : FftType::IFFT, s.values);
  const PrimitiveType t = f.of_real ? f.real : f.complex;
  if (g.Chance(40)) y = g.Chance(50) ? y + g.Fit(c, t, f.Time()) : y * g.Fit(c, t, f.Time());
  return g.Rounded(y);
}

// As the first half of a frequency filter: no numbers of time come in.
std::optional<Expr> Synthesised(Growth& g, Computation* c, Expr) {
  Frame f = AnyFrame(g);
  f.of_real = false;
  Expr s = g.Fit(c, f.complex, f.Spectral());
  if (g.Chance(50)) s = g.Tame(s * g.Fit(c, f.complex, f.Spectral()));
  const bool back = g.Chance(50);
  Expr y = Transform(c, f, back ? FftType::IFFT : FftType::FFT, s);
  return g.Rounded(back ? y : Domain{y}.Small(f));
}

}  // namespace

std::vector<Maker> TransformMakers() { return {{7, Transformed, true}, {2, Synthesised, true}}; }

}  // namespace kiln
