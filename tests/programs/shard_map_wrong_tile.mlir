// What a region takes must be a tile of what is given: here the sharding cuts three dimensions of two.
// INPUT s32[4,2] {{0, 1}, {2, 3}, {4, 5}, {6, 7}}
// ERROR its sharding does not make s32[2,2] of s32[4,2]
module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x2xi32>) -> tensor<4x2xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg1: tensor<2x2xi32>) {
      sdy.return %arg1 : tensor<2x2xi32>
    } : (tensor<4x2xi32>) -> tensor<4x2xi32>
    return %0 : tensor<4x2xi32>
  }
}
