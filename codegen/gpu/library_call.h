// Custom calls that stand for library routines, as the runtime takes them.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln::gpu {

// A routine of runtime_min/gpu/routines.def with its numbers.
struct RoutineCall {
  int64_t routine;
  std::vector<int64_t> numbers;
};

// An algorithm of a library's as tuning found it. Its number is a place among the library's candidates, which another
// version or another GPU orders in another way; the words say which it is to the version that they come from.
struct LibraryAlgorithm {
  int64_t number = -1;
  int64_t version = 0;
  std::vector<uint64_t> words;
};
// By target, key (compiler/hlo/tuning.h) and number.
using LibraryAlgorithms = std::map<std::tuple<std::string, std::string, int64_t>, LibraryAlgorithm>;
// What was chosen for `call` on a target; a number alone where `known` (null: empty) has no words for it.
LibraryAlgorithm ChosenLibraryAlgorithm(const Instruction* call, const std::string& target,
                                        const LibraryAlgorithms* known);

// How many algorithms of the library are tried for a call: those that it names first, best first.
int64_t LibraryCandidates(const Instruction* call);

// `tf32`: f32 may be multiplied in TF32, where the call is not for a precise product. Fails for a target, type or form
// that the runtime has no routine for.
absl::StatusOr<RoutineCall> RoutineOf(const Instruction* call, bool tf32);

}  // namespace kiln::gpu
