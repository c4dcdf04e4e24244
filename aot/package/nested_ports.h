// Arguments or results as nested C++ structs, as their paths nest: args.params.layers[0].w.
//
// What: the members of a struct, and the expressions by which its leaves are reached. A list whose elements are alike
//   becomes an array; other lists get members _0, _1, ...
// Guarantees: members are identifiers that are neither keywords nor macros of C's headers, unique where they stand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aot/compile.h"

namespace kiln {

struct NestedPorts {
  std::string members;                   // of the struct, with its nested types, indented by four
  std::vector<std::string> expressions;  // by port: "params.layers[0].w"; empty for ports that were left out
};

// `type` says how a port is declared; "" leaves it out.
NestedPorts NestPorts(const std::vector<Port>& ports, const std::function<std::string(size_t)>& type);

}  // namespace kiln
