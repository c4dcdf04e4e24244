#!/bin/sh
# The command line: help everywhere, exit codes, one clear error for bad input, nothing half-written.
set -eu
kiln=$1
module=$2
fail() { echo "FAILED: $1"; exit 1; }
for c in compile run check verify opt diff; do
  "$kiln" $c --help | grep -q usage || fail "$c --help"
done
"$kiln" verify "$module" | grep -q "^OK $module" || fail "verify"
"$kiln" opt "$module" | grep -q '^HloModule' || fail "opt prints"
"$kiln" opt --list | grep -q '^algsimp ' || fail "opt --list"
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
# The JSON line counts what a run asks of a GPU and of other devices.
printf 'HloModule g\nENTRY e {\n  x = f32[8,8] parameter(0)\n  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT z = f32[8,8] negate(y)\n}\n' > steps.hlo
"$kiln" compile steps.hlo --name steps --out out --target sm_90 --json 2> /dev/null | grep -q '"gpu_steps":[12],' || fail "gpu_steps"
printf 'HloModule c, replica_count=2\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT g = f32[8] all-gather(x), dimensions={0}, replica_groups={{0,1}}\n}\n' > gather.hlo
"$kiln" compile gather.hlo --name gather --out out --json 2> /dev/null |
  grep -qF '"collectives":[{"kind":"all-gather","bytes":32,"group_size":2,"count":1}]' || fail "collectives"
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
"$kiln" --version | grep -q '^kiln [0-9]' || fail "--version"
"$kiln" compile -h | grep -q '^usage: kiln compile' || fail "compile -h"
"$kiln" help diff | grep -q '^usage: kiln diff' || fail "help diff"
"$kiln" complie x 2>&1 | grep -q "did you mean compile?" || fail "a misspelt command"
[ "$("$kiln" complie x 2>&1 | wc -l)" = 1 ] || fail "an unknown command takes more than a line"
"$kiln" compile "$module" --nmae x 2>&1 | grep -q "did you mean --name?" || fail "a misspelt option"
code=0; "$kiln" compile "$module" -o x > /dev/null 2>&1 || code=$?
[ $code = 2 ] || fail "-o is no file"
# The function that is meant.
printf 'func.func public @a(%%x: tensor<2xf32>) -> tensor<2xf32> { return %%x : tensor<2xf32> }\nfunc.func public @b(%%x: tensor<2xf32>) -> tensor<2xf32> { return %%x : tensor<2xf32> }\n' > two.mlir
code=0; "$kiln" verify two.mlir > err || code=$?
[ $code = 1 ] && grep -q 'two.mlir:2:1: error: several functions are public.*@a, @b' err || fail "two functions: $(cat err)"
"$kiln" verify two.mlir --entry b > /dev/null || fail "verify --entry"
"$kiln" diff two.mlir --entry=b > /dev/null || fail "diff --entry"
"$kiln" compile two.mlir --entry b --name two --out out --target v3 > /dev/null || fail "compile --entry"
echo "command line: ok"
