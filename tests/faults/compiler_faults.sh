#!/usr/bin/env bash
# Every allocation, thread and file operation of a compile fails once: no signal, no hang, one error, and each file of the
# product is the old one or the new one, whole. $1: kiln, $2: the library to preload, $3: of the allocations every
# so-many-th ("sparse": about ten in each power of ten; the first of those is 1).
set -eu
kiln=$PWD/$1
library=$PWD/$2
stride=${3:-sparse}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
  echo "FAILED: $1"
  cat err
  exit 1
}

module() {
  printf 'HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  c = f32[8] constant({1,2,3,4,5,6,7,%s})\n  s = f32[8] add(x, c)\n  ROOT y = f32[8] tanh(s)\n}\n' "$1"
}
module 8 > old.hlo
module 9 > new.hlo
levels="--target v2 --target v3"
for version in old new; do
  # shellcheck disable=SC2086
  "$kiln" compile $version.hlo --name m --out $version $levels > /dev/null
done

# KIND N COMMAND...: leaves the exit code in `code`; false if there was no N-th call.
inject() {
  rm -f log
  code=0
  timeout 600 env KILN_FAIL_KIND="$1" KILN_FAIL_AT="$2" KILN_FAIL_LOG="$PWD/log" LD_PRELOAD="$library" "${@:3}" \
    > said 2> err || code=$?
  [ -s log ]
}

for kind in file thread memory; do
  n=1
  injected=0 errors=0
  while
    rm -rf out
    cp -r old out
    # shellcheck disable=SC2086
    inject $kind $n "$kiln" compile new.hlo --name m --out out $levels
  do
    injected=$((injected + 1))
    case $code in
      0) for f in new/*; do cmp -s "$f" "out/${f#*/}" || fail "$kind $n ($(cat log)): success, and ${f#*/} is not the new one"; done ;;
      1)
        errors=$((errors + 1))
        grep -q '^error: \|: error: ' err || fail "$kind $n ($(cat log)): no error is told"
        for f in new/*; do
          cmp -s "$f" "out/${f#*/}" || cmp -s "old/${f#*/}" "out/${f#*/}" || fail "$kind $n ($(cat log)): ${f#*/} is neither old nor new"
        done
        ;;
      *) fail "$kind $n ($(cat log)): exit code $code" ;;
    esac
    [ "$(ls out)" = "$(ls new)" ] || fail "$kind $n ($(cat log)): files are left: $(ls out)"
    if [ $kind != memory ]; then
      n=$((n + 1))
    elif [ "$stride" = sparse ]; then
      n=$((n + 1 + n / 4))
    else
      n=$((n + stride))
    fi
  done
  echo "compile, $kind: $injected faults, $errors ended in an error, $((injected - errors)) did no harm"
  [ $injected -gt 0 ] || fail "nothing was injected"
done

for kind in file thread; do
  n=1
  injected=0 errors=0
  while inject $kind $n "$kiln" run new.hlo --target v2; do
    injected=$((injected + 1))
    [ $code -le 1 ] || fail "run: $kind $n ($(cat log)): exit code $code"
    errors=$((errors + code))
    n=$((n + 1))
  done
  echo "run, $kind: $injected faults, $errors ended in an error"
done
