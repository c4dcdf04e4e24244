#include "compiler/passes/simplify/dot_form.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace kiln {
namespace {

// "{highest,default}" with its two words in the other order.
attr::Raw Swapped(const attr::Raw& precision) {
  const absl::string_view words = absl::StripSuffix(absl::StripPrefix(precision.text, "{"), "}");
  const size_t comma = words.find(',');
  if (comma == absl::string_view::npos) return precision;
  return absl::StrCat("{", absl::StripLeadingAsciiWhitespace(words.substr(comma + 1)), ",",
                      absl::StripTrailingAsciiWhitespace(words.substr(0, comma)), "}");
}

// What the algorithm makes of an operand before it multiplies.
Expr Rounded(const Instruction* dot, Expr x) {
  return dot->attrs().algorithm && *dot->attrs().algorithm == "dot_bf16_bf16_f32" ? ConvertTo(PrimitiveType::BF16, x)
                                                                                  : x;
}

// Whether the result is marked as this device's part of a sum: the mark belongs to this very dot.
bool IsPartialSum(const Instruction* i) {
  if (i->users().size() != 1 || !i->users()[0]->Is(Opcode::CustomCall)) return false;
  const Attributes& a = i->users()[0]->attrs();
  const auto unreduced = [](const std::optional<attr::Raw>& text) {
    return text && absl::StrContains(text->text, "unreduced");
  };
  return a.custom_call_target && *a.custom_call_target == "Sharding" &&
         (unreduced(a.sharding) || unreduced(a.frontend_attributes));
}

}  // namespace

PrimitiveType ProductType(const Instruction* dot, bool contracts) {
  const PrimitiveType t = dot->shape().type(), a = dot->operand(0)->shape().type(), b = dot->operand(1)->shape().type();
  if (!IsFloat(t) || (!contracts && a == t && b == t)) return t;
  const bool wide = t == PrimitiveType::F64 || a == PrimitiveType::F64 || b == PrimitiveType::F64;
  return wide ? PrimitiveType::F64 : PrimitiveType::F32;
}

DotSide SideOf(const Instruction* dot, int64_t operand) {
  const Attributes& a = dot->attrs();
  DotSide side;
  side.batch = (operand == 0 ? a.lhs_batch_dims : a.rhs_batch_dims).value_or(Ints());
  side.contracting = (operand == 0 ? a.lhs_contracting_dims : a.rhs_contracting_dims).value_or(Ints());
  for (int64_t d = 0; d < dot->operand(operand)->shape().rank(); ++d)
    if (!Holds(side.batch, d) && !Holds(side.contracting, d)) side.free.push_back(d);
  return side;
}

bool Ascend(const Shape& s, const std::vector<Ints>& groups) {
  int64_t last = -1;
  for (const Ints& group : groups)
    for (const int64_t d : group) {
      if (s.dim(d) == 1) continue;
      if (d < last) return false;
      last = d;
    }
  return true;
}

bool IsPlainDot(const Instruction* i) {
  if (IsPartialSum(i)) return false;
  return i->Is(Opcode::Dot) && i->operand_count() == 2 && !i->attrs().sparsity && !i->shape().HasDynamic() &&
         !i->operand(0)->shape().HasDynamic() && !i->operand(1)->shape().HasDynamic();
}

Expr DotLike(const Instruction* like, Expr lhs, const DotSide& l, Expr rhs, const DotSide& r, bool swapped) {
  Ints dims;
  for (int64_t d : l.batch) dims.push_back(lhs.shape().dim(d));
  for (int64_t d = 0; d < lhs.shape().rank(); ++d)
    if (!Holds(l.batch, d) && !Holds(l.contracting, d)) dims.push_back(lhs.shape().dim(d));
  for (int64_t d = 0; d < rhs.shape().rank(); ++d)
    if (!Holds(r.batch, d) && !Holds(r.contracting, d)) dims.push_back(rhs.shape().dim(d));
  Instruction* dot =
      lhs.computation()->Add(Opcode::Dot, Shape::Array(like->shape().type(), dims), {lhs.get(), rhs.get()});
  Attributes& a = dot->mutable_attrs();
  if (!l.batch.empty()) {
    a.lhs_batch_dims = l.batch;
    a.rhs_batch_dims = r.batch;
  }
  a.lhs_contracting_dims = l.contracting;
  a.rhs_contracting_dims = r.contracting;
  a.algorithm = like->attrs().algorithm;
  a.operand_precision = like->attrs().operand_precision;
  if (swapped && a.operand_precision) a.operand_precision = Swapped(*a.operand_precision);
  return dot;
}

