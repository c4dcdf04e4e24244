#!/usr/bin/env bash
# $1: a program that runs a sanitized model, well without arguments and over the end of its input with one.
set -eu
"$1"
if "$1" over 2> report; then
  echo "the overrun was not noticed"
  exit 1
fi
grep -q 'heap-buffer-overflow' report
grep -q 'sanitized_' report
