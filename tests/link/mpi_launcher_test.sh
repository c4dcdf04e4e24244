#!/bin/sh
# kiln run --launcher mpi without mpirun says so, and a program that does not ask for MPI has nothing of it.
# $1: kiln, $2: a program of several devices, $3: a linked program that runs it as threads.
set -eu
kiln=$PWD/$1
fail() { echo "FAILED: $*"; exit 1; }
PATH=/nowhere "$kiln" run "$2" --launcher mpi > out 2>&1 && fail "ran without mpirun"
/bin/grep -q "error: --launcher mpi: there is no mpirun (Debian's package is openmpi-bin)" out || fail "$(cat out)"
"$kiln" run "$2" --launcher slurm > out 2>&1 && fail "took an unknown launcher"
grep -q "launcher is threads or mpi, not 'slurm'" out || fail "$(cat out)"
"$kiln" run "$2" --launcher mpi --backend reference > out 2>&1 && fail "took the evaluator"
grep -q "launcher mpi runs the backend cpu" out || fail "$(cat out)"
"$kiln" rank nowhere > out 2>&1 && fail "ran a rank without a job"
nm "$3" > symbols
grep -q _world_create symbols || fail "$3 has no symbols"
! grep -E '_mpi_|dlopen' symbols || fail "a program that does not ask for MPI holds some of it"
echo "launcher and symbols hold"
