module @jit_transformer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x8xf32> loc("params['embed']"), %arg1: tensor<8xf32> loc("params['final']['bias']"), %arg2: tensor<8xf32> loc("params['final']['scale']"), %arg3: tensor<8x8xf32> loc("params['layers'][0]['attention']['k']"), %arg4: tensor<8x8xf32> loc("params['layers'][0]['attention']['out']"), %arg5: tensor<8x8xf32> loc("params['layers'][0]['attention']['q']"), %arg6: tensor<8x8xf32> loc("params['layers'][0]['attention']['v']"), %arg7: tensor<8xf32> loc("params['layers'][0]['mlp']['down']['b']"), %arg8: tensor<16x8xf32> loc("params['layers'][0]['mlp']['down']['w']"), %arg9: tensor<16xf32> loc("params['layers'][0]['mlp']['up']['b']"), %arg10: tensor<8x16xf32> loc("params['layers'][0]['mlp']['up']['w']"), %arg11: tensor<8xf32> loc("params['layers'][0]['norm1']['bias']"), %arg12: tensor<8xf32> loc("params['layers'][0]['norm1']['scale']"), %arg13: tensor<8xf32> loc("params['layers'][0]['norm2']['bias']"), %arg14: tensor<8xf32> loc("params['layers'][0]['norm2']['scale']"), %arg15: tensor<8x8xf32> loc("params['layers'][1]['attention']['k']"), %arg16: tensor<8x8xf32> loc("params['layers'][1]['attention']['out']"), %arg17: tensor<8x8xf32> loc("params['layers'][1]['attention']['q']"), %arg18: tensor<8x8xf32> loc("params['layers'][1]['attention']['v']"), %arg19: tensor<8xf32> loc("params['layers'][1]['mlp']['down']['b']"), %arg20: tensor<16x8xf32> loc("params['layers'][1]['mlp']['down']['w']"), %arg21: tensor<16xf32> loc("params['layers'][1]['mlp']['up']['b']"), %arg22: tensor<8x16xf32> loc("params['layers'][1]['mlp']['up']['w']"), %arg23: tensor<8xf32> loc("params['layers'][1]['norm1']['bias']"), %arg24: tensor<8xf32> loc("params['layers'][1]['norm1']['scale']"), %arg25: tensor<8xf32> loc("params['layers'][1]['norm2']['bias']"), %arg26: tensor<8xf32> loc("params['layers'][1]['norm2']['scale']"), %arg27: tensor<4x8xf32> loc("params['positions']"), %arg28: tensor<4xi32> loc("tokens")) -> (tensor<4x8xf32> {jax.result_info = "result['hidden']"}, tensor<4x16xf32> {jax.result_info = "result['logits']"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %1 = stablehlo.compare LT, %arg28, %0, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_0 = stablehlo.constant dense<16> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %3 = stablehlo.add %arg28, %2 : tensor<4xi32>
    %4 = stablehlo.select %1, %3, %arg28 : tensor<4xi1>, tensor<4xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<16x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
    %7 = stablehlo.add %6, %arg27 : tensor<4x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %11 = stablehlo.divide %9, %10 : tensor<4x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %13 = stablehlo.subtract %7, %12 : tensor<4x8xf32>
    %14 = stablehlo.multiply %13, %13 : tensor<4x8xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.reduce(%14 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_3 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %18 = stablehlo.divide %16, %17 : tensor<4x1xf32>
    %cst_4 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %20 = stablehlo.add %18, %19 : tensor<4x1xf32>
    %21 = stablehlo.rsqrt %20 : tensor<4x1xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %23 = stablehlo.multiply %13, %22 : tensor<4x8xf32>
    %24 = stablehlo.broadcast_in_dim %arg12, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<4x8xf32>
    %27 = stablehlo.broadcast_in_dim %arg11, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %29 = stablehlo.add %26, %28 : tensor<4x8xf32>
    %30 = stablehlo.dot_general %29, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %31 = stablehlo.reshape %30 : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %32 = stablehlo.transpose %31, dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
    %33 = stablehlo.dot_general %29, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %34 = stablehlo.reshape %33 : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %35 = stablehlo.transpose %34, dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
    %36 = stablehlo.dot_general %29, %arg6, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %37 = stablehlo.reshape %36 : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %38 = stablehlo.transpose %37, dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
    %39 = stablehlo.transpose %35, dims = [0, 2, 1] : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %40 = stablehlo.dot_general %32, %39, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x4x4xf32>
    %42 = stablehlo.divide %40, %41 : tensor<2x4x4xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %43 = stablehlo.reduce(%42 init: %cst_6) applies stablehlo.maximum across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %44 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %45 = stablehlo.maximum %44, %43 : tensor<2x4xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x4xf32>
    %48 = stablehlo.subtract %42, %47 : tensor<2x4x4xf32>
    %49 = stablehlo.exponential %48 : tensor<2x4x4xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %50 = stablehlo.reduce(%49 init: %cst_8) applies stablehlo.add across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x4xf32>
    %53 = stablehlo.divide %49, %52 : tensor<2x4x4xf32>
    %54 = stablehlo.dot_general %53, %38, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %55 = stablehlo.transpose %54, dims = [1, 0, 2] : (tensor<2x4x4xf32>) -> tensor<4x2x4xf32>
    %56 = stablehlo.reshape %55 : (tensor<4x2x4xf32>) -> tensor<4x8xf32>
    %57 = stablehlo.dot_general %56, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %58 = stablehlo.add %7, %57 : tensor<4x8xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %59 = stablehlo.reduce(%58 init: %cst_9) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %60 = stablehlo.broadcast_in_dim %59, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_10 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %62 = stablehlo.divide %60, %61 : tensor<4x1xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %64 = stablehlo.subtract %58, %63 : tensor<4x8xf32>
    %65 = stablehlo.multiply %64, %64 : tensor<4x8xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %66 = stablehlo.reduce(%65 init: %cst_11) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_12 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %69 = stablehlo.divide %67, %68 : tensor<4x1xf32>
    %cst_13 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %71 = stablehlo.add %69, %70 : tensor<4x1xf32>
    %72 = stablehlo.rsqrt %71 : tensor<4x1xf32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %74 = stablehlo.multiply %64, %73 : tensor<4x8xf32>
    %75 = stablehlo.broadcast_in_dim %arg14, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %77 = stablehlo.multiply %74, %76 : tensor<4x8xf32>
    %78 = stablehlo.broadcast_in_dim %arg13, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %80 = stablehlo.add %77, %79 : tensor<4x8xf32>
    %81 = stablehlo.dot_general %80, %arg10, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %82 = stablehlo.broadcast_in_dim %arg9, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<4x16xf32>
    %84 = stablehlo.add %81, %83 : tensor<4x16xf32>
    %85 = stablehlo.tanh %84 : tensor<4x16xf32>
    %86 = stablehlo.dot_general %85, %arg8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %87 = stablehlo.add %58, %86 : tensor<4x8xf32>
    %88 = stablehlo.broadcast_in_dim %arg7, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %90 = stablehlo.add %87, %89 : tensor<4x8xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %91 = stablehlo.reduce(%90 init: %cst_14) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_15 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %93 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %94 = stablehlo.divide %92, %93 : tensor<4x1xf32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %96 = stablehlo.subtract %90, %95 : tensor<4x8xf32>
    %97 = stablehlo.multiply %96, %96 : tensor<4x8xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %98 = stablehlo.reduce(%97 init: %cst_16) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_17 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %101 = stablehlo.divide %99, %100 : tensor<4x1xf32>
    %cst_18 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %103 = stablehlo.add %101, %102 : tensor<4x1xf32>
    %104 = stablehlo.rsqrt %103 : tensor<4x1xf32>
    %105 = stablehlo.broadcast_in_dim %104, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %106 = stablehlo.multiply %96, %105 : tensor<4x8xf32>
    %107 = stablehlo.broadcast_in_dim %arg24, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %108 = stablehlo.broadcast_in_dim %107, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %109 = stablehlo.multiply %106, %108 : tensor<4x8xf32>
    %110 = stablehlo.broadcast_in_dim %arg23, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %111 = stablehlo.broadcast_in_dim %110, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %112 = stablehlo.add %109, %111 : tensor<4x8xf32>
    %113 = stablehlo.dot_general %112, %arg17, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %114 = stablehlo.reshape %113 : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %115 = stablehlo.transpose %114, dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
    %116 = stablehlo.dot_general %112, %arg15, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %117 = stablehlo.reshape %116 : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %118 = stablehlo.transpose %117, dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
    %119 = stablehlo.dot_general %112, %arg18, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %120 = stablehlo.reshape %119 : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %121 = stablehlo.transpose %120, dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
    %122 = stablehlo.transpose %118, dims = [0, 2, 1] : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %123 = stablehlo.dot_general %115, %122, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %cst_19 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %124 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<2x4x4xf32>
    %125 = stablehlo.divide %123, %124 : tensor<2x4x4xf32>
    %cst_20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %126 = stablehlo.reduce(%125 init: %cst_20) applies stablehlo.maximum across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %cst_21 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %127 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %128 = stablehlo.maximum %127, %126 : tensor<2x4xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x4xf32>
    %131 = stablehlo.subtract %125, %130 : tensor<2x4x4xf32>
    %132 = stablehlo.exponential %131 : tensor<2x4x4xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %133 = stablehlo.reduce(%132 init: %cst_22) applies stablehlo.add across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x4xf32>
    %136 = stablehlo.divide %132, %135 : tensor<2x4x4xf32>
    %137 = stablehlo.dot_general %136, %121, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %138 = stablehlo.transpose %137, dims = [1, 0, 2] : (tensor<2x4x4xf32>) -> tensor<4x2x4xf32>
    %139 = stablehlo.reshape %138 : (tensor<4x2x4xf32>) -> tensor<4x8xf32>
    %140 = stablehlo.dot_general %139, %arg16, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %141 = stablehlo.add %90, %140 : tensor<4x8xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %142 = stablehlo.reduce(%141 init: %cst_23) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %143 = stablehlo.broadcast_in_dim %142, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_24 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %144 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %145 = stablehlo.divide %143, %144 : tensor<4x1xf32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %147 = stablehlo.subtract %141, %146 : tensor<4x8xf32>
    %148 = stablehlo.multiply %147, %147 : tensor<4x8xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %149 = stablehlo.reduce(%148 init: %cst_25) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %150 = stablehlo.broadcast_in_dim %149, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_26 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %151 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %152 = stablehlo.divide %150, %151 : tensor<4x1xf32>
    %cst_27 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %153 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %154 = stablehlo.add %152, %153 : tensor<4x1xf32>
    %155 = stablehlo.rsqrt %154 : tensor<4x1xf32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %157 = stablehlo.multiply %147, %156 : tensor<4x8xf32>
    %158 = stablehlo.broadcast_in_dim %arg26, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %160 = stablehlo.multiply %157, %159 : tensor<4x8xf32>
    %161 = stablehlo.broadcast_in_dim %arg25, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %162 = stablehlo.broadcast_in_dim %161, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %163 = stablehlo.add %160, %162 : tensor<4x8xf32>
    %164 = stablehlo.dot_general %163, %arg22, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %165 = stablehlo.broadcast_in_dim %arg21, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %166 = stablehlo.broadcast_in_dim %165, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<4x16xf32>
    %167 = stablehlo.add %164, %166 : tensor<4x16xf32>
    %168 = stablehlo.tanh %167 : tensor<4x16xf32>
    %169 = stablehlo.dot_general %168, %arg20, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %170 = stablehlo.add %141, %169 : tensor<4x8xf32>
    %171 = stablehlo.broadcast_in_dim %arg19, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %173 = stablehlo.add %170, %172 : tensor<4x8xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %174 = stablehlo.reduce(%173 init: %cst_28) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %175 = stablehlo.broadcast_in_dim %174, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_29 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %177 = stablehlo.divide %175, %176 : tensor<4x1xf32>
    %178 = stablehlo.broadcast_in_dim %177, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %179 = stablehlo.subtract %173, %178 : tensor<4x8xf32>
    %180 = stablehlo.multiply %179, %179 : tensor<4x8xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %181 = stablehlo.reduce(%180 init: %cst_30) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %182 = stablehlo.broadcast_in_dim %181, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %cst_31 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %183 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %184 = stablehlo.divide %182, %183 : tensor<4x1xf32>
    %cst_32 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %185 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %186 = stablehlo.add %184, %185 : tensor<4x1xf32>
    %187 = stablehlo.rsqrt %186 : tensor<4x1xf32>
    %188 = stablehlo.broadcast_in_dim %187, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %189 = stablehlo.multiply %179, %188 : tensor<4x8xf32>
    %190 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %192 = stablehlo.multiply %189, %191 : tensor<4x8xf32>
    %193 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %194 = stablehlo.broadcast_in_dim %193, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %195 = stablehlo.add %192, %194 : tensor<4x8xf32>
    %196 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %197 = stablehlo.dot_general %195, %196, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    return %173, %197 : tensor<4x8xf32>, tensor<4x16xf32>
  }
}

