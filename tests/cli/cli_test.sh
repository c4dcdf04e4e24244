#!/bin/sh
# The command line: help everywhere, exit codes, one clear error for bad input, nothing half-written.
set -eu
kiln=$1
module=$2
fail() { echo "FAILED: $1"; exit 1; }
for c in compile run check verify opt diff tune explain reduce bisect; do
  "$kiln" $c --help | grep -q usage || fail "$c --help"
done
"$kiln" verify "$module" | grep -q "^OK $module" || fail "verify"
"$kiln" opt "$module" | grep -q '^HloModule' || fail "opt prints"
"$kiln" opt --list | grep -q '^algsimp ' || fail "opt --list"
"$kiln" opt --list --json > list.json
"$kiln" opt "$module" --pipeline=cpu --json > opt.json
"$kiln" explain "$module" --json > explain.json
python3 - <<'EOF' || fail "JSON of opt and explain"
import json
passes = {p["name"]: p for p in json.load(open("list.json"))}
assert all(bool(p["pipelines"]) != ("why_not" in p) for p in passes.values()), "a pass without a pipeline has a reason"
did = json.load(open("opt.json"))
assert did["instructions_before"] > 0 < did["instructions_after"]
assert any(p["changes"] for p in did["passes"]) and all(p["runs"] >= p["changes"] for p in did["passes"])
assert all("cpu" in passes[p["name"]]["pipelines"] for p in did["passes"])
told = json.load(open("explain.json"))
assert told["operations"] == len(told["steps"]) and told["bytes_accessed"] > 0 and told["estimated_us"] > 0
EOF
"$kiln" opt "$module" --passes=dce,cse > a.hlo
"$kiln" opt a.hlo > b.hlo
cmp a.hlo b.hlo || fail "print is not a fixed point"
code=0; "$kiln" opt "$module" --passes=nonsense > /dev/null 2> err || code=$?
[ $code = 1 ] && grep -q "no pass is named 'nonsense'" err || fail "unknown pass"
code=0; "$kiln" frobnicate > /dev/null 2>&1 || code=$?
[ $code = 2 ] || fail "unknown command exits 2"
code=0; "$kiln" compile --nonsense > /dev/null 2>&1 || code=$?
[ $code = 2 ] || fail "unknown option exits 2"
printf 'HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] negate(x)\n}\n' > bad.hlo
mkdir out
code=0; "$kiln" compile bad.hlo --name bad --out out 2> err || code=$?
[ $code = 1 ] && grep -q '^bad.hlo:4:14: error: ' err || fail "an error with file, line and column: $(cat err)"
[ -z "$(ls out)" ] || fail "files written for a wrong module"
"$kiln" compile "$module" --name digits --out out --target v3 > /dev/null
for f in libdigits.a digits.h digits_c.h digits.manifest.json; do [ -s out/$f ] || fail "$f is missing"; done
nm out/libdigits.a 2> /dev/null | grep -q ' T digits_[0-9a-f]*_pool_create' || fail "no thread pool by default"
echo 'threads: 1' > one.cfg
"$kiln" compile "$module" --name digits --out out --target v3 --config one.cfg > /dev/null
if nm out/libdigits.a 2> /dev/null | grep -q 'pool\|pthread\|parallel'; then fail "threads in a library for one"; fi
if grep -q pool_create out/digits_c.h; then fail "the header declares a pool that is not there"; fi
printf 'HloModule c\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] custom-call(x), custom_call_target="nobody_has_this"\n}\n' > call.hlo
"$kiln" compile call.hlo --name call --out out > /dev/null
printf '#include "call_c.h"\nint main(void) { call_run(0, 0, (kiln_arena){0, 0}, 0); return 0; }\n' > main.c
if cc -Iout main.c out/libcall.a -lm 2> err; then fail "an unknown custom call linked"; fi
grep -q nobody_has_this err || fail "the link error does not name the custom call"
"$kiln" run call.hlo > /dev/null 2> err && fail "an unknown custom call ran"
grep -q "custom call 'nobody_has_this' needs a function" err || fail "kiln run does not name the custom call"
# The JSON line counts what a run asks of a GPU and of other devices.
printf 'HloModule g\nENTRY e {\n  x = f32[8,8] parameter(0)\n  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT z = f32[8,8] negate(y)\n}\n' > steps.hlo
"$kiln" compile steps.hlo --name steps --out out --target sm_90 --json 2> /dev/null | grep -q '"gpu_steps":[12],' || fail "gpu_steps"
printf 'HloModule c, replica_count=2\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT g = f32[8] all-gather(x), dimensions={0}, replica_groups={{0,1}}\n}\n' > gather.hlo
"$kiln" compile gather.hlo --name gather --out out --json 2> /dev/null |
  grep -qF '"collectives":[{"kind":"all-gather","bytes":32,"group_size":2,"count":1,"groups":1,"name":"g","transport":"kiln_comm","algorithm":"exchange"}]' || fail "collectives"
