#map = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x1xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<1x4xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
    %cst = stablehlo.constant dense<[[1.0, -2.5, 0x7FC00000], [3.0e0, 4.0, 5.0]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<"0x0100000002000000"> : tensor<2xi64>
    %z = stablehlo.constant dense<0.000000e+00> 0 tensor<f32>
    %0 = stablehlo.add %arR0, %cst : tensor<2x?xf32>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [i,0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = call @f(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3:2 = stablehlo.while(%i = %c, %x = %2) : tensor<2xi32>, tensor<2x3xf32>
     cond {
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %n = stablehlo.negate %x : tensor<2x3xf32>
      stablehlo.return %i, %n : tensor<2xi32>, tensor<2x3xf32>
    }
    %4 = stablehlo.dot_general %0, %2, contrcating_dims = [0] x [1], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
    %5 = stablehlo.slice %4 [0:2, 0:1:1] : (tensor<2x2xf32>) -> tensor<2x1xf32>
    %6 = stablehlo.uniform_quantize %0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1:-3,0.2,0.5:4}>>
    %7 = stablehll.uniform_dequantize %6 : (tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1:-3,0.4,0.5:4}>>) -> tensor<2x3xf32>
    return %7, %1 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
