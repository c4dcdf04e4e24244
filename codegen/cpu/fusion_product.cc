// Fusions of a product and elementwise operations behind it: the kernel is the product's, and what is made of its
// elements is computed block by block, while they are in cache.
#include "codegen/cpu/fusion.h"
#include "compiler/analysis/panels.h"

namespace kiln::cpu {
namespace {

class ProductEpilogue {
 public:
  ProductEpilogue(FusionBody& fusion, const Instruction* product)
      : ir_(fusion.ir), body_(fusion.body), elements_(fusion.elements), product_(product), root_(fusion.f.root()) {}

  void Apply(const ResultBlock& block) {
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
    elements_.Preset(product_, tile ? ir_.Convert(ir_.Load(block.tile_type, block.tile, tile), block.tile_type, type)
                                    : ir_.Load(type, body_.results[0], place));
    const Shape& s = root_->shape();
    const auto v = elements_.Emit(root_, IndexIn(s, at));
    if (!v.ok())
      status_ = v.status();
    else
      ir_.Store(s.type(), *v, body_.results[0], place);
  }

  Ir& ir_;
  Body& body_;
  ElementEmitter& elements_;
  const Instruction *const product_, *const root_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<int64_t> EmitProduct(FusionBody& fusion, const Instruction* product) {
  ProductEpilogue epilogue(fusion, product);
  const auto apply = [&](const ResultBlock& block) { epilogue.Apply(block); };
  Body body = fusion.body;
  body.i = product;
  body.operands.clear();
  const auto panels = PanelsOf(product);
  for (const Instruction* o : product->operands()) {
    const Instruction* read = panels && o == product->operand(1) ? panels->source : o;
    body.operands.push_back(fusion.body.operands[static_cast<size_t>(*read->attrs().parameter_number)]);
  }
  if (product == fusion.f.root()) return product->Is(Opcode::Dot) ? EmitDot(body) : EmitConvolution(body);
  absl::StatusOr<int64_t> units =
      product->Is(Opcode::Dot) ? EmitDot(body, fusion.f.root()->shape().type(), apply) : EmitConvolution(body, apply);
  RETURN_IF_ERROR(epilogue.status());
  return units;
}

}  // namespace kiln::cpu
