// Kernels that visit the same elements become one with several results: loops over one shape that share an operand or
// feed each other, and reductions of equal form, or with loops over as many elements, that read one array. A loop whose
// result is read element by element, or reduced, and needed elsewhere too is written by the kernel that reads it.
#include <algorithm>
#include <optional>
#include <set>

#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

constexpr int64_t kMostOperands = 96, kMostArrays = 48, kMostShared = 20 << 10;
constexpr int64_t kMostInstructions = 800;  // of a loop that takes another

std::vector<Instruction*> ResultsOf(const Instruction* fusion) {
  Instruction* root = (*fusion->attrs().calls)->root();
  return root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{root};
}

// What a kernel visits: the elements of its results, or those that it reduces.
const Shape& Visited(const Instruction* result) {
  return result->Is(Opcode::Reduce) ? result->operand(0)->shape() : result->shape();
}

// A kernel of loops and reductions that visit equally many elements.
bool Joins(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || i->users().empty() || !i->control_predecessors().empty() ||
      !i->control_successors().empty())
    return false;
  const std::vector<Instruction*> results = ResultsOf(i);
  return std::all_of(results.begin(), results.end(), [&](const Instruction* r) {
    return (r->Is(Opcode::Reduce) ? i->attrs().fusion_kind == FusionKind::kInput
                                  : r->IsElementwise() && r->shape().IsArray() && r->shape().HasDefaultLayout()) &&
           Visited(r).ElementCount() == Visited(results[0]).ElementCount();
  });
}

// The reduction among the results, if there is one.
const Instruction* ReduceOf(const Instruction* fusion) {
  for (const Instruction* r : ResultsOf(fusion))
    if (r->Is(Opcode::Reduce)) return r;
  return nullptr;
}

bool SameForm(const Instruction* a, const Instruction* b) {
  return a->operand(0)->shape().dims() == b->operand(0)->shape().dims() &&
         *a->attrs().dimensions == *b->attrs().dimensions;
}

// What the threads of a block exchange, at most: an element each for every reduction.
int64_t SharedBytes(const Instruction* fusion) {
  constexpr int64_t kThreads = 1024;
  int64_t bytes = 0;
  for (const Instruction* r : ResultsOf(fusion))
    for (int64_t k = 0; r->Is(Opcode::Reduce) && k < r->operand_count() / 2; ++k)
      bytes += kThreads * ByteWidth(r->operand(k)->shape().type());
  return bytes;
}

// Reductions of one form, a loop over what a reduction reads, or loops of several results; loops of one result are
// joined by CpuMultiOutputFusion.
bool Alike(const Instruction* a, const Instruction* b) {
  const Instruction *x = ReduceOf(a), *y = ReduceOf(b);
  const int64_t operands = a->operand_count() + b->operand_count();
  if (operands > kMostOperands) return false;
  if (x && y) return SameForm(x, y) && SharedBytes(a) + SharedBytes(b) <= kMostShared;
  const Shape &visited = Visited(ResultsOf(a)[0]), &others = Visited(ResultsOf(b)[0]);
  if (x || y) return visited.ElementCount() == others.ElementCount();
  const bool several = ResultsOf(a).size() > 1 || ResultsOf(b).size() > 1;
  return several && operands + static_cast<int64_t>(ResultsOf(a).size() + ResultsOf(b).size()) <= kMostArrays &&
         visited.dims() == others.dims();
}

// Whether kernel `i` reads its operand `k` only at the elements that it visits, as a loop over them writes it.
bool ReadsWhatItVisits(const Instruction* i, int64_t k) {
  std::vector<const Instruction*> work = {(*i->attrs().calls)->parameter(k)};
  absl::flat_hash_set<const Instruction*> seen;
  const Ints dims = work[0]->shape().dims();
  while (!work.empty()) {
    const Instruction* v = work.back();
    work.pop_back();
    if (!seen.insert(v).second) continue;
    if (v->shape().dims() != dims) return false;
    for (const Instruction* u : v->users()) {
      if (u->Is(Opcode::Reduce) && u->operand(0) == v && u->operand_count() == 2) continue;
      if (u->Is(Opcode::Tuple)) continue;
      if (!u->IsElementwise()) return false;
      work.push_back(u);
    }
  }
  return true;
}

int64_t ArraysOf(const Instruction* fusion) {
  return fusion->operand_count() + static_cast<int64_t>(ResultsOf(fusion).size());
}

int64_t InstructionsOf(const Instruction* fusion) { return (*fusion->attrs().calls)->instruction_count(); }

