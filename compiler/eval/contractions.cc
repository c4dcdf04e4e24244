// Evaluator: dot and convolution.
#include <algorithm>

#include "compiler/eval/families.h"
#include "compiler/eval/scalar.h"

namespace kiln {
namespace {

// GCC 12 loses the rounding of a pair of doubles that it vectorises, so it must not see two at once.
[[gnu::noinline]] double RoundTo(float, double v) { return static_cast<float>(v); }
[[gnu::noinline]] double RoundTo(double, double v) { return v; }

// One product more, every step rounded to T.
template <typename T>
void AddProduct(const Element& a, const Element& b, bool complex, Element* sum) {
  const T type{};
  if (!complex) {
    sum->re = RoundTo(type, sum->re + a.re * b.re);
    return;
  }
  const double crossed_re = RoundTo(type, a.im * b.im), crossed_im = RoundTo(type, a.im * b.re);
  sum->re = RoundTo(type, sum->re + RoundTo(type, a.re * b.re - crossed_re));
  sum->im = RoundTo(type, sum->im + RoundTo(type, a.re * b.im + crossed_im));
}

// Sum of products in the result's type; types narrower than f32 are summed wide.
struct Accumulator {
  explicit Accumulator(PrimitiveType type) : t(type) {}
  void Add(const Element& a, const Element& b) {
    if (t == PrimitiveType::Pred) {
      sum.i |= a.i & b.i;
    } else if (IsIntegral(t)) {
      sum.i =
          static_cast<int64_t>(static_cast<uint64_t>(sum.i) + static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i));
    } else if (ComponentType(t) == PrimitiveType::F32) {
      AddProduct<float>(a, b, IsComplex(t), &sum);
    } else {
      AddProduct<double>(a, b, IsComplex(t), &sum);
    }
  }
  PrimitiveType t;
  Element sum;
};

// Dimensions of `s` in neither list.
Ints FreeDims(const Shape& s, const Ints& batch, const Ints& contracting) {
  Ints f;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end())
      f.push_back(d);
  return f;
}

absl::StatusOr<Literal> Dot(const Instruction& i, const Shape& shape, const Literal& l, const Literal& r) {
  const Attributes& a = i.attrs();
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints());
  const Ints lf = FreeDims(l.shape(), lb, lc), rf = FreeDims(r.shape(), rb, rc);
  Ints ke;
  // Of two extents that meet, one may be a size: no more than that meets.
  for (size_t k = 0; k < lc.size(); ++k) ke.push_back(std::min(l.shape().dim(lc[k]), r.shape().dim(rc[k])));
  const IndexSpace os(shape.dims()), ls(l.shape().dims()), rs(r.shape().dims()), ks(ke);
  Literal out(shape);
  const PrimitiveType lt = l.type(), rt = r.type(), t = shape.type();
  for (int64_t n = 0; n < out.size(); ++n) {
    const Ints o = os.At(n);
    Ints lp(l.shape().rank()), rp(r.shape().rank());
    size_t at = 0;
    for (size_t k = 0; k < lb.size(); ++k, ++at) {
      lp[lb[k]] = o[at];
      rp[rb[k]] = o[at];
    }
    for (int64_t d : lf) lp[d] = o[at++];
    for (int64_t d : rf) rp[d] = o[at++];
    Accumulator acc(t);
    for (int64_t k = 0; k < Product(ke); ++k) {
      const Ints kp = ks.At(k);
      for (size_t c = 0; c < lc.size(); ++c) {
        lp[lc[c]] = kp[c];
        rp[rc[c]] = kp[c];
      }
      acc.Add(ConvertElement(l.Get(ls.Linear(lp)), lt, t), ConvertElement(r.Get(rs.Linear(rp)), rt, t));
    }
    out.Set(n, acc.sum);
  }
  return out;
}

