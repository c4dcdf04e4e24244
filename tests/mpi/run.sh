#!/usr/bin/env bash
# Everything that needs Open MPI: run.sh KILN BIN RUNS, where BIN has the programs of this folder's BUILD and RUNS is how
# often a rank is killed or stopped. With --benchmark behind them only the benchmark runs.
set -euo pipefail
kiln=$1 bin=$2 runs=$3 only=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

# mpirun refuses root, and more ranks than cores, unless it is told.
ranks() {
  local n=$1
  shift
  timeout 300 mpirun -q --oversubscribe $([ "$(id -u)" != 0 ] || echo --allow-run-as-root) -n "$n" "$@" 2>"$tmp/stderr"
}

said() {  # what, and whether it is well
  if [ "$2" = 0 ]; then echo "PASS $1"; else echo "FAIL $1"; failures=$((failures + 1)); fi
}

# The file, with Open MPI's header and library, and the runtime's sources.
with_mpi() {
  local sources=("$root"/runtime_min/coll/mpi/*.c "$root"/runtime_min/coll/{threads,exchange_threads,beside,pieces}.c "$here/program.c")
  local include=(-I"$root" $(pkg-config --cflags ompi-c))
  for f in "${sources[@]}"; do gcc -std=c11 -O2 "${include[@]}" -c "$f" -o "$tmp/$(basename "$f").o"; done
  g++ -std=c++17 -O3 "${include[@]}" "$1" "$tmp"/*.c.o -lmpi -lpthread -ldl -o "$2"
}

benchmark() {
  with_mpi "$root/tests/bench/mpi_transport.cc" "$tmp/benchmark"
  for n in 2 4; do ranks "$n" "$tmp/benchmark"; done
}

declarations() {
  local status=0
  gcc -std=c11 -Wall -Werror -I"$root" $(pkg-config --cflags ompi-c) "$here/mpi_abi_test.c" -lmpi -o "$tmp/abi" &&
    "$tmp/abi" || status=1
  said "declarations are those of mpi.h" $status
}

exchanges() {
  local status
  for n in 2 4 8; do
    status=0
    ranks "$n" "$bin/exchanges" 150 || status=1
    said "random exchanges on $n ranks" $status
  done
}

# Another way from rank to rank than shared memory.
over_tcp() {
  local status=0
  ranks 4 --mca btl tcp,self "$bin/exchanges" 60 || status=1
  said "random exchanges on 4 ranks over TCP" $status
  status=0
  ranks 4 --mca btl tcp,self --enable-recovery "$bin/faults" SIGSTOP 1 >"$tmp/out" || true
  [ "$(grep -c ^well "$tmp/out")" = 3 ] || status=1
  said "a rank that is stopped, over TCP" $status
}

cases() {
  local status
  for c in builds count failure late abort queues unconnected; do
    status=0
    ranks 3 --enable-recovery "$bin/world_test" $c >"$tmp/out" || true  # ranks of a failed world do not finalise MPI
    cat "$tmp/out"
    grep -q "^$c: well" "$tmp/out" && ! grep -q FAILED "$tmp/out" || status=1
    said "ranks: $c" $status
  done
  if [ "$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)" -gt 12000000 ]; then
    status=0
    ranks 2 "$bin/world_test" large || status=1
    said "2^31 bytes and more" $status
  else
    echo "SKIP 2^31 bytes and more: needs 12 GB of memory"
  fi
  with_mpi "$here/host_test.cc" "$tmp/host_test"
  status=0
  ranks 3 "$tmp/host_test" || status=1
  said "a host that uses MPI itself" $status
}

# Every exchange of every type; the evaluator's results are those of kiln's threads, bit for bit.
types() {
  local status
  for n in 2 4 8; do
    python3 "$here/all_types.py" "$n" >"$tmp/types.hlo"
    status=0
    "$kiln" diff "$tmp/types.hlo" --launcher threads >"$tmp/threads" || status=1
    "$kiln" diff "$tmp/types.hlo" --launcher mpi >"$tmp/mpi" || status=1
    cmp "$tmp/threads" "$tmp/mpi" || status=1
    ! grep -v ': equal$' "$tmp/mpi" || status=1
    said "$(wc -l <"$tmp/mpi") results of every type on $n ranks" $status
  done
}

corpus() {
  local same=0 all=0 module
  for module in "${KILN_CORPUS:-$root/../shared/corpus}"/dist_*/module.mlir; do
    [ -e "$module" ] || continue
    all=$((all + 1))
    for l in threads mpi; do
      rm -rf "${tmp:?}/$l"
      mkdir "$tmp/$l"
      "$kiln" run "$module" --launcher $l --out "$tmp/$l" >"$tmp/log" 2>&1 || { tail -1 "$tmp/log"; continue 2; }
    done
    if [ -n "$(ls "$tmp/mpi")" ] && diff -r "$tmp/threads" "$tmp/mpi"; then same=$((same + 1)); else echo "$module"; fi
  done
  [ "$all" = 0 ] || said "$same of $all programs of the corpus give the bits of threads" $((all - same))
}

# The others end within their limit, and name the rank.
faults() {
  local well=0 signal
  for ((k = 0; k < runs; ++k)); do
    signal=$([ $((k % 2)) = 0 ] && echo SIGKILL || echo SIGSTOP)
    ranks 4 --enable-recovery "$bin/faults" $signal "$k" >"$tmp/out" || true
    if [ "$(grep -c ^well "$tmp/out")" = 3 ] && ! grep -q FAILED "$tmp/out"; then
      well=$((well + 1))
    else
      echo "run $k:"
      cat "$tmp/out"
    fi
  done
  said "$well of $runs runs with a rank that was killed or stopped ended in time on the three others" $((runs - well))
}

snippets() {
  local status=0
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  (cd "$root" && tests/docs/snippets_test.sh "$(realpath -s --relative-to=. "$kiln")" docs/mpi.md) || status=1
  said "the snippets of docs/mpi.md" $status
}

if [ "$only" = --benchmark ]; then
  benchmark
  exit
fi
declarations
exchanges
over_tcp
cases
types
corpus
faults
snippets
[ "$failures" = 0 ] && echo "MPI: all is well" || { echo "MPI: $failures failures"; exit 1; }
