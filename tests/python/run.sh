#!/bin/sh
# A test of the Python package by the system's Python: run.sh KILN TEST.
set -eu
export KILN="$PWD/$1" PYTHONPATH="$PWD/aot/python"
/usr/bin/python3 -W error::ResourceWarning "tests/python/$2.py"
