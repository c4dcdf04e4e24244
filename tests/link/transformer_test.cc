// The header of a transformer with 29 arguments: names and nesting are those of the function in JAX (transformer.py),
// and what it computes is what JAX computes.
#include "transformer.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "tests/link/expect.h"

namespace {

// The numbers of transformer.py for argument k, by the function's order: that of sorted keys.
class Numbers {
 public:
  template <typename Array>
  void Give(Array& array) {
    memory_.emplace_back(array.size());
    std::vector<float>& v = memory_.back();
    const int k = static_cast<int>(memory_.size()) - 1;
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<float>(static_cast<int>(i * 37 + k * 11) % 101 - 50) / 100;
    array = v;
  }

 private:
  std::vector<std::vector<float>> memory_;
};

using Layer = std::remove_reference_t<decltype(transformer::Arguments().params.layers[0])>;
static_assert(std::is_same_v<decltype(Layer().attention.out), kiln::Array<const float, 8, 8>>);
static_assert(std::is_same_v<decltype(Layer().mlp.up.w), kiln::Array<const float, 8, 16>>);
static_assert(std::is_same_v<decltype(transformer::Arguments().tokens), kiln::Array<const std::int32_t, 4>>);
static_assert(TRANSFORMER_ARGUMENTS == 29 && TRANSFORMER_RESULTS == 2);
static_assert(std::extent_v<decltype(transformer::Arguments().params.layers)> == 2);
static_assert(std::is_same_v<transformer::Argument_params_layers_1_norm2_scale, kiln::Array<const float, 8>>);

}  // namespace

int main() {
  transformer::Arguments args;
  Numbers numbers;
  numbers.Give(args.params.embed);
  numbers.Give(args.params.final.bias);
  numbers.Give(args.params.final.scale);
  for (Layer& layer : args.params.layers) {
    numbers.Give(layer.attention.k);
    numbers.Give(layer.attention.out);
    numbers.Give(layer.attention.q);
    numbers.Give(layer.attention.v);
    numbers.Give(layer.mlp.down.b);
    numbers.Give(layer.mlp.down.w);
    numbers.Give(layer.mlp.up.b);
    numbers.Give(layer.mlp.up.w);
    numbers.Give(layer.norm1.bias);
    numbers.Give(layer.norm1.scale);
    numbers.Give(layer.norm2.bias);
    numbers.Give(layer.norm2.scale);
  }
  numbers.Give(args.params.positions);
  const std::int32_t tokens[] = {3, 1, 4, 1};
  args.tokens = tokens;

  transformer::Result_hidden::Owned hidden;
  transformer::Result_logits::Owned logits;
  transformer::Results results = {hidden, logits};
  Expect(results.hidden.extent(1) == 8 && results.logits.extent(1) == 16, "results have the names of the dict");
  transformer::Context context;
  const transformer::Status status = transformer::run(context, args, results);
  Expect(status.ok(), status.text());
  const auto near = [](float got, double want) { return std::abs(got - want) < 1e-5; };
  Expect(near(logits(0, 1), 0.06412938) && near(logits(3, 15), 0.02700809) && near(hidden(2, 5), 0.26787),
         "what JAX computes");

  std::puts(failures ? "FAILED" : "names and numbers are those of JAX");
  return failures ? 1 : 0;
}
