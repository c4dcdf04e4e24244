module @typed_call {
  func.func public @main(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<3xi32>) {
    %0 = stablehlo.custom_call @my_rms(%x) {backend_config = "", mhlo.backend_config = {eps = 9.99999974E-6 : f32, flag = true, inf = 0x7F800000 : f32, list = dense<[1.500000e+00, -2.500000e+00]> : tensor<2xf32>, matrix = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, n = 3 : i64, text = "q\22x\\y\0A", u = 200 : ui8}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %1:2 = stablehlo.custom_call @empty(%0) {has_side_effect = true, mhlo.backend_config = {}} : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<3xi32>)
    %2 = stablehlo.custom_call @older(%1#0) {api_version = 3 : i32, backend_config = "op\22aque\\"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    return %2, %1#1 : tensor<2x4xf32>, tensor<3xi32>
  }
}
