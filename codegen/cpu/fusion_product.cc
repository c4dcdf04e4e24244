// Fusions of products and elementwise operations behind them: the kernel is the product's, and what is made of its
// elements is computed block by block, while they are in cache.
//
// Of several products each has units of its own, one after the other. Those that differ in their arrays alone are one
// piece of code; if they share their left operand too, they take turns within its blocks of rows, so that it is packed
// once: queries, keys and values, gate and up projections.
#include "codegen/cpu/dot_plan.h"
#include "codegen/cpu/fusion.h"
#include "codegen/elemental/alike.h"
#include "compiler/analysis/panels.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class ProductEpilogue {
 public:
  // `arrays`: of the fusion, as they are when a block is finished.
  ProductEpilogue(const Body& arrays, const Instruction* product, const Instruction* root)
      : ir_(arrays.ir), arrays_(arrays), product_(product), root_(root) {}

  void Apply(const ResultBlock& block) {
    elements_.emplace(ir_, arrays_.operands);
    const Shape& s = root_->shape();
    const int64_t minor = MinorDim(s);
    if (block.width != s.dim(minor)) return ApplyToColumn(block);
    ir_.Loop(ir_.I64(0), block.rows, 1, [&](llvm::Value* m) {
      llvm::Value* row = ir_.Add(block.row, m);
      std::vector<llvm::Value*> at = PlaceOf(row, minor);
      ir_.Loop(
          ir_.I64(0), block.columns, 1,
          [&](llvm::Value* j) {
            at[minor] = ir_.Add(block.column, j);
            llvm::Value* tile = block.tile ? ir_.Add(ir_.Mul(m, block.tile_stride), j) : nullptr;
            Element(block, tile, ir_.Add(ir_.Mul(row, block.width), at[minor]), at);
          },
          true);
    });
  }

  absl::Status status() const { return status_; }

 private:
  // Rows of one element: one after the other, wherever the fusion's own rows end.
  void ApplyToColumn(const ResultBlock& block) {
    ir_.Loop(ir_.I64(0), block.rows, 1, [&](llvm::Value* m) {
      llvm::Value* place = ir_.Add(block.row, m);
      Element(block, block.tile ? ir_.Mul(m, block.tile_stride) : nullptr, place,
              PlaceOf(place, root_->shape().rank()));
    });
  }

  // The index of position `rest` in the first `count` dimensions, 0 in the others.
  std::vector<llvm::Value*> PlaceOf(llvm::Value* rest, int64_t count) {
    const Shape& s = root_->shape();
    std::vector<llvm::Value*> at(static_cast<size_t>(s.rank()), ir_.I64(0));
    for (int64_t d = count - 1; d >= 0; --d) {
      at[d] = d == 0 ? rest : ir_.b.CreateURem(rest, ir_.I64(s.dim(d)));
      if (d) rest = ir_.b.CreateUDiv(rest, ir_.I64(s.dim(d)));
    }
    return at;
  }

  // The element at index `at`, which is `place` in the result; the product's lies there or at `tile` of the tile.
  void Element(const ResultBlock& block, llvm::Value* tile, llvm::Value* place, const std::vector<llvm::Value*>& at) {
    const PrimitiveType type = product_->shape().type();
    elements_->Preset(product_, tile ? ir_.Convert(ir_.Load(block.tile_type, block.tile, tile), block.tile_type, type)
                                     : ir_.Load(type, arrays_.results[0], place));
    const Shape& s = root_->shape();
    const auto v = elements_->Emit(root_, IndexIn(s, at));
    if (!v.ok())
      status_ = v.status();
    else
      ir_.Store(s.type(), *v, arrays_.results[0], place);
  }

  Ir& ir_;
  const Body& arrays_;
  std::optional<ElementEmitter> elements_;
  const Instruction *const product_, *const root_;
  absl::Status status_;
};

// `arrays`: of the fusion, as they are for this product and its copies; the result is the first.
absl::StatusOr<int64_t> EmitProduct(Body& arrays, const Instruction* product, const Instruction* root,
                                    const Copies& copies = {}) {
  Body body = arrays;
  body.i = product;
  const auto panels = PanelsOf(product);
  const auto bind = [&] {
    body.operands.clear();
    for (const Instruction* o : product->operands()) {
      const Instruction* read = panels && o == product->operand(1) ? panels->source : o;
      body.operands.push_back(arrays.operands[static_cast<size_t>(*read->attrs().parameter_number)]);
    }
    body.results = arrays.results;
  };
  bind();
  const Copies own{copies.count, [&](llvm::Value* copy) {
                     copies.pick(copy);
                     bind();
                   }};
  if (product == root) return product->Is(Opcode::Dot) ? EmitDot(body, {}, {}, own) : EmitConvolution(body);
  ProductEpilogue epilogue(arrays, product, root);
  const auto apply = [&](const ResultBlock& block) { epilogue.Apply(block); };
  absl::StatusOr<int64_t> units =
      product->Is(Opcode::Dot) ? EmitDot(body, root->shape().type(), apply, own) : EmitConvolution(body, apply);
  RETURN_IF_ERROR(epilogue.status());
  return units;
}