// The group of each position of the ragged dimension, list of sizes by list; -1 past the last.
Ints GroupsOfRows(const Literal& sizes, int64_t groups, int64_t rows) {
  Ints out(static_cast<size_t>(groups == 0 ? rows : sizes.size() / groups * rows), -1);
  for (int64_t list = 0; groups && list < sizes.size() / groups; ++list) {
    int64_t row = 0;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t n = 0; n < sizes.Get(list * groups + g).i && row < rows; ++n)
        out[static_cast<size_t>(list * rows + row++)] = g;
  }
  return out;
}

// The ragged dimension of the left side falls into groups of the sizes that the third operand states.
//   among its free ones       each row meets its group's slice of the right side; rows past the last group give zeros
//   among the contracted ones one result for each group, along a new first dimension
//   among the batch ones      an ordinary dot
absl::StatusOr<Literal> RaggedDot(const Instruction& i, const Shape& shape, const Literal& l, const Literal& r,
                                  const Literal& sizes) {
  const Attributes& a = i.attrs();
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints());
  const Ints group_dims = a.rhs_group_dims.value_or(Ints());
  const int64_t ragged = a.lhs_ragged_dims->at(0);
  if (std::find(lb.begin(), lb.end(), ragged) != lb.end()) return Dot(i, shape, l, r);
  const bool contracted = std::find(lc.begin(), lc.end(), ragged) != lc.end();
  Ints batch_extents;  // of the batches that have lists of sizes of their own
  if (sizes.shape().rank() > 1)
    for (int64_t d : lb) batch_extents.push_back(l.shape().dim(d));
  const int64_t groups = sizes.shape().dims().back(), rows = l.shape().dim(ragged);
  if (sizes.size() != Product(batch_extents) * groups || sizes.shape().dims().size() != batch_extents.size() + 1)
    return ErrorAt(&i, "group sizes that differ by more than the batch are not supported",
                   absl::StatusCode::kUnimplemented);
  const IndexSpace bs(batch_extents);
  const Ints group = GroupsOfRows(sizes, groups, rows);
  const Ints lf = FreeDims(l.shape(), lb, lc);
  Ints rf;
  for (int64_t d : FreeDims(r.shape(), rb, rc))
    if (std::find(group_dims.begin(), group_dims.end(), d) == group_dims.end()) rf.push_back(d);
  Ints ke;
  for (int64_t d : lc) ke.push_back(l.shape().dim(d));
  const IndexSpace os(shape.dims()), ls(l.shape().dims()), rs(r.shape().dims()), ks(ke);
  const PrimitiveType t = shape.type();
  Literal out(shape);
  for (int64_t n = 0; n < out.size(); ++n) {
    const Ints o = os.At(n);
    Ints lp(l.shape().rank()), rp(r.shape().rank());
    size_t at = contracted ? 1 : 0;
    Ints batch;
    for (size_t k = 0; k < lb.size(); ++k, ++at) {
      batch.push_back(o[at]);
      lp[lb[k]] = o[at];
      rp[rb[k]] = o[at];
    }
    for (int64_t d : lf) lp[d] = o[at++];
    for (int64_t d : rf) rp[d] = o[at++];
    Accumulator acc(t);
    for (int64_t k = 0; k < Product(ke); ++k) {
      const Ints kp = ks.At(k);
      for (size_t c = 0; c < lc.size(); ++c) {
        lp[lc[c]] = kp[c];
        rp[rc[c]] = kp[c];
      }
      const int64_t g = group[bs.Linear(Ints(batch.begin(), batch.begin() + batch_extents.size())) * rows + lp[ragged]];
      if (g < 0 || (contracted && g != o[0])) continue;
      if (!contracted && !group_dims.empty()) rp[group_dims[0]] = g;
      acc.Add(ConvertElement(l.Get(ls.Linear(lp)), l.type(), t), ConvertElement(r.Get(rs.Linear(rp)), r.type(), t));
    }
    out.Set(n, acc.sum);
  }
  return out;
}

