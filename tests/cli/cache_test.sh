#!/bin/sh
# Products of earlier compiles: the same bytes, and never those of another program, option or kiln.
set -eu
kiln=$1
fail() { echo "FAILED: $1"; exit 1; }
printf 'HloModule m\nENTRY e {\n  x = f32[64] parameter(0)\n  c = f32[64] constant({%s1})\n  ROOT y = f32[64] add(x, c)\n}\n' "$(seq -s, 63 | tr -d '\n'), " > m.hlo
cp m.hlo first.hlo
# What the cache says of a compile with these words; its files are in `out`, and what it prints in `printed`.
compile() { rm -rf out; "$kiln" compile m.hlo --name m --out out --target v3 --verbose "$@" > printed 2> err || fail "compile $*: $(cat err)"; }
said() { sed -n '/^kiln: m: cache: /{s///;s/:.*//;s/ [0-9a-f]\{64\}$//;p}' err; }
expect() { [ "$(said)" = "$1" ] || fail "$2: the cache says '$(said)', not '$1': $(cat err)"; }

# Without one nothing is said; the option stands before the environment.
compile; expect "" "no cache"
KILN_CACHE=elsewhere compile --cache ""; expect "" "--cache ''"
[ ! -e elsewhere ] || fail "--cache '' makes a folder"
compile --cache c; expect miss "the first compile"
cp -r out fresh; cp printed fresh_printed
compile --cache c; expect hit "the second compile"
diff -r out fresh || fail "a hit gives other bytes"
cmp printed fresh_printed || fail "a hit prints something else"
KILN_CACHE=c compile; expect hit "KILN_CACHE"
KILN_CACHE=elsewhere compile --cache=c; expect hit "--cache before KILN_CACHE"
compile --cache c --json; expect hit "--json"
grep -q '^{"name":"m",.*"compile_ms":[0-9.]*}$' printed || fail "--json of a hit: $(cat printed)"
compile --cache c --shared; expect hit "--shared"
[ -x out/libm.so ] && cmp out/libm.a fresh/libm.a || fail "--shared of a hit"

# Where files lie and when they were written does not matter; what is in them does, and what they are called.
mkdir there; cp m.hlo there; touch -d '2001-01-01' there/m.hlo
rm -rf out; "$kiln" compile there/m.hlo --name m --out out --target v3 -v --cache c 2> err > /dev/null; expect hit "the same file elsewhere"
"$kiln" compile first.hlo --name m --out out --target v3 -v --cache c 2> err > /dev/null; expect miss "a file of another name"
sed 's/add(x, c)/subtract(x, c)/' first.hlo > m.hlo
compile --cache c; expect miss "another program"
cmp out/libm.a fresh/libm.a > /dev/null && fail "another program has the same code"
sed '4s/1})/2})/' first.hlo > m.hlo
compile --cache c; expect miss "another constant"
cp first.hlo m.hlo
compile --cache c; expect hit "the first program again"

# Options and configurations.
compile --cache c --target v2; expect miss "another target"
compile --cache c --dim 4; expect miss "another option"
echo 'threads: 1' > m.config
compile --cache c --config m.config; expect miss "a config"
compile --cache c --config m.config; expect hit "the same config"
mv m.config n.config
compile --cache c --config n.config; expect hit "a config of another name"
echo 'keep_subnormals: true' > n.config
compile --cache c --config n.config; expect miss "another config"
"$kiln" compile m.hlo --name other --out out --target v3 -v --cache c 2>&1 > /dev/null | grep -q 'other: cache: miss' || fail "another name"
: > tuning
compile --cache c --tuning tuning; expect miss "tuning results"
echo '# nothing was measured' > tuning
compile --cache c --tuning tuning; expect miss "other tuning results"
compile --cache c --tuning tuning; expect hit "the same tuning results"
several() { "$kiln" compile --name m --target v3 -v --cache c "$@" 2> err > /dev/null || fail "several entries: $(cat err)"; }
several --out two1 --entry a=first.hlo --entry b=m.hlo; expect miss "several entries"
several --out two2 --entry b=first.hlo --entry a=m.hlo; expect miss "entries with other names"
several --out two3 --entry a=first.hlo --entry b=m.hlo; expect hit "the first entries again"
diff -r two1 two3 || fail "entries of a hit"
echo 'weights { constants_from_bytes: 64 }' > w.config
compile --cache c --config w.config; expect miss "constants in a file"
cp -r out kept
compile --cache c --config w.config; expect hit "constants in a file, again"
[ -s out/m.safetensors ] && diff -r out kept || fail "the file of weights is lost"

