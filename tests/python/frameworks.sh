#!/bin/bash
# Installs a wheel beside each framework, in virtual environments in the user's cache, and compares results with the
# framework's; also runs what the documentation shows of it: frameworks.sh WHEEL [numpy|jax|tensorflow|torch]...
set -euo pipefail
wheel=$(realpath "$1")
tests=$(realpath "$(dirname "$0")")
shift
[ $# -gt 0 ] || set -- numpy jax tensorflow torch
unset PYTHONPATH KILN
export TF_CPP_MIN_LOG_LEVEL=3
folder=$(mktemp -d)  # none that holds the package's sources
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for framework in "$@"; do
  requirements=$tests/requirements/$framework.txt
  environment=${XDG_CACHE_HOME:-$HOME/.cache}/kiln/python-$framework
  if ! cmp -s "$requirements" "$environment/complete"; then
    echo "installing: $(tr '\n' ' ' < "$requirements")into $environment"
    rm -rf "$environment"
    python3 -m venv "$environment"
    "$environment/bin/pip" install -q -r "$requirements"
    cp "$requirements" "$environment/complete"
  fi
  "$environment/bin/pip" install -q --force-reinstall --no-deps "$wheel"
  "$environment/bin/kiln" --version > /dev/null
  case $framework in
    numpy) files="tree_test library_test" ;;
    jax) files="library_test jax_test" ;;
    *) files=${framework}_test ;;
  esac
  for file in $files; do
    echo "$framework: $file"
    "$environment/bin/python" -W error::ResourceWarning "$tests/$file.py"
  done
  [ "$framework" = numpy ] || "$environment/bin/python" "$tests/docs_test.py" "$framework"
done
echo "the wheel: ok"
