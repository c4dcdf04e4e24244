#!/bin/sh
# Undefined symbols of each archive must be libc or libm names of the checked list; global symbols must carry the
# model's name and the hash of its build.
set -eu
allowed=$1
shift
status=0
for archive in "$@"; do
  case $archive in *.a) ;; *) continue ;; esac
  name=$(basename "$archive" .a)
  name=${name#lib}
  nm -g --defined-only "$archive" | awk 'NF == 3 {print $3}' | sort -u > defined.txt
  nm -u "$archive" | awk 'NF == 2 {print $2}' | sort -u > undefined.txt
  sort -u "$allowed" defined.txt > known.txt
  unknown=$(comm -23 undefined.txt known.txt)
  if [ -n "$unknown" ]; then
    echo "$archive: undefined symbols that are not on the list:" $unknown
    status=1
  fi
  foreign=$(grep -Ev "^${name}_[0-9a-f]{16}_" defined.txt || true)
  if [ -n "$foreign" ]; then
    echo "$archive: global symbols without the model's name and build:" $foreign
    status=1
  fi
  if [ "$(grep -Eo "^${name}_[0-9a-f]{16}_" defined.txt | sort -u | wc -l)" != 1 ]; then
    echo "$archive: symbols of several builds"
    status=1
  fi
  echo "$archive: $(wc -l < undefined.txt) undefined, $(wc -l < defined.txt) global symbols checked"
done
exit $status