// A loop with other readers too, and a kernel over the elements that it writes: the kernel computes and writes them.
bool TakesProducer(Instruction* loop, Instruction* kernel, const Reachability& reach) {
  if (!loop->shape().IsArray() || ReduceOf(loop) || loop->users().size() < 2 ||
      loop->operand_count() + kernel->operand_count() > kMostOperands)
    return false;
  const Instruction* reduce = ReduceOf(kernel);
  if (!reduce && InstructionsOf(loop) + InstructionsOf(kernel) > kMostInstructions) return false;
  // A transposed array is read by blocks, which takes a kernel of its own.
  for (const auto& i : (*loop->attrs().calls)->instructions())
    if (i->Is(Opcode::Transpose)) return false;
  const int64_t k = kernel->OperandIndex(loop);
  if (Visited(reduce ? reduce : ResultsOf(kernel)[0]).dims() != loop->shape().dims() || !ReadsWhatItVisits(kernel, k))
    return false;
  return std::none_of(loop->users().begin(), loop->users().end(),
                      [&](const Instruction* u) { return u != kernel && reach.Reaches(u, kernel); });
}

// A loop that reads results of a loop of several at the elements where that writes them joins it.
bool TakesReader(Instruction* loop, Instruction* reader, const Reachability& reach) {
  if (!loop->shape().IsTuple() || ReduceOf(loop) || ReduceOf(reader) ||
      ResultsOf(loop)[0]->shape().dims() != ResultsOf(reader)[0]->shape().dims() ||
      ArraysOf(loop) + ArraysOf(reader) > kMostArrays ||
      InstructionsOf(loop) + InstructionsOf(reader) > kMostInstructions)
    return false;
  for (int64_t k = 0; k < reader->operand_count(); ++k) {
    const Instruction* o = reader->operand(k);
    const bool result = o->Is(Opcode::GetTupleElement) && o->operand(0) == loop;
    if (result ? !ReadsWhatItVisits(reader, k) : reach.Reaches(loop, o)) return false;
  }
  return true;
}

bool ReadOne(Computation* c, PassContext& ctx) {
  if (!Reachability::Affordable(c)) return false;
  std::optional<Reachability> reach;
  for (Instruction* a : c->PostOrder()) {
    if (!a->shape().IsTuple() || !Joins(a)) continue;
    for (const Instruction* e : a->users())
      for (Instruction* u : e->users()) {
        if (!e->Is(Opcode::GetTupleElement) || !Joins(u)) continue;
        if (!reach) reach.emplace(c);
        if (!TakesReader(a, u, *reach) || !ctx.Take()) continue;
        FuseSiblings(a, u);
        return true;
      }
  }
  return false;
}

bool PairOne(Computation* c, PassContext& ctx) {
  std::vector<Instruction*> kernels;
  absl::flat_hash_map<const Instruction*, size_t> place;
  for (Instruction* i : c->PostOrder())
    if (Joins(i)) {
      place[i] = kernels.size();
      kernels.push_back(i);
    }
  if (kernels.size() < 2 || !Reachability::Affordable(c)) return false;
  const Reachability reach(c);
  for (Instruction* a : kernels) {
    std::set<size_t> siblings;  // later kernels that read what `a` reads
    for (const Instruction* o : a->operands())
      if (o->shape().ElementCount() > 1)
        for (const Instruction* u : o->users())
          if (const auto at = place.find(u); at != place.end() && at->second > place.at(a)) siblings.insert(at->second);
    for (Instruction* u : std::vector<Instruction*>(a->users())) {
      if (!place.contains(u) || !TakesProducer(a, u, reach) || !ctx.Take()) continue;
      const bool reduces = ReduceOf(u);
      FuseSiblings(a, FuseInto(a, u))->mutable_attrs().fusion_kind = reduces ? FusionKind::kInput : FusionKind::kLoop;
      return true;
    }
    for (const size_t y : siblings) {
      if (!Alike(a, kernels[y]) || reach.Reaches(a, kernels[y]) || !ctx.Take()) continue;
      const bool reduces = ReduceOf(a) || ReduceOf(kernels[y]);
      FuseSiblings(a, kernels[y])->mutable_attrs().fusion_kind = reduces ? FusionKind::kInput : FusionKind::kLoop;
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> GpuMultiOutputFusion(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(bool changed, CpuMultiOutputFusion(m, ctx));
  for (Computation* c : ControlComputations(m))
    while (PairOne(c, ctx) || ReadOne(c, ctx)) changed = true;
  return changed;
}

}  // namespace kiln
