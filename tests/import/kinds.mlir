func.func @main(%a: tensor<4x4xf32>, %s: tensor<2xui64>, %i: tensor<4x1xi64>, %img: tensor<1x8x8x2xf32>, %k: tensor<3x3x2x5xf32>, %tok: !stablehlo.token, %p: tensor<i1>) -> tensor<4x4xf32> {
 %0 = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
 %1 = "stablehlo.triangular_solve"(%a, %0) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
 %c = stablehlo.constant dense<[1,2]> : tensor<2xi64>
 %z = stablehlo.constant dense<1.5> : tensor<f32>
 %u = stablehlo.rng %z, %z, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<1x2xf32>
 %n = stablehlo.rng %z, %z, %c, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<1x2xf32>
 %t = stablehlo.constant dense<[true,false,true,true,false,true,true,false,true]> : tensor<9xi1>
 %t2 = stablehlo.constant dense<true> : tensor<9xi1>
 %i4 = stablehlo.constant dense<[1,-2,3]> : tensor<3xi4>
 %f = stablehlo.fft %a, type = RFFT, length = [4] : (tensor<4x4xf32>) -> tensor<4x3xcomplex<f32>>
 %g = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<4x4xf32>, tensor<4x1xi64>) -> tensor<4x4xf32>
 %cv = stablehlo.convolution(%img, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x4x4x5xf32>
 %sc = "stablehlo.scatter"(%a, %i, %a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
   %q = stablehlo.add %x, %y : tensor<f32>
   stablehlo.return %q : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true} : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
 %rv:2 = "stablehlo.recv"(%tok) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
 %ifr = "stablehlo.if"(%p) ({ stablehlo.return %a : tensor<4x4xf32> }, { stablehlo.return %0 : tensor<4x4xf32> }) : (tensor<i1>) -> tensor<4x4xf32>
 %inf:2 = "stablehlo.infeed"(%tok) {infeed_config = "cfg", layout = [[0, 1]]} : (!stablehlo.token) -> (tensor<4x4xf32>, !stablehlo.token)
 %co = stablehlo.composite "my.op" %a {composite_attributes = {k = 3 : i32, e = dense<1.0> : tensor<f32>}, decomposition = @foo, version = 2 : i32} : (tensor<4x4xf32>) -> tensor<4x4xf32>
 %cl = call @foo(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
 %pd = stablehlo.pad %a, %z, low = [1, -1], high = [0, 0], interior = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<5x6xf32>
 %rp = stablehlo.reduce_precision %a, format = e5m2 : tensor<4x4xf32>
 %io = stablehlo.iota dim = 1 : tensor<3x3xi32>
 %ar = "stablehlo.all_reduce"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
   %q = stablehlo.add %x, %y : tensor<f32>
   stablehlo.return %q : tensor<f32> }) {replica_groups = dense<[[0, 2], [1, -1]]> : tensor<2x2xi64>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
 %w:2 = stablehlo.while(%it = %p, %v = %a) : tensor<i1>, tensor<4x4xf32> cond { stablehlo.return %it : tensor<i1> } do { %nn = stablehlo.add %v, %0 : tensor<4x4xf32>
   stablehlo.return %it, %nn : tensor<i1>, tensor<4x4xf32> }
 return %sc : tensor<4x4xf32> }
 func.func private @foo(%a: tensor<4x4xf32>) -> tensor<4x4xf32> { return %a : tensor<4x4xf32> }
