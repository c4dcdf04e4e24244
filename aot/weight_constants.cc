#include "aot/weight_constants.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kiln {

absl::StatusOr<std::vector<WeightConstant>> TakeWeightConstants(int64_t bytes, Module* m) {
  std::vector<Instruction*> constants;
  Computation* entry = m->entry();
  for (Instruction* i : entry->PostOrder())
    if (i->Is(Opcode::Constant) && i->shape().IsArray() && i->shape().HasDefaultLayout() &&
        i->literal().byte_size() >= bytes)
      constants.push_back(i);
  std::vector<WeightConstant> out;
  if (constants.empty()) return out;
  if (m->is_scheduled)
    return InvalidArgument(
        "error: weights.constants_from_bytes: the program states a schedule, which has its constants");
  if (m->argument_names.empty())
    for (const Instruction* p : entry->parameters()) m->argument_names.push_back(p->name());
  for (Instruction* c : constants) {
    const std::string name = absl::StrCat("constants[", out.size(), "]");
    if (std::find(m->argument_names.begin(), m->argument_names.end(), name) != m->argument_names.end())
      return InvalidArgument("error: weights.constants_from_bytes: an argument is called ", name, " already");
    const int64_t number = static_cast<int64_t>(entry->parameters().size());
    Instruction* p = entry->AddParameter(number, c->shape(), c->name());
    p->set_loc(c->loc());
    m->argument_names.push_back(name);
    if (m->entry_layout) m->entry_layout->parameters.push_back(c->shape());
    out.push_back({name, c->literal()});
    c->ReplaceAllUsesWith(p);
    entry->Remove(c);
  }
  return out;
}

bool SameConstants(const std::vector<WeightConstant>& a, const std::vector<WeightConstant>& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k].value != b[k].value) return false;
  return true;
}

}  // namespace kiln
