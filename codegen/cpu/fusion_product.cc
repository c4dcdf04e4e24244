// Fusions of products and elementwise operations behind them: the kernel is the product's, and what is made of its
// elements is computed block by block, while they are in cache.
//
// Of several products each has units of its own, one after the other. Those that differ in their arrays alone and share
// a left operand of many rows are one piece of code: they take turns within its blocks of rows, so that it is packed
// once, as for queries, keys and values.
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
    if (s.rank() == 0 || block.width != s.dim(minor)) return ApplyToColumn(block);
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
    for (const Alike& alike : GroupAlike(f_, roots_)) {
      ASSIGN_OR_RETURN(const bool turns, TakesTurns(alike));
      if (turns) {
        RETURN_IF_ERROR(EmitUnits(alike));
        continue;
      }
      // Apart: what vectors are multiplied by is read best where the compiler knows which array it is.
      for (size_t k = 0; k < alike.results.size(); ++k)
        RETURN_IF_ERROR(EmitUnits({{alike.results[k]}, {alike.parameters[k]}}));
    }
    return units_;
  }

 private:
  std::optional<PrimitiveType> Stored(size_t result) const {
    return products_[result] == roots_[result] ? std::nullopt : std::optional(roots_[result]->shape().type());
  }

  // Whether all that is alike reads one left operand, in blocks of rows.
  absl::StatusOr<bool> TakesTurns(const Alike& alike) const {
    const size_t first = alike.results[0];
    ASSIGN_OR_RETURN(const DotPlan plan, PlanDot(ir_.level, products_[first], Stored(first)));
    const auto left = static_cast<size_t>(*products_[first]->operand(0)->attrs().parameter_number);
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

  // The units behind those of the products before. What is alike takes turns.
  absl::Status EmitUnits(const Alike& alike) {
    const size_t first = alike.results[0];
    const auto count = static_cast<int64_t>(alike.results.size());
    ASSIGN_OR_RETURN(const DotPlan plan, PlanDot(ir_.level, products_[first], Stored(first), count));
    const int64_t all = plan.units * count;
    const auto within = [&](llvm::Value* unit) {
      llvm::Value* own = b_.CreateSub(unit, ir_.I64(units_));
      own = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, own, ir_.I64(0));
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, own, ir_.I64(all));
    };
    Body part = body_;
    part.results = {body_.results[first]};
    part.begin = within(body_.begin);
    part.end = within(body_.end);
    units_ += all;
    const Copies copies{count, [&](llvm::Value* copy) { Pick(alike, copy, &part); }};
    absl::Status status;
    ir_.If(b_.CreateICmpSLT(part.begin, part.end),
           [&] { status = EmitProduct(part, products_[first], roots_[first], copies).status(); });
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
