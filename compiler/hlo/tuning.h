// What measuring on a GPU found: the algorithm of every product and convolution, by what they compute.
//
// A result belongs to a target ("sm_90") and a key, which is the same for equal instructions of any module. Passes read
// results and write the choice into configurations (library_calls.h); nothing is ever measured while compiling.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// One algorithm as it was measured: valid ones only.
struct TunedAlgorithm {
  int64_t algorithm = -1;
  int64_t scratch_bytes = 0;
  double microseconds = 0;
};

class TuningResults {
 public:
  // The fastest of all that are added for a target and key is the result.
  void Add(const std::string& target, const std::string& key, const TunedAlgorithm& found);
  // An algorithm that is never to be used, whatever was measured.
  void Deny(const std::string& target, const std::string& key, int64_t algorithm);
  std::optional<TunedAlgorithm> Find(const std::string& target, const std::string& key) const;
  bool Denied(const std::string& target, const std::string& key, int64_t algorithm) const;
  // That have a result, in order.
  std::vector<std::string> Targets() const;

 private:
  std::map<std::string, std::map<std::string, std::vector<TunedAlgorithm>>> found_;
  std::set<std::tuple<std::string, std::string, int64_t>> denied_;
};

// A product or convolution whose algorithm is chosen: library calls of both; kiln's own products, and its convolutions
// that are computed as products, which are those with a few features in each group.
bool IsTunableProduct(const Instruction* i);
bool IsTunableConvolution(const Instruction* i);
// All of them that are not inside fusions, in order.
std::vector<Instruction*> Tunables(const Module& m);
// What it computes, algorithm aside, as text and as the key of its results (16 hexadecimal digits).
std::string TuningText(const Instruction* i);
std::string TuningKey(const Instruction* i);

}  // namespace kiln
