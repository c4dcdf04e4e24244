// Which arrays are gathers of other arrays, said in notes; the module stays.
//
// A gather of whole slices along one dimension reads an indexed array; a gather of such a gather along the same
// dimension is one too, over the first source by the gathered indices.
#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

// One index a vector, into dimension 0, of slices that are whole otherwise, behind the index dimensions.
bool TakesRows(const Instruction* i) {
  if (!i->Is(Opcode::Gather) || *i->attrs().start_index_map != Ints{0} ||
      i->attrs().collapsed_slice_dims.value_or(Ints()) != Ints{0})
    return false;
  const Shape& s = i->operand(0)->shape();
  for (int64_t d = 1; d < s.rank(); ++d)
    if ((*i->attrs().slice_sizes)[d] != s.dim(d)) return false;
  return (*i->attrs().slice_sizes)[0] == 1;
}

struct Indexed {
  const Instruction* source;
  std::string indices;
};

Indexed Analyse(const Instruction* gather) {
  const Instruction* of = gather->operand(0);
  if (!TakesRows(of)) return {of, gather->operand(1)->name()};
  const Indexed inner = Analyse(of);
  return {inner.source, absl::StrCat("gather(", inner.indices, ", ", gather->operand(1)->name(), ")")};
}

}  // namespace

absl::StatusOr<bool> IndexedArrayAnalysisPrinter(Module& m, PassContext& ctx) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (!TakesRows(i.get())) continue;
      const Indexed x = Analyse(i.get());
      ctx.notes.push_back(absl::StrCat(i->name(), " is ", x.source->name(), " indexed by ", x.indices));
    }
  return false;
}

}  // namespace kiln
