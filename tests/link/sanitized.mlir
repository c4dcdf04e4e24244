func.func public @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = stablehlo.add %x, %x : tensor<64xf32>
  %r = stablehlo.reverse %y, dims = [0] : tensor<64xf32>
  return %r : tensor<64xf32>
}