# GPUs exchange by NCCL, or through the host where the config says so.
cat > offload.hlo <<'EOF'
HloModule m

ENTRY e {
  x = f32[64] parameter(0)
  host = f32[64] custom-call(x), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="pinned_host"}
  back = f32[64] custom-call(host), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="device"}
  ROOT y = f32[64] negate(back)
}
EOF
"$kiln" compile offload.hlo --name m --out out --target sm_90 --json 2> /dev/null | grep -q '"gpu_host_arena_bytes":256,' ||
  fail "the host arena is not told"
grep -q '^#define M_GPU_HOST_ARENA_BYTES ((size_t)256)$' out/m_c.h || fail "the host arena is not in the header"
"$kiln" inspect out/libm.a | grep -q "in the host's memory: 256;" || fail "inspect does not name the host arena"
"$kiln" explain offload.hlo --target sm_90 | grep -q 'arena in the host.s memory 256 bytes' || fail "explain does not name the host arena"
"$kiln" compile offload.hlo --name m --out out --target v3 --json 2> /dev/null | grep -q '"slow_arena_bytes":0,' || fail "a CPU has a host arena"
echo 'gpu { targets: "sm_90" transport: HOST }' > host.cfg
"$kiln" compile gather.hlo --name gather --out out --target sm_90 --json 2> /dev/null |
  grep -qF '"transport":"nccl","algorithm":"ncclAllGather"' || fail "collectives of a GPU"
"$kiln" compile gather.hlo --name gather --out out --config host.cfg --json 2> /dev/null |
  grep -qF '"transport":"host","algorithm":"gather"' || fail "collectives of a GPU through the host"
"$kiln" explain gather.hlo --target sm_90 | grep -q 'all-gather, nccl: ncclAllGather' || fail "explain does not name the transport"
"$kiln" explain gather.hlo --target sm_90 --json | grep -qF '"algorithm":"ncclAllGather"' || fail "explain --json"
"$kiln" run gather.hlo --devices 2 | grep '^result' > cpu.txt
for config in "" "--config host.cfg"; do
  "$kiln" run gather.hlo --backend gpu-emulated --devices 2 $config > gpu.txt || fail "a gather of GPUs"
  grep '^result' gpu.txt | cmp - cpu.txt || fail "GPUs gather otherwise"
