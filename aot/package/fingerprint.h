// The hash that the symbols of a library carry.
//
// What: a number of what a library computes and how it is called: ports, steps, kernels, weights, the options that
//   decide its code, and the version of the types that it shares with its caller.
// Why: a header and an archive of different builds shall not link, nor shall two models of one name become one.
// Guarantees: the same for the same program whatever the form it was read from, names of values included.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aot/compile.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

class Fingerprint {
 public:
  Fingerprint(const CompileOptions& options, uint64_t weights_hash);
  void AddThunks(const ThunkSequence& thunks);
  void AddPorts(const std::vector<Port>& ports);
  void AddNumbers(const std::vector<int64_t>& numbers);
  void AddText(absl::string_view bytes);
  // 16 hexadecimal digits.
  std::string Text() const;

 private:
  std::string TextOf(const Instruction* i);
  uint64_t HashOf(const Computation* c);

  uint64_t hash_;
  absl::flat_hash_map<const Computation*, uint64_t> computations_;  // as hashed before: loops nest
};

}  // namespace kiln
