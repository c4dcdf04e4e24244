// A sort in a loop whose comparison uses constants from outside the loop, as an exporter that moves constants leaves it.
// INPUT f32[2,3] {{3, -1, 2}, {0, 5, -4}}
// RESULT f32[2,3] {{-1, 2, 3}, {-4, 0, 5}}
func.func public @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %out:2 = stablehlo.while(%i = %first, %v = %x) : tensor<i32>, tensor<2x3xf32>
    cond {
      %more = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %odd = stablehlo.compare EQ, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %w = "stablehlo.if"(%odd) ({
        %s = "stablehlo.sort"(%v) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %zero : tensor<f32>
          %d = stablehlo.add %b, %zero : tensor<f32>
          %l = stablehlo.compare LT, %c, %d, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %l : tensor<i1>
        }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
        stablehlo.return %s : tensor<2x3xf32>
      }, {
        stablehlo.return %v : tensor<2x3xf32>
      }) : (tensor<i1>) -> tensor<2x3xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %w : tensor<i32>, tensor<2x3xf32>
    }
  return %out#1 : tensor<2x3xf32>
}
