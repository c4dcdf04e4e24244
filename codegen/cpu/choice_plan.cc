#include "codegen/cpu/choice_plan.h"

#include "compiler/hlo/library_calls.h"

namespace kiln::cpu {

const std::vector<ProductChoice>& ProductChoices() {
  static const auto* const kChoices = new std::vector<ProductChoice>{
#define CHOICE(number, vectors, packing, panel_rows, slab_kib, rows, loops) \
  {vectors, ProductChoice::packing, panel_rows, int64_t{slab_kib} << 10, rows, ProductChoice::loops},
#include "codegen/cpu/choices.def"
  };
  return *kChoices;
}

ProductChoice ChoiceOf(const CpuLevel& level, const Instruction* i) {
  const int64_t number = ChosenAlgorithm(i, level.name);
  const bool known = number >= 0 && number < static_cast<int64_t>(ProductChoices().size());
  return known ? ProductChoices()[static_cast<size_t>(number)] : ProductChoice();
}

}  // namespace kiln::cpu
