# A language model of toy size, as StableHLO: prefill reads a sentence, decode a word. Both have the table of words.
BEGIN {
  for (r = 0; r < 256; ++r) {
    row = ""
    for (c = 0; c < 64; ++c) row = row (c ? ", " : "") ((r * 7 + c * 3) % 5 - 2) ".0"
    rows = rows (r ? ",\n" : "") "[" row "]"
  }
  print "module @language_model {"
  function_begin("prefill", "%words: tensor<8xi32> loc(\"words\")", 8)
  print "    %states = stablehlo.add %e, %e : tensor<8x64xf32>"
  print "    %zero = stablehlo.constant dense<0.0> : tensor<f32>"
  print "    %state = stablehlo.reduce(%states init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x64xf32>, tensor<f32>) -> tensor<64xf32>"
  function_end(8)
  function_begin("decode", "%word: tensor<1xi32> loc(\"word\"), %old: tensor<64xf32> {tf.aliasing_output = 0 : i32} loc(\"state\")", 1)
  print "    %row = stablehlo.reshape %e : (tensor<1x64xf32>) -> tensor<64xf32>"
  print "    %state = stablehlo.add %old, %row : tensor<64xf32>"
  print "    %states = stablehlo.reshape %state : (tensor<64xf32>) -> tensor<1x64xf32>"
  function_end(1)
  print "}"
}
function function_begin(name, arguments, n) {
  print "  func.func public @" name "(" arguments ") -> (tensor<64xf32> {jax.result_info = \"result['state']\"}, tensor<" n "xf32> {jax.result_info = \"result['best']\"}) {"
  print "    %table = stablehlo.constant dense<[" rows "]> : tensor<256x64xf32>"
  print "    %i = stablehlo.reshape " (n == 1 ? "%word" : "%words") " : (tensor<" n "xi32>) -> tensor<" n "x1xi32>"
  print "    %e = \"stablehlo.gather\"(%table, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>} : (tensor<256x64xf32>, tensor<" n "x1xi32>) -> tensor<" n "x64xf32>"
}
function function_end(n) {
  print "    %logits = stablehlo.dot_general %states, %table, contracting_dims = [1] x [1] : (tensor<" n "x64xf32>, tensor<256x64xf32>) -> tensor<" n "x256xf32>"
  print "    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>"
  print "    %best = stablehlo.reduce(%logits init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<" n "x256xf32>, tensor<f32>) -> tensor<" n "xf32>"
  print "    return %state, %best : tensor<64xf32>, tensor<" n "xf32>"
  print "  }"
}
