#!/bin/sh
# A package for Debian: deb.sh KILN OUT.deb, in the root of the source tree. The same tree gives the same bytes.
set -eu
kiln=$1
out=$2
. packaging/constants.sh
version=$("$kiln" --version | awk 'NR == 1 { print $2 }')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
packaging/stage.sh "$kiln" "$work/usr"
ln -s ../../../../bin/kiln "$work/usr/share/kiln/bazel/bin/kiln"
{
  echo "kiln ($version) unstable; urgency=medium"
  echo
  echo "  * CHANGELOG.md.gz beside this file says what is new."
  echo
  echo " -- $PACKAGE_MAINTAINER  $(date --utc --date="@$PACKAGE_TIME" +'%a, %d %b %Y %H:%M:%S +0000')"
} | gzip -9n > "$work/usr/share/doc/kiln/changelog.gz"
install -D -m 644 packaging/lintian-overrides "$work/usr/share/lintian/overrides/kiln"
mkdir "$work/DEBIAN"
size=$(cd "$work" && find usr -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
sed -e "s/@VERSION@/$version/" -e "s/@SIZE@/$size/" -e "s/@MAINTAINER@/$PACKAGE_MAINTAINER/" packaging/control.in \
  > "$work/DEBIAN/control"
(cd "$work" && find usr -type f | LC_ALL=C sort | xargs md5sum) > "$work/DEBIAN/md5sums"
chmod -R u=rwX,go=rX "$work"
SOURCE_DATE_EPOCH=$PACKAGE_TIME dpkg-deb --root-owner-group -Zxz -z3 --threads-max=1 --build "$work" "$out" > /dev/null
