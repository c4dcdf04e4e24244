// Code written for the parts of an array, between operations on whole arrays: what enters is cut along both axes, what
// leaves lies the other way round.
// INPUT s32[4,2] {{0, 1}, {2, 3}, {4, 5}, {6, 7}}
// RESULT s32[4,2] {{-205, -1}, {-207, -3}, {-306, -102}, {-308, -104}}
// RESULT s32[2,1] {{614}, {622}}
module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<4x2xi32>) -> (tensor<4x2xi32>, tensor<2x1xi32>) {
    %one = stablehlo.constant dense<1> : tensor<4x2xi32>
    %0 = stablehlo.add %arg0, %one : tensor<4x2xi32>
    %1:2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"y"}, {"x"}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%arg1: tensor<2x1xi32>) {
      %2 = stablehlo.partition_id : tensor<ui32>
      %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>
      %hundred = stablehlo.constant dense<100> : tensor<i32>
      %4 = stablehlo.multiply %3, %hundred : tensor<i32>
      %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<2x1xi32>
      %6 = stablehlo.add %arg1, %5 : tensor<2x1xi32>
      %7 = "stablehlo.collective_permute"(%6) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2], [2, 0], [1, 3], [3, 1]]> : tensor<4x2xi64>}> : (tensor<2x1xi32>) -> tensor<2x1xi32>
      %8 = "stablehlo.all_reduce"(%6) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %9 = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %9 : tensor<i32>
      }) : (tensor<2x1xi32>) -> tensor<2x1xi32>
      sdy.return %7, %8 : tensor<2x1xi32>, tensor<2x1xi32>
    } : (tensor<4x2xi32>) -> (tensor<4x2xi32>, tensor<2x1xi32>)
    %10 = stablehlo.negate %1#0 : tensor<4x2xi32>
    return %10, %1#1 : tensor<4x2xi32>, tensor<2x1xi32>
  }
}
