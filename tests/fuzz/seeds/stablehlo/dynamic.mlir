func.func @main(%arg0: tensor<8x4xf32>, %arg1: tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>> {
  %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 0 : (tensor<8x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>>
  %s = stablehlo.constant dense<[2, 16]> : tensor<2xi32>
  %1 = stablehlo.dynamic_reshape %arg0, %s : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %2:2 = chlo.scan(%arg0) inits(%arg1) dimension=0 {
  ^bb0(%a: tensor<4xf32>, %b: tensor<i32>):
    stablehlo.return %a, %b : tensor<4xf32>, tensor<i32>
  } : (tensor<8x4xf32>, tensor<i32>) -> (tensor<8x4xf32>, tensor<i32>)
  return %0 : tensor<?x4xf32, #stablehlo.bounds<8, ?>>
}
