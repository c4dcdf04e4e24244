module @batch_weights {
  func.func public @main(%arg0: tensor<3xf32> loc("params['b']"), %arg1: tensor<4x3xf32> loc("params['w']"), %arg2: tensor<?x4xf32> loc("x"))
      -> (tensor<?x3xf32> {jax.result_info = "result['y']"}) {
    %0 = stablehlo.dot_general %arg2, %arg1, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %1 = stablehlo.get_dimension_size %arg2, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %3 = stablehlo.concatenate %2, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg0, %3, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %5 = stablehlo.add %0, %4 : tensor<?x3xf32>
    return %5 : tensor<?x3xf32>
  }
}