// Several products of one kernel.
class ProductGroup {
 public:
  ProductGroup(Body& body, const Computation& f, const std::vector<const Instruction*>& products)
      : body_(body), ir_(body.ir), b_(body.ir.b), f_(f), products_(products), roots_(ResultsOf(f.root())) {}

  absl::StatusOr<int64_t> Emit() {
    for (const Alike& alike : GroupAlike(f_, roots_)) RETURN_IF_ERROR(EmitAlike(alike));
    return units_;
  }

 private:
  const Instruction* Left(size_t result) const { return products_[result]->operand(0); }

  // Whether all that is alike reads one left operand, in blocks of rows.
  bool TakesTurns(const Alike& alike, const DotPlan& plan) const {
    const auto left = static_cast<size_t>(*Left(alike.results[0])->attrs().parameter_number);
    return plan.algorithm == DotAlgorithm::kProducts && std::all_of(alike.parameters.begin(), alike.parameters.end(),
                                                                    [&](const auto& p) { return p[left] == left; });
  }

  // Has `arrays` be those of one of what is alike.
  void Pick(const Alike& alike, llvm::Value* copy, Body* arrays) {
    arrays->operands = body_.operands;
    arrays->results = {body_.results[alike.results[0]]};
    for (size_t k = 1; k < alike.results.size(); ++k) {
      llvm::Value* is = b_.CreateICmpEQ(copy, ir_.I64(static_cast<int64_t>(k)));
      arrays->results[0] = b_.CreateSelect(is, body_.results[alike.results[k]], arrays->results[0]);
      for (size_t p = 0; p < arrays->operands.size(); ++p)
        if (const size_t other = alike.parameters[k][p]; other != p)
          arrays->operands[p] = b_.CreateSelect(is, body_.operands[other], arrays->operands[p]);
    }
  }

  // The units behind those of the products before.
  absl::Status EmitAlike(const Alike& alike) {
    const Instruction *product = products_[alike.results[0]], *root = roots_[alike.results[0]];
    const auto count = static_cast<int64_t>(alike.results.size());
    const auto stored = product == root ? std::nullopt : std::optional(root->shape().type());
    ASSIGN_OR_RETURN(DotPlan plan, PlanDot(ir_.level, product, stored));
    const bool turns = count > 1 && TakesTurns(alike, plan);
    if (turns) {
      ASSIGN_OR_RETURN(plan, PlanDot(ir_.level, product, stored, count));
    }
    const int64_t all = plan.units * count;
    const auto within = [&](llvm::Value* unit, int64_t from, int64_t extent) {
      llvm::Value* x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(unit, ir_.I64(from)), ir_.I64(0));
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, ir_.I64(extent));
    };
    Body part = body_;
    part.results = {body_.results[alike.results[0]]};
    part.begin = within(body_.begin, units_, all);
    part.end = within(body_.end, units_, all);
    units_ += all;
    absl::Status status;
    ir_.If(b_.CreateICmpSLT(part.begin, part.end), [&] {
      if (turns || count == 1) {
        status =
            EmitProduct(part, product, root, {count, [&](llvm::Value* copy) { Pick(alike, copy, &part); }}).status();
        return;
      }
      llvm::Value *begin = part.begin, *end = part.end, *each = ir_.I64(plan.units);
      llvm::Value* last = b_.CreateUDiv(b_.CreateSub(end, ir_.I64(1)), each);
      ir_.Loop(b_.CreateUDiv(begin, each), ir_.Add(last, ir_.I64(1)), 1, [&](llvm::Value* copy) {
        Pick(alike, copy, &part);
        llvm::Value* before = b_.CreateMul(copy, each);
        part.begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(begin, before), ir_.I64(0));
        part.end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, before), each);
        status = EmitProduct(part, product, root).status();
      });
    });
    return status;
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Computation& f_;
  const std::vector<const Instruction*>& products_;
  const std::vector<const Instruction*> roots_;
  int64_t units_ = 0;  // of the products so far
};

}  // namespace

absl::StatusOr<int64_t> EmitProducts(Body& body, const Computation& f,
                                     const std::vector<const Instruction*>& products) {
  if (products.size() == 1) return EmitProduct(body, products[0], f.root());
  if (products.size() != ResultsOf(f.root()).size())
    return ErrorAt(body.i, "has a result that is made of no product", absl::StatusCode::kInternal);
  return ProductGroup(body, f, products).Emit();
}

}  // namespace kiln::cpu
