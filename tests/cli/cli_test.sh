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
echo "command line: ok"
