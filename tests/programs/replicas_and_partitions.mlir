// Groups of replicas that span all partitions: StableHLO numbers their members partition by partition.
// INPUT@0 s32[1] {0}
// INPUT@0 s32[4] {0, 1, 2, 3}
// INPUT@1 s32[1] {1}
// INPUT@1 s32[4] {10, 11, 12, 13}
// INPUT@2 s32[1] {2}
// INPUT@2 s32[4] {20, 21, 22, 23}
// INPUT@3 s32[1] {3}
// INPUT@3 s32[4] {30, 31, 32, 33}
// RESULT@0 s32[4] {0, 2, 1, 3}
// RESULT@0 s32[1] {60}
// RESULT@1 s32[4] {0, 2, 1, 3}
// RESULT@1 s32[1] {68}
// RESULT@2 s32[4] {0, 2, 1, 3}
// RESULT@2 s32[1] {64}
// RESULT@3 s32[4] {0, 2, 1, 3}
// RESULT@3 s32[1] {72}
module @m attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<1xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<1xi32>) {
    %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<1xi32>) -> tensor<4xi32>
    %1 = "stablehlo.reduce_scatter"(%y) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>} : (tensor<4xi32>) -> tensor<1xi32>
    return %0, %1 : tensor<4xi32>, tensor<1xi32>
  }
}
