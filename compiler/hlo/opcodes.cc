#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {
namespace {
constexpr OpcodeInfo kOpcodes[] = {
#define OP(e, text, arity, traits, lowering, types) \
  {Opcode::e, text, arity, traits, Lowering::lowering, OperandTypes::types},
#include "compiler/hlo/opcodes.def"
};

// The row of functions.def says what a transcendental function means.
constexpr bool IsFunction(Opcode op) {
#define UNARY(opcode, ...) \
  if (op == Opcode::opcode) return true;
#define BINARY UNARY
#define ROOT UNARY
#include "compiler/hlo/functions.def"
  return false;
}
static_assert(std::all_of(std::begin(kOpcodes), std::end(kOpcodes),
                          [](const OpcodeInfo& o) { return !(o.traits & Transcendental) || IsFunction(o.opcode); }),
              "a transcendental opcode has no row in functions.def");
}  // namespace

const OpcodeInfo& InfoOf(Opcode op) { return kOpcodes[static_cast<int>(op)]; }
int OpcodeCount() { return static_cast<int>(std::size(kOpcodes)); }

std::optional<Opcode> OpcodeFromText(absl::string_view text) {
  static const auto* map = [] {
    auto* m = new absl::flat_hash_map<absl::string_view, Opcode>;
    for (const OpcodeInfo& o : kOpcodes) (*m)[o.text] = o.opcode;
    return m;
  }();
  auto it = map->find(text);
  if (it == map->end()) return std::nullopt;
  return it->second;
}

}  // namespace kiln
