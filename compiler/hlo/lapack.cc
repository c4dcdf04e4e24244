#include "compiler/hlo/lapack.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace kiln {

std::optional<int64_t> CallAttribute(const Instruction* i, absl::string_view key) {
  if (!i->attrs().backend_config) return std::nullopt;
  const absl::string_view text = i->attrs().backend_config->text;
  for (size_t at = text.find(key); at != absl::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && (absl::ascii_isalnum(text[at - 1]) || text[at - 1] == '_')) continue;
    absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(at + key.size()));
    if (!absl::ConsumePrefix(&rest, "=")) continue;
    rest = absl::StripLeadingAsciiWhitespace(rest);
    if (absl::StartsWith(rest, "true")) return 1;
    if (absl::StartsWith(rest, "false")) return 0;
    int64_t v;
    if (absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789-")), &v)) return v;
  }
  return std::nullopt;
}

namespace {

// A call that may be one of a routine: what is known of it by its first matrix.
struct Candidate {
  const Instruction* i;
  const Shape& a;
  LapackCall call;

  PrimitiveType type() const { return a.type(); }
  int64_t least() const { return std::min(call.rows, call.cols); }
  // As many of these as there are matrices.
  Shape Batched(PrimitiveType t, Ints dims) const {
    dims.insert(dims.begin(), a.dims().begin(), a.dims().end() - 2);
    return Shape::Array(t, dims);
  }
  Shape Matrix(int64_t rows, int64_t cols) const { return Batched(type(), {rows, cols}); }
  Shape Line(int64_t n) const { return Batched(type(), {n}); }
  Shape RealLine(int64_t n) const { return Batched(ComponentType(type()), {n}); }
  Shape Integers(Ints dims) const { return Batched(PrimitiveType::S32, std::move(dims)); }

