// Evaluator: reductions, windows, sorting, top-k.
#include <algorithm>
#include <numeric>

#include "compiler/eval/families.h"
#include "compiler/eval/scalar.h"
#include "compiler/hlo/unrounded_sums.h"

namespace kiln {
namespace {

using Operands = std::vector<const Literal*>;

absl::Status Combine(const Computation& f, bool unrounded, std::vector<Literal>* acc, int64_t at,
                     const std::vector<Element>& next) {
  if (unrounded) {
    Literal& sum = (*acc)[0];
    Element e;
    e.re = sum.Get(at).re + next[0].re;
    sum.Set(at, e);
    return absl::OkStatus();
  }
  std::vector<Element> args;
  for (const Literal& l : *acc) args.push_back(l.Get(at));
  args.insert(args.end(), next.begin(), next.end());
  ASSIGN_OR_RETURN(Literal r, CallScalar(f, args));
  for (size_t c = 0; c < acc->size(); ++c) (*acc)[c].Set(at, r.shape().IsTuple() ? r.elements()[c].Get(0) : r.Get(0));
  return absl::OkStatus();
}

std::vector<Shape> Parts(const Shape& s) { return s.IsTuple() ? s.tuple() : std::vector<Shape>{s}; }

// Accumulators wider than the element type where that is a narrow float, as the emitters use.
Shape AccumulatorShape(const Shape& s) {
  if (IsFloat(s.type()) && InfoOf(s.type()).bits < 32) return Shape::Array(PrimitiveType::F32, s.dims());
  return s;
}

// One array per result, filled with the initial value; `x` holds the arrays, then the initial values.
std::vector<Literal> Accumulators(bool unrounded, const Shape& shape, const Operands& x) {
  std::vector<Literal> acc;
  for (const Shape& s : Parts(shape)) {
    const Element init = x[x.size() / 2 + acc.size()]->Get(0);
    acc.emplace_back(unrounded ? AccumulatorShape(s) : s);
    for (int64_t k = 0; k < acc.back().size(); ++k) acc.back().Set(k, init);
  }
  return acc;
}

// Accumulators as a result of `shape`.
Literal Pack(const Shape& shape, std::vector<Literal> parts) {
  if (shape.IsTuple()) return Literal::Tuple(std::move(parts));
  if (parts[0].type() == shape.type()) return std::move(parts[0]);
  Literal result(shape);
  for (int64_t k = 0; k < result.size(); ++k) result.Set(k, parts[0].Get(k));
  return result;
}

// The extents that the first `n` operands share: of one with a size and one without, the size.
Ints Common(const Operands& x, size_t n) {
  Ints out = x[0]->shape().dims();
  for (size_t c = 1; c < n; ++c)
    for (size_t d = 0; d < out.size(); ++d) out[d] = std::min(out[d], x[c]->shape().dim(static_cast<int64_t>(d)));
  return out;
}

Ints SizesOf(const attr::Win& window) {
  Ints out;
  for (const WindowDim& d : window) out.push_back(d.size);
  return out;
}

// The elements of the first `n` operands at one place.
std::vector<Element> ElementsAt(const Operands& x, size_t n, const Ints& place) {
  std::vector<Element> out;
  for (size_t c = 0; c < n; ++c) out.push_back(x[c]->Get(IndexSpace(x[c]->shape().dims()).Linear(place)));
  return out;
}

absl::StatusOr<Literal> Reduce(const Instruction& i, const Shape& shape, const Operands& x) {
  const Attributes& a = i.attrs();
  const size_t n = x.size() / 2;
  std::vector<Literal> acc = Accumulators(false, shape, x);
  const Ints extents = Common(x, n);
  const IndexSpace is(extents), os(acc[0].shape().dims());
  for (int64_t k = 0; k < Product(extents); ++k) {
    const Ints p = is.At(k);
    Ints o;
    for (size_t d = 0; d < p.size(); ++d)
      if (std::find(a.dimensions->begin(), a.dimensions->end(), static_cast<int64_t>(d)) == a.dimensions->end())
        o.push_back(p[d]);
    RETURN_IF_ERROR(Combine(**a.to_apply, false, &acc, os.Linear(o), ElementsAt(x, n, p)));
  }
  return Pack(shape, std::move(acc));
}

absl::StatusOr<Literal> ReduceWindow(const Instruction& i, const Shape& shape, const Operands& x) {
  const Attributes& a = i.attrs();
  const size_t n = x.size() / 2;
  const bool unrounded = SumsUnrounded(&i);
  std::vector<Literal> acc = Accumulators(unrounded, shape, x);
  const Shape s = Shape::Array(x[0]->type(), Common(x, n));
  const attr::Win w = a.window.value_or(attr::Win(s.rank()));
  const Ints size = SizesOf(w);
  const IndexSpace os(acc[0].shape().dims()), ws(size);
  for (int64_t k = 0; k < acc[0].size(); ++k) {
    const Ints o = os.At(k);
    for (int64_t q = 0; q < Product(size); ++q) {
      const Ints t = ws.At(q);
      Ints p(s.rank());
      bool inside = true;
      for (int64_t d = 0; d < s.rank(); ++d) {
        const int64_t at = o[d] * w[d].stride + t[d] * w[d].rhs_dilate - w[d].pad_low;
        inside = inside && at >= 0 && at % w[d].lhs_dilate == 0 && at / w[d].lhs_dilate < s.dim(d);
        p[d] = at / w[d].lhs_dilate;
      }
      if (!inside) continue;
      RETURN_IF_ERROR(Combine(**a.to_apply, unrounded, &acc, k, ElementsAt(x, n, p)));
    }
  }
  return Pack(shape, std::move(acc));
}

absl::StatusOr<Literal> SelectAndScatter(const Instruction& i, const Shape& shape, const Operands& x) {
  const Attributes& a = i.attrs();
  const Shape& s = x[0]->shape();
  const attr::Win w = a.window.value_or(attr::Win(s.rank()));
  std::vector<Literal> out = {Literal(AccumulatorShape(shape))};
  for (int64_t k = 0; k < out[0].size(); ++k) out[0].Set(k, x[2]->Get(0));
  const Ints size = SizesOf(w);
  const IndexSpace is(s.dims()), us(x[1]->shape().dims()), ws(size);
  for (int64_t k = 0; k < x[1]->size(); ++k) {
    const Ints o = us.At(k);
    int64_t best = -1;
    for (int64_t q = 0; q < Product(size); ++q) {
      const Ints t = ws.At(q);
      Ints p(s.rank());
      bool inside = true;
      for (int64_t d = 0; d < s.rank(); ++d) {
        p[d] = o[d] * w[d].stride + t[d] - w[d].pad_low;
        inside = inside && p[d] >= 0 && p[d] < s.dim(d);
      }
      if (!inside) continue;
      const int64_t at = is.Linear(p);
      if (best >= 0) {
        ASSIGN_OR_RETURN(Literal keep, CallScalar(**a.select, {x[0]->Get(best), x[0]->Get(at)}));
        if (keep.Get(0).i) continue;
      }
      best = at;
    }
    if (best < 0) continue;
    ASSIGN_OR_RETURN(Literal r, CallScalar(**a.scatter, {out[0].Get(best), x[1]->Get(k)}));
    out[0].Set(best, r.Get(0));
  }
  return Pack(shape, std::move(out));
}

// The order of `n` elements under `less`, by a bottom-up merge sort: stable, and safe with comparators that are no
// order.
template <typename Less>
Ints MergeSorted(int64_t n, Less less) {
  Ints order(n), scratch(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * width) {
      const int64_t mid = std::min(lo + width, n), hi = std::min(lo + 2 * width, n);
      int64_t p = lo, q = mid, o = lo;
      while (p < mid && q < hi) scratch[o++] = less(order[q], order[p]) ? order[q++] : order[p++];
      while (p < mid) scratch[o++] = order[p++];
      while (q < hi) scratch[o++] = order[q++];
    }
    order.swap(scratch);
  }
  return order;
}

absl::StatusOr<Literal> Sort(const Instruction& i, const Shape& shape, const Operands& x) {
  const Shape s = Parts(shape)[0];
  std::vector<Literal> out;
  for (const Literal* l : x) {
    if (l->shape().dims() != s.dims())
      return ErrorAt(&i, "sorts arrays of which one has a size and one has not", absl::StatusCode::kUnimplemented);
    out.push_back(*l);
  }
  if (s.rank() == 0) return Pack(i.shape(), std::move(out));
  const int64_t d = i.attrs().dimensions ? (*i.attrs().dimensions)[0] : s.rank() - 1;
  const int64_t n = s.dim(d);
  Ints outer = s.dims();
  outer[d] = 1;
  const IndexSpace all(s.dims()), rows(outer);
  for (int64_t r = 0; r < Product(outer) && n > 1; ++r) {
    const Ints base = rows.At(r);
    auto at = [&](int64_t k) {
      Ints p = base;
      p[d] = k;
      return all.Linear(p);
    };
    absl::Status failed;
    const Ints order = MergeSorted(n, [&](int64_t p, int64_t q) {
      std::vector<Element> args;
      for (const Literal* l : x) {
        args.push_back(l->Get(at(p)));
        args.push_back(l->Get(at(q)));
      }
      auto v = CallScalar(**i.attrs().to_apply, args);
      if (!v.ok()) failed = v.status();
      return v.ok() && v->Get(0).i != 0;
    });
    RETURN_IF_ERROR(failed);
    for (size_t c = 0; c < x.size(); ++c)
      for (int64_t k = 0; k < n; ++k) out[c].Set(at(k), x[c]->Get(at(order[k])));
  }
  return Pack(i.shape(), std::move(out));
}

absl::StatusOr<Literal> TopK(const Instruction& i, const Shape& shape, const Operands& x) {
  const Attributes& a = i.attrs();
  const Shape& s = x[0]->shape();
  const int64_t n = s.dims().back(), k = *a.k;
  Literal values(shape.tuple()[0]), indices(shape.tuple()[1]);
  const bool largest = a.largest.value_or(true);
  for (int64_t r = 0; r < (n ? x[0]->size() / n : 0); ++r) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      const int c = TotalOrder(x[0]->Get(r * n + p), x[0]->Get(r * n + q), s.type());
      return largest ? c > 0 : c < 0;
    });
    for (int64_t q = 0; q < k; ++q) {
      values.Set(r * k + q, x[0]->Get(r * n + order[q]));
      Element e;
      e.i = order[q];
      indices.Set(r * k + q, e);
    }
  }
  return Literal::Tuple({values, indices});
}

constexpr Meaning kReductions[] = {
    {Opcode::Reduce, Reduce},
    {Opcode::ReduceWindow, ReduceWindow},
    {Opcode::SelectAndScatter, SelectAndScatter},
    {Opcode::Sort, Sort},
    {Opcode::TopK, TopK},
};

}  // namespace

absl::StatusOr<Literal> EvalReduction(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  return EvaluateBy(kReductions, i, shape, x);
}

}  // namespace kiln
