// Independent work in one kernel: each nest of loops has blocks of its own, so that one launch serves all.
//
// Results join one nest where a thread can compute them together: loops over as many elements in the same order, and
// reductions of one form with the loops over what they reduce.
#include <algorithm>

#include "codegen/elemental/element.h"
#include "codegen/gpu/epilogue.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kTeam = 256;  // threads of a block, whatever it works on

bool Alone(const Instruction* o) {
  return o->Is(Opcode::Concatenate) || o->Is(Opcode::DynamicUpdateSlice) || o->Is(Opcode::Scatter) ||
         RunningDim(o) >= 0 || (!o->Is(Opcode::Reduce) && TurnsTiles(o));
}

const Shape& Reduced(const Instruction* reduce) { return reduce->operand(0)->shape(); }

bool OneNest(const Instruction* a, const Instruction* b) {
  if (Alone(a) || Alone(b)) return false;
  if (a->Is(Opcode::Reduce) && b->Is(Opcode::Reduce))
    return Reduced(a).dims() == Reduced(b).dims() && *a->attrs().dimensions == *b->attrs().dimensions;
  if (a->Is(Opcode::Reduce)) return Reduced(a).dims() == b->shape().dims();
  if (b->Is(Opcode::Reduce)) return Reduced(b).dims() == a->shape().dims();
  const Shape &x = a->shape(), &y = b->shape();
  if (x.dims() == y.dims()) return x.LayoutOrDefault().minor_to_major == y.LayoutOrDefault().minor_to_major;
  return x.ElementCount() == y.ElementCount() && x.HasDefaultLayout() && y.HasDefaultLayout();
}

int64_t Leaves(const Instruction* o) {
  return o->shape().IsTuple() ? static_cast<int64_t>(o->shape().tuple().size()) : 1;
}

absl::Status EmitOne(Body& body, const Outputs& outputs) {
  if (Reduces(outputs)) return EmitReduction(body, outputs);
  if (outputs[0]->Is(Opcode::DynamicUpdateSlice)) return EmitUpdate(body, outputs[0]);
  if (outputs[0]->Is(Opcode::Scatter)) return EmitScatter(body, outputs[0]);
  if (RunningDim(outputs[0]) >= 0) return EmitScan(body, outputs[0]);
  if (outputs.size() == 1) {
    ASSIGN_OR_RETURN(const bool done, EmitTransposedTiles(body, outputs[0]));
    if (done) return absl::OkStatus();
  }
  return EmitLoop(body, outputs);
}

}  // namespace

Outputs OutputsOf(const Computation& f) {
  if (!f.root()->Is(Opcode::Tuple)) return {f.root()};
  return Outputs(f.root()->operands().begin(), f.root()->operands().end());
}

bool Reduces(const Outputs& outputs) {
  if (outputs.size() == 1 && ReduceBehind(outputs[0])) return true;
  return std::any_of(outputs.begin(), outputs.end(), [](const Instruction* o) { return o->Is(Opcode::Reduce); });
}

std::vector<const Instruction*> NeededFor(const Outputs& outputs) {
  std::vector<const Instruction*> out;
  absl::flat_hash_set<const Instruction*> seen;
  for (const Instruction* i : outputs)
    if (seen.insert(i).second) out.push_back(i);
  for (size_t k = 0; k < out.size(); ++k)
    for (const Instruction* o : out[k]->operands())
      if (seen.insert(o).second) out.push_back(o);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Outputs> SegmentsOf(const Computation& f) {
  std::vector<Outputs> out;
  for (const Instruction* o : OutputsOf(f)) {
    const bool joins = !out.empty() && std::all_of(out.back().begin(), out.back().end(),
                                                   [&](const Instruction* other) { return OneNest(other, o); });
    if (!joins) out.emplace_back();
    out.back().push_back(o);
  }
  return out;
}

absl::Status EmitSegments(Body& body, const std::vector<Outputs>& segments) {
  Ir& ir = body.ir;
  llvm::Function* f = ir.b.GetInsertBlock()->getParent();
  llvm::Value* block = body.grid.Block();
  auto result = body.results.begin();
  body.threads = kTeam;
  body.blocks = 0;
  for (const Outputs& outputs : segments) {
    int64_t leaves = 0;
    for (const Instruction* o : outputs) leaves += Leaves(o);
    llvm::Value* own = ir.b.CreateSub(block, ir.I64(body.blocks));
    llvm::BasicBlock* from = ir.b.GetInsertBlock();
    auto* work = llvm::BasicBlock::Create(ir.ctx, "segment", f);
    auto* done = llvm::BasicBlock::Create(ir.ctx, "next", f);
    ir.b.SetInsertPoint(work);
    Body part{ir, body.target, Grid(ir, own), body.i, body.operands, {result, result + leaves}, body.scratch};
    part.team = kTeam;
    RETURN_IF_ERROR(EmitOne(part, outputs));
    ir.b.CreateBr(done);
    // How many blocks it takes is known only now.
    ir.b.SetInsertPoint(from);
    ir.b.CreateCondBr(ir.b.CreateICmpULT(own, ir.I64(part.blocks)), work, done);
    ir.b.SetInsertPoint(done);
    result += leaves;
    body.blocks += part.blocks;
  }
  return absl::OkStatus();
}

}  // namespace kiln::gpu
