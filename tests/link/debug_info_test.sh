#!/usr/bin/env bash
# What debuggers are told: names, lines, unwind tables; nothing of it where nothing was asked for; the same bytes from
# everywhere. usage: debug_info_test.sh KILN MODULE
set -euo pipefail
kiln=$PWD/$1 module=$PWD/$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; exit 1; }
build() { # NAME CONFIG: the library in folder NAME, its parts in NAME/parts
  echo "$2" >"$1.config"
  "$kiln" compile "$module" --name m --out "$1" --config "$1.config" --target v3 >/dev/null
  mkdir "$1/parts"
  (cd "$1/parts" && ar x ../libm.a)
}
build plain ''
build symbols 'debug { symbols: true }'
build hlo 'debug { line_tables: HLO }'
build source 'debug { line_tables: SOURCE }'
build profile 'debug { profile: true }'

for part in plain/parts/*.o; do
  readelf -SW "$part" | grep -E '\.eh_frame|\.debug' && fail "$part tells debuggers something"
done
nm plain/libm.a | grep -E 'profile|numerics' && fail "a library measures unasked"
for part in run parallel v3; do
  sections=$(readelf -SW "symbols/parts/m_$part.o")
  grep -q '\.eh_frame' <<<"$sections" || fail "no unwind tables in m_$part.o"
done
names=$(nm symbols/libm.a)
grep -q 'product_1_layer0_dot_general_v3$' <<<"$names" || fail "no kernel with the user's name"
grep -q '_body_' <<<"$names" || fail "small kernels of the loop are gone"

llvm-dwarfdump-19 --verify hlo/parts/m_v3.o >verified || { cat verified; fail "broken DWARF"; }
lines=$(llvm-dwarfdump-19 --debug-line hlo/parts/m_v3.o)
number=$(awk '/^  %product.* dot\(/ {print NR}' hlo/m.hlo)
grep -q 'name: "m.hlo"' <<<"$lines" || fail "lines name no m.hlo"
grep -Eq "^0x[0-9a-f]+ +$number " <<<"$lines" || fail "no code on line $number of m.hlo, the product"
lines=$(llvm-dwarfdump-19 --debug-line source/parts/m_v3.o)
grep -q '"/src"' <<<"$lines" && grep -q 'name: "model.py"' <<<"$lines" || fail "lines name no model.py"
for number in 12 32 40; do
  grep -Eq "^0x[0-9a-f]+ +$number " <<<"$lines" || fail "no code on line $number of model.py"
done
functions=$(llvm-dwarfdump-19 --debug-info hlo/parts/m_v3.o)
grep -q 'DW_AT_name.*product_1_layer0_dot_general' <<<"$functions" || fail "no function with a user's name"

mkdir elsewhere
(cd elsewhere && cp ../hlo.config . && "$kiln" compile "$module" --name m --out out --config hlo.config --target v3 >/dev/null)
cmp hlo/libm.a elsewhere/out/libm.a || fail "bytes depend on where they were made"

cat >main.c <<'END'
#include "m_c.h"
#include <stdlib.h>
int main(int argc, char** argv) {
  int runs = argc > 1 ? atoi(argv[1]) : 1, status = 0;
  void* arguments[2] = {calloc(512 * 128, 4), calloc(128 * 256, 4)};
  void* results[1] = {calloc(512 * 256, 4)};
  kiln_arena arena = {aligned_alloc(64, M_ARENA_BYTES + 64 & ~63), M_ARENA_BYTES};
  while (runs-- && !status) status = m_run(arguments, results, arena, NULL);
  return status;
}
END

if command -v gdb >/dev/null; then
  cc -g -Ihlo main.c hlo/libm.a -o main -lm -lpthread
  number=$(awk '/^  %product.* dot\(/ {print NR}' hlo/m.hlo)
  cd hlo
  timeout 120 gdb -q -nx -batch -ex "break m.hlo:$number" -ex run -ex continue -ex bt ../main >session 2>&1 || true
  grep -q "at ./m.hlo:$number" session || { cat session; fail "gdb does not stop on line $number"; }
  grep -qE '^#[0-9]+ .*main \(' session || { cat session; fail "gdb's stack does not reach main"; }
  cd ..
  echo "gdb: stops, and the stack is whole"
else
  echo "gdb: skipped, it is not installed"
fi

# Where counters of the hardware may not be used, time is counted by a timer.
event=()
perf record -o allowed true >refused 2>&1 || event=(-e cpu-clock)
if ! command -v perf >/dev/null; then
  echo "perf: skipped, it is not installed"
elif ! perf record ${event[@]+"${event[@]}"} -o allowed true >refused 2>&1; then
  echo "perf: skipped, it may not be used here: $(head -1 refused)"
else
  export HOME=$dir  # where perf keeps what it has seen
  cc -Isymbols main.c symbols/libm.a -o main -lm -lpthread
  perf record ${event[@]+"${event[@]}"} -g -o samples ./main 300 >session 2>&1 || { cat session; fail "perf records nothing"; }
  perf report -i samples --stdio --no-children --sort symbol -G >report 2>session || { cat session; fail "perf reports nothing"; }
  for name in _product_1_layer0_dot_general_v3 _body_exp_v3 '[- ]main'; do
    grep -q -e "$name$" report || { head -60 report; fail "perf's report does not name $name"; }
  done
  echo "perf: names operations and their callers"
fi
echo "debuggers are told what they should be"
