#include "aot/weight_constants.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kiln {

namespace {

// The name of the value in the file, where other programs of the library may have put it; none is used twice by one.
std::string NameInFile(const Literal& value, const std::vector<std::string>& used, std::vector<WeightConstant>* file) {
  for (const WeightConstant& c : *file)
    if (c.value.shape() == value.shape() && std::find(used.begin(), used.end(), c.name) == used.end() &&
        c.value == value)
      return c.name;
  file->push_back({absl::StrCat("constants[", file->size(), "]"), value});
  return file->back().name;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TakeWeightConstants(int64_t bytes, std::vector<WeightConstant>* file,
                                                             Module* m) {
  std::vector<Instruction*> constants;
  Computation* entry = m->entry();
  for (Instruction* i : entry->PostOrder())
    if (i->Is(Opcode::Constant) && i->shape().IsArray() && i->shape().HasDefaultLayout() &&
        i->literal().byte_size() >= bytes)
      constants.push_back(i);
  std::vector<std::string> out;
  if (constants.empty()) return out;
  if (m->is_scheduled)
    return InvalidArgument(
        "error: weights.constants_from_bytes: the program states a schedule, which has its constants");
  if (m->argument_names.empty())
    for (const Instruction* p : entry->parameters()) m->argument_names.push_back(p->name());
  for (Instruction* c : constants) {
    const std::string name = NameInFile(c->literal(), out, file);
    if (std::find(m->argument_names.begin(), m->argument_names.end(), name) != m->argument_names.end())
      return InvalidArgument("error: weights.constants_from_bytes: an argument is called ", name, " already");
    const int64_t number = static_cast<int64_t>(entry->parameters().size());
    Instruction* p = entry->AddParameter(number, c->shape(), c->name());
    p->set_loc(c->loc());
    m->argument_names.push_back(name);
    if (m->entry_layout) m->entry_layout->parameters.push_back(c->shape());
    out.push_back(name);
    c->ReplaceAllUsesWith(p);
    entry->Remove(c);
  }
  return out;
}

}  // namespace kiln
