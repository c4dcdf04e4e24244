// What a front end calls an array, taken apart: "params['layers'][0]['w']" is w of the first of layers of params.
//
// What: the steps of a path as JAX's keystr writes it (['key'], [0], .attribute, [<flat index 0>]), and the flat name
//   that they make together (params_layers_0_w).
// Guarantees: any text is a path; one that is none of the above is a single step.
// Source: jax.tree_util.keystr.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace kiln {

// Into a container: to what has a name, or to a place in a list.
struct PathStep {
  std::string name;
  int64_t index = -1;  // of a list

  bool operator==(const PathStep&) const = default;
};
using PortPath = std::vector<PathStep>;

PortPath ParsePortPath(absl::string_view text);
// Of a result: JAX calls all that a function returns `result`, which says nothing: result['loss'] is `loss`. One
// without a name is numbered, as if it had none at all: result0.
PortPath ParseResultPath(absl::string_view text);

// Not yet an identifier.
std::string FlatName(const PortPath& path);

}  // namespace kiln