done
# Folders are made; what cannot be made is said with the system's reason.
"$kiln" compile "$module" --name digits --out n1/n2/n3 --target v3 > /dev/null || fail "--out makes folders"
[ -s n1/n2/n3/digits.h ] || fail "n1/n2/n3/digits.h is missing"
echo 'debug { dump_dir: "d1/d2" }' > dump.cfg
"$kiln" compile "$module" --name digits --out out --target v3 --config dump.cfg > /dev/null || fail "dump_dir makes folders"
[ -s d1/d2/digits.before_optimizations.txt ] || fail "no dump"
code=0; "$kiln" compile "$module" --name digits --out dump.cfg/sub --target v3 > /dev/null 2> err || code=$?
[ $code = 1 ] && grep -q "cannot create the folder 'dump.cfg/sub': Not a directory" err || fail "a folder in a file: $(cat err)"
# A mistake of meaning is reported at its field.
printf 'threads: 1\ndebug {\n  stop_after: "foo"\n}\n' > stop.cfg
code=0; "$kiln" compile "$module" --name digits --out out --config stop.cfg 2> err > /dev/null || code=$?
[ $code = 1 ] && grep -q "^stop.cfg:3:3: error: no pass is named 'foo'" err || fail "stop_after: $(cat err)"
printf 'threads: 1\nargument_names: ["a",\n  "1b"]\n' > names.cfg
code=0; "$kiln" compile "$module" --name digits --out out --config names.cfg 2> err > /dev/null || code=$?
[ $code = 1 ] && grep -q "^names.cfg:[23]:.*error: '1b' is not a C identifier" err || fail "argument_names: $(cat err)"
# Help, the version, and what was probably meant.
"$kiln" --version > version
grep -q '^kiln [0-9]*\.[0-9]*\.[0-9]*$' version && grep -q '^LLVM [0-9]' version && grep -q '^ABI [0-9]*$' version || fail "--version"
"$kiln" compile -h | grep -q '^usage: kiln compile \[MODULE\] --name NAME --out DIR' || fail "compile -h"
"$kiln" help diff | grep -q '^usage: kiln diff' || fail "help diff"
"$kiln" complie x 2>&1 | grep -q "did you mean compile?" || fail "a misspelt command"
[ "$("$kiln" complie x 2>&1 | wc -l)" = 1 ] || fail "an unknown command takes more than a line"
"$kiln" compile "$module" --nmae x 2>&1 | grep -q "did you mean --name?" || fail "a misspelt option"
[ "$("$kiln" compile "$module" --nmae x 2>&1 | wc -l)" = 1 ] || fail "an unknown option takes more than a line"
code=0; "$kiln" compile "$module" -o x > /dev/null 2> err || code=$?
[ $code = 2 ] && grep -q -e '--name is missing' err && [ "$(wc -l < err)" = 2 ] || fail "a missing option: $(cat err)"
for words in "-x" "--json=1" "--out" "a b"; do
  code=0; "$kiln" compile "$module" --name n $words > /dev/null 2> err || code=$?
  [ $code = 2 ] && [ "$(wc -l < err)" -le 2 ] || fail "compile $words: $(cat err)"
done
"$kiln" compile -o short --name digits --target v3 -- "$module" > /dev/null || fail "-o and --"
cmp short/libdigits.a n1/n2/n3/libdigits.a || fail "-o is not --out"
# Stages and their times, without a terminal only when asked for.
"$kiln" compile "$module" --name digits --out out --target v3 2> err > /dev/null
[ ! -s err ] || fail "stages unasked: $(cat err)"
"$kiln" compile "$module" --name digits --out out --target v3 -v 2> err > /dev/null
for stage in reading passes "planning memory" "generating code" writing; do
  grep -q "^kiln: digits: $stage$" err && grep -q "^  $stage  *[0-9.]* ms$" err || fail "no stage '$stage': $(cat err)"
