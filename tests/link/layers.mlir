module @layers {
  func.func public @all(%x: tensor<2x4xf32> loc("x"), %w: tensor<4x3xf32> loc("params['w']"), %b: tensor<3xf32> loc("params['b']")) -> (tensor<2x3xf32> {jax.result_info = "result['y']"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
  func.func public @one(%w: tensor<4x3xf32> loc("params['w']"), %scale: tensor<3xf32> loc("params['scale']"), %x: tensor<4xf32> loc("x")) -> (tensor<3xf32> {jax.result_info = "result['y']"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
    %1 = stablehlo.multiply %0, %scale : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func public @none(%x: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result['y']"}) {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