# Notes are part of what is kept. A ptxas that is a script may do anything.
for expected in miss hit; do
  PATH=/nowhere "$kiln" compile m.hlo --name m --out out --target sm_90 -v --cache c > /dev/null 2> err || fail "sm_90: $(cat err)"
  if [ ! -x /usr/local/cuda/bin/ptxas ]; then
    expect $expected "a GPU"
    grep -q '^note: no ptxas' err || fail "a note is lost ($expected): $(cat err)"
  fi
done
mkdir tools
printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" != -o ] || echo code > "$2"; shift; done\n' > tools/ptxas
chmod +x tools/ptxas
PATH=$PWD/tools:$PATH compile --cache c --target sm_90; expect "not used" "a script as ptxas"

# What only a compile can do is done each time.
echo 'debug { dump_dir: "dumps" }' > dump.config
compile --cache c --config dump.config; expect "not used" "dumps"
rm -r dumps
compile --cache c --config dump.config; [ -d dumps ] || fail "the cache swallows dumps"
"$kiln" compile - --name m --out out --target v3 -v --cache c < m.hlo 2> err > /dev/null; expect "not used" "standard input"
code=0; "$kiln" compile none.hlo --name m --out out --cache c 2> err > /dev/null || code=$?
[ $code = 1 ] && [ "$(wc -l < err)" = 1 ] && grep -q 'none.hlo: error: cannot open' err || fail "no such file: $(cat err)"

# Another build of kiln.
note=$(readelf -S -W "$kiln" 2> /dev/null | sed -n 's/.*\.note\.gnu\.build-id *NOTE *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p')
if [ -n "$note" ]; then
  cp "$kiln" kiln2; chmod u+w kiln2
  at=$((0x$note + 16))  # behind the note's own name
  printf '\001\002\003\004' | dd of=kiln2 bs=1 seek="$at" conv=notrunc 2> /dev/null
  ./kiln2 compile m.hlo --name m --out out --target v3 -v --cache c 2> err > /dev/null; expect miss "another build"
  rm kiln2
fi

# Damaged entries are never used: changed, cut short, empty, and under another's name.
rm -r c; compile --cache c
entry=$(echo c/*.kiln)
cp "$entry" whole
echo 'threads: 2' > other.config
compile --cache d --config other.config; cp d/*.kiln other.kiln
for damage in "dd if=/dev/zero of=$entry bs=1 seek=3000 count=40 conv=notrunc" "truncate -s 2000 $entry" "truncate -s 0 $entry" "cp other.kiln $entry"; do
  cp whole "$entry"
  $damage 2> /dev/null
  compile --cache c; expect "damaged entry" "$damage"
  diff -r out fresh > /dev/null || fail "$damage: other bytes"
  compile --cache c; expect hit "after $damage"
done

# A folder that cannot be used is a warning.
: > file
compile --cache file
grep -q '^warning: the cache file: .*; the product is not kept$' err && diff -r out fresh || fail "a file as folder: $(cat err)"
if [ "$(id -u)" != 0 ]; then
  mkdir closed; chmod 500 closed
  compile --cache closed
  grep -q '^warning: the cache closed: .*; the product is not kept$' err || fail "a folder without permission: $(cat err)"
fi
for size in x -1 5Q 99999999999999T; do
  code=0; "$kiln" compile m.hlo --name m --out out --cache c --cache-limit=$size 2> err > /dev/null || code=$?
  [ $code = 1 ] && grep -q "^error: --cache-limit takes a size, as 500M or 5G, not '$size'" err || fail "--cache-limit $size: $(cat err)"
done

# Several at once: every product is whole, and nothing else is left.
rm -rf c; pids=""
for k in 1 2 3 4; do
  "$kiln" compile m.hlo --name m --out "at_once_$k" --target v3 --cache c > /dev/null 2>> err & pids="$pids $!"
done
for p in $pids; do wait "$p" || fail "several at once: $(cat err)"; done
for k in 1 2 3 4; do cmp "at_once_$k/libm.a" fresh/libm.a || fail "several at once: other bytes"; done
[ "$(ls c | wc -l)" = 1 ] || fail "several at once leave: $(ls c)"

# The oldest go when all are larger than the limit; a hit makes an entry young, and what is not the cache's stays.
rm -rf c; compile --cache c; size=$(stat -c %s c/*.kiln)
echo mine > c/note.txt; touch -d '2001-01-01' c/note.txt
touch -d '2002-01-01' c/*.kiln
compile --cache c --config other.config; touch -d '2003-01-01' $(ls -t c/*.kiln | head -1)
compile --cache c; expect hit "before the limit"
compile --cache c --target v2 --cache-limit $((size * 5 / 2))
compile --cache c --config other.config; expect miss "the oldest entry"
rm -rf c; compile --cache c; compile --cache c --config other.config --cache-limit 1
expect "miss
not kept" "a product larger than the limit"
[ "$(ls c | wc -l)" = 1 ] || fail "a product larger than the limit removes others: $(ls c)"
echo "cache: ok"
