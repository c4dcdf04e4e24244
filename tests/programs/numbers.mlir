// StableHLO: the same header, for a public function.
// INPUT s32[3] {1, 2, 3}
// INPUT s32[3] {4, 5, 6}
// RESULT s32[3] {-3, -3, -3}
// RESULT s32[] 32
func.func @main(%x: tensor<3xi32>, %y: tensor<3xi32>) -> (tensor<3xi32>, tensor<i32>) {
  %0 = stablehlo.subtract %x, %y : tensor<3xi32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<3xi32>, tensor<3xi32>) -> tensor<i32>
  return %0, %1 : tensor<3xi32>, tensor<i32>
}
