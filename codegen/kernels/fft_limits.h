// What the transforms of the kernel library and their plans agree on.
#pragma once

// The largest prime factor that has a butterfly; lengths with a larger one are transformed as a convolution.
#define FFT_MOST_RADIX 127
// Bytes of the vectors that hold a number of each of several lines, columns or rows.
#define FFT_VECTOR_BYTES 64
