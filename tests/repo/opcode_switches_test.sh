#!/bin/sh
# A new opcode falls through each switch that has a `default:`: those that are left are in opcode_switches.txt, each with
# the reason why it may.
set -eu
list=tests/repo/opcode_switches.txt
found=$(mktemp)
listed=$(mktemp)
trap 'rm -f "$found" "$listed"' EXIT
LC_ALL=C
export LC_ALL
find aot codegen compiler -name '*.cc' -o -name '*.h' | sort | xargs awk -f tests/repo/opcode_switches.awk | sort -u >"$found"
sed -n 's/^\([^# ][^ ]* [^ ]*\)  ..*$/\1/p' "$list" | sort -u >"$listed"
status=0
if comm -23 "$found" "$listed" | grep .; then
  echo "^ list the opcodes that are left, use a trait of opcodes.def, or give the reason in $list"
  status=1
fi
if comm -13 "$found" "$listed" | grep .; then
  echo "^ no longer has a default: take the line out of $list"
  status=1
fi
if grep -v '^#' "$list" | grep -v '^[^ ]* [^ ]*  ..*$'; then
  echo "^ $list: a line is FILE FUNCTION, two spaces and the reason"
  status=1
fi
[ $status = 0 ] && echo "opcode switches hold"
exit $status