done
grep -q '^  total  *[0-9.]* ms$' err || fail "no total"
grep -q '^  pass [a-z-]*  *[0-9.]* ms$' err || fail "no passes"
# A variant for each --batch.
printf 'func.func @main(%%a: tensor<?xf32>) -> tensor<?xf32> {\n  %%0 = stablehlo.negate %%a : tensor<?xf32>\n  return %%0 : tensor<?xf32>\n}\n' > any.mlir
echo 'batch_sizes: [1, 8]' > sizes.cfg
"$kiln" compile any.mlir --name any --out by_config --target v3 --config sizes.cfg > /dev/null
"$kiln" compile any.mlir --name any --out by_option --target v3 --batch 8 --batch 1 > /dev/null
cmp by_config/libany.a by_option/libany.a || fail "--batch is not batch_sizes"
code=0; "$kiln" compile any.mlir --name any --out out --batch 0 2> err || code=$?
[ $code = 1 ] && grep -q 'batch takes a number of at least 1' err || fail "--batch 0: $(cat err)"
# Inputs and the library's own config in a comparison.
printf 'HloModule s\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n' > sum.hlo
"$kiln" run sum.hlo -o seeded > /dev/null
"$kiln" diff sum.hlo --input seeded/result_0.npy --config one.cfg --target v2 | grep -q 'result 0 f32\[4\]: equal' || fail "diff --input"
"$kiln" bisect sum.hlo --input seeded/result_0.npy > /dev/null || fail "bisect --input"
code=0; "$kiln" diff sum.hlo --input seeded/result_0.npy --input seeded/result_0.npy 2> err || code=$?
[ $code = 1 ] && grep -q '2 inputs given, the module takes 1' err || fail "two inputs: $(cat err)"
# Arrays of ml_dtypes as NumPy saves them: bytes without a type, which other arguments refuse.
narrow() {  # TYPE DESCR BYTES, of the numbers 1 and 2
  printf "\\223NUMPY\\1\\0\\166\\0%-117s\\n$3" "{'descr': '$2', 'fortran_order': False, 'shape': (2,), }" > narrow.npy
  printf 'HloModule n\nENTRY e {\n  x = %s[2] parameter(0)\n  ROOT y = f32[2] convert(x)\n}\n' "$1" > narrow.hlo
  "$kiln" run narrow.hlo --input narrow.npy -o narrow > /dev/null 2> err
}
reads() {
  narrow "$@" || fail "$1 of $2: $(cat err)"
  [ "$(od -An -tx1 -j 128 narrow/result_0.npy | tr -d ' ')" = 0000803f00000040 ] || fail "$1 of $2 is read wrong"
}
refuses() {
  code=0; narrow "$@" || code=$?
  [ $code = 1 ] && grep -q "error: element type $2, the argument is $1 " err || fail "$1 of $2: $(cat err)"
}
for kind in '<' '|'; do
  reads bf16 "${kind}V2" '\200\077\000\100'
  reads f8e4m3fn "${kind}V1" '\070\100'
done
reads f8e5m2 '<f1' '\074\100'
for of in 'f16 <V2' 's8 <V1' 's4 <V1' 'f8e4m3fn <f1' 'bf16 >V2' 'f32 >f4'; do
  refuses "${of% *}" "${of#* }" '\1\2\3\4\5\6\7\1'
done
# A difference that is too large is followed by a search for the rewrite at fault.
printf 'HloModule d\nENTRY e {\n  x = f32[64,1300] parameter(0)\n  y = f32[1300,64] parameter(1)\n  ROOT z = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n' > dot.hlo
"$kiln" diff dot.hlo --rtol 1 --bisect found > log || fail "diff --rtol 1: $(cat log)"
if grep -q 'which rewrite' log; then fail "diff --bisect without a difference"; fi
code=0; "$kiln" diff dot.hlo --rtol 0 --bisect found > log 2>&1 || code=$?
[ $code = 1 ] && grep -q '^which rewrite changes the result:$' log && tail -1 log | grep -q 'bisect_after\|compiled code' log || fail "diff --bisect: $(cat log)"
# Where it differs, by each measure; the same for scripts, in one line that is the last.
code=0; "$kiln" diff dot.hlo --rtol 0 > log || code=$?
[ $code = 1 ] && grep -q '^result 0 f32\[64,64\]: largest difference [^ ]* absolute, [^ ]* relative; [0-9.]* ulps of the reference at element [0-9]* \[[0-9]*,[0-9]*\]: compiled [^ ]*, reference [^ ]*$' log ||
  fail "the largest difference: $(cat log)"
