module @batches {
  func.func public @main(%x: tensor<?x4xf32>) -> (tensor<?x3xf32>, tensor<4xf32>) {
    %w = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]> : tensor<4x3xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
    return %y, %s : tensor<?x3xf32>, tensor<4xf32>
  }
}
