#!/usr/bin/env bash
# Shared objects of models: what they show and need, that a host in C runs what they hold, and what `kiln inspect` says
# of them. No linker of the machine's makes them.
. tests/link/prepare.sh
kiln=$root/$1
cat > sum.hlo << 'END'
HloModule sum
ENTRY e {
  x = f32[4,8] parameter(0)
  c = f32[8,3] constant({{0,1,4},{9,16,25},{36,49,64},{81,100,121},{144,169,196},{225,256,289},{324,361,400},{441,484,529}})
  d = f32[4,3] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  w = f64[4,3] convert(d)
  a = f64[4,3] atan2(w, w)
  ROOT y = f32[4,3] convert(a)
}
END
cat > twice.hlo << 'END'
HloModule twice
ENTRY e {
  n = s32[3] parameter(0)
  ROOT y = s32[3] add(n, n)
}
END
echo 'debug { large_weights_bytes: 10 }' > large.config
mkdir none
PATH=none "$kiln" compile sum.hlo --name sum --out sum --shared > log || fail "compile without a linker: $(cat log)"
"$kiln" compile sum.hlo --name sum --out large --config large.config --shared > /dev/null
"$kiln" compile twice.hlo --name twice --out twice --shared > /dev/null
"$kiln" compile "$root/tests/link/batches.mlir" --config "$root/tests/link/batches.config" --name batches --out batches --shared > /dev/null
PATH=none "$kiln" link sum/libsum.a twice/libtwice.a --out both/models.so || fail "two models in one object"
PATH=none "$kiln" link sum/libsum.a twice/libtwice.a --out again/models.so
cmp both/models.so again/models.so || fail "the same libraries, other bytes"

for so in sum/libsum.so large/libsum.so twice/libtwice.so batches/libbatches.so both/models.so; do
  shown=$(nm -D --defined-only "$so" | awk '{ print $3 }')
  [ "$shown" = kiln_models ] || fail "$so shows $shown"
  readelf -dW "$so" > dynamic
  if grep -q TEXTREL dynamic; then fail "$so has text relocations"; fi
  for needed in $(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' dynamic); do
    case $needed in libc.so.6 | libm.so.6) ;; *) fail "$so needs $needed" ;; esac
  done
  nm -D --undefined-only "$so" | awk '{ print $2 }' > undefined
  if grep -v '@GLIBC_2' undefined; then fail "$so: functions without a version"; fi
  if readelf -lW "$so" | grep -E 'LOAD.* RWE |GNU_STACK.*E '; then fail "$so: memory that is written and run"; fi
done
readelf -SW large/libsum.so | grep -q '\.lrodata' || fail "large weights lie elsewhere"
readelf -dW sum/libsum.so | grep -q libm.so.6 || fail "libm is missing"

# Whatever a library may call has its version.
while read -r name; do
  grep -q ", $name)" "$root/codegen/link/libc.def" || fail "codegen/link/libc.def lacks $name"
done < "$root/tests/link/allowed_symbols.txt"

cc -std=c99 -pedantic -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L "-I$root/runtime_min" "$root/tests/link/host.c" -o host -ldl
c++ -x c++ -std=c++11 -Wall -Wextra -Werror "-I$root/runtime_min" "$root/tests/link/host.c" -o host_cc -ldl
quarter="0.785398 0.785398 0.785398"
for host in ./host ./host_cc; do
  for so in sum/libsum.so large/libsum.so; do
    printf 'sum, version 1, ABI 4\nok\nresult0 f32: %s\n' "$quarter $quarter $quarter $quarter" > want
    $host "./$so" > got && diff want got || fail "$host $so"
  done
  [ "$($host ./both/models.so twice | tail -1)" = "result0 s32: 2 2 2" ] || fail "the second model"
  [ "$($host ./both/models.so | head -1)" = "sum, version 1, ABI 4" ] || fail "the first model"
  [ "$($host ./batches/libbatches.so | tail -1)" = "column_sums f32: 9 9 9 9" ] || fail "the largest batch"
done

# The rules of CMake and of Bazel.
cat > CMakeLists.txt << END
cmake_minimum_required(VERSION 3.16)
project(p NONE)
set(KILN_EXECUTABLE "$kiln")
include("$root/aot/cmake/KilnLibrary.cmake")
kiln_library(sum sum.hlo)
kiln_library(twice twice.hlo)
kiln_shared_object(models sum twice)
END
{ cmake -S . -B cmake && cmake --build cmake; } > log 2>&1 || { cat log; fail "cmake"; }
cmp both/models.so cmake/models.so || fail "kiln_shared_object of CMake"
[ "$(./host "$root/tests/link/models.so" batches | tail -1)" = "column_sums f32: 9 9 9 9" ] || fail "kiln_shared_object of Bazel"

# What libraries say of themselves.
"$kiln" inspect batches/libbatches.a > a.txt
"$kiln" inspect batches/libbatches.so > so.txt
cmp a.txt so.txt || fail "archive and shared object say different things"
for line in 'batch 4: arena' '  0 x: f32\[4,4\], 64 bytes aligned to 4' '  1 column_sums: f32\[4\]' 'CPU levels: v2 v3 v4; GPUs: none'; do
  grep -q "^$line" a.txt || fail "inspect does not say '$line': $(cat a.txt)"
done
"$kiln" inspect both/models.so --json > models.json
python3 - models.json << 'END' || fail "inspect --json"
import json, sys
models = json.load(open(sys.argv[1]))
assert [m["name"] for m in models] == ["sum", "twice"], models
assert models[0]["variants"][0]["arguments"] == [
    {"name": "x", "path": "x", "dtype": "f32", "shape": [4, 8], "bytes": 128, "alignment": 4}], models
assert models[1]["variants"][0]["results"][0]["dtype"] == "s32"
END

# What is no library says so.
wrong() {  # REASON ARGUMENTS...
  if "$kiln" "${@:2}" > log 2>&1; then fail "accepted: ${*:2}"; fi
  grep -q "$1" log || fail "${*:2} says: $(cat log)"
}
cc -shared -o other.so -x c - <<< 'int f(void) { return 1; }'
ar rc other.a sum.hlo
head -c 3000 sum/libsum.so > cut.so
wrong "no library of kiln's" inspect other.so
wrong "no library of kiln's" inspect other.a
wrong "no library of kiln's" link other.a --out x.so
wrong "no shared object" inspect sum.hlo
wrong "error" inspect cut.so
wrong "cannot read" inspect missing.so
wrong "error" link sum/libsum.a --out /dev/null/x.so

# Broken files end in an error, or say something; nothing else happens.
python3 - "$kiln" sum/libsum.so << 'END' || fail "a broken file"
import random, subprocess, sys
kiln, path = sys.argv[1:]
whole = open(path, "rb").read()
random.seed(1)
for k in range(60):
    data = bytearray(whole)
    for _ in range(random.choice((1, 8, 64))):
        data[random.randrange(len(data))] = random.choice((0, 1, 127, 255, random.randrange(256)))
    open("broken.so", "wb").write(data)
    code = subprocess.run([kiln, "inspect", "broken.so"], capture_output=True, timeout=20).returncode
    if code not in (0, 1):
        sys.exit(f"mutant {k}: exit code {code}")
END
echo "shared objects: ok"
