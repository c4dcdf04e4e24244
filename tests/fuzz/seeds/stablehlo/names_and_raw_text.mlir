module @"a module, \C3\A9" {
  func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @"twice (\22)"(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @f(%0) {api_version = 4 : i32, backend_config = {a = 1 : i64,     b = #x<handle = 2, -4>}} : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @"twice (\22)"(%y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %y, %y : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
