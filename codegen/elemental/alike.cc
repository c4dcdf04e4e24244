#include "codegen/elemental/alike.h"

namespace kiln {
namespace {

Attributes OwnAttributes(const Instruction* i) {
  Attributes a = i->attrs();
  a.metadata.reset();
  a.parameter_number.reset();
  return a;
}

using Partners = absl::flat_hash_map<const Instruction*, const Instruction*>;

// Whether `a` is computed of its parameters as `b` is of the partners of these.
bool ComputedAlike(const Instruction* a, const Instruction* b, Partners* partners) {
  const auto [it, fresh] = partners->insert({a, b});
  if (!fresh) return it->second == b;
  if (a->opcode() != b->opcode() || a->shape() != b->shape() || a->operand_count() != b->operand_count() ||
      !(OwnAttributes(a) == OwnAttributes(b)) || (a->Is(Opcode::Constant) && a->literal() != b->literal()))
    return false;
  for (int64_t k = 0; k < a->operand_count(); ++k)
    if (!ComputedAlike(a->operand(k), b->operand(k), partners)) return false;
  return true;
}

size_t Number(const Instruction* parameter) { return static_cast<size_t>(*parameter->attrs().parameter_number); }

}  // namespace

std::vector<Alike> GroupAlike(const Computation& f, const std::vector<const Instruction*>& roots) {
  std::vector<size_t> same(f.parameters().size());
  for (size_t p = 0; p < same.size(); ++p) same[p] = p;
  std::vector<Alike> out;
  for (size_t k = 0; k < roots.size(); ++k) {
    bool joined = false;
    for (Alike& group : out) {
      Partners partners;
      if (!ComputedAlike(roots[group.results[0]], roots[k], &partners)) continue;
      std::vector<size_t> parameters = same;
      for (const Instruction* p : f.parameters())
        if (const auto partner = partners.find(p); partner != partners.end())
          parameters[Number(p)] = Number(partner->second);
      group.results.push_back(k);
      group.parameters.push_back(std::move(parameters));
      joined = true;
      break;
    }
    if (!joined) out.push_back({{k}, {same}});
  }
  return out;
}

}  // namespace kiln
