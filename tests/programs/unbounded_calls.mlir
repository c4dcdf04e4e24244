// What jax.export writes as custom calls where a window, k or the extents of a result are values of the program.
// INPUT f32[3,2] {{1, 2}, {3, 4}, {5, 7}}
// RESULT f32[3,2] {{1, 2}, {4, 6}, {9, 13}}
// RESULT f32[3,1] {{2}, {4}, {7}}
// RESULT s32[3,1] {{1}, {1}, {1}}
module @m {
  func.func @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @more(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func public @main(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x1xi32>) {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %rows = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %window = stablehlo.concatenate %rows, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %before = stablehlo.subtract %rows, %one : tensor<1xi32>
    %none = stablehlo.constant dense<0> : tensor<1xi32>
    %nones = stablehlo.constant dense<0> : tensor<1x2xi32>
    %low = stablehlo.concatenate %before, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %first = stablehlo.reshape %low : (tensor<2xi32>) -> tensor<1x2xi32>
    %padding = stablehlo.concatenate %first, %nones, dim = 0 : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x2xi32>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %sums = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %window, %ones, %ones, %ones, %padding) {api_version = 2 : i32, called_computations = [@sum]} : (tensor<?x2xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x2xf32>
    %k = stablehlo.constant dense<1> : tensor<i32>
    %top:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) {api_version = 2 : i32} : (tensor<?x2xf32>, tensor<i32>) -> (tensor<?x1xf32>, tensor<?x1xi32>)
    %places = stablehlo.concatenate %rows, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %all = stablehlo.constant dense<2> : tensor<1xi32>
    %extents = stablehlo.concatenate %rows, %all, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %iota = stablehlo.dynamic_iota %extents, dim = 1 : (tensor<2xi32>) -> tensor<?x2xi32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %minus = stablehlo.constant dense<-1> : tensor<i32>
    %near:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %iota, %least, %minus, %k, %places, %places) {called_computations = [@more], indices_of_shape_operands = dense<[5, 6]> : tensor<2xi64>, mhlo.backend_config = {aggregate_to_topk = true, recall_target = 0.949999988 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64}} : (tensor<?x2xf32>, tensor<?x2xi32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<?x1xf32>, tensor<?x1xi32>)
    return %sums, %top#0, %near#1 : tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x1xi32>
  }
}
