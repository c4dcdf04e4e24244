// jax.export of a loop whose body makes an array as long as the argument: the extent is a value from outside the loop.
// INPUT f32[3,2] {{1, 2}, {3, 4}, {5, 6}}
// RESULT f32[3,2] {{2, 3}, {4, 5}, {6, 7}}
// RESULT f32[3] {3, 3, 3}
module @m {
  func.func public @main(%x: tensor<?x2xf32> {mhlo.sharding = ""}) -> (tensor<?x2xf32>, tensor<?xf32>) {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %0:2 = call @grow(%n, %x) : (tensor<i32>, tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?xf32>)
    return %0#0, %0#1 : tensor<?x2xf32>, tensor<?xf32>
  }
  func.func private @grow(%n: tensor<i32>, %x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %half = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %two = stablehlo.constant dense<2> : tensor<1xi32>
    // %size is handed on by the body; %n is from outside.
    %0:3 = stablehlo.while(%i = %zero, %size = %n, %y = %x) : tensor<i32>, tensor<i32>, tensor<?x2xf32>
     cond {
      %limit = stablehlo.constant dense<2> : tensor<i32>
      %go = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %rows = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %extents = stablehlo.concatenate %rows, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %more = stablehlo.dynamic_broadcast_in_dim %half, %extents, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x2xf32>
      %next = stablehlo.add %y, %more : tensor<?x2xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %size, %next : tensor<i32>, tensor<i32>, tensor<?x2xf32>
    }
    %behind = stablehlo.reshape %0#1 : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %threes = stablehlo.dynamic_broadcast_in_dim %three, %behind, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    return %0#2, %threes : tensor<?x2xf32>, tensor<?xf32>
  }
}
