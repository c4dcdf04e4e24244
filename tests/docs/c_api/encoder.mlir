func.func @main(%x: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result['y']"}) {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
