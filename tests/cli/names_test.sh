#!/bin/sh
# Headers of programs whose names mean something else in C or C++: keywords, macros, types, the header's own names. They
# must compile behind every header of C, as every version of both languages, without a warning.
set -eu
kiln=$1
fail() { echo "FAILED: $1"; exit 1; }

# All names that such a header could trip over: words of both languages, macros of C's headers, and every word of a
# generated header itself.
c_headers="assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdarg stdatomic stddef stdint
stdio stdlib string threads time uchar wchar wctype unistd pthread sys/types sys/stat sys/mman"
for h in $c_headers; do echo "#include <$h.h>"; done > c_headers.h
printf 'HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n' > plain.hlo
printf 'func.func @main(%%a: tensor<?xf32>) -> tensor<?xf32> {\n  %%0 = stablehlo.negate %%a : tensor<?xf32>\n  return %%0 : tensor<?xf32>\n}\n' > plain.mlir
echo 'batch_sizes: [1, 8]' > batches.config
"$kiln" compile plain.hlo --name hostile --out . --target v3 > /dev/null
cat hostile.h hostile_c.h > own.txt
"$kiln" compile plain.mlir --name hostile --out . --target v3 --config batches.config > /dev/null
cat hostile.h hostile_c.h >> own.txt
{
  gcc -std=gnu17 -D_GNU_SOURCE -x c -dM -E c_headers.h | awk '{print $2}' | sed 's/(.*//'
  sed 's|//.*||' own.txt | tr -c 'A-Za-z0-9_' '\n' | grep '^[A-Za-z_]'
  echo "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue contract_assert co_await co_return co_yield decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual
    void volatile wchar_t while xor xor_eq _Bool _Complex _Generic __func__ __FILE__ __LINE__ NDEBUG linux unix i386
    min max near far interface small IN OUT out_result0 a A a_count x X_COUNT final override import module std posix
    data size begin end text code i p s T N U" | tr ' ' '\n'
} | grep '^[A-Za-z_][A-Za-z0-9_]*$' | sort -u > words
gcc -std=gnu17 -D_GNU_SOURCE -x c -dM -E c_headers.h | awk '{print $2}' | sed 's/(.*//' | sort -u | comm -23 words - > call_words
count=$(wc -l < words)
[ "$count" -gt 1000 ] || fail "only $count words"

# A program with an argument of each name, and the same with batch sizes.
awk 'BEGIN { print "HloModule m\nENTRY e {" } { printf "  %s = f32[4] parameter(%d)\n", $1, NR - 1 }
  END { print "  ROOT kiln_root = f32[4] negate(NULL)\n}" }' words > hostile.hlo
awk '{ all = all (NR > 1 ? ", " : "") "%" $1 ": tensor<?xf32>" }
  END { print "func.func @main(" all ") -> tensor<?xf32> {\n  %kiln_root = stablehlo.negate %NULL : tensor<?xf32>\n  return %kiln_root : tensor<?xf32>\n}" }' words > hostile.mlir
use_c='#include "hostile_c.h"
int main(void) { return hostile_run(0, 0, (kiln_arena){0, 0}, 0) == HOSTILE_OK; }'
# build WHAT C_STANDARDS C++_STANDARDS
build() {
  { cat c_headers.h; echo "$use_c"; } > use.c
  grep -v 'stdatomic\|threads\|complex' c_headers.h > use.cc
  printf '#include <cmath>\n#include <cstdio>\n#include <string>\n#include "hostile.h"\nint main() { hostile::Context c; return !c.arena().data; }\n' >> use.cc
  for std in $2; do
    case $std in c99) grep -v 'stdatomic\|threads\|uchar' use.c > use_std.c ;; *) cp use.c use_std.c ;; esac
    gcc -std=$std -Wall -Wextra -Werror -D_GNU_SOURCE -fsyntax-only use_std.c 2> err || fail "$1 as $std: $(head -5 err)"
  done
  for std in $3; do
    g++ -std=$std -Wall -Wextra -Werror -fsyntax-only use.cc 2> err || fail "$1 as $std: $(head -5 err)"
  done
  clang++-19 -std=c++26 -Wall -Wextra -Werror -fsyntax-only use.cc 2> err || fail "$1 as C++26: $(head -5 err)"
}
"$kiln" compile hostile.hlo --name hostile --out . --target v3 > /dev/null
build "arguments" "c99 c11 gnu17 gnu2x" "c++17 gnu++17 c++20 c++23"
cp hostile.h first.h
"$kiln" compile hostile.hlo --name hostile --out . --target v3 > /dev/null
cmp hostile.h first.h || fail "names are not deterministic"
"$kiln" compile hostile.mlir --name hostile --out . --target v3 --config batches.config > /dev/null
use_c='#include "hostile_c.h"
int main(void) { return hostile_run(1, 0, 0, (kiln_arena){0, 0}, 0) == HOSTILE_OK; }'
build "arguments with batch sizes" c11 c++20
use_c='#include "hostile_c.h"
int main(void) { return hostile_run(0, 0, (kiln_arena){0, 0}, 0) == HOSTILE_OK; }'

