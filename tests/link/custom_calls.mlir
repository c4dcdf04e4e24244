module @custom_calls {
  func.func public @main(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xi32>, tensor<2x4xf32>) {
    %y, %n = stablehlo.custom_call @typed_call(%x) {
        api_version = 4 : i32,
        backend_config = {axis = 1 : i64, flag = true, mode = "fast", scale = 2.5 : f32, weights = array<i32: 3, -4>}
      } : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xi32>)
    %z = stablehlo.custom_call @"status.call"(%y) {api_version = 2 : i32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %w = stablehlo.custom_call @unified_call(%z) {api_version = 3 : i32, backend_config = "opaque"}
      : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %o:2 = stablehlo.custom_call @original_call(%w, %x) {api_version = 1 : i32}
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    return %o#0, %n, %o#1 : tensor<2x4xf32>, tensor<2xi32>, tensor<2x4xf32>
  }
}
