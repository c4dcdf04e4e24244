#!/bin/sh
# random_modules_test.sh PROGRAM COUNT OPTION...: the first seeds; every run of the suite compares the same ones.
program=$1 count=$2
shift 2
exec "$program" 0 "$count" "$@"