# Custom calls to functions of such names, and with attributes of such names; what is a function already is refused.
awk 'BEGIN { print "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)"; last = "p" }
  { printf "  c%d = f32[4] custom-call(%s), custom_call_target=\"%s\", api_version=API_VERSION_TYPED_FFI, backend_config={%s = 3 : i32, s = \"%s\", s_size = 1 : i64, %s.x = 2 : i8}\n", NR, last, $1, $1, $1, $1; last = "c" NR }
  END { printf "  ROOT kiln_root = f32[4] negate(%s)\n}\n", last }' call_words > calls_all.hlo
while :; do
  if "$kiln" compile calls_all.hlo --name hostile --out . --target v3 > /dev/null 2> err; then break; fi
  grep -q "^calls_all.hlo:[0-9]*:[0-9]*: error: .*which is \(a function of\|like a function\|the program's entry\)" err || fail "$(cat err)"
  bad=$(sed -n "s/.*calls '\([^']*\)'.*/\1/p" err)
  sed -i "s/custom_call_target=\"$bad\"/custom_call_target=\"kiln_test_$bad\"/" calls_all.hlo
done
build "custom calls" "c99 gnu2x" c++17
for target in main printf malloc hostile_run; do
  printf 'HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] custom-call(p), custom_call_target="%s"\n}\n' $target > call.hlo
  code=0; "$kiln" compile call.hlo --name hostile --out . --target v3 > /dev/null 2> err || code=$?
  [ $code = 1 ] && grep -q "^call.hlo:4:[0-9]*: error: .*calls '$target', which is " err || fail "target $target: $(cat err)"
done

# Names that no library can have are refused; the rest compile.
for name in class int NULL EOF int32_t size_t std and errno main _Name __x Context run Span Argument_x INT_MAX SIGINT tm FILE x R; do
  code=0; "$kiln" compile plain.hlo --name $name --out . --target v3 > /dev/null 2> err || code=$?
  [ $code = 1 ] && grep -q "^error: --name '$name' cannot name a library.*: it is " err || fail "--name $name: $(cat err)"
done
for name in time exp signal index printf log data T y Model a__b _m module import final context arguments; do
  "$kiln" compile plain.hlo --name $name --out . --target v3 > /dev/null 2> err || fail "--name $name: $(cat err)"
  grep -v 'stdatomic\|threads\|complex' c_headers.h > use.cc
  printf '#include <cmath>\n#include "%s.h"\nint main() { %s::Context c; return !c.arena().data; }\n' $name $name >> use.cc
  g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only use.cc 2> err || fail "--name $name: $(head -5 err)"
done
# The config's own names are kept, or refused where two would be one.
echo "argument_names: 'class'" > names.config
"$kiln" compile plain.hlo --name m --out . --target v3 --config names.config > /dev/null 2> err || fail "a name of the config: $(cat err)"
grep -q 'Argument_class' m.h || fail "the config's name is not kept"
printf 'HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n  ROOT n = f32[4] add(p, q)\n}\n' > two.hlo
echo "argument_names: ['a', 'A']" > names.config
code=0; "$kiln" compile two.hlo --name m --out . --target v3 --config names.config > /dev/null 2> err || code=$?
[ $code = 1 ] && grep -q "two arguments are named 'A'" err || fail "names that differ in case: $(cat err)"
echo "names: ok, $count of them"
