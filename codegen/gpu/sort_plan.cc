#include "codegen/gpu/sort_plan.h"

#include <algorithm>

namespace kiln::gpu {
namespace {

constexpr int64_t kMostSlots = 4096, kFewestSlots = 256;  // of a tile
constexpr int64_t kMostSharedBytes = 40 << 10;
constexpr int64_t kMostThreads = 512, kSlotsPerThread = 8;
constexpr int64_t kBusy = 256;  // blocks that fill a GPU

int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

SortPlan::SortPlan(const Instruction* sort) {
  const Shape& s = sort->operand(0)->shape();
  const int64_t dim = s.rank() ? (sort->attrs().dimensions ? (*sort->attrs().dimensions)[0] : s.rank() - 1) : 0;
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (d < dim) outer *= s.dim(d);
    if (d == dim) n = s.dim(d);
    if (d > dim) inner *= s.dim(d);
  }
  int64_t bytes = 2 * static_cast<int64_t>(sizeof(uint16_t));
  for (size_t k = 0; k < sort->operands().size(); ++k)
    if (Compares(sort, k)) bytes += ByteWidth(sort->operand(static_cast<int64_t>(k))->shape().type());
  int64_t most = kMostSlots;
  while (most > 2 && most * bytes > kMostSharedBytes) most /= 2;
  while (room < n && room < most) room *= 2;
  while (room * rows < most && rows < outer * inner) rows *= 2;
  while (rows > 1 && slots() > kFewestSlots && blocks() < kBusy) rows /= 2;
  tiles = (n + room - 1) / room;
  while (room << merges < n) ++merges;
}

int64_t SortPlan::threads() const { return std::clamp(slots() / kSlotsPerThread, kWarp, kMostThreads); }

int SortPlan::levels() const {
  int out = 0;
  while (int64_t{1} << out < room) ++out;
  return out;
}

bool Compares(const Instruction* sort, size_t k) {
  const Computation& less = **sort->attrs().to_apply;
  for (const int64_t side : {0, 1}) {
    const Instruction* p = less.parameter(2 * static_cast<int64_t>(k) + side);
    if (!p->users().empty() || p == less.root()) return true;
  }
  return false;
}

SortResults::SortResults(const Instruction* i, const Instruction* sort) : plain(sort->operands().size(), -1) {
  const Instruction* root = i == sort ? sort : (*i->attrs().calls)->root();
  if (root == sort) {
    for (size_t k = 0; k < plain.size(); ++k) plain[k] = static_cast<int64_t>(k);
    return;
  }
  const Outputs results =
      root->Is(Opcode::Tuple) ? Outputs(root->operands().begin(), root->operands().end()) : Outputs{root};
  for (size_t o = 0; o < results.size(); ++o) {
    const Instruction* r = results[o];
    const bool part = r->Is(Opcode::GetTupleElement) && r->operand(0) == sort;
    const int64_t k = r == sort ? 0 : part ? *r->attrs().tuple_index : -1;
    if (k >= 0 && plain[static_cast<size_t>(k)] < 0)
      plain[static_cast<size_t>(k)] = static_cast<int64_t>(o);
    else
      made.emplace_back(o, r);
  }
}

SortScratch::SortScratch(const Instruction* i, const Instruction* sort) {
  const SortPlan plan(sort);
  if (plan.merges == 0) return;
  bytes = Aligned(4 * (plan.merges + 2));
  const SortResults results(i, sort);
  for (size_t k = 0; k < results.plain.size(); ++k)
    for (const bool other : {false, true}) {
      if (other && (plan.merges < 2 || results.plain[k] >= 0)) continue;
      (other ? others : copies)[k] = bytes;
      bytes += Aligned(sort->operand(static_cast<int64_t>(k))->shape().ByteSize());
    }
}

}  // namespace kiln::gpu
