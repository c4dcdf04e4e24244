// Tables of transforms, computed while compiling.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

// Tables are of complex numbers, real and imaginary part in turn; those that go with the lanes of vectors hold for each
// row, block by block, `lanes` real and `lanes` imaginary parts. Every part of a table is padded to whole vectors.

// exp(-2 pi i k / n) for k below n.
std::vector<double> FftRootTable(int64_t n, int64_t lanes);
// Of a line of n numbers as a matrix: the roots of columns and of rows, and the turns between. A matrix of more than n
// numbers is a convolution's: the spectrum and the numbers of its chirp follow.
std::vector<double> FftMatrixTable(int64_t n, int64_t rows, int64_t columns, int64_t lanes);
// Of a line of n numbers as a convolution over m: m roots, the spectrum and the numbers of the chirp.
std::vector<double> FftChirpTable(int64_t n, int64_t m, int64_t lanes);

}  // namespace kiln
