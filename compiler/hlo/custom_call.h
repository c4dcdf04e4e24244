// Calls of functions that the user's program provides.
//
// What: the target, the calling convention and the attributes of a custom call, read from its text.
// Why: code generation and the header must agree on one C prototype for each target.
// Source: XLA's custom-call API versions 1 to 3 as CPU defines them; version 4 (typed FFI) has kiln's own C prototype,
//   with the attributes as a struct.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// One entry of a typed call's dictionary. Floats, integers and pred; `list`: an array of them; `text`: a string.
struct CallAttributeValue {
  std::string name;
  PrimitiveType type = PrimitiveType::Opaque;
  bool list = false, text = false;
  std::vector<Element> values;
  std::string string;
};

struct CustomCallSignature {
  std::string target;  // the symbol, whatever characters it has
  ApiVersion api = ApiVersion::API_VERSION_ORIGINAL;
  std::string opaque;                          // versions 3: backend_config
  std::vector<CallAttributeValue> attributes;  // version 4, by name
};

// Fails with the call's place for a call without a target, for one of an NVIDIA library, and for attributes that have
// no place in a C struct.
absl::StatusOr<CustomCallSignature> SignatureOf(const Instruction* call);
// Same target, convention, and attributes (names, types), so that one C function can serve both.
bool SamePrototype(const CustomCallSignature& a, const CustomCallSignature& b);

}  // namespace kiln
