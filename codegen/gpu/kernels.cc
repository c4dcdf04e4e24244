#include "codegen/gpu/kernels.h"

#include "codegen/elemental/element.h"
#include "codegen/elemental/library.h"

namespace kiln::gpu {
Ints MemoryOrder(const Shape& s) {
  const Layout l = s.LayoutOrDefault();
  return Ints(l.minor_to_major.rbegin(), l.minor_to_major.rend());
}

std::vector<llvm::Value*> Delinearize(Ir& ir, llvm::Value* linear, const Ints& dims, const Ints& order) {
  std::vector<llvm::Value*> at(dims.size(), ir.I64(0));
  size_t outermost = order.size();
  for (size_t k = 0; k < order.size() && outermost == order.size(); ++k)
    if (dims[order[k]] != 1) outermost = k;
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t d = order[k];
    if (dims[d] == 1) continue;
    if (k == outermost) {
      at[d] = linear;
      break;
    }
    at[d] = ir.b.CreateURem(linear, ir.I64(dims[d]));
    linear = ir.b.CreateUDiv(linear, ir.I64(dims[d]));
  }
  return at;
}

absl::Status ForEach(Body& body, int64_t count, const std::function<absl::Status(llvm::Value*)>& visit) {
  constexpr int64_t kThreads = 256;
  body.threads = body.team ? body.team : std::min(kThreads, (count + kWarp - 1) / kWarp * kWarp);
  if (count == 0) return absl::OkStatus();
  body.blocks = (count + body.threads - 1) / body.threads;
  Ir& ir = body.ir;
  llvm::Value* place = ir.Add(ir.Mul(body.grid.Block(), body.threads), body.grid.Thread());
  absl::Status status;
  if (count % body.threads == 0) return visit(place);
  ir.If(ir.b.CreateICmpULT(place, ir.I64(count)), [&] { status = visit(place); });
  return status;
}

absl::Status EmitCopy(Body& body) {
  Ir& ir = body.ir;
  const Shape &from = body.i->operand(0)->shape(), &to = body.i->shape();
  ElementEmitter elements(ir, {});
  return ForEach(body, to.ElementCount(), [&](llvm::Value* place) {
    const Index at{Delinearize(ir, place, to.dims(), MemoryOrder(to))};
    ir.Store(to.type(), ir.Load(from.type(), body.operands[0], elements.Offset(from, at)), body.results[0],
             elements.Offset(to, at));
    return absl::OkStatus();
  });
}

// A thread for each unit: units may lie on different processors.
absl::Status EmitSerial(Body& body) {
  body.threads = 1;
  llvm::Value* unit = body.grid.Block();
  kiln::Body serial{
      body.ir, body.i, body.operands, body.results, body.scratch, unit, body.ir.Add(unit, body.ir.I64(1))};
  ASSIGN_OR_RETURN(body.blocks, EmitLibrary(serial, 0));
  return absl::OkStatus();
}

int64_t ScratchBytes(const Instruction* i) {
  if (SortOf(i)) return MergeScratchBytes(i);
  if (i->Is(Opcode::TopK)) return SelectionScratchBytes(i);
  if (TransformOf(i)) return FftScratchBytes(i);
  if (i->Is(Opcode::RaggedAllToAll)) return i->operand(4)->shape().ByteSize();  // the other devices' offsets
  return LibraryScratchBytes(i, 0);
}

absl::StatusOr<Launch> EmitFunction(Ir& ir, const GpuTarget& target, const std::string& symbol, const Instruction* i,
                                    const std::set<int64_t>& shared, const std::function<absl::Status(Body&)>& emit) {
  llvm::IRBuilder<>& b = ir.b;
  const size_t operands = i->operands().size(), results = ArrayLeaves(i->shape()).size();
  const std::vector<llvm::Type*> types(operands + results + 1, b.getPtrTy());
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                   llvm::Function::ExternalLinkage, symbol, ir.module);
  for (size_t k = 0; k < operands + results; ++k) {
    const bool alias = k < operands ? shared.count(static_cast<int64_t>(k)) > 0 : !shared.empty();
    if (!alias) f->addParamAttr(static_cast<unsigned>(k), llvm::Attribute::NoAlias);
    f->addParamAttr(static_cast<unsigned>(k), llvm::Attribute::getWithAlignment(ir.ctx, llvm::Align(16)));
  }
  b.SetInsertPoint(llvm::BasicBlock::Create(ir.ctx, "entry", f));
  b.setFastMathFlags({});
  const auto argument = [&](size_t k) { return f->getArg(static_cast<unsigned>(k)); };
  Body body{ir, target, Grid(ir), i, {}, {}, argument(operands + results)};
  for (size_t k = 0; k < operands; ++k) body.operands.push_back(argument(k));
  for (size_t k = 0; k < results; ++k) body.results.push_back(argument(operands + k));
  RETURN_IF_ERROR(emit(body));
  b.CreateRetVoid();
  f->addFnAttr(kKernel, std::to_string(body.threads));
  return Launch{symbol, body.blocks, body.threads};
}

absl::StatusOr<std::vector<Launch>> EmitKernel(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                               const Instruction* i, const std::set<int64_t>& shared) {
  if (SortOf(i)) return EmitSort(ir, target, symbol, i, shared);
  if (i->Is(Opcode::TopK)) return EmitTopK(ir, target, symbol, i, shared);
  if (TransformOf(i)) return EmitFft(ir, target, symbol, i, shared);
  const auto family = i->Is(Opcode::Fusion)            ? EmitFusion
                      : i->Is(Opcode::Copy)            ? EmitCopy
                      : i->Is(Opcode::Dot)             ? EmitDot
                      : i->Is(Opcode::Convolution)     ? EmitConvolution
                      : i->Is(Opcode::Cholesky)        ? EmitCholesky
                      : i->Is(Opcode::TriangularSolve) ? EmitTriangularSolve
                                                       : EmitSerial;
  ASSIGN_OR_RETURN(Launch launch, EmitFunction(ir, target, symbol, i, shared, family));
  return std::vector<Launch>{launch};
}

}  // namespace kiln::gpu
