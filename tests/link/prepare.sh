# Sourced first by shell tests: $root is the directory of the runfiles; the test runs in a temporary directory, which is
# removed when it ends.
set -eu
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
  echo "FAILED: $1"
  exit 1
}