for measure in absolute relative; do
  grep -q "^  $measure [0-9.e-]* at element [0-9]* \[[0-9]*,[0-9]*\]: compiled [^ ]*, reference [^ ]*$" log || fail "the $measure difference: $(cat log)"
done
grep -q '^  [0-9]* of 4096 elements differ$' log || fail "how many differ: $(cat log)"
code=0; "$kiln" diff dot.hlo --rtol 0 --json --bisect found > log 2>&1 || code=$?
[ $code = 1 ] && tail -1 log | grep -q '^{"within":false,"results":\[{"device":0,"result":0,"dtype":"f32","shape":\[64,64\],"within":false,"elements":4096,"differing":[0-9]*,"absolute":{"value":[0-9.e-]*,"element":[0-9]*,"index":\[[0-9]*,[0-9]*\],"got":"[^"]*","want":"[^"]*"},"relative":{.*"ulps":{.*}}\]}$' ||
  fail "diff --json: $(cat log)"
[ "$("$kiln" diff sum.hlo --json)" = '{"within":true,"results":[{"device":0,"result":0,"dtype":"f32","shape":[4],"within":true,"elements":4,"differing":0,"absolute":{"value":0},"relative":{"value":0},"ulps":{"value":0}}]}' ] || fail "diff --json of equal results"
# What a library takes, and a program that times it; both from its manifest.
"$kiln" sizes out/digits.manifest.json out/two.manifest.json > sizes 2> err || true
grep -q 'two.manifest.json' err || fail "sizes of what is not there: $(cat err)"
"$kiln" sizes out/digits.manifest.json | grep -q "^digits  *cpu .* $(stat -c %s out/libdigits.a)$" || fail "sizes"
code=0; "$kiln" sizes any.mlir 2> err || code=$?
[ $code = 1 ] && grep -q '^any.mlir:1:1: error: this is no manifest' err || fail "sizes of a program: $(cat err)"
printf 'HloModule t\nENTRY e {\n  a = f16[3] parameter(0)\n  b = bf16[2,2] parameter(1)\n  c = c64[5] parameter(2)\n  d = pred[7] parameter(3)\n  e = f64[2] parameter(4)\n  f = s8[4] parameter(5)\n  ROOT r = (f16[3], bf16[2,2], c64[5], pred[7], f64[2], s8[4]) tuple(a, b, c, d, e, f)\n}\n' > types.hlo
"$kiln" compile types.hlo --name types --out out --target v2 > /dev/null
"$kiln" compile any.mlir --name any --out out --target v2 --batch 3 --batch 9 > /dev/null
for name in digits types any; do
  "$kiln" benchmark out/$name.manifest.json --out $name.c
  cc -std=gnu11 -Wall -Wextra -Werror -Iout $name.c out/lib$name.a -lm -lpthread -o time_$name || fail "the benchmark of $name does not compile"
  ./time_$name --runs 7 --json > log || fail "the benchmark of $name: $(cat log)"
  grep -q "^{\"name\":\"$name\",\"build\":\"${name}_[0-9a-f]*\",.*\"runs\":7,\"min_us\":[0-9.]*," log || fail "times of $name: $(cat log)"
done
grep -q '"batch":9' log || fail "the batch of a benchmark: $(cat log)"
code=0; "$kiln" benchmark out/gather.manifest.json --out g.c 2> err || code=$?
[ $code = 1 ] && grep -q 'a program of 2 devices' err || fail "a benchmark of two devices: $(cat err)"
# The manual page and the shell's completion have every command and option.
"$kiln" help --man > kiln.1
"$kiln" help --bash > completion
for c in $("$kiln" --help | sed -n 's/^  \([a-z]\{2,\}\) .*/\1/p'); do
  grep -q "^\.SS kiln $c" kiln.1 || fail "no manual for $c"
  for o in $("$kiln" help "$c" | sed -n 's/^ .*--\([a-z-]*\) .*/\1/p'); do
    grep -qF "\\-\\-$(echo "$o" | sed 's/-/\\-/g')" kiln.1 || fail "no manual for $c --$o"
  done
