#include "compiler/import/chlo.h"

#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"

namespace kiln {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;

Expr Exp(Expr x) { return Unary(Opcode::Exponential, x); }
Expr Log(Expr x) { return Unary(Opcode::Log, x); }
Expr Log1p(Expr x) { return Unary(Opcode::LogPlusOne, x); }
Expr Abs(Expr x) { return Unary(Opcode::Abs, x); }
Expr Floor(Expr x) { return Unary(Opcode::Floor, x); }
Expr Sqrt(Expr x) { return Unary(Opcode::Sqrt, x); }
Expr Not(Expr x) { return Unary(Opcode::Not, x); }
Expr Pow(Expr a, Expr b) { return Binary(Opcode::Power, a, b); }

// erfc by Cody's scheme: 1 - erf(x) where |x| < 1, else exp(-x^2)/|x| times a rational in 1/x^2 (Cephes).
Expr Erfc(Expr x) {
  Expr a = Abs(x), z = Exp(-(x * x));
  Expr tail = x;
  if (x.type() == PrimitiveType::F64) {
    Expr p = Polynomial(a, {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                            4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
                            9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2});
    Expr q = Polynomial(
        a, {1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
            1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2});
    Expr r = Polynomial(a, {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                            6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0});
    Expr s = Polynomial(a, {1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
                            1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0});
    tail = z * SelectExpr(a < 8.0, p / q, r / s);
  } else {
    Expr q = 1.0 / a, y = q * q;
    Expr p = Polynomial(y, {2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1,
                            6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1,
                            5.638259427386472e-1});
    Expr r = Polynomial(y, {-1.047766399936249e+1, 1.297719955372516e+1, -7.495518717768503e+0, 2.921019019210786e+0,
                            -1.015265279202700e+0, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1});
    tail = z * q * SelectExpr(a < 2.0, p, r);
  }
  tail = SelectExpr(z == 0.0, x.Like(0), tail);  // underflow, and 0/inf
  tail = SelectExpr(x < 0.0, 2.0 - tail, tail);
  return SelectExpr(a < 1.0, 1.0 - Unary(Opcode::Erf, x), tail);
}

// Inverse error function: Giles' polynomials in w = -log(1 - x^2).
Expr ErfInv(Expr x) {
  Expr r = x;
  if (x.type() == PrimitiveType::F64) {
    Expr w = -Log1p(-(x * x));
    Expr a = Polynomial(
        w - 3.125,
        {-3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
         -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
         -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
         1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
         -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
         -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356});
    Expr sw = Sqrt(w);
    Expr b = Polynomial(
        sw - 3.25,
        {2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
         1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
         -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
         0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
         0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635});
    Expr c = Polynomial(sw - 5.0, {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                                   -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
                                   2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                                   -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
                                   7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
                                   1.0103004648645343977, 4.8499064014085844221});
    r = x * SelectExpr(w < 6.25, a, SelectExpr(w < 16.0, b, c));
  } else {
    // Polynomials of w hardly change where it is small; near 1 the factors are exact, which the square is not.
    Expr w = -Log((1.0 - x) * (x + 1.0));
    Expr a = Polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                  -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
    Expr b = Polynomial(Sqrt(w) - 3.0, {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                        -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
    r = x * SelectExpr(w < 5.0, a, b);
  }
  return SelectExpr(Abs(x) == 1.0, x * kInf, r);
}

// Lanczos approximation, g = 7, 9 coefficients.
constexpr double kLanczosG = 7;
constexpr double kLanczos0 = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {676.520368121885098567009190444019, -1259.13921672240287047156078755283,
                               771.3234287776530788486528258894,   -176.61502916214059906584551354,
                               12.507343278686904814458936853,     -0.13857109526572011689554707,
                               9.984369578019570859563e-6,         1.50563273514931155834e-7};

Expr LogSinPi(Expr f) { return Log(Unary(Opcode::Sine, f * kPi)); }

Expr Lgamma(Expr x) {
  Expr reflect = x < 0.5;
  Expr z = SelectExpr(reflect, -x, x - 1.0);
  Expr sum = x.Like(kLanczos0);
  for (int i = 0; i < 8; ++i) sum = sum + x.Like(kLanczos[i]) / (z + (i + 1.0));
  Expr t = z + (kLanczosG + 0.5);
  Expr log_t = Log1p(z / (kLanczosG + 0.5)) + std::log(kLanczosG + 0.5);
  Expr log_y = ((z + 0.5) - t / log_t) * log_t + (std::log(2 * kPi) / 2) + Log(sum);
  Expr ax = Abs(x), frac = ax - Floor(ax);
  frac = SelectExpr(frac > 0.5, 1.0 - frac, frac);
  Expr denom = LogSinPi(frac);
  Expr reflected = SelectExpr(Unary(Opcode::IsFinite, denom), std::log(kPi) - denom - log_y, -denom);
  Expr r = SelectExpr(reflect, reflected, log_y);
  return SelectExpr(Abs(x) == kInf, x.Like(kInf), r);
}

Expr Digamma(Expr x) {
  Expr reflect = x < 0.5;
  Expr z = SelectExpr(reflect, -x, x - 1.0);
  Expr num = x.Like(0), den = x.Like(kLanczos0);
  for (int i = 0; i < 8; ++i) {
    Expr d = z + (i + 1.0);
    Expr c = x.Like(kLanczos[i]);
    num = num - c / (d * d);
    den = den + c / d;
  }
  Expr t = z + (kLanczosG + 0.5);
  Expr log_t = Log1p(z / (kLanczosG + 0.5)) + std::log(kLanczosG + 0.5);
  Expr y = log_t + num / den - x.Like(kLanczosG) / t;
  Expr red = x + Abs(Floor(x + 0.5));
  Expr a = red * kPi;
  Expr reflected = y - x.Like(kPi) * Unary(Opcode::Cosine, a) / Unary(Opcode::Sine, a);
  Expr r = SelectExpr(reflect, reflected, y);
  return SelectExpr((x <= 0.0) & (x == Floor(x)), x.Like(kNan), r);
}

// Hurwitz zeta by Euler-Maclaurin, ten direct terms, Bernoulli-number tail (Cephes' zeta).
Expr Zeta(Expr s, Expr q) {
  static const double kCoef[] = {12.0,
                                 -720.0,
                                 30240.0,
                                 -1209600.0,
                                 47900160.0,
                                 -1.8924375803183791606e9,
                                 7.47242496e10,
                                 -2.950130727918164224e12,
                                 1.1646782814350067249e14,
                                 -4.5979787224074726105e15,
                                 1.8152105401943546773e17,
                                 -7.1661652561756670113e18};
  Expr acc = Pow(q, -s);
  Expr a = q;
  Expr neg = acc;
  for (int i = 0; i < 9; ++i) {
    a = a + 1.0;
    neg = Pow(a, -s);
    acc = acc + neg;
  }
  a = a + 1.0;
  neg = Pow(a, -s);
  acc = acc + neg * a / (s - 1.0);
  acc = acc + neg * 0.5;
  // Each term from the one before, so that none is infinity times zero.
  Expr term = s * neg / a;
  for (int i = 0; i < 12; ++i) {
    acc = acc + term / kCoef[i];
    if (i < 11) term = term * ((s + (2 * i + 1.0)) / a) * ((s + (2 * i + 2.0)) / a);
  }
  // A power of a negative number has a whole exponent; whole numbers up to zero are poles, of one sign for even powers.
  Expr even = Binary(Opcode::Remainder, s, s.Like(2)) == 0.0;
  Expr r = SelectExpr((s < 1.0) | ((q <= 0.0) & Not(s == Floor(s))), s.Like(kNan), acc);
  r = SelectExpr((q <= 0.0) & (q == Floor(q)), SelectExpr(even, s.Like(kInf), s.Like(kNan)), r);
  return SelectExpr(s == 1.0, s.Like(kInf), r);
}

Expr Polygamma(Expr n, Expr x) {
  Expr n1 = n + 1.0;
  Expr even = (n * 0.5) == Floor(n * 0.5);
  Expr sign = SelectExpr(even, n.Like(-1), n.Like(1));
  Expr r = SelectExpr(n == 0.0, Digamma(x), sign * Exp(Lgamma(n1)) * Zeta(n1, x));
  Expr bad = Not(n == Floor(n)) | (n < 0.0);
  return SelectExpr(bad, n.Like(kNan), r);
}

Expr Chebyshev(Expr x, const std::vector<double>& c) {
  Expr b0 = x.Like(0), b1 = x.Like(0), b2 = x.Like(0);
  for (double k : c) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + k;
  }
  return (b0 - b2) * 0.5;
}

// exp(-|x|) I1(x): Cephes' Chebyshev series below and above 8.
Expr BesselI1e(Expr x) {
  Expr z = Abs(x);
  std::vector<double> a, b;
  if (x.type() == PrimitiveType::F64) {
    a = {2.77791411276104639959e-18,  -2.11142121435816608115e-17, 1.55363195773620046921e-16,
         -1.10559694773538630805e-15, 7.60068429473540693410e-15,  -5.04218550472791168711e-14,
         3.22379336594557470981e-13,  -1.98397439776494371520e-12, 1.17361862988909016308e-11,
         -6.66348972350202774223e-11, 3.62559028155211703701e-10,  -1.88724975172282928790e-9,
         9.38153738649577178388e-9,   -4.44505912879632808065e-8,  2.00329475355213526229e-7,
         -8.56872026469545474066e-7,  3.47025130813767847674e-6,   -1.32731636560394358279e-5,
         4.78156510755005422638e-5,   -1.61760815825896745588e-4,  5.12285956168575772895e-4,
         -1.51357245063125314899e-3,  4.15642294431288815669e-3,   -1.05640848946261981558e-2,
         2.47264490306265168283e-2,   -5.29459812080949914269e-2,  1.02643658689847095384e-1,
         -1.76416518357834055153e-1,  2.52587186443633654823e-1};
    b = {7.51729631084210481353e-18,  4.41434832307170791151e-18,  -4.65030536848935832153e-17,
         -3.20952592199342395980e-17, 2.96262899764595013876e-16,  3.30820231092092828324e-16,
         -1.88035477551078244854e-15, -3.81440307243700780478e-15, 1.04202769841288027642e-14,
         4.27244001671195135429e-14,  -2.10154184277266431302e-14, -4.08355111109219731823e-13,
         -7.19855177624590851209e-13, 2.03562854414708950722e-12,  1.41258074366137813316e-11,
         3.25260358301548823856e-11,  -1.89749581235054123450e-11, -5.58974346219658380687e-10,
         -3.83538038596423702205e-9,  -2.63146884688951950684e-8,  -2.51223623787020892529e-7,
         -3.88256480887769039346e-6,  -1.10588938762623716291e-4,  -9.76109749136146840777e-3,
         7.78576235018280120474e-1};
  } else {
    a = {9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7, -8.56872026469545474066e-7,
         3.47025130813767847674e-6, -1.32731636560394358279e-5, 4.78156510755005422638e-5, -1.61760815825896745588e-4,
         5.12285956168575772895e-4, -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
         2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1, -1.76416518357834055153e-1,
         2.52587186443633654823e-1};
    b = {-3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7, -3.88256480887769039346e-6,
         -1.10588938762623716291e-4, -9.76109749136146840777e-3, 7.78576235018280120474e-1};
  }
  Expr small = z * Chebyshev(z * 0.5 - 2.0, a);
  Expr large = Chebyshev(32.0 / z - 2.0, b) / Sqrt(z);
  return Unary(Opcode::Sign, x) * SelectExpr(z <= 8.0, small, large);
}

Expr NextAfter(Expr from, Expr to) {
  const bool wide = InfoOf(from.type()).bits == 64, half = InfoOf(from.type()).bits == 16;
  const PrimitiveType it = wide ? PrimitiveType::S64 : half ? PrimitiveType::S16 : PrimitiveType::S32;
  auto bits = [&](PrimitiveType t, Expr x) -> Expr {
    return x.computation()->Add(Opcode::BitcastConvert, Shape::Array(t, x.shape().dims()), {x.get()});
  };
  auto integer = [&](Expr like, int64_t v) -> Expr {
    Expr c = like.computation()->AddConstant(Literal::Int(it, v));
    return like.shape().rank() ? BroadcastTo(c, like.shape().dims()) : c;
  };
  Expr f = bits(it, from), t = bits(it, to);
  const int64_t sign_mask = wide   ? std::numeric_limits<int64_t>::min()
                            : half ? -32768
                                   : std::numeric_limits<int32_t>::min();
  Expr sign = integer(f, sign_mask);
  Expr fmag = f & integer(f, ~sign_mask), tmag = t & integer(t, ~sign_mask);
  Expr fsign = f & sign, tsign = t & sign;
  Expr zero = integer(f, 0), one = integer(f, 1);
  Expr smaller = (tmag < fmag) | Not(fsign == tsign);
  Expr step = SelectExpr(smaller, integer(f, -1), one);
  Expr next = f + step;
  Expr from_zero = tsign | one;
  Expr r = SelectExpr(fmag == zero, SelectExpr(tmag == zero, t, from_zero), next);
  r = SelectExpr(f == t, t, r);
  Expr result = bits(from.type(), r);
  Expr same = from == to;
  result = SelectExpr(same, to, result);
  Expr nan = Not(from == from) | Not(to == to);
  return SelectExpr(nan, from.Like(kNan), result);
}

}  // namespace

absl::StatusOr<Expr> BuildChlo(absl::string_view name, const std::vector<Expr>& x) {
  static const auto* direct = new absl::flat_hash_map<std::string, Opcode>{
      {"acos", Opcode::Acos},   {"acosh", Opcode::Acosh}, {"asin", Opcode::Asin},
      {"asinh", Opcode::Asinh}, {"atanh", Opcode::Atanh}, {"cosh", Opcode::Cosh},
      {"sinh", Opcode::Sinh},   {"tan", Opcode::Tan},     {"erf", Opcode::Erf}};
  static const auto* narrow_ok = new absl::flat_hash_map<std::string, int>{
      {"square", 1},     {"next_after", 2}, {"is_inf", 1}, {"is_pos_inf", 1},
      {"is_neg_inf", 1}, {"mulhi", 2},      {"conj", 1},   {"constant_like", 1}};
  static const auto* arity =
      new absl::flat_hash_map<std::string, size_t>{{"zeta", 2}, {"polygamma", 2}, {"next_after", 2}, {"mulhi", 2}};
  const std::string n(name);
  const size_t want = arity->contains(n) ? arity->at(n) : 1;
  if (x.size() != want) return InvalidArgument("takes ", want, " operands, not ", x.size());
  if (direct->contains(n)) return Unary(direct->at(n), x[0]);
  const PrimitiveType t = x[0].type();
  if (IsFloat(t) && InfoOf(t).bits < 32 && !narrow_ok->contains(n)) {
    std::vector<Expr> wide;
    for (Expr e : x) wide.push_back(ConvertTo(PrimitiveType::F32, e));
    ASSIGN_OR_RETURN(Expr r, BuildChlo(name, wide));
    return ConvertTo(t, r);
  }
  if (n == "square") return x[0] * x[0];
  if (n == "atan") return Binary(Opcode::Atan2, x[0], x[0].Like(1));
  if (n == "erfc") return Erfc(x[0]);
  if (n == "erf_inv") return ErfInv(x[0]);
  if (n == "lgamma") return Lgamma(x[0]);
  if (n == "digamma") return Digamma(x[0]);
  if (n == "zeta") return Zeta(x[0], x[1]);
  if (n == "polygamma") return Polygamma(x[0], x[1]);
  if (n == "bessel_i1e") return BesselI1e(x[0]);
  if (n == "next_after") return NextAfter(x[0], x[1]);
  if (n == "is_inf") return Abs(x[0]) == kInf;
  if (n == "is_pos_inf") return x[0] == kInf;
  if (n == "is_neg_inf") return x[0] == -kInf;
  if (n == "mulhi") return Binary(Opcode::Mulhi, x[0], x[1]);
  if (n == "conj") {
    Expr re = Unary(Opcode::Real, x[0]), im = -Unary(Opcode::Imag, x[0]);
    return Expr(re.computation()->Add(Opcode::Complex, Shape::Array(t, x[0].shape().dims()), {re.get(), im.get()}));
  }
  return absl::NotFoundError(absl::StrCat("chlo.", name, " is not supported"));
}

}  // namespace kiln
