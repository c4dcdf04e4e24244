#!/bin/sh
# A package for any folder: tar.sh KILN OUT.tar.gz, in the root of the source tree. The same tree gives the same bytes.
set -eu
kiln=$1
out=$2
. packaging/constants.sh
version=$("$kiln" --version | awk 'NR == 1 { print $2 }')
name=kiln-$version-linux-x86_64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packaging/stage.sh "$kiln" "$work/$name"
install -m 644 LICENSE "$work/$name/share/doc/kiln/"
# Bazel's archives hold what lies under one folder, so the tool itself is there.
mv "$work/$name/bin/kiln" "$work/$name/share/kiln/bazel/bin/kiln"
ln -s ../share/kiln/bazel/bin/kiln "$work/$name/bin/kiln"
tar --create --file - --directory "$work" --sort=name --format=gnu --mtime="@$PACKAGE_TIME" --owner=0 --group=0 \
  --numeric-owner --mode=u=rwX,go=rX "$name" | gzip -6n > "$out"
