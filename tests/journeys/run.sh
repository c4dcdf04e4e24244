#!/bin/bash
# Runs journeys: what a user does who has nothing but a package of kiln or its wheel, in a fresh root of Debian 12.
# ./dev journeys calls it: run.sh KILN.deb KILN.tar.gz KILN.whl [NAME...], in the root of the source tree, as root.
#
# A journey is a file NAME.sh beside this one, run by `sh -eu` in an empty folder of the new root. Its head says
#   # what: ...        for the table
#   # packages: ...    of Debian, that such a user has; a root is made once for each list, and kept in the user's cache
#   # suite: ...       of Debian, if not bookworm
#   # kiln: deb        how kiln comes: installed by dpkg; `tar`: unpacked at $KILN_HOME; `wheel`: for pip, as /kiln_aot-*.whl
#   # expects: ...     the last line that it prints
#   # within: ...      seconds, all told: from the package to the program's answer
# It finds the examples in /examples, the pages in /docs, journeys in /journeys, the frameworks that `./dev wheel --test`
# installs in /requirements, in /tools checkers of traces and what runs a page's snippets, and what an offline Bazel must
# be given in /shims. The root is thrown away.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "journeys mount and change roots: run them as root" >&2; exit 2; }
deb=$(realpath "$1")
tar=$(realpath "$2")
wheel=$(realpath "$3")
shift 3
here=tests/journeys
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kiln/journeys
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

field() { sed -n "s/^# $2: //p" "$here/$1.sh" | head -1; }

# The root of SUITE with PACKAGES; says where it is.
root_of() {
  local suite=$1 packages=${*:2} root
  root=$cache/$suite-$(echo "$packages" | md5sum | cut -c1-12)
  if [ ! -e "$root.complete" ]; then
    echo "making a root of $suite with: $packages" >&2
    rm -rf "$root"
    mkdir -p "$cache"
    mmdebstrap --quiet --variant=minbase --include="ca-certificates ${packages}" "$suite" "$root" >&2
    touch "$root.complete"
  fi
  echo "$root"
}

# journey NAME ROOT LOG: runs it over ROOT, which stays as it is.
journey() {
  local over=$work/$1
  mkdir -p "$over/upper" "$over/work" "$over/root"
  unshare --mount --pid --fork bash -eu -o pipefail -c '
    name=$1 lower=$2 over=$3 how=$4 deb=$5 tar=$6 wheel=$7
    root=$over/root
    mount -t overlay overlay -o "lowerdir=$lower,upperdir=$over/upper,workdir=$over/work" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    # The way of this machine to the network.
    for f in etc/resolv.conf etc/pip.conf etc/ssl/certs/ca-certificates.crt; do
      [ ! -e "/$f" ] || install -D -m 644 "/$f" "$root/$f"
    done
    mkdir "$root/journey" "$root/shims" "$root/tools"
    cp -r docs examples tests/journeys tests/python/requirements "$root/"
    cp tests/docs/blocks.awk tests/docs/snippets_test.sh tests/report/check_trace.py tests/report/perfetto.js "$root/tools/"
    cp -r third_party/rules_cc third_party/rules_java third_party/remote_coverage_tools "$root/shims/"
    cp "tests/journeys/$name.sh" "$root/journey.sh"
    cp "$deb" "$root/kiln.deb"
    cp "$tar" "$root/kiln.tar.gz"
    cp "$wheel" "$root/"
    home=
    case $how in
      deb) chroot "$root" dpkg --install /kiln.deb ;;
      tar)
        tar -xf "$tar" -C "$root/opt"
        home=$(cd "$root" && echo opt/kiln-*)
        ;;
    esac
    env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 KILN_HOME="/$home" \
      chroot "$root" sh -c "cd /journey && exec sh -eu /journey.sh"
  ' bash "$1" "$2" "$over" "$(field "$1" kiln)" "$deb" "$tar" "$wheel" > "$3" 2>&1
  local status=$?
  rm -rf "$over"
  return $status
}

names=("$@")
[ ${#names[@]} -gt 0 ] || for f in "$here"/*.sh; do
  [ "$f" = "$here/run.sh" ] || names+=("$(basename "$f" .sh)")
done
failed=0
table=$work/table
for name in "${names[@]}"; do
  [ -e "$here/$name.sh" ] || { echo "there is no journey $here/$name.sh" >&2; exit 2; }
  suite=$(field "$name" suite)
  # shellcheck disable=SC2046  # words
  root=$(root_of "${suite:-bookworm}" $(field "$name" packages))
  log=$work/$name.log
  start=$(date +%s.%N)
  status=0
  journey "$name" "$root" "$log" || status=$?
  seconds=$(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f", $1 - $2 }')
  result=passed
  if [ $status != 0 ]; then
    result="failed ($status)"
  elif [ "$(tail -1 "$log")" != "$(field "$name" expects)" ]; then
    result="printed '$(tail -1 "$log")'"
  elif [ -n "$(field "$name" within)" ] && [ "${seconds%.*}" -ge "$(field "$name" within)" ]; then
    result="took too long"
  fi
  if [ "$result" != passed ]; then
    failed=1
    tail -60 "$log"
  fi
  printf '%-16s %-5s %-20s %7s s  %s\n' "$name" "$(field "$name" kiln)" "$result" "$seconds" "$(field "$name" what)" |
    tee -a "$table"
done
echo
printf '%-16s %-5s %-20s %9s  %s\n' journey kiln result time what
cat "$table"
exit $failed
