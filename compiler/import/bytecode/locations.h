// Locations of bytecode: entries of the attribute table, each read once.
//
// Guarantees: never fails: what is no location, is cyclic or nests too deep says nothing.
// Source: BuiltinDialectBytecode.td of MLIR. Internal to compiler/import/bytecode.
#pragma once

#include <optional>
#include <vector>

#include "compiler/import/bytecode/container.h"
#include "compiler/import/bytecode/vhlo.h"
#include "compiler/import/origin.h"

namespace kiln::bytecode {

class Locations {
 public:
  // Both outlive this.
  Locations(const Container& container, Tables* tables)
      : in_(container), tables_(tables), known_(container.attributes.size()) {}
  Origin At(uint64_t index) { return At(index, 0); }

 private:
  Origin At(uint64_t index, int depth);
  Origin Read(const Entry& e, int depth);
  std::string TextAt(uint64_t index);

  const Container& in_;
  Tables* tables_;
  std::vector<std::optional<Origin>> known_;
};

}  // namespace kiln::bytecode
