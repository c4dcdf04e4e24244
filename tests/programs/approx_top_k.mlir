// jax.lax.approx_max_k along either dimension: what XLA:CPU gives, which is the exact answer.
// INPUT f32[3,5] {{1, 5, 2, 4, 3}, {-1, -5, -2, -4, -3}, {7, 7, 0, 9, 8}}
// RESULT f32[3,2] {{5, 4}, {-1, -2}, {9, 8}}
// RESULT s32[3,2] {{1, 3}, {0, 2}, {3, 4}}
// RESULT f32[2,5] {{7, 7, 2, 9, 8}, {1, 5, 0, 4, 3}}
// RESULT s32[2,5] {{2, 2, 0, 2, 2}, {0, 0, 2, 0, 0}}
module @m {
  func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func public @main(%x: tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>, tensor<2x5xf32>, tensor<2x5xi32>) {
    %columns = stablehlo.iota dim = 1 : tensor<3x5xi32>
    %rows = stablehlo.iota dim = 0 : tensor<3x5xi32>
    %none = stablehlo.constant dense<-1> : tensor<i32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0:2 = stablehlo.custom_call @ApproxTopK(%x, %columns, %least, %none) {backend_config = "", called_computations = [@greater], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<3x5xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x2xf32>, tensor<3x2xi32>)
    %1:2 = stablehlo.custom_call @ApproxTopK(%x, %rows, %least, %none) {backend_config = "", called_computations = [@greater], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 0 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<3x5xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x5xf32>, tensor<2x5xi32>)
    return %0#0, %0#1, %1#0, %1#1 : tensor<3x2xf32>, tensor<3x2xi32>, tensor<2x5xf32>, tensor<2x5xi32>
  }
}
