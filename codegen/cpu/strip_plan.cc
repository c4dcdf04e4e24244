#include "codegen/cpu/strip_plan.h"

#include <algorithm>

#include "compiler/hlo/library_calls.h"

namespace kiln::cpu {
namespace {

// Bytes of a strip: half of the second caches that machines of the level have.
int64_t StripBytes(const CpuLevel& level) {
  if (level.amx) return 1 << 20;
  return level.vector_bytes == 64 ? 512 << 10 : 256 << 10;
}

// Bytes of the stack that a product takes for each row of A: in its slab, and of sums that wait.
int64_t StackOfRow(const BlockedDotPlan& p) {
  return (p.pack_a ? p.slab_stride * ByteWidth(p.held) : 0) +
         (p.via_tile ? p.columns.size * ByteWidth(p.tile_type) : 0);
}

// Rows of a strip, each of `bytes`: as many as stay in the second cache, or as pay for making panels of the other
// operands once more if they fit a large one; and no more than the stack holds beside those panels.
int64_t StripRows(const CpuLevel& level, const DotPlan& first, const DotPlan& second, int64_t bytes) {
  constexpr int64_t kFewest = 48, kStep = 32, kLargeStrip = 1 << 20, kStackBytes = 1280 << 10;
  const DotShape& s = first.shape;
  const int64_t stack = kStackBytes / (bytes + StackOfRow(first.blocked) + StackOfRow(second.blocked));
  const int64_t most = std::min({s.m, first.blocked.rows.size, second.blocked.rows.size, stack});
  const int64_t rows = std::min(most, std::max(StripBytes(level) / bytes, std::min(kFewest, kLargeStrip / bytes)));
  const int64_t strips = (s.m + rows - 1) / rows, even = (s.m + strips - 1) / strips;
  return std::min(rows, (even + kStep - 1) / kStep * kStep);
}

}  // namespace

bool TakesStrips(const Instruction* fusion) {
  if (!fusion->Is(Opcode::Fusion) || !fusion->attrs().backend_config) return false;
  return ConfigField(fusion->attrs().backend_config->text, "kind") == "strips";
}

const Instruction* WithoutBitcasts(const Instruction* i) {
  while (i->Is(Opcode::Bitcast)) i = i->operand(0);
  return i;
}

absl::StatusOr<StripPlan> PlanStrips(const CpuLevel& level, const Computation& f) {
  StripPlan p{};
  const auto fault = [&] {
    return ErrorAt(f.root(), "is no product of rows that are made of a product", absl::StatusCode::kInternal);
  };
  p.second_dot = f.root();
  if (!p.second_dot->Is(Opcode::Dot)) return fault();
  p.rows = WithoutBitcasts(p.second_dot->operand(0));
  if (!p.rows->Is(Opcode::Fusion) || !p.rows->shape().IsArray()) return fault();
  for (const Instruction* o : p.rows->operands())
    if (WithoutBitcasts(o)->Is(Opcode::Dot)) p.first_dot = WithoutBitcasts(o);
  if (!p.first_dot) return fault();
  ASSIGN_OR_RETURN(p.first, PlanDot(level, p.first_dot));
  ASSIGN_OR_RETURN(p.second, PlanDot(level, p.second_dot));
  const DotShape &first = p.first.shape, &second = p.second.shape;
  if (p.first.algorithm != DotAlgorithm::kProducts || p.second.algorithm != DotAlgorithm::kProducts ||
      first.batch != second.batch || first.m != second.m || first.n != second.k || second.a_k != 1)
    return fault();
  p.one_buffer = ByteWidth(first.c) == ByteWidth(second.a);
  const int64_t row_bytes = first.n * (ByteWidth(first.c) + (p.one_buffer ? 0 : ByteWidth(second.a)));
  const int64_t rows = StripRows(level, p.first, p.second, row_bytes);
  ASSIGN_OR_RETURN(p.first, PlanDot(level, p.first_dot, {}, 1, rows));
  ASSIGN_OR_RETURN(p.second, PlanDot(level, p.second_dot, {}, 1, rows));
  p.strips = Pieces::Of(first.m, rows);
  p.units = p.first.units;
  return p;
}

}  // namespace kiln::cpu
