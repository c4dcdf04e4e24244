#!/bin/bash
# kiln tune for CPUs: a file of results, which compiles take by level, and what is refused.
set -euo pipefail
kiln=$PWD/$1
cd "$TEST_TMPDIR"
cat >net.hlo <<'HLO'
HloModule net
ENTRY e {
  x = f32[48,64] parameter(0)
  w = f32[64,128] parameter(1)
  y = f32[48,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[48,128] tanh(y)
}
HLO
"$kiln" tune net.hlo --target cpu --out net.tuning >said 2>steps
grep -q '^net.tuning: 1 products and convolutions for \(v\|amx\)' said
grep -q '^1 of 1: ' steps
test "$(grep -c 'candidates {' net.tuning)" -gt 2
key=$(sed -n 's/.*key: "\(.*\)"/\1/p' net.tuning)
level=$(sed -n 's/.*target: "\(.*\)"/\1/p' net.tuning)
"$kiln" tune net.hlo --target cpu --results net.tuning --out again.tuning >said
grep -q '^again.tuning: no results: nothing to measure (1 have results)$' said

# A choice of our own, so that the code is known to follow it.
results() { printf 'devices { target: "%s" entries { key: "%s" candidates { algorithm: %s microseconds: 1 } } }\n' "$@"; }
results "$level" "$key" 1 >one.tuning
results "$level" "$key" 0 >planned.tuning
compile() { "$kiln" compile net.hlo --name net --target native --out "$@"; }
compile plain >/dev/null
compile planned --tuning planned.tuning >/dev/null
compile one --tuning one.tuning >/dev/null
compile once_more --tuning one.tuning >/dev/null
grep -q "\"tuned\":\[{\"target\":\"$level\",\"name\":\".*\",\"key\":\"$key\",\"choice\":1}\]" one/net.manifest.json
grep -q '"tuned":\[\]' plain/net.manifest.json
cmp one/libnet.a once_more/libnet.a
if cmp -s one/libnet.a planned/libnet.a; then echo "the choice decides nothing"; exit 1; fi
echo 'tuning_results: "one.tuning"' >config
compile by_config --config config >/dev/null
cmp one/libnet.a by_config/libnet.a
"$kiln" diff net.hlo --config config --ulps 16 >difference

# What says nothing of this program, and what is refused.
compile empty --tuning again.tuning >said 2>&1
cmp empty/libnet.a plain/libnet.a
results v2 "$key" 2 >other.tuning
compile other --tuning other.tuning >said 2>&1
grep -q "note: no tuning result is for .* at $level; results are for v2" said
cmp other/libnet.a plain/libnet.a
refused() { if "$@" >out 2>&1; then echo "not refused: $*"; exit 1; fi; }
results "$level" "$key" 999 >unknown.tuning
refused compile none --tuning unknown.tuning
grep -q '^unknown.tuning:1:[0-9]*: error: algorithm 999 is none of the choices of this kiln' out
results v9 "$key" 2 >unknown.tuning
refused compile none --tuning unknown.tuning
grep -q "error: 'v9' is neither a GPU (sm_90) nor an x86-64 level" out
refused "$kiln" tune net.hlo --target v9 --out none.tuning
cp net.tuning kept.tuning
refused "$kiln" tune net.hlo --target cpu --results other.tuning --results net.tuning --out ./net.tuning
grep -q 'error: --out ./net.tuning would replace the results that --results names' out
cmp net.tuning kept.tuning
refused "$kiln" tune net.hlo --target cpu --threads 0 --out none.tuning

# Products by constant weights have nothing to choose: a file all the same, which scripts can go on with.
{
  echo 'HloModule constants'
  echo 'ENTRY e {'
  echo '  x = f32[48,64] parameter(0)'
  printf '  w = f32[64,128] constant({'
  for row in $(seq 64); do
    [ "$row" = 1 ] || printf ', '
    printf '{%s}' "$(seq -s ', ' "$row" $((row + 127)))"
  done
  echo '})'
  echo '  ROOT y = f32[48,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}'
  echo '}'
} >constants.hlo
"$kiln" tune constants.hlo --target cpu --out constants.tuning >said
grep -q '^constants.tuning: no results: nothing to measure (1 have constant weights as panels)$' said
grep -q '^devices {' constants.tuning
"$kiln" compile constants.hlo --name constants --target native --tuning constants.tuning --out constants >said 2>&1
echo passed
