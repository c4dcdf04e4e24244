// Which rewrite of which pass first changes what a program computes.
//
// What: runs a pipeline, keeps the module after each pass that changed it, and compares those by the reference
// evaluator
//   with the module as it came; then repeats the guilty pass under fuel.
// Guarantees: code generation takes no part, so a module that stays right here and is wrong when compiled has a problem
//   there. Cost: a logarithm of the passes and of the rewrites in evaluations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/literal.h"
#include "compiler/pass/pipeline.h"

namespace kiln {

struct BisectResult {
  int changing_passes = 0;
  // Of the first wrong module: the pass, how many passes changed the module up to it, and the rewrite inside it (from
  // 1; 0 if the pass does not spend fuel). `pass` is empty if every module is right.
  std::string pass;
  int pass_number = 0;
  int64_t rewrite = 0;
  std::unique_ptr<Module> before, after;  // around that rewrite, or around the pass
  std::string difference;                 // what differs, in words
};

// `ulps`: by how much floats may differ.
absl::StatusOr<BisectResult> Bisect(const Module& module, const Pipeline& pipeline, const Pipeline::Lookup& lookup,
                                    const std::vector<Literal>& arguments, double ulps);

// The two results differ by more than `ulps` (or at all, where they are not floats): how; else empty.
std::string DifferenceOf(const std::vector<Literal>& got, const std::vector<Literal>& want, double ulps);

}  // namespace kiln
