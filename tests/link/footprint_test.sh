#!/bin/sh
# The example's stripped binary is below 100 KB beside its weights, and starts, runs and exits in less than 5 ms of the
# processor's time.
set -eu
binary=$1
image=$2
weights=$((0x$(nm -S "$binary" | awk '$4 ~ /^digits_[0-9a-f]+_weights$/ {print $2}')))
test "$weights" -gt 0
cp "$binary" stripped
chmod u+w stripped
strip stripped
size=$(stat -c %s stripped)
echo "stripped: $size bytes, weights $weights"
test $((size - weights)) -lt 100000
test "$(./stripped "$image")" = 7
# The least of 5 times 20 starts, in the processor's time: what the program needs, not what else the machine does.
best=1000000
for i in 1 2 3 4 5; do
  us=$(sh -c 'for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do ./stripped "$0" > /dev/null; done; times' "$image" |
    awk 'END {split($1, u, /[ms]/); split($2, s, /[ms]/); print int((u[1] * 60 + u[2] + s[1] * 60 + s[2]) * 1e6 / 20)}')
  if [ "$us" -lt $best ]; then best=$us; fi
done
echo "start to exit: $best us"
test $best -lt 5000
