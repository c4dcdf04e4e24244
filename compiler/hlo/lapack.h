// The factorisations that front ends write as custom calls and kiln computes itself.
//
// What: JAX's targets on CPU, "lapack_<type><routine>_ffi" with their attributes, and those of XLA's builder, which
//   TensorFlow writes: "Qr", "ProductOfElementaryHouseholderReflectors" and "Eigh". For f32, f64, c64 and c128, batched
//   by leading dimensions. Other targets stay calls to the user's function of that name.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

// By the names of the real ones.
enum class LapackRoutine {
  kGetrf,  // (a) -> (lu, pivots s32 from 1, info): partial pivoting
  kGeqrf,  // (a) -> (r and reflectors, tau)
  kOrgqr,  // ungqr: (reflectors, tau) -> (q)
  kOrmqr,  // unmqr: (reflectors, tau, c) -> (q c), or c q, or of q's adjoint
  kGeqp3,  // (a, pivots s32) -> (r and reflectors, pivots from 1, tau): columns whose pivot is not 0 come first
  kSyevd,  // heevd: (a) -> (eigenvectors by columns, eigenvalues ascending, info); "Eigh" has no info
  kGesdd,  // gesvd: (a) -> (a, singular values descending, u, adjoint of v, info)
  kGehrd,  // (a) -> (hessenberg form and reflectors, tau, info)
  kSytrd,  // hetrd: (a) -> (reflectors, diagonal, the one beside it, tau, info)
  kGeev,  // (a) -> (eigenvalues, left eigenvectors by columns, right ones, info); real ones give the eigenvalues' parts
  kGees,  // (a) -> (schur form, schur vectors, eigenvalues, s32 0, info), likewise
  kGtsv,  // (lower, diagonal, upper, b) -> (second upper, diagonal, upper, x, info): diagonals of b's length
};

struct LapackCall {
  LapackRoutine routine;
  int64_t rows = 0, cols = 0, batch = 1;  // of the first operand, of gtsv's last
  bool vectors = false;                   // syevd, gesdd, gees: more than values; geev: the right ones
  bool left_vectors = false;              // geev
  bool lower = true;                      // syevd, sytrd: the triangle that is read
  bool left = true, adjoint = false;      // ormqr: where q stands, and whether as its adjoint
  int64_t low = 1, high = 0;              // gehrd: the first and last row, from 1, that is not triangular yet
};

// Nullopt for anything else, or if shapes do not fit the routine.
std::optional<LapackCall> LapackOf(const Instruction* i);
// An integer of a custom call's attribute dictionary: {mode = 86 : ui8}; of a truth, 0 or 1.
std::optional<int64_t> CallAttribute(const Instruction* i, absl::string_view key);

}  // namespace kiln
