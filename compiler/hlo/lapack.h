// The factorisations that front ends write as custom calls and kiln computes itself.
//
// What: JAX's targets on CPU, "lapack_<type><routine>_ffi" with their attributes, and those of XLA's builder, which
//   TensorFlow writes: "Qr", "ProductOfElementaryHouseholderReflectors" and "Eigh". For real f32 and f64 matrices,
//   batched by leading dimensions. Other targets stay calls to the user's function of that name.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

enum class LapackRoutine {
  kGetrf,  // (a) -> (lu, pivots s32 from 1, info): partial pivoting
  kGeqrf,  // (a) -> (r and reflectors, tau)
  kOrgqr,  // (reflectors, tau) -> (q)
  kSyevd,  // (a) -> (eigenvectors by columns, eigenvalues ascending, info); "Eigh" has no info
  kGesdd,  // (a) -> (a, singular values descending, u, v transposed, info)
};

struct LapackCall {
  LapackRoutine routine;
  int64_t rows = 0, cols = 0, batch = 1;  // of the first operand
  bool vectors = false;                   // syevd, gesdd: more than values
  bool lower = true;                      // syevd: the triangle that is read
};

// Nullopt for anything else, or if shapes do not fit the routine.
std::optional<LapackCall> LapackOf(const Instruction* i);
// An integer of a custom call's attribute dictionary: {mode = 86 : ui8}.
std::optional<int64_t> CallAttribute(const Instruction* i, absl::string_view key);

}  // namespace kiln
