#include "codegen/cpu/kernels.h"

#include <algorithm>
#include <cmath>

#include "codegen/cpu/convolution_plan.h"
#include "codegen/cpu/fusion.h"
#include "codegen/cpu/past_caches.h"
#include "codegen/cpu/strip_plan.h"
#include "codegen/elemental/element.h"
#include "codegen/elemental/product_behind.h"
#include "codegen/llvm/debug_info.h"
#include "codegen/llvm/gathers.h"
#include "codegen/llvm/row_questions.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kStackBytes = 512 << 10;  // working memory of an algorithm up to this lies on the stack

// A copy that changes the layout, element by element.
absl::StatusOr<int64_t> EmitCopy(Body& body) {
  Ir& ir = body.ir;
  const Shape &from = body.i->operand(0)->shape(), &to = body.i->shape();
  ElementEmitter elements(ir, {});
  std::vector<llvm::Value*> at(to.rank(), ir.I64(0));
  std::function<void(int64_t)> level = [&](int64_t d) {
    if (d == to.rank()) {
      ir.Store(to.type(), ir.Load(from.type(), body.operands[0], elements.Offset(from, Index{at})), body.results[0],
               elements.Offset(to, Index{at}));
      return;
    }
    ir.Loop(
        ir.I64(0), ir.I64(to.dim(d)), 1,
        [&](llvm::Value* i) {
          at[d] = i;
          level(d + 1);
        },
        d + 1 == to.rank());
  };
  level(0);
  return 1;
}

// Whether a fusion reads no numbers but bf16 and integers, and makes none of bits: a NaN then has the bits of an
// operand, or those that the machine gives its own.
bool NansAreShort(const Instruction* fusion) {
  if (!fusion->Is(Opcode::Fusion) || TakesStrips(fusion)) return false;
  const auto made = [](const std::unique_ptr<Instruction>& i) {
    const Shape& s = i->shape();
    if (i->Is(Opcode::BitcastConvert) || !s.IsArray()) return i->Is(Opcode::BitcastConvert);
    if (IsIntegral(s.type()) || s.type() == PrimitiveType::Pred || s.type() == PrimitiveType::BF16) return false;
    if (i->Is(Opcode::Parameter) || s.type() != PrimitiveType::F32) return true;
    return i->Is(Opcode::Constant) && !(i->literal().size() == 1 && !std::isnan(i->literal().Get(0).re));
  };
  const auto& all = (*fusion->attrs().calls)->instructions();
  return std::none_of(all.begin(), all.end(), made);
}

}  // namespace

std::vector<const Instruction*> ProductsOf(const Instruction* fusion) {
  if (!fusion->Is(Opcode::Fusion) || !fusion->attrs().fusion_kind ||
      *fusion->attrs().fusion_kind != FusionKind::kOutput)
    return {};
  std::vector<const Instruction*> out;
  for (const Instruction* root : ResultsOf((*fusion->attrs().calls)->root()))
    if (const Instruction* product = ProductBehind(root)) out.push_back(product);
  return out;
}

int64_t ScratchBytes(const Instruction* i) {
  if (const auto products = ProductsOf(i); !products.empty()) return ScratchBytes(products[0]);
  if (i->Is(Opcode::Convolution)) return ConvolutionScratchBytes(i);
  return LibraryScratchBytes(i, kStackBytes);
}

