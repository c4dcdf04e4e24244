#include "codegen/gpu/tiles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/tuning.h"

namespace kiln::gpu {
namespace {

bool OnTensorCores(const ProductShape& p, const GpuTarget& target) {
  if (p.a != p.b || target.major < 8) return false;  // sm_75 has products of another shape
  if (p.a == PrimitiveType::S8) return p.out == PrimitiveType::S32;
  return (p.a == PrimitiveType::F16 || p.a == PrimitiveType::BF16) && IsFloat(p.out) && p.out != PrimitiveType::F64;
}

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Blocks(const ProductShape& p, const Tile& t) { return p.batch * Ceil(p.m, t.rows) * Ceil(p.n, t.columns); }

// Elements computed for nothing, past the result's edges.
int64_t Waste(const ProductShape& p, const Tile& t) { return Blocks(p, t) * t.rows * t.columns - p.batch * p.m * p.n; }

}  // namespace

const Instruction* HeroOf(const Instruction* i) {
  if (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) return i;
  if (!i->Is(Opcode::Fusion) || !i->attrs().backend_config ||
      i->attrs().backend_config->text.find("__triton_gemm") == std::string::npos)
    return nullptr;
  for (const auto& inner : (*i->attrs().calls)->instructions())
    if (inner->Is(Opcode::Dot) || inner->Is(Opcode::Convolution)) return inner.get();
  return nullptr;
}

absl::StatusOr<std::optional<ProductShape>> ProductOf(const Instruction* i) {
  const Instruction* dot = HeroOf(i);
  if (!dot) return std::nullopt;
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

const std::vector<Tile>& AllTiles() {
  static const auto* tiles = new std::vector<Tile>{
#define TILE(number, kind, rows, columns, depth, down, across) {Tile::kind, rows, columns, depth, down, across},
#include "codegen/gpu/tiles.def"
  };
  return *tiles;
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

absl::StatusOr<Tile> TileOf(const Instruction* i, const ProductShape& p, const GpuTarget& target) {
  const std::vector<int64_t> numbers = TilesFor(p, target);
  const int64_t chosen = ChosenAlgorithm(i, target.name);
  if (chosen >= 0) {
    if (std::find(numbers.begin(), numbers.end(), chosen) == numbers.end())
      return ErrorAt(i, absl::StrCat("tile ", chosen, " of its tuning result cannot compute it on ", target.name));
    return AllTiles()[static_cast<size_t>(chosen)];
  }
  const bool tensor = OnTensorCores(p, target);
  const Tile* best = nullptr;
  for (int64_t number : numbers) {
    const Tile& t = AllTiles()[static_cast<size_t>(number)];
    if (tensor != (t.kind == Tile::kTensor)) continue;
    const bool fills = Blocks(p, t) >= target.multiprocessors;
    const bool wastes = best && Waste(p, t) > Waste(p, *best) + p.batch * p.m * p.n / 4;
    if (!best || (fills && !wastes && t.rows * t.columns >= best->rows * best->columns)) best = &t;
  }
  return *best;
}

}  // namespace kiln::gpu
