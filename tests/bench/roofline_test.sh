#!/bin/bash
# The roofline of programs: all figures in the table, a dot for each program, and the same picture from the same numbers.
set -euo pipefail
kiln=$1 script=$2 programs=$(dirname "$3")
cd "$TEST_TMPDIR"
mkdir few
cp "$OLDPWD/$programs/transpose.hlo" "$OLDPWD/$programs/product.hlo" few
python3 "$OLDPWD/$script" "$OLDPWD/$kiln" first.svg --json figures.json few >table
grep -qE '^product .* %$' table
grep -qE '^2 programs, geometric mean [0-9]+ % of the roofline' table
python3 "$OLDPWD/$script" --draw figures.json second.svg >/dev/null
cmp first.svg second.svg
test "$(grep -c '<circle' first.svg)" = 2
grep -q '<title>product: ' first.svg
grep -q 'operations for each byte (flop/B)</text>' first.svg

# Figures that are known: half of what the copy allows, and a quarter of the multiply-adds.
cat >known.json <<'JSON'
{"programs": [{"name": "sum", "us": 100.0, "flops": 500000, "bytes": 1000000},
              {"name": "dot", "us": 10.0, "flops": 250000, "bytes": 1000},
              {"name": "move", "us": 100.0, "flops": 0, "bytes": 2000000}],
 "peaks": {"gflops": 100.0, "gbytes": 20.0}}
JSON
python3 "$OLDPWD/$script" --draw known.json known.svg >table
grep -qE '^sum .* 50 %$' table
grep -qE '^dot .* 25 %$' table
grep -qE '^move .* 100 %$' table
python3 -c 'import sys, xml.dom.minidom as d; print(len(d.parse(sys.argv[1]).getElementsByTagName("circle")))' known.svg | grep -qx 3
if python3 "$OLDPWD/$script" "$OLDPWD/$kiln" none.svg "$OLDPWD/$script" 2>/dev/null; then exit 1; fi
echo passed
