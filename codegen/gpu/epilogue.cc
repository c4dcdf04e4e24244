// What a kernel makes of each element of its product or reduction before it stores: elementwise operations behind it in
// the same fusion.
#include "codegen/gpu/epilogue.h"

#include <algorithm>

#include "codegen/gpu/kernels.h"

namespace kiln::gpu {

// Whether all that is made of `hero` in its computation is made element by element.
static bool ReadOnlyInPlace(const Instruction* hero) {
  absl::flat_hash_set<const Instruction*> made = {hero};
  for (const Instruction* i : hero->parent()->PostOrder()) {
    const bool reads =
        std::any_of(i->operands().begin(), i->operands().end(), [&](const Instruction* o) { return made.contains(o); });
    if (!reads || i->Is(Opcode::Tuple)) continue;
    if (!i->IsElementwise() && !i->Is(Opcode::Bitcast) && !i->Is(Opcode::Reshape)) return false;
    made.insert(i);
  }
  return true;
}

const Instruction* ReduceBehind(const Instruction* root) {
  if (!root->IsElementwise() || !root->shape().IsArray()) return nullptr;
  const Instruction* found = nullptr;
  std::vector<const Instruction*> work = {root};
  absl::flat_hash_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    if (i->Is(Opcode::Reduce)) {
      if (found || !i->shape().IsArray()) return nullptr;
      found = i;
    } else if (i->IsElementwise() || i->Is(Opcode::Bitcast) || i->Is(Opcode::Reshape)) {
      work.insert(work.end(), i->operands().begin(), i->operands().end());
    }
  }
  // Not where the root has elements of its own: it then reads one number again and again.
  const bool alike = found && found->shape().ElementCount() == root->shape().ElementCount();
  return alike && ReadOnlyInPlace(found) ? found : nullptr;
}

// The products whose sum `i` is, seen through bitcasts; none if it is no such sum.
static std::vector<const Instruction*> TermsOf(const Instruction* i) {
  while (i->Is(Opcode::Bitcast)) i = i->operand(0);
  if (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) return {i};
  if (!i->Is(Opcode::Add)) return {};
  std::vector<const Instruction*> a = TermsOf(i->operand(0));
  const std::vector<const Instruction*> b = TermsOf(i->operand(1));
  if (a.empty() || b.empty()) return {};
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<ProductSum> SumsBehind(const Instruction* root) {
  std::vector<ProductSum> out;
  std::vector<const Instruction*> work = {root};
  absl::flat_hash_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    const bool sum = i->Is(Opcode::Dot) || i->Is(Opcode::Convolution) || i->Is(Opcode::Add);
    if (std::vector<const Instruction*> terms = sum ? TermsOf(i) : std::vector<const Instruction*>(); !terms.empty())
      out.push_back({i, std::move(terms)});
    else
      work.insert(work.end(), i->operands().begin(), i->operands().end());
  }
  return out;
}

Index PlaceInRoot(ElementEmitter& elements, const Instruction* root, const Instruction* hero, Index at) {
  absl::flat_hash_map<const Instruction*, Index> places = {{hero, std::move(at)}};
  for (const Instruction* i : root->parent()->PostOrder()) {
    if (i == hero || i->Is(Opcode::Tuple)) continue;
    for (const Instruction* o : i->operands()) {
      const auto from = places.find(o);
      if (from == places.end()) continue;
      Index to = from->second;
      if (i->Is(Opcode::Transpose))
        for (size_t d = 0; d < to.dims.size(); ++d) to.dims[d] = from->second.dims[(*i->attrs().dimensions)[d]];
      else if (i->shape().dims() != o->shape().dims())
        to.dims =
            Delinearize(elements.ir(), elements.Offset(o->shape(), to), i->shape().dims(), MemoryOrder(i->shape()));
      places[i] = std::move(to);
      break;
    }
  }
  return places.at(root);
}

}  // namespace kiln::gpu
