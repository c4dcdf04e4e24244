#include "codegen/gpu/tiles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/elemental/product_behind.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/tuning.h"

namespace kiln::gpu {
namespace {

bool OnTensorCores(const ProductShape& p, const GpuTarget& target) {
  if (p.a != p.b || target.major < 8) return false;  // sm_75 has products of another shape
  if (p.a == PrimitiveType::S8) return p.out == PrimitiveType::S32;
  if (p.a == PrimitiveType::F32) return target.tf32 && !p.precise && p.out == PrimitiveType::F32;
  return (p.a == PrimitiveType::F16 || p.a == PrimitiveType::BF16) && IsFloat(p.out) && p.out != PrimitiveType::F64;
}

int64_t Blocks(const std::vector<ProductShape>& products, const Tile& t) {
  int64_t blocks = 0;
  for (const ProductShape& p : products) blocks += BlocksOf(p, t);
  return blocks;
}

// Nanoseconds: of the longest product's depth.
int64_t Estimate(const std::vector<ProductShape>& products, const Tile& t, const GpuTarget& target) {
  int64_t depth = 0;
  for (const ProductShape& p : products) depth = std::max(depth, p.k);
  return t.Nanoseconds(Blocks(products, t), depth, target.multiprocessors);
}

// All products of a kernel get one tile: what one of them asks for is the others' too.
bool AnyIsPrecise(const Instruction* i) {
  if (!i->Is(Opcode::Fusion)) return AsksForPrecision(i);
  const auto& all = (*i->attrs().calls)->instructions();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& x) { return IsProduct(x.get()) && AsksForPrecision(x.get()); });
}

// None: a convolution that is not computed as a product.
absl::StatusOr<std::optional<ProductShape>> ShapeOf(const Instruction* dot) {
  if (dot->Is(Opcode::Convolution)) {
    const ConvDimensionNumbers& d = *dot->attrs().dim_labels;
    const int64_t last = dot->shape().rank() - 1;
    if (d.kernel_input != last - 1 || d.kernel_output != last)
      return ErrorAt(dot, "has its kernel in another order than 01io, which GPU kernels read",
                     absl::StatusCode::kInternal);
    if (d.input_batch != 0 || d.input_feature != last ||
        !std::is_sorted(d.input_spatial.begin(), d.input_spatial.end()))
      return ErrorAt(dot,
                     "has its input in another order than b01f, which GPU kernels read; the pass "
                     "convolution-canonicalization is needed",
                     absl::StatusCode::kUnimplemented);
    if (!IsTunableProduct(dot)) return std::nullopt;
    const Shape &x = dot->operand(0)->shape(), &kernel = dot->operand(1)->shape(), &o = dot->shape();
    const int64_t groups = dot->attrs().feature_group_count.value_or(1), features = o.dims().back();
    return ProductShape{groups,
                        o.ElementCount() / features,
                        features / groups,
                        kernel.ElementCount() / features,
                        x.type(),
                        kernel.type(),
                        o.type()};
  }
  const Shape &l = dot->operand(0)->shape(), &r = dot->operand(1)->shape(), &o = dot->shape();
  const auto contracts_one = [](const std::optional<Ints>& dims) { return dims && dims->size() == 1; };
  if (l.rank() != 3 || r.rank() != 3 || o.rank() != 3 || !contracts_one(dot->attrs().lhs_contracting_dims) ||
      !contracts_one(dot->attrs().rhs_contracting_dims))
    return ErrorAt(dot, "is not a product of two batched matrices, which dot-decomposer makes of every dot",
                   absl::StatusCode::kInternal);
  return ProductShape{o.dim(0), o.dim(1), o.dim(2), l.dim((*dot->attrs().lhs_contracting_dims)[0]),
                      l.type(), r.type(), o.type()};
}

}  // namespace

int64_t BlocksOf(const ProductShape& p, const Tile& t) { return t.Blocks(p.batch, p.m, p.n); }

std::vector<const Instruction*> HeroesOf(const Instruction* i) {
  if (IsProduct(i)) return {i};
  if (!i->Is(Opcode::Fusion) || !i->attrs().backend_config ||
      i->attrs().backend_config->text.find("__triton_gemm") == std::string::npos)
    return {};
  const Instruction* root = (*i->attrs().calls)->root();
  std::vector<const Instruction*> out;
  for (const Instruction* r :
       root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{(*i->attrs().calls)->root()})
    if (const Instruction* hero = ProductBehind(r)) out.push_back(hero);
  return out;
}

absl::StatusOr<std::vector<ProductShape>> ProductsOf(const Instruction* i) {
  std::vector<ProductShape> out;
  for (const Instruction* hero : HeroesOf(i)) {
    ASSIGN_OR_RETURN(std::optional<ProductShape> shape, ShapeOf(hero));
    if (!shape) continue;
    shape->precise = AnyIsPrecise(i);
    out.push_back(*shape);
  }
  return out;
}

std::vector<int64_t> TilesFor(const ProductShape& p, const GpuTarget& target) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < AllTiles().size(); ++k) {
    const Tile& t = AllTiles()[k];
    const bool serves = t.kind == Tile::kTensor ? OnTensorCores(p, target) : k == 0 || !IsComplex(p.out);
    if (serves) out.push_back(static_cast<int64_t>(k));
  }
  return out;
}

absl::StatusOr<Tile> TileOf(const Instruction* i, const std::vector<ProductShape>& products, const GpuTarget& target) {
  const std::vector<int64_t> numbers = TilesFor(products[0], target);
  const int64_t chosen = ChosenAlgorithm(i, target.name);
  if (chosen >= 0) {
    if (std::find(numbers.begin(), numbers.end(), chosen) == numbers.end())
      return ErrorAt(i, absl::StrCat("tile ", chosen, " of its tuning result cannot compute it on ", target.name));
    return AllTiles()[static_cast<size_t>(chosen)];
  }
  const bool tensor = OnTensorCores(products[0], target);
  const Tile* best = nullptr;
  for (int64_t number : numbers) {
    const Tile& t = AllTiles()[static_cast<size_t>(number)];
    if (tensor != (t.kind == Tile::kTensor)) continue;
    if (!best || Estimate(products, t, target) < Estimate(products, *best, target)) best = &t;
  }
  return *best;
}

}  // namespace kiln::gpu
