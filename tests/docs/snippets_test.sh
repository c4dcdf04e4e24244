#!/usr/bin/env bash
# The snippets of a page: blocks with file=NAME become files, blocks marked `run` run in order, in one shell each.
set -eu
kiln=$PWD/$1 page=$PWD/$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"
ln -s "$kiln" "$dir/bin/kiln"
export PATH="$dir/bin:$PATH"
cd "$dir"
awk '
  /^```/ && !inside {
    inside = 1; file = ""; command = 0
    if (match($0, /file=[^ ]+/)) file = substr($0, RSTART + 5, RLENGTH - 5)
    else if ($0 ~ /^```sh run$/) { command = 1; file = sprintf("run_%03d.sh", ++runs) }
    if (file != "") printf "" > file
    next
  }
  /^```/ { inside = 0; next }
  inside && file != "" { print > file }
' "$page"
[ -e run_001.sh ] || { echo "FAILED: $2 has nothing to run"; exit 1; }
for script in run_*.sh; do
  bash -eu "$script" || { echo "FAILED: $2, its block of commands number ${script//[^0-9]/}:"; cat "$script"; exit 1; }
done
echo "$2: $(ls run_*.sh | wc -l) blocks ran"
