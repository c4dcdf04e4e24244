// Evaluator: batch normalisation, by its definition.
#include <cmath>

#include "compiler/eval/families.h"

namespace kiln {
namespace {

Element Float(double v) {
  Element e;
  e.re = v;
  return e;
}

struct Feature {
  double mean = 0, variance = 0, sum = 0, product = 0;
  int64_t count = 0;
};

}  // namespace

absl::StatusOr<Literal> EvalBatchNorm(const Instruction& i, const Shape&, const std::vector<const Literal*>& x) {
  const bool train = i.Is(Opcode::BatchNormTraining), infer = i.Is(Opcode::BatchNormInference),
             grad = i.Is(Opcode::BatchNormGrad);
  if (!train && !infer && !grad) return absl::NotFoundError("");
  const Literal& in = *x[0];
  const int64_t f = *i.attrs().feature_index;
  const double epsilon = i.attrs().epsilon.value_or(0);
  const IndexSpace space(in.shape().dims());
  std::vector<Feature> features(static_cast<size_t>(in.shape().dim(f)));
  auto of = [&](int64_t n) -> Feature& { return features[static_cast<size_t>(space.At(n)[static_cast<size_t>(f)])]; };
  for (int64_t n = 0; n < in.size(); ++n) {
    of(n).mean += in.Get(n).re;
    ++of(n).count;
  }
  for (Feature& q : features) q.mean /= static_cast<double>(q.count);
  for (int64_t n = 0; n < in.size(); ++n) {
    const double d = in.Get(n).re - of(n).mean;
    of(n).variance += d * d;
  }
  for (size_t k = 0; k < features.size(); ++k) {
    features[k].variance /= static_cast<double>(features[k].count);
    if (train) continue;
    features[k].mean = x[infer ? 3 : 2]->Get(static_cast<int64_t>(k)).re;
    features[k].variance = x[infer ? 4 : 3]->Get(static_cast<int64_t>(k)).re;
  }
  Literal out(Shape::Array(in.type(), in.shape().dims()));
  auto scale = [&](int64_t n) { return x[1]->Get(space.At(n)[static_cast<size_t>(f)]).re; };
  if (!grad) {
    for (int64_t n = 0; n < in.size(); ++n) {
      const Feature& q = of(n);
      const double offset = x[2]->Get(space.At(n)[static_cast<size_t>(f)]).re;
      out.Set(n, Float((in.Get(n).re - q.mean) / std::sqrt(q.variance + epsilon) * scale(n) + offset));
    }
    if (infer) return out;
  } else {
    for (int64_t n = 0; n < in.size(); ++n) {
      const double g = x[4]->Get(n).re;
      of(n).sum += g;
      of(n).product += g * (in.Get(n).re - of(n).mean);
    }
    for (int64_t n = 0; n < in.size(); ++n) {
      const Feature& q = of(n);
      const double count = static_cast<double>(q.count), spread = q.variance + epsilon;
      const double centred = x[4]->Get(n).re - q.sum / count - (in.Get(n).re - q.mean) * q.product / (spread * count);
      out.Set(n, Float(scale(n) / std::sqrt(spread) * centred));
    }
  }
  // The features' own results: mean and variance, or the gradients of scale and offset.
  Literal first(Shape::Array(in.type(), {in.shape().dim(f)})), second = first;
  for (int64_t k = 0; k < first.size(); ++k) {
    const Feature& q = features[static_cast<size_t>(k)];
    first.Set(k, Float(train ? q.mean : q.product / std::sqrt(q.variance + epsilon)));
    second.Set(k, Float(train ? q.variance : q.sum));
  }
  return Literal::Tuple({out, first, second});
}

}  // namespace kiln
