# what: the Debian package as Debian's checker sees it, installed and removed again
# packages: lintian
# kiln: deb
# expects: removed
lintian --allow-root --fail-on error,warning /kiln.deb
test -L /usr/share/kiln/bazel/bin/kiln
(cd / && tail -n +1 /var/lib/dpkg/info/kiln.md5sums | md5sum --check --quiet)
dpkg --purge kiln > /dev/null
if find / -xdev -path '*kiln*' -not -path '/kiln[._]*' -not -path '/proc/*' | grep .; then exit 1; fi
echo removed
