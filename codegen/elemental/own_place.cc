#include "codegen/elemental/own_place.h"

#include <vector>

namespace kiln {
namespace {

bool KeepsPlaces(const Instruction* i) {
  return i->IsElementwise() || (i->Is(Opcode::BitcastConvert) && i->shape().dims() == i->operand(0)->shape().dims());
}

}  // namespace

bool ReadsAtOwnPlaceOnly(const Instruction* root, const Instruction* value) {
  absl::flat_hash_set<const Instruction*> here, elsewhere;
  std::vector<const Instruction*> open = {root}, moved;
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    if (i == value || !here.insert(i).second) continue;
    std::vector<const Instruction*>& to = KeepsPlaces(i) ? open : moved;
    to.insert(to.end(), i->operands().begin(), i->operands().end());
  }
  while (!moved.empty()) {
    const Instruction* i = moved.back();
    moved.pop_back();
    if (i == value) return false;
    if (elsewhere.insert(i).second) moved.insert(moved.end(), i->operands().begin(), i->operands().end());
  }
  return true;
}

}  // namespace kiln