bool MultipliesAsAsked(const Instruction* dot) {
  if (!dot->attrs().algorithm) return true;
  const std::string& a = dot->attrs().algorithm->text;
  if (a == "dot_f64_f64_f64") return dot->shape().type() == PrimitiveType::F64;
  return dot->shape().type() != PrimitiveType::F64 &&
         (a == "dot_f32_f32_f32" || a == "dot_bf16_bf16_f32" || a == "dot_bf16_bf16_f32_x3" ||
          a == "dot_bf16_bf16_f32_x6" || a == "dot_bf16_bf16_f32_x9");
}

namespace {

Expr Multiplied(Expr a, Expr b) { return a.type() == PrimitiveType::Pred ? a & b : a * b; }

Expr SumOver(Expr x, const Ints& dims) {
  Computation* c = x.computation();
  const PrimitiveType t = x.type();
  return ReduceOf(x, c->AddConstant(Literal::Of(t, 0)), dims,
                  ScalarFunction(c->module(), t == PrimitiveType::Pred ? Opcode::Or : Opcode::Add, t));
}

// Of a matrix and a vector, perhaps many: the matrix stays as it lies, which may be all weights of a layer.
Expr MatrixTimesVector(const Instruction* dot, const DotSide& l, const DotSide& r, PrimitiveType wide) {
  const bool second = l.free.empty();
  const DotSide &m = second ? r : l, &v = second ? l : r;
  const auto operand = [&](int64_t k) { return ConvertTo(wide, Rounded(dot, dot->operand(k))); };
  const Expr matrix = operand(second ? 1 : 0);
  std::vector<std::pair<int64_t, int64_t>> places;  // of the vector's dimensions in the matrix
  for (size_t k = 0; k < m.batch.size(); ++k) places.push_back({m.batch[k], v.batch[k]});
  for (size_t k = 0; k < m.contracting.size(); ++k) places.push_back({m.contracting[k], v.contracting[k]});
  std::sort(places.begin(), places.end());
  Ints order, mapped;
  for (const auto& [place, d] : places) {
    mapped.push_back(place);
    order.push_back(d);
  }
  const Expr vector = BroadcastTo(TransposeBy(operand(second ? 0 : 1), order), matrix.shape().dims(), mapped);
  const Expr sum = SumOver(second ? Multiplied(vector, matrix) : Multiplied(matrix, vector), m.contracting);
  // Batch dimensions come first.
  Ints wanted = m.batch, permutation;
  wanted.insert(wanted.end(), m.free.begin(), m.free.end());
  for (int64_t d : wanted)
    permutation.push_back(d -
                          std::count_if(m.contracting.begin(), m.contracting.end(), [&](int64_t c) { return c < d; }));
  return TransposeBy(sum, permutation);
}

}  // namespace

Expr DotAsProducts(const Instruction* dot) {
  const DotSide l = SideOf(dot, 0), r = SideOf(dot, 1);
  const PrimitiveType t = dot->shape().type(), wide = ProductType(dot, !l.contracting.empty());
  if (!l.contracting.empty() && (l.free.empty() || r.free.empty()))
    return ConvertTo(t, MatrixTimesVector(dot, l, r, wide));
  Ints dims = dot->shape().dims(), summed;
  for (int64_t d : l.contracting) {
    summed.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(dot->operand(0)->shape().dim(d));
  }
  const auto spread = [&](int64_t operand, const DotSide& side, size_t first_free) {
    Ints order, mapped;
    const auto take = [&](const Ints& from, size_t first) {
      for (size_t k = 0; k < from.size(); ++k) {
        order.push_back(from[k]);
        mapped.push_back(static_cast<int64_t>(first + k));
      }
    };
    take(side.batch, 0);
    take(side.free, first_free);
    take(side.contracting, dims.size() - side.contracting.size());
    return BroadcastTo(TransposeBy(ConvertTo(wide, Rounded(dot, dot->operand(operand))), order), dims, mapped);
  };
  const Expr a = spread(0, l, l.batch.size()), b = spread(1, r, l.batch.size() + l.free.size());
  const Expr product = Multiplied(a, b);
  return ConvertTo(t, summed.empty() ? product : SumOver(product, summed));
}

}  // namespace kiln