absl::StatusOr<Kernel> EmitKernel(Ir& ir, const std::string& symbol, const std::string& label, const Instruction* i,
                                  const std::set<int64_t>& shared) {
  DebugInfo::Function debug(ir, label, i);
  llvm::IRBuilder<>& b = ir.b;
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  const size_t operands = i->operands().size(), results = ArrayLeaves(i->shape()).size();
  // The body takes each address as a parameter, so that "does not alias" can be said; the kernel unpacks the table.
  std::vector<llvm::Type*> types(operands + results + 1, ptr);
  types.push_back(i64);
  types.push_back(i64);
  auto* body_fn = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                         llvm::Function::InternalLinkage, symbol + ".body", ir.module);
  body_fn->addFnAttr(llvm::Attribute::AlwaysInline);
  // LLVM's work on what does not alias is quadratic in the arrays that say so. Where there are many only the results
  // do, which are all that is written.
  constexpr size_t kMostNoAlias = 32;
  for (size_t k = operands + results > kMostNoAlias ? operands : 0;
       k < std::min(operands + results, operands + kMostNoAlias); ++k) {
    const bool alias = k < operands ? shared.count(static_cast<int64_t>(k)) > 0 : !shared.empty();
    if (!alias) body_fn->addParamAttr(static_cast<unsigned>(k), llvm::Attribute::NoAlias);
  }
  b.SetInsertPoint(llvm::BasicBlock::Create(ir.ctx, "entry", body_fn));
  b.setFastMathFlags({});
  Body body{ir,
            i,
            {},
            {},
            body_fn->getArg(static_cast<unsigned>(operands + results)),
            body_fn->getArg(static_cast<unsigned>(operands + results + 1)),
            body_fn->getArg(static_cast<unsigned>(operands + results + 2)),
            !shared.empty()};
  for (size_t k = 0; k < operands; ++k) body.operands.push_back(body_fn->getArg(static_cast<unsigned>(k)));
  for (size_t k = 0; k < results; ++k) body.results.push_back(body_fn->getArg(static_cast<unsigned>(operands + k)));
  if (!ir.on_overrun.empty()) {
    ir.bounds.clear();
    const auto watch = [&](llvm::Value* array, const Shape& s, const std::string& role) {
      ir.bounds[array] = {s.ElementCount(), absl::StrCat(i->name(), ": ", role, " ", s.ToString(false))};
    };
    for (size_t k = 0; k < operands; ++k)
      if (i->operand(static_cast<int64_t>(k))->shape().IsArray())
        watch(body.operands[k], i->operand(static_cast<int64_t>(k))->shape(),
              absl::StrCat("operand ", k, " (", i->operand(static_cast<int64_t>(k))->name(), ")"));
    const std::vector<Shape> leaves = ArrayLeaves(i->shape());
    for (size_t k = 0; k < results; ++k) watch(body.results[k], leaves[k], absl::StrCat("result ", k));
  }
  ir.masked_stores = shared.empty();
  ir.nans_are_short = NansAreShort(i);
  absl::StatusOr<int64_t> units;
  switch (i->opcode()) {
    case Opcode::Fusion:
      units = EmitFusion(body);
      break;
    case Opcode::Dot:
      units = EmitDot(body);
      break;
    case Opcode::Convolution:
      units = EmitConvolution(body);
      break;
    case Opcode::Copy:
      units = EmitCopy(body);
      break;
    default:
      units = EmitLibrary(body, kStackBytes);
  }
  if (!units.ok()) return units.status();
  FencePastCaches(ir);
  b.CreateRetVoid();
  // The call below has no line: what is inlined there keeps its own, as part of the kernel.
  b.SetCurrentDebugLocation({});
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, i64}, false),
                                   llvm::Function::ExternalLinkage, symbol, ir.module);
  f->setVisibility(llvm::GlobalValue::HiddenVisibility);
  if (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution) || TakesStrips(i) || !ProductsOf(i).empty())
    f->addFnAttr(kCallsMicroKernels);
  if (body_fn->hasFnAttribute(kAsksOfRows)) f->addFnAttr(kAsksOfRows);
  b.SetInsertPoint(llvm::BasicBlock::Create(ir.ctx, "entry", f));
  std::vector<llvm::Value*> args;
  for (size_t k = 0; k < operands + results + 1; ++k) {
    auto* address = b.CreateLoad(ptr, b.CreateInBoundsGEP(ptr, f->getArg(0), ir.I64(static_cast<int64_t>(k))));
    args.push_back(address);
    if (k >= operands || !body_fn->hasParamAttribute(static_cast<unsigned>(k), llvm::Attribute::NoAlias)) continue;
    const Shape& s = i->operand(static_cast<int64_t>(k))->shape();
    if (s.IsArray() && s.ByteSize() > 0) MarkArray(address, s.ByteSize());
  }
  args.push_back(f->getArg(1));
  args.push_back(f->getArg(2));
  b.CreateCall(body_fn, args);
  b.CreateRetVoid();
  debug.Becomes(f, body_fn);
  // Inside the entry a small kernel needs no table; a large one would only slow down LLVM, which takes the entry whole.
  constexpr unsigned kWorthInlining = 100;
  if (body_fn->getInstructionCount() > kWorthInlining) f->addFnAttr(llvm::Attribute::NoInline);
  return Kernel{f, *units};
}

}  // namespace kiln::cpu
