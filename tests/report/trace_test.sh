#!/usr/bin/env bash
# Perfetto shows every event of a trace of `kiln profile`. usage: trace_test.sh KILN CHECK_TRACE MODULE...
set -euo pipefail
kiln=$1 check=$2
shift 2
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
for module in "$@"; do
  "$kiln" profile "$module" --repeat 3 --threads 2 --trace "$trace" >/dev/null
  python3 "$check" "$trace"
done

# What Perfetto would drop or refuse must not pass.
refused() { # EVENTS WHY
  echo "{\"traceEvents\":[$1]}" >"$trace"
  if said=$(python3 "$check" "$trace" 2>&1); then
    echo "FAILED: '$2' passes"
    exit 1
  fi
  grep -q "$2" <<<"$said" || { echo "FAILED: not '$2': $said"; exit 1; }
}
event() { # TS DUR
  echo "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":$1,\"dur\":$2,\"cat\":\"kernel\",\"name\":\"dot\",\"args\":{}}"
}
refused "" "no events"
refused "$(event 0 2)," "Expecting"
refused "$(event 0 '"2"')" "'dur' is '2'"
refused "$(event 0 -1)" "a negative time"
refused "$(event 0 2 | sed 's/"X"/"B"/')" "not a complete event"
refused "$(event 0 2),$(event 1.999 0.002)" "overlaps another"
echo "traces hold"
