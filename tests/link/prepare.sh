# What shell tests begin with: they run in a directory of their own, which goes when they end; $root is the runfiles'.
set -eu
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
  echo "FAILED: $1"
  exit 1
}
