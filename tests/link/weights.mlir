module @layers attributes {} {
  func.func public @main(%arg0: tensor<3x2xf32> loc("params['head']"), %arg1: tensor<3xf32> loc("params['layers'][0]['b']"),
                         %arg2: tensor<4x3xf32> loc("params['layers'][0]['w']"), %arg3: tensor<2x4xf32> loc("x"))
      -> (tensor<2x3xf32> {jax.result_info = "result['hidden']"}, tensor<2x2xf32> {jax.result_info = "result['logits']"}) {
    %0 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
    %3 = stablehlo.dot_general %2, %arg0, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    return %2, %3 : tensor<2x3xf32>, tensor<2x2xf32>
  }
}
