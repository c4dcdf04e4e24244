// Kernels of fusions: the root decides what a thread is for, the element emitter computes what it visits.
#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

// Elements that one thread computes, side by side along the minor dimension, so that they travel together.
int64_t VectorWidth(const Outputs& outputs) {
  const Shape& s = outputs[0]->shape();
  constexpr int64_t kEnoughThreads = 1 << 16, kVectorBytes = 16;
  constexpr size_t kShortBody = 60;
  const std::vector<const Instruction*> needed = NeededFor(outputs);
  if (s.rank() == 0 || !s.HasDefaultLayout() || needed.size() > kShortBody) return 1;
  int64_t widest = 1;
  for (const Instruction* o : outputs)
    if (o->shape().dims() != s.dims()) return 1;
  for (const Instruction* i : needed) {
    if (i->Is(Opcode::ReduceWindow) || i->Is(Opcode::Gather) || i->Is(Opcode::Reduce)) return 1;
    if (i->shape().IsArray())
      widest = std::max(widest, i->shape().ByteSize() / std::max<int64_t>(1, i->shape().ElementCount()));
  }
  for (int64_t v = 4; v > 1; v /= 2)
    if (s.dims().back() % v == 0 && s.ElementCount() / v >= kEnoughThreads && v * widest <= 2 * kVectorBytes) return v;
  return 1;
}

// Each operand's elements by threads of their own branch: no element asks which operand it lies in.
absl::Status EmitConcatenate(Body& body, const Instruction* root, ElementEmitter& elements) {
  Ir& ir = body.ir;
  const Shape& s = root->shape();
  const int64_t d = (*root->attrs().dimensions)[0];
  return ForEach(body, s.ElementCount(), [&](llvm::Value* place) -> absl::Status {
    const std::vector<llvm::Value*> at = Delinearize(ir, place, s.dims(), MemoryOrder(s));
    int64_t base = 0;
    absl::Status status;
    for (const Instruction* o : root->operands()) {
      const int64_t extent = o->shape().dim(d);
      if (extent == 0) continue;
      llvm::Value* within = ir.b.CreateSub(at[d], ir.I64(base));
      ir.If(ir.b.CreateICmpULT(within, ir.I64(extent)), [&] {
        Index from{at};
        from.dims[d] = within;
        auto v = elements.Emit(o, from);
        if (v.ok())
          ir.Store(s.type(), *v, body.results[0], elements.Offset(s, Index{at}));
        else
          status = v.status();
      });
      RETURN_IF_ERROR(status);
      base += extent;
    }
    return absl::OkStatus();
  });
}

absl::Status EmitWindows(Body& body, const Instruction* root, ElementEmitter& elements) {
  Ir& ir = body.ir;
  const Shape& s = root->shape().tuple()[0];
  return ForEach(body, s.ElementCount(), [&](llvm::Value* place) -> absl::Status {
    const Index at{Delinearize(ir, place, s.dims(), MemoryOrder(s))};
    ASSIGN_OR_RETURN(std::vector<Val> values, elements.EmitWindow(root, at));
    for (size_t k = 0; k < values.size(); ++k) {
      const Shape& leaf = root->shape().tuple()[k];
      ir.Store(leaf.type(), values[k], body.results[k], elements.Offset(leaf, at));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status EmitLoop(Body& body, const Outputs& outputs) {
  Ir& ir = body.ir;
  ElementEmitter elements(ir, body.operands);
  const Instruction* root = outputs[0];
  if (outputs.size() == 1 && root->Is(Opcode::Concatenate)) return EmitConcatenate(body, root, elements);
  if (root->Is(Opcode::ReduceWindow) && root->shape().IsTuple()) return EmitWindows(body, root, elements);
  const Shape& s = root->shape();
  const int64_t width = VectorWidth(outputs);
  return ForEach(body, s.ElementCount() / width, [&](llvm::Value* place) -> absl::Status {
    llvm::Value* first = ir.Mul(place, width);
    const std::vector<llvm::Value*> at = Delinearize(ir, first, s.dims(), MemoryOrder(s));
    // All are computed before any is stored: a result may lie where an operand lay.
    std::vector<std::vector<Val>> values(outputs.size());
    std::vector<std::vector<Index>> places(outputs.size());
    for (int64_t w = 0; w < width; ++w) {
      Index x{at};
      if (s.HasDefaultLayout()) x.linear = w ? ir.Add(first, ir.I64(w)) : first;
      if (w) x.dims.back() = ir.Add(at.back(), ir.I64(w));
      for (size_t k = 0; k < outputs.size(); ++k) {
        const Shape& leaf = outputs[k]->shape();
        if (leaf.dims() == s.dims())
          places[k].push_back(x);
        else
          places[k].push_back(Index{Delinearize(ir, first, leaf.dims(), MemoryOrder(leaf)), first});
        ASSIGN_OR_RETURN(Val v, elements.Emit(outputs[k], places[k].back()));
        values[k].push_back(v);
      }
    }
    for (size_t k = 0; k < outputs.size(); ++k)
      for (size_t w = 0; w < places[k].size(); ++w) {
        const Shape& leaf = outputs[k]->shape();
        ir.Store(leaf.type(), values[k][w], body.results[k], elements.Offset(leaf, places[k][w]));
      }
    return absl::OkStatus();
  });
}

absl::Status EmitUpdate(Body& body, const Instruction* root) {
  Ir& ir = body.ir;
  ElementEmitter elements(ir, body.operands);
  const Shape &s = root->shape(), &u = root->operand(1)->shape();
  return ForEach(body, u.ElementCount(), [&](llvm::Value* place) -> absl::Status {
    const std::vector<llvm::Value*> at = Delinearize(ir, place, u.dims(), MemoryOrder(s));
    ASSIGN_OR_RETURN(Val v, elements.Emit(root->operand(1), Index{at}));
    Index to{at};
    for (int64_t d = 0; d < s.rank(); ++d) {
      ASSIGN_OR_RETURN(llvm::Value * start, elements.ClampedStart(root->operand(2 + d), Index{}, s.dim(d), u.dim(d)));
      to.dims[d] = ir.Add(at[d], start);
    }
    ir.Store(s.type(), v, body.results[0], elements.Offset(s, to));
    return absl::OkStatus();
  });
}

absl::Status EmitFusion(Body& body) {
  const Computation& f = **body.i->attrs().calls;
  if (body.i->attrs().fusion_kind == FusionKind::kCustom) {
    const auto& config = body.i->attrs().backend_config;
    if (config && config->text.find("block_level") != std::string::npos) return EmitRows(body, f);
    if (config && config->text.find("__triton_gemm") != std::string::npos) return EmitProductFusion(body, f);
    return ErrorAt(body.i, "no kernel is known for this kind of fusion", absl::StatusCode::kUnimplemented);
  }
  if (const std::vector<Outputs> segments = SegmentsOf(f); segments.size() > 1) return EmitSegments(body, segments);
  const Outputs outputs = OutputsOf(f);
  if (Reduces(outputs)) return EmitReduction(body, outputs);
  if (RunningDim(f.root()) >= 0) return EmitScan(body, f.root());
  switch (f.root()->opcode()) {
    case Opcode::DynamicUpdateSlice:
      return EmitUpdate(body, f.root());
    case Opcode::Scatter:
      return EmitScatter(body, f.root());
    default: {
      ASSIGN_OR_RETURN(bool done, EmitTransposedTiles(body, f.root()));
      return done ? absl::OkStatus() : EmitLoop(body, outputs);
    }
  }
}

}  // namespace kiln::gpu
