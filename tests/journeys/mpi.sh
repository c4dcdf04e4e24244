# what: devices as ranks of MPI: what the page of the documentation shows
# packages: g++ libopenmpi-dev openmpi-bin openssh-client pkg-config
# kiln: deb
# expects: docs/mpi.md: 3 blocks ran
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd /
/tools/snippets_test.sh usr/bin/kiln docs/mpi.md
