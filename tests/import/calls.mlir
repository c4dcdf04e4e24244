// Custom calls that are operations, and one whose result's extents an operand states.
module @m {
  func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func public @main(%x: tensor<3x2xf32>, %key: tensor<2xui64>) -> (tensor<3x2xf32>, tensor<2xui64>, tensor<3x2xui32>, tensor<3x2xf32>) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %window = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %padding = stablehlo.constant dense<[[1, 0], [0, 0]]> : tensor<2x2xi32>
    %extents = stablehlo.constant dense<[3, 2]> : tensor<2xi32>
    %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %window, %ones, %ones, %ones, %padding) {api_version = 2 : i32, called_computations = [@sum]} : (tensor<3x2xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<3x2xf32>
    %1:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%key, %extents) {api_version = 2 : i32, rng_algorithm = #stablehlo<rng_algorithm DEFAULT>} : (tensor<2xui64>, tensor<2xi32>) -> (tensor<2xui64>, tensor<3x2xui32>)
    %2 = stablehlo.custom_call @f(%x, %extents) {indices_of_shape_operands = dense<1> : tensor<1xi64>, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<3x2xf32>
    return %0, %1#0, %1#1, %2 : tensor<3x2xf32>, tensor<2xui64>, tensor<3x2xui32>, tensor<3x2xf32>
  }
}
