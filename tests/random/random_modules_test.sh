#!/bin/sh
# The first seeds; every run of the suite compares the same ones.
program=$1
shift
exec "$program" 0 150 "$@"
