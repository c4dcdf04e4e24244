// Evaluator: dot and convolution.
#include <algorithm>

#include "compiler/eval/families.h"
#include "compiler/eval/scalar.h"

namespace kiln {
namespace {

// Sum of products in the widest arithmetic of the result type.
struct Accumulator {
  explicit Accumulator(PrimitiveType type) : t(type) {}
  void Add(const Element& a, const Element& b) {
    if (IsComplex(t)) {
      sum.re += a.re * b.re - a.im * b.im;
      sum.im += a.re * b.im + a.im * b.re;
    } else if (IsFloat(t)) {
      sum.re += a.re * b.re;
    } else if (t == PrimitiveType::Pred) {
      sum.i |= a.i & b.i;
    } else {
      sum.i =
          static_cast<int64_t>(static_cast<uint64_t>(sum.i) + static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i));
    }
  }
  PrimitiveType t;
  Element sum;
};

absl::StatusOr<Literal> Dot(const Instruction& i, const Literal& l, const Literal& r) {
  const Attributes& a = i.attrs();
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints());
  auto free = [](const Shape& s, const Ints& b, const Ints& c) {
    Ints f;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (std::find(b.begin(), b.end(), d) == b.end() && std::find(c.begin(), c.end(), d) == c.end()) f.push_back(d);
    return f;
  };
  const Ints lf = free(l.shape(), lb, lc), rf = free(r.shape(), rb, rc);
  Ints ke;
  for (int64_t d : lc) ke.push_back(l.shape().dim(d));
  const IndexSpace os(i.shape().dims()), ls(l.shape().dims()), rs(r.shape().dims()), ks(ke);
  Literal out(i.shape());
  const PrimitiveType lt = l.type(), rt = r.type(), t = i.shape().type();
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

absl::StatusOr<Literal> Convolution(const Instruction& i, const Literal& x, const Literal& k) {
  const ConvDimensionNumbers& d = *i.attrs().dim_labels;
  const attr::Win w = i.attrs().window.value_or(attr::Win());
  const int64_t fg = i.attrs().feature_group_count.value_or(1), bg = i.attrs().batch_group_count.value_or(1);
  const size_t n = w.size();
  Literal out(i.shape());
  const IndexSpace os(i.shape().dims()), is(x.shape().dims()), ks(k.shape().dims());
  Ints taps;
  for (const WindowDim& q : w) taps.push_back(q.size);
  const IndexSpace ts(taps);
  const int64_t ci = k.shape().dim(d.kernel_input), co = k.shape().dim(d.kernel_output);
  const int64_t batch = x.shape().dim(d.input_batch) / bg;
  const PrimitiveType t = i.shape().type();
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

absl::StatusOr<Literal> EvalContraction(const Instruction& i, const std::vector<const Literal*>& x) {
  if (i.Is(Opcode::Dot) && x.size() == 2) return Dot(i, *x[0], *x[1]);
  if (i.Is(Opcode::Convolution)) return Convolution(i, *x[0], *x[1]);
  return absl::NotFoundError("");
}

}  // namespace kiln
