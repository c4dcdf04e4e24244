#include "codegen/elemental/fft_tables.h"

#include <cmath>

namespace kiln {
namespace {

// More digits than the table keeps. std::complex would look for NaNs in every product.
struct Number {
  long double re = 0, im = 0;
};
Number operator+(const Number& x, const Number& y) { return {x.re + y.re, x.im + y.im}; }
Number operator*(const Number& x, const Number& y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

// exp(-2 pi i k / n) for k below n.
Number Root(int64_t k, int64_t n) {
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  const long double angle = -2 * kPi * static_cast<long double>(k) / static_cast<long double>(n);
  return {std::cos(angle), std::sin(angle)};
}

std::vector<Number> Roots(int64_t n) {
  std::vector<Number> out;
  for (int64_t k = 0; k < n; ++k) out.push_back(Root(k, n));
  return out;
}

// The transform of x[0], x[step], ..., by its smallest factor; roots are those of x.size().
std::vector<Number> Transform(const std::vector<Number>& x, const std::vector<Number>& roots, size_t first,
                              size_t step) {
  const size_t n = x.size() / step;
  if (n == 1) return {x[first]};
  size_t r = 2;
  while (n % r) ++r;
  std::vector<std::vector<Number>> parts;
  for (size_t q = 0; q < r; ++q) parts.push_back(Transform(x, roots, first + q * step, step * r));
  std::vector<Number> out(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t q = 0; q < r; ++q) out[k] = out[k] + parts[q][k % (n / r)] * roots[k * q % n * step];
  return out;
}

// What n numbers are multiplied by, and the spectrum of its inverse over as many numbers as there are roots.
struct Chirp {
  std::vector<Number> numbers, spectrum;
};
Chirp ChirpOf(int64_t n, const std::vector<Number>& roots) {
  const auto m = static_cast<int64_t>(roots.size());
  Chirp out;
  std::vector<Number> inverse(roots.size());
  // k^2 is taken modulo 2 n while it is a whole number: angles stay exact.
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    out.numbers.push_back(Root(square, 2 * n));
    const Number& c = out.numbers.back();
    const Number x{c.re / static_cast<long double>(m), -c.im / static_cast<long double>(m)};
    inverse[static_cast<size_t>(k)] = inverse[static_cast<size_t>((m - k) % m)] = x;
  }
  out.spectrum = Transform(inverse, roots, 0, 1);
  return out;
}

void Append(const std::vector<Number>& numbers, int64_t lanes, std::vector<double>* table) {
  for (const Number& x : numbers) {
    table->push_back(static_cast<double>(x.re));
    table->push_back(static_cast<double>(x.im));
  }
  while (table->size() % static_cast<size_t>(2 * lanes)) table->push_back(0);
}

// A matrix for lanes that go along its rows.
template <typename At>
void AppendLanes(int64_t rows, int64_t columns, int64_t lanes, const At& at, std::vector<double>* table) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t block = 0; block < columns; block += lanes) {
      std::vector<Number> numbers;
      for (int64_t c = block; c < block + lanes; ++c) numbers.push_back(c < columns ? at(r, c) : Number{});
      for (const Number& x : numbers) table->push_back(static_cast<double>(x.re));
      for (const Number& x : numbers) table->push_back(static_cast<double>(x.im));
    }
}

}  // namespace

std::vector<double> FftRootTable(int64_t n, int64_t lanes) {
  std::vector<double> table;
  Append(Roots(n), lanes, &table);
  return table;
}

std::vector<double> FftMatrixTable(int64_t n, int64_t rows, int64_t columns, int64_t lanes) {
  const int64_t m = rows * columns;
  const std::vector<Number> roots = Roots(m);
  std::vector<double> table;
  Append(Roots(rows), lanes, &table);
  Append(Roots(columns), lanes, &table);
  AppendLanes(
      rows, columns, lanes, [&](int64_t r, int64_t c) { return roots[static_cast<size_t>(r * c)]; }, &table);
  if (m == n) return table;
  const Chirp chirp = ChirpOf(n, roots);
  AppendLanes(
      columns, rows, lanes, [&](int64_t c, int64_t r) { return chirp.spectrum[static_cast<size_t>(r + rows * c)]; },
      &table);
  Append(chirp.numbers, lanes, &table);
  return table;
}

std::vector<double> FftChirpTable(int64_t n, int64_t m, int64_t lanes) {
  const std::vector<Number> roots = Roots(m);
  const Chirp chirp = ChirpOf(n, roots);
  std::vector<double> table;
  for (const std::vector<Number>* part : {&roots, &chirp.spectrum, &chirp.numbers}) Append(*part, lanes, &table);
  return table;
}

}  // namespace kiln
