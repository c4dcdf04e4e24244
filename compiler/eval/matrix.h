// Dense complex matrices for the evaluator's linear algebra: slow and obvious. Real ones are those without imaginary
// parts.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace kiln {

using Number = std::complex<double>;

struct Matrix {
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), v(r * c) {}
  Number& at(int64_t r, int64_t c) { return v[r * cols + c]; }
  Number at(int64_t r, int64_t c) const { return v[r * cols + c]; }
  int64_t rows, cols;
  std::vector<Number> v;
};

Matrix Identity(int64_t n);
Matrix Adjoint(const Matrix& a);
Matrix Times(const Matrix& a, const Matrix& b);
// Rows and columns counted from the last.
Matrix Turned(const Matrix& a);
bool IsFinite(const Matrix& a);

// H = I - tau v v^H for a column vector: H^H leaves `left` of it.
struct Reflector {
  std::vector<Number> v;
  Number tau = 0, left = 0;
};

// That of rows [first, last) of a column; v is as long as the column.
Reflector ReflectorOf(const Matrix& a, int64_t column, int64_t first, int64_t last);
// Columns from `from` of (I - tau v v^H) a.
void ApplyLeft(const Reflector& h, Number tau, int64_t from, Matrix* a);
// a (I - tau v v^H)
void ApplyRight(const Reflector& h, Matrix* a);
// What the column becomes, and v below that in place of the zeros.
void Keep(const Reflector& h, int64_t column, int64_t first, int64_t last, Matrix* a);

// Z^H A Z = T. Where A is real and `real`, so are both: T has blocks on its diagonal for pairs of complex eigenvalues,
// with equal numbers on their diagonals. `converged` is false for what has none, such as NaN.
struct SchurForm {
  Matrix t, z;
  std::vector<Number> values;
  bool converged = true;
};
SchurForm SchurOf(const Matrix& a, bool real);
// The eigenvectors of A as columns of length 1, with a real number where they are the largest.
Matrix EigenvectorsOf(SchurForm form);

}  // namespace kiln
