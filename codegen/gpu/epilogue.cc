// What a kernel makes of each element of its product or reduction before it stores: elementwise operations behind it in
// the same fusion.
#include "codegen/gpu/epilogue.h"

#include <algorithm>

#include "codegen/gpu/kernels.h"

namespace kiln::gpu {

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
  return found;
}

Index PlaceInRoot(ElementEmitter& elements, const Computation& f, const Instruction* hero, Index at) {
  absl::flat_hash_map<const Instruction*, Index> places = {{hero, std::move(at)}};
  for (const Instruction* i : f.PostOrder()) {
    if (i == hero) continue;
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
  return places.at(f.root());
}

}  // namespace kiln::gpu
