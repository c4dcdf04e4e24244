#!/usr/bin/env bash
# The snippets of a page: blocks with file=NAME become files, blocks marked `run` run in order, in one shell each.
# usage: snippets_test.sh KILN PAGE [--package KILN.tar.gz] [FILE]...
# With --package kiln and its headers come from the package, as for those who installed it. FILEs are what the page takes
# for granted: other pages, whose files it goes on with, and files as they are. A check.sh among them runs at the end, and
# is for what the page shows only in part. Blocks of Python are run by the system's Python, and find kiln's package.
set -eu
awk=$(cd "$(dirname "$0")" && pwd)/blocks.awk kiln=$PWD/$1 name=$2 page=$PWD/$2 given=() tar=""
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --package) tar=$PWD/$2; shift ;;
    *) given+=("$PWD/$1") ;;
  esac
  shift
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin" "$dir/page"
[ ! -d aot/python/kiln ] || export PYTHONPATH=$PWD/aot/python KILN=$kiln PYTHONDONTWRITEBYTECODE=1
[ ! -e /usr/bin/python3 ] || ln -s /usr/bin/python3 "$dir/bin/python3"
if [ -n "$tar" ]; then
  mkdir "$dir/package"
  tar -xf "$tar" -C "$dir/package" --strip-components=1
  export PKG_CONFIG_PATH=$dir/package/lib/pkgconfig CMAKE_PREFIX_PATH=$dir/package
  kiln=$dir/package/bin/kiln
fi
ln -s "$kiln" "$dir/bin/kiln"
export PATH="$dir/bin:$PATH"
cd "$dir/page"
for file in ${given[@]+"${given[@]}"}; do
  case $file in
    *.md) awk -f "$awk" "$file" ;;
    *) cp "$file" . ;;
  esac
done
awk -v run=1 -f "$awk" "$page"
[ -e run_001.sh ] || { echo "FAILED: $name has nothing to run"; exit 1; }
for script in run_*.sh; do
  bash -eu "$script" || { echo "FAILED: $name, its block of commands number ${script//[^0-9]/}:"; cat "$script"; exit 1; }
done
[ ! -e check.sh ] || bash -eu check.sh || { echo "FAILED: $name, what it shows in part:"; cat check.sh; exit 1; }
echo "$name: $(ls run_*.sh | wc -l) blocks ran"
