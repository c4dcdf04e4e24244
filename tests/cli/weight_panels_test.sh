#!/usr/bin/env bash
# Which programs have their constant weights as panels: one alone, not several that share them, nor weights in a file.
set -euo pipefail
kiln=$PWD/$1
cd "$TEST_TMPDIR"
fail() {
  echo "FAILED: $1"
  exit 1
}
python3 - > net.mlir << 'END'
rows = ", ".join("[" + ", ".join(f"{(7 * i + j) % 11}.0" for j in range(64)) + "]" for i in range(64))
print(f"""module @net {{
  func.func public @main(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {{
    %w = stablehlo.constant dense<[{rows}]> : tensor<64x64xf32>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }}
}}""")
END
panels() {  # NAME OPTION...: how many of its programs have panels
  mkdir -p "dump_$1"
  printf 'debug { dump_dir: "dump_%s" }\n%s\n' "$1" "${config:-}" > "$1.config"
  "$kiln" compile net.mlir --name "$1" --out "out_$1" --config "$1.config" "${@:2}" > /dev/null
  grep -l 'panels = f32\[1,1,64,64\]' "dump_$1"/*.cpu_after_optimizations.txt | wc -l
}
[ "$(panels alone --dim 8)" = 1 ] || fail "a program alone has no panels"
[ "$(panels several --batch 1 --batch 8)" = 0 ] || fail "programs that share weights have panels"
[ "$(config='weights { constants_from_bytes: 1024 }' panels file --dim 8)" = 0 ] || fail "weights of a file lie as panels"
