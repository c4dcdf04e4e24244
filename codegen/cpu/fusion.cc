#include "codegen/cpu/fusion.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "codegen/cpu/collapse.h"
#include "codegen/cpu/moved_bits.h"
#include "codegen/cpu/strip_plan.h"
#include "compiler/analysis/overwritten.h"
#include "compiler/analysis/row_stencil.h"

namespace kiln::cpu {
namespace {

// Where dynamic slices begin is computed once, before the loops: LLVM leaves a load in a loop that some elements do
// not need, as in one that asks what is padding, and makes no vectors of it.
absl::Status EmitStarts(FusionBody& fusion) {
  for (const auto& i : fusion.f.instructions()) {
    if (!i->Is(Opcode::DynamicSlice)) continue;
    for (int64_t k = 1; k < i->operand_count(); ++k) {
      ASSIGN_OR_RETURN(const Val start, fusion.elements.Emit(i->operand(k), Index{}));
      fusion.elements.Preset(i->operand(k), start);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> EmitByRoot(FusionBody fusion) {
  RETURN_IF_ERROR(EmitStarts(fusion));
  const Instruction* root = fusion.f.root();
  switch (root->opcode()) {
    case Opcode::Reduce:
      return EmitReduce(fusion, root);
    case Opcode::Tuple:
      return root->operand(0)->Is(Opcode::Reduce) ? EmitReduce(fusion, root) : EmitLoops(fusion, root);
    case Opcode::DynamicUpdateSlice:
      return EmitUpdate(fusion, root);
    case Opcode::Scatter:
      return EmitScatter(fusion, root);
    case Opcode::SelectAndScatter:
      return EmitSelectAndScatter(fusion, root);
    case Opcode::Concatenate:
      return EmitConcatenate(fusion, root);
    case Opcode::ReduceWindow:
      if (root->operand_count() > 2) return EmitVariadicWindow(fusion, root);
      if (RunningDim(root) >= 0) return EmitScan(fusion, root, RunningDim(root));
      [[fallthrough]];
    default:
      return EmitLoops(fusion, root);
  }
}

}  // namespace

absl::StatusOr<int64_t> EmitFusion(Body& body) {
  if (StartsOverwritten(body.i)) return 1;
  const Computation& f = **body.i->attrs().calls;
  if (const auto& config = body.i->attrs().backend_config; config && absl::StrContains(config->text, "block_level")) {
    FusionBody fusion(body, f);
    const std::vector<Instruction*> order = f.PostOrder();
    const auto reduce = std::find_if(order.begin(), order.end(), [](auto* i) { return i->Is(Opcode::Reduce); });
    return reduce != order.end() && ColumnsSideBySide(*reduce) > 1 ? EmitColumns(fusion) : EmitRows(fusion);
  }
  if (const auto& config = body.i->attrs().backend_config; config && absl::StrContains(config->text, kRowsInPlace)) {
    FusionBody fusion(body, f);
    return EmitRowsInPlace(fusion);
  }
  if (TakesStrips(body.i)) return EmitStrips(body, f);
  if (const auto products = ProductsOf(body.i); !products.empty()) return EmitProducts(body, f, products);
  const auto moved = AsMovedBits(f);
  const Computation& elements = moved ? *moved->entry() : f;
  if (const auto collapsed = Collapse(elements)) return EmitByRoot({body, *collapsed->entry()});
  return EmitByRoot({body, elements});
}

Index IndexIn(const Shape& shape, std::vector<llvm::Value*> dims) {
  Index x{std::move(dims)};
  if (shape.rank() == 1) x.linear = x.dims[0];
  return x;
}

Ints LoopOrder(const Shape& s) {
  Layout l = s.LayoutOrDefault();
  return Ints(l.minor_to_major.rbegin(), l.minor_to_major.rend());
}

int64_t Units(const Ints& dims, const Ints& order) { return order.empty() ? 1 : dims[order[0]]; }

Ints UsefulFirst(const Ints& dims, Ints order) {
  std::stable_partition(order.begin(), order.end(), [&](int64_t d) { return dims[d] != 1; });
  return order;
}

Ints UsefulLoops(const Shape& s) {
  Ints order = UsefulFirst(s.dims(), LoopOrder(s));
  while (!order.empty() && s.dim(order.back()) == 1) order.pop_back();
  return order;
}

std::vector<const Instruction*> ResultsOf(const Instruction* root) {
  if (!root->Is(Opcode::Tuple)) return {root};
  return {root->operands().begin(), root->operands().end()};
}

void FusionBody::StoreResult(size_t k, const Shape& s, const Val& v, const Index& x) {
  if (k < aside.size() && aside[k]) return ir.Store(s.type(), v, aside[k], aside_at);
  ir.Store(s.type(), v, body.results[k], elements.Offset(s, x));
}

absl::Status EmitElements(FusionBody& fusion, const std::vector<const Instruction*>& results,
                          const std::vector<llvm::Value*>& at) {
  const Index x = IndexIn(results[0]->shape(), at);
  std::vector<Val> values;
  for (const Instruction* r : results) {
    ASSIGN_OR_RETURN(Val v, fusion.elements.Emit(r, x));
    values.push_back(v);
  }
  for (size_t k = 0; k < values.size(); ++k) fusion.StoreResult(k, results[k]->shape(), values[k], x);
  return absl::OkStatus();
}

std::vector<Shape> Leaves(const Shape& s) { return s.IsTuple() ? s.tuple() : std::vector<Shape>{s}; }

absl::Status Nest(FusionBody& fusion, const Ints& dims, const Ints& order,
                  const std::function<absl::Status(std::vector<llvm::Value*>)>& visit, bool parallel, bool units) {
  Ir& ir = fusion.ir;
  absl::Status status;
  std::vector<llvm::Value*> at(dims.size(), ir.I64(0));
  // The last that loops: UsefulFirst has extents of 1 behind it.
  size_t innermost = 0;
  for (size_t k = 0; k < order.size(); ++k)
    if (dims[order[k]] != 1) innermost = k;
  std::function<void(size_t)> level = [&](size_t k) {
    if (!status.ok()) return;
    if (k == order.size()) {
      status = visit(at);
      return;
    }
    const int64_t d = order[k];
    const bool first = k == 0 && units;
    const auto step = [&](llvm::Value* i) {
      at[d] = i;
      level(k + 1);
    };
    const bool inner = parallel && k == innermost;
    if (first)
      ir.Loop(fusion.body.begin, fusion.body.end, 1, step, inner);
    else if (inner)
      ir.VectorLoop(dims[d], step, true);
    else
      ir.Loop(ir.I64(0), ir.I64(dims[d]), 1, step);
  };
  level(0);
  return status;
}

Slots::Slots(Ir& ir, PrimitiveType type, int64_t count)
    : ir_(ir), type_(type), base_(ir.Alloca(PartType(), count * (IsComplex(type) ? 2 : 1))) {}

// Integers of less than a byte take one: LLVM makes no vectors of others in memory.
llvm::Type* Slots::PartType() const {
  llvm::Type* type = ir_.RegType(type_);
  return type->isIntegerTy() && type->getIntegerBitWidth() < 8 ? ir_.b.getInt8Ty() : type;
}

llvm::Value* Slots::PartAt(llvm::Value* part) const { return ir_.b.CreateInBoundsGEP(PartType(), base_, part); }

Val Slots::Get(llvm::Value* k) const {
  const auto load = [&](llvm::Value* part) {
    llvm::Value* v = ir_.b.CreateLoad(PartType(), PartAt(part));
    return PartType() == ir_.RegType(type_) ? v : ir_.b.CreateTrunc(v, ir_.RegType(type_));
  };
  if (!IsComplex(type_)) return {load(k)};
  llvm::Value* e = ir_.Mul(k, 2);
  return {load(e), load(ir_.Add(e, ir_.I64(1)))};
}

void Slots::Put(llvm::Value* k, const Val& v) const {
  llvm::Value* e = IsComplex(type_) ? ir_.Mul(k, 2) : k;
  llvm::Value* re = PartType() == ir_.RegType(type_) ? v.re : ir_.b.CreateZExt(v.re, PartType());
  ir_.b.CreateStore(re, PartAt(e));
  if (v.im) ir_.b.CreateStore(v.im, PartAt(ir_.Add(e, ir_.I64(1))));
}

}  // namespace kiln::cpu