// Each element times its block's scale: a scale's extents divide its operand's.
Literal Scaled(const Literal& x, const Literal& scale) {
  Literal out(Shape::Array(PrimitiveType::F32, x.shape().dims()));
  const IndexSpace is(x.shape().dims()), ss(scale.shape().dims());
  for (int64_t n = 0; n < x.size(); ++n) {
    Ints p = is.At(n);
    for (size_t d = 0; d < p.size() && d < scale.shape().dims().size(); ++d)
      p[d] /= x.shape().dim(d) / std::max<int64_t>(scale.shape().dim(d), 1);
    Element e = x.Get(n);
    e.re *= scale.Get(scale.shape().rank() == 0 ? 0 : ss.Linear(p)).re;
    out.Set(n, e);
  }
  return out;
}

absl::StatusOr<Literal> Convolution(const Instruction& i, const Shape& shape, const Literal& x, const Literal& k) {
  const ConvDimensionNumbers& d = *i.attrs().dim_labels;
  const attr::Win w = i.attrs().window.value_or(attr::Win());
  const int64_t fg = i.attrs().feature_group_count.value_or(1), bg = i.attrs().batch_group_count.value_or(1);
  const size_t n = w.size();
  Literal out(shape);
  const IndexSpace os(shape.dims()), is(x.shape().dims()), ks(k.shape().dims());
  Ints taps;
  for (const WindowDim& q : w) taps.push_back(q.size);
  const IndexSpace ts(taps);
  int64_t ci = k.shape().dim(d.kernel_input);
  if (fg == 1) ci = std::min(ci, x.shape().dim(d.input_feature));  // one of them may be a bound
  const int64_t co = k.shape().dim(d.kernel_output);
  const int64_t batch = x.shape().dim(d.input_batch) / bg;
  const PrimitiveType t = shape.type();
  for (int64_t p = 0; p < out.size(); ++p) {
    const Ints o = os.At(p);
    const int64_t of = o[d.output_feature];
    const int64_t fgroup = of / (co / fg), bgroup = of / (co / bg);
    Accumulator acc(t);
    for (int64_t q = 0; q < Product(taps); ++q) {
      const Ints tap = ts.At(q);
      Ints xi(x.shape().rank()), ki(k.shape().rank());
      bool inside = true;
      for (size_t s = 0; s < n; ++s) {
        const int64_t at = o[d.output_spatial[s]] * w[s].stride + tap[s] * w[s].rhs_dilate - w[s].pad_low;
        inside =
            inside && at >= 0 && at % w[s].lhs_dilate == 0 && at / w[s].lhs_dilate < x.shape().dim(d.input_spatial[s]);
        xi[d.input_spatial[s]] = at / w[s].lhs_dilate;
        ki[d.kernel_spatial[s]] = w[s].reversed ? w[s].size - 1 - tap[s] : tap[s];
      }
      if (!inside) continue;
      xi[d.input_batch] = bgroup * (bg > 1 ? batch : 0) + o[d.output_batch];
      ki[d.kernel_output] = of;
      for (int64_t c = 0; c < ci; ++c) {
        xi[d.input_feature] = (fg > 1 ? fgroup * ci : 0) + c;
        ki[d.kernel_input] = c;
        acc.Add(ConvertElement(x.Get(is.Linear(xi)), x.type(), t), ConvertElement(k.Get(ks.Linear(ki)), k.type(), t));
      }
    }
    out.Set(p, acc.sum);
  }
  return out;
}

}  // namespace

absl::StatusOr<Literal> EvalContraction(const Instruction& i, const Shape& shape,
                                        const std::vector<const Literal*>& x) {
  if (i.Is(Opcode::Dot) && x.size() == 2) return Dot(i, shape, *x[0], *x[1]);
  if (i.Is(Opcode::RaggedDot)) return RaggedDot(i, shape, *x[0], *x[1], *x[2]);
  if (i.Is(Opcode::ScaledDot)) return Dot(i, shape, Scaled(*x[0], *x[2]), Scaled(*x[1], *x[3]));
  if (i.Is(Opcode::Convolution)) return Convolution(i, shape, *x[0], *x[1]);
  return absl::NotFoundError("");
}

}  // namespace kiln