done
bash -c '. ./completion; COMP_WORDS=(kiln compile --na); COMP_CWORD=2; _kiln; [ "${COMPREPLY[*]}" = --name ]' || fail "completion of an option"
bash -c '. ./completion; COMP_WORDS=(kiln com); COMP_CWORD=1; _kiln; [ "${COMPREPLY[*]}" = compile ]' || fail "completion of a command"
# The function that is meant.
printf 'func.func public @a(%%x: tensor<2xf32>) -> tensor<2xf32> { return %%x : tensor<2xf32> }\nfunc.func public @b(%%x: tensor<2xf32>) -> tensor<2xf32> { return %%x : tensor<2xf32> }\n' > two.mlir
code=0; "$kiln" verify two.mlir > err || code=$?
[ $code = 1 ] && grep -q 'two.mlir:2:1: error: several functions are public.*@a, @b' err || fail "two functions: $(cat err)"
"$kiln" verify two.mlir --entry b > /dev/null || fail "verify --entry"
"$kiln" diff two.mlir --entry=b > /dev/null || fail "diff --entry"
"$kiln" compile two.mlir --entry b --name two --out out --target v3 > /dev/null || fail "compile --entry"
# Programs of several devices, with shardings as JAX writes them: whole arrays are compared.
cat > sharded.mlir <<'EOF'
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
    %b = stablehlo.add %a, %a : tensor<4x2xf32>
    return %b : tensor<4x2xf32>
  }
}
EOF
"$kiln" diff sharded.mlir --devices 2 > log || fail "diff of a sharded program: $(cat log)"
[ "$(cat log)" = "device 0 result 0 f32[4,2]: equal
device 1 result 0 f32[4,2]: equal" ] || fail "diff of a sharded program: $(cat log)"
# The size of a result that values decide is a result named after it; a config names the arrays, or all.
printf 'HloModule m\nENTRY e { x = s32[2,4] parameter(0)\n n = s32[] parameter(1)\n ROOT y = s32[2,<=4] set-dimension-size(x, n), dimensions={1} }\n' > sized.hlo
"$kiln" compile sized.hlo --name m --out out --target v3 > /dev/null
grep -q '"name":"result0_size1"' out/m.manifest.json || fail "the size of a result has no name of its own"
echo 'result_names: "chosen"' > sized.config
"$kiln" compile sized.hlo --name m --out out --target v3 --config sized.config > /dev/null
grep -q '"name":"chosen_size1"' out/m.manifest.json || fail "a config that names arrays leaves their sizes without names"
# A loop that LLVM makes no vectors of is nobody's business: what it asks for is said to nobody.
cat > scalar.hlo <<'EOF'
HloModule m
f {
  a = f16[] parameter(0)
  b = f16[] parameter(1)
  c = f16[] add(a, b)
  ROOT d = f16[] multiply(c, a)
}
ENTRY e {
  x = f16[40,19] parameter(0)
  z = f16[] constant(1)
  ROOT r = f16[40] reduce(x, z), dimensions={1}, to_apply=f
}
EOF
"$kiln" compile scalar.hlo --name m --out out --target v4 > log 2>&1 || fail "compile scalar.hlo"
[ "$(wc -l < log)" = 1 ] || fail "LLVM's remarks reach the user: $(cat log)"
# Temporary files lie where TMPDIR says, and go with a process that is stopped.
mkdir temporary
TMPDIR=$PWD/temporary "$kiln" reduce "$module" --keep='cp {} seen; sleep 3' > /dev/null 2>&1 &
for _ in $(seq 100); do
  [ -e seen ] && break
  sleep 0.1
done
[ -n "$(ls temporary)" ] || fail "temporary files lie elsewhere"
kill -TERM $!
code=0; wait $! || code=$?
[ $code = 143 ] || fail "a stopped command exits by the signal: $code"
[ -z "$(ls temporary)" ] || fail "temporary files are left behind"
echo "command line: ok"
