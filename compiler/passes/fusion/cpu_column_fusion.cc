// Columns that are reduced and then used again (softmax over any dimension but the innermost, norms of channels that
// come first, batch statistics of few samples) become one kernel: cpu-row-fusion where what is reduced does not lie in
// one piece.
//
// An array is [outer][length][inner], and a unit of work is a strip of columns of one `outer`, which stays in the cache
// while loops over `length` read it: each array passes memory once. Longer columns are refused. Narrower strips would
// stay, but are no streams that a machine foresees: with 1,024 elements in a column softmax takes 1.3 to 1.9 of the
// time of loops over all columns.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/analysis/cost.h"
#include "compiler/passes/gpu/row_fusion.h"

namespace kiln {
namespace {

constexpr int64_t kShortest = 2, kNarrowest = 8;

// Bytes of a strip's elements of one array, at the least width that gains, and with functions of them that are kept.
constexpr int64_t kStrip = 64, kMostBytes = CoreModel().cache_bytes * 3 / 16;
constexpr int64_t kMostBytesKept = CoreModel().cache_bytes / 16;

int64_t StripBytes(const RowForm& form) { return 4 * form.length * std::min(form.inner, kStrip); }

// The form of what `reduce` reduces, as far as its dimensions say: RowRegionOf asks for the rest.
RowForm FormOf(const Instruction* reduce) {
  const Shape& in = reduce->operand(0)->shape();
  const Ints& dims = *reduce->attrs().dimensions;
  RowForm form{reduce->shape().ElementCount(), 0, 1};
  for (int64_t d = in.rank(); d-- > 0 && std::find(dims.begin(), dims.end(), d) == dims.end();) form.inner *= in.dim(d);
  if (form.rows > 0) form.length = in.ElementCount() / form.rows;
  return form;
}

std::vector<RowForm> FormsOf(const Instruction* root) {
  constexpr size_t kFar = 64;
  std::vector<RowForm> out;
  std::vector<const Instruction*> work = {root};
  absl::flat_hash_set<const Instruction*> seen;
  for (size_t k = 0; k < work.size() && work.size() < kFar; ++k) {
    const Instruction* i = work[k];
    if (i->Is(Opcode::Reduce) && i->shape().IsArray()) {
      const RowForm form = FormOf(i);
      const bool wanted = form.inner >= kNarrowest && form.length >= kShortest && StripBytes(form) <= kMostBytes;
      if (wanted && std::none_of(out.begin(), out.end(), [&](const RowForm& f) {
            return f.rows == form.rows && f.length == form.length && f.inner == form.inner;
          }))
        out.push_back(form);
    }
    if (!i->IsElementwise() && !i->Is(Opcode::Bitcast) && !i->Is(Opcode::Broadcast) && !i->Is(Opcode::Reduce)) continue;
    for (const Instruction* o : i->operands())
      if (seen.insert(o).second) work.push_back(o);
  }
  return out;
}

bool Takes(const Instruction* i, const RowForm& form) {
  const bool kept = i->HasTrait(Transcendental) && form.Whole(i->shape());
  return !kept || StripBytes(form) <= kMostBytesKept;
}

}  // namespace

absl::StatusOr<bool> CpuColumnFusion(Module& m, PassContext& ctx) { return FuseRowsOf(m, FormsOf, Takes, ctx); }

}  // namespace kiln