  bool IsSquare() const { return call.rows == call.cols; }
  bool Takes(const std::vector<Shape>& shapes) const {
    if (i->operand_count() != static_cast<int64_t>(shapes.size())) return false;
    for (size_t k = 0; k < shapes.size(); ++k)
      if (!i->operand(static_cast<int64_t>(k))->shape().Compatible(shapes[k])) return false;
    return true;
  }
  bool Gives(const std::vector<Shape>& shapes) const {
    return shapes.size() == 1 ? i->shape().Compatible(shapes[0]) : i->shape().Compatible(Shape::Tuple(shapes));
  }
  // The last extent of an operand that is an array, or -1.
  int64_t Extent(int64_t operand) const {
    if (operand >= i->operand_count()) return -1;
    const Shape& s = i->operand(operand)->shape();
    return s.IsArray() && s.rank() > 0 ? s.dims().back() : -1;
  }
};

bool IsGetrf(Candidate& c) { return c.Takes({c.a}) && c.Gives({c.a, c.Integers({c.least()}), c.Integers({})}); }

bool IsGeqrf(Candidate& c) { return c.Takes({c.a}) && c.Gives({c.a, c.Line(c.least())}); }

bool IsOrgqr(Candidate& c) {
  const int64_t count = c.Extent(1);
  return c.call.rows >= c.call.cols && count >= 0 && count <= c.call.cols && c.Takes({c.a, c.Line(count)}) &&
         c.Gives({c.a});
}

// `c` has as many rows, or columns where q stands on its right, as the reflectors have.
bool IsOrmqr(Candidate& c) {
  const int64_t count = c.Extent(1);
  c.call.left = CallAttribute(c.i, "left").value_or(1) != 0;
  c.call.adjoint = CallAttribute(c.i, "transpose").value_or(0) != 0;
  if (count < 0 || count > c.least() || c.i->operand_count() != 3) return false;
  const Shape& product = c.i->operand(2)->shape();
  if (!product.IsArray() || product.rank() != c.a.rank()) return false;
  const int64_t rows = product.dim(product.rank() - 2), cols = product.dims().back();
  return (c.call.left ? rows : cols) == c.call.rows && c.Takes({c.a, c.Line(count), c.Matrix(rows, cols)}) &&
         c.Gives({product});
}

bool IsGeqp3(Candidate& c) {
  const Shape pivots = c.Integers({c.call.cols});
  return c.Takes({c.a, pivots}) && c.Gives({c.a, pivots, c.Line(c.least())});
}

void ReadTriangle(Candidate* c) { c->call.lower = CallAttribute(c->i, "uplo").value_or('L') == 'L'; }
void ReadMode(Candidate* c) { c->call.vectors = CallAttribute(c->i, "mode").value_or('N') != 'N'; }

bool IsSyevd(Candidate& c) {
  ReadTriangle(&c);
  ReadMode(&c);
  return c.IsSquare() && c.Takes({c.a}) && c.Gives({c.a, c.RealLine(c.call.rows), c.Integers({})});
}

// "Eigh" is told in numbers: lower, sorted, most sweeps, tolerance.
bool IsEigh(Candidate& c) {
  const auto& config = c.i->attrs().backend_config;
  c.call.lower = !config || !absl::StartsWith(absl::StripPrefix(config->text, "\""), "0");
  c.call.vectors = true;
  return c.IsSquare() && c.Takes({c.a}) && c.Gives({c.a, c.RealLine(c.call.rows)});
}

bool IsGesdd(Candidate& c) {
  ReadMode(&c);
  if (!c.i->shape().IsTuple() || c.i->shape().tuple().size() != 5) return false;
  const Shape &u = c.i->shape().tuple()[2], &vt = c.i->shape().tuple()[3];
  if (!u.IsArray() || u.rank() != c.a.rank() || !vt.IsArray() || vt.rank() != c.a.rank()) return false;
  const int64_t left = u.dims().back(), right = vt.dim(vt.rank() - 2);
  if (left < c.least() || left > c.call.rows || right < c.least() || right > c.call.cols) return false;
  return c.Takes({c.a}) && c.Gives({c.a, c.RealLine(c.least()), c.Matrix(c.call.rows, left),
                                    c.Matrix(right, c.call.cols), c.Integers({})});
}

bool IsGehrd(Candidate& c) {
  const int64_t n = c.call.rows;
  c.call.low = CallAttribute(c.i, "low").value_or(1);
  c.call.high = CallAttribute(c.i, "high").value_or(n);
  return c.IsSquare() && n > 0 && c.call.low >= 1 && c.call.low <= c.call.high && c.call.high <= n && c.Takes({c.a}) &&
         c.Gives({c.a, c.Line(n - 1), c.Integers({})});
}

bool IsSytrd(Candidate& c) {
  const int64_t n = c.call.rows;
  ReadTriangle(&c);
  return c.IsSquare() && n > 0 && c.Takes({c.a}) &&
         c.Gives({c.a, c.RealLine(n), c.RealLine(n - 1), c.Line(n - 1), c.Integers({})});
}

// The eigenvalues of matrices that need not be symmetric: of real ones their real and their imaginary parts.
std::vector<Shape> Eigenvalues(const Candidate& c) {
  return std::vector<Shape>(IsComplex(c.type()) ? 1 : 2, c.Line(c.call.rows));
}

bool IsGeev(Candidate& c) {
  const bool wide = ComponentType(c.type()) == PrimitiveType::F64;
  c.call.left_vectors = CallAttribute(c.i, "compute_left").value_or('N') != 'N';
  c.call.vectors = CallAttribute(c.i, "compute_right").value_or('N') != 'N';
  std::vector<Shape> results = Eigenvalues(c);
  results.resize(results.size() + 2,
                 c.Batched(wide ? PrimitiveType::C128 : PrimitiveType::C64, {c.call.rows, c.call.rows}));
  results.push_back(c.Integers({}));
  return c.IsSquare() && c.Takes({c.a}) && c.Gives(results);
}

bool IsGees(Candidate& c) {
  ReadMode(&c);
  std::vector<Shape> results = {c.a, c.a};
  for (const Shape& s : Eigenvalues(c)) results.push_back(s);
  results.resize(results.size() + 2, c.Integers({}));
  return c.IsSquare() && CallAttribute(c.i, "sort").value_or('N') == 'N' && c.Takes({c.a}) && c.Gives(results);
}

bool IsGtsv(Candidate& c) {
  const Shape diagonal = c.Line(c.call.rows);
  return c.Takes({diagonal, diagonal, diagonal, c.a}) && c.Gives({diagonal, diagonal, diagonal, c.a, c.Integers({})});
}

struct Routine {
  absl::string_view real, complex;  // as LAPACK calls it for either kind
  absl::string_view builder;        // as XLA's builder does for both
  LapackRoutine routine;
  bool (*fits)(Candidate&);
  int64_t matrix = 0;  // the operand that is its first matrix
};

constexpr Routine kRoutines[] = {
    {"getrf", "getrf", "", LapackRoutine::kGetrf, IsGetrf},
    {"geqrf", "geqrf", "Qr", LapackRoutine::kGeqrf, IsGeqrf},
    {"", "", "QrDecomposition", LapackRoutine::kGeqrf, IsGeqrf},
    {"orgqr", "ungqr", "ProductOfElementaryHouseholderReflectors", LapackRoutine::kOrgqr, IsOrgqr},
    {"ormqr", "unmqr", "", LapackRoutine::kOrmqr, IsOrmqr},
    {"geqp3", "geqp3", "", LapackRoutine::kGeqp3, IsGeqp3},
    {"syevd", "heevd", "", LapackRoutine::kSyevd, IsSyevd},
    {"", "", "Eigh", LapackRoutine::kSyevd, IsEigh},
    {"gesdd", "gesdd", "", LapackRoutine::kGesdd, IsGesdd},
    {"gesvd", "gesvd", "", LapackRoutine::kGesdd, IsGesdd},
    {"gehrd", "gehrd", "", LapackRoutine::kGehrd, IsGehrd},
    {"sytrd", "hetrd", "", LapackRoutine::kSytrd, IsSytrd},
    {"geev", "geev", "", LapackRoutine::kGeev, IsGeev},
    {"gees", "gees", "", LapackRoutine::kGees, IsGees},
    {"gtsv", "gtsv", "", LapackRoutine::kGtsv, IsGtsv, 3},
};

// The letter that LAPACK's names have for a type; 0 for one it has none for.
char LetterOf(PrimitiveType t) {
  switch (t) {
    case PrimitiveType::F32:
      return 's';
    case PrimitiveType::F64:
      return 'd';
    case PrimitiveType::C64:
      return 'c';
    case PrimitiveType::C128:
      return 'z';
    default:
      return 0;
  }
}

// Whether the target names the routine for this type: "lapack_sgeqrf_ffi" is geqrf of f32.
bool Names(absl::string_view target, const Routine& r, PrimitiveType t) {
  if (!r.builder.empty() && target == r.builder) return true;
  const char letter = LetterOf(t);
  return absl::ConsumePrefix(&target, "lapack_") && absl::ConsumePrefix(&target, absl::string_view(&letter, 1)) &&
         absl::ConsumeSuffix(&target, "_ffi") && !target.empty() && target == (IsComplex(t) ? r.complex : r.real);
}

}  // namespace

std::optional<LapackCall> LapackOf(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target) return std::nullopt;
  const absl::string_view target = i->attrs().custom_call_target->text;
  if (i->parent()->module()->external_lapack && absl::StartsWith(target, "lapack_")) return std::nullopt;
  for (const Routine& r : kRoutines) {
    if (r.matrix >= i->operand_count()) continue;
    const Shape& a = i->operand(r.matrix)->shape();
    if (!a.IsArray() || a.rank() < 2 || !LetterOf(a.type()) || !Names(target, r, a.type())) continue;
    Candidate c = {i, a, {r.routine}};
    c.call.rows = a.dim(a.rank() - 2);
    c.call.cols = a.dim(a.rank() - 1);
    for (int64_t d = 0; d + 2 < a.rank(); ++d) c.call.batch *= a.dim(d);
    if (r.fits(c)) return c.call;
  }
  return std::nullopt;
}

}  // namespace kiln
