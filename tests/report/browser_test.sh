#!/usr/bin/env bash
# Opens the page of `kiln explain` in a real browser without a screen: its charts are there, and the picture has them.
# usage: browser_test.sh KILN CHECK_PICTURE MODULE
set -euo pipefail
kiln=$1 check=$2 module=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$kiln" explain "$module" --html "$dir/page.html" >"$dir/text"
grep -q 'kernels by estimated time' "$dir/text"
browse() {
  HOME=$dir timeout 600 chromium-headless-shell --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$dir/profile" --window-size=1200,1600 "$@" "file://$dir/page.html" 2>"$dir/log" ||
    { cat "$dir/log"; exit 1; }
}
browse --dump-dom >"$dir/dom"
for id in memory buffers flame kernels passes; do
  grep -q "id=\"$id\"" "$dir/dom" || { echo "FAILED: the browser has no element '$id'"; exit 1; }
done
browse --screenshot="$dir/picture.png"
"$check" "$dir/picture.png" 1200 1600
# The page of a profile, measured just now.
"$kiln" profile "$module" --repeat 3 --html "$dir/page.html" --trace "$dir/trace.json" >"$dir/text"
grep -q 'roofline' "$dir/text"
grep -q '"ph":"X"' "$dir/trace.json"
browse --dump-dom >"$dir/dom"
for id in timeline flame operations lines; do
  grep -q "id=\"$id\"" "$dir/dom" || { echo "FAILED: the browser has no element '$id' in the profile"; exit 1; }
done
# A page without its charts must not pass for one with them.
echo '<!doctype html><title>empty</title>' >"$dir/page.html"
browse --screenshot="$dir/empty.png"
if "$check" "$dir/empty.png" 1200 1600 >/dev/null; then echo "FAILED: an empty page passes"; exit 1; fi
