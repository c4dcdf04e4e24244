#!/usr/bin/env bash
# Archives and headers of different builds: two models of one name in a program are two models, a header does not link
# with another build's archive, and what is no arena is refused by the compilers.
set -eu
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
kiln=$OLDPWD/$kiln
fail() { echo "FAILED: $1"; exit 1; }

model() {  # NAME OUT OPCODE
  printf 'HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] %s(x, x)\n}\n' "$3" > "$2.hlo"
  "$kiln" compile "$2.hlo" --name "$1" --out "$2" --target v2 > /dev/null
}
model s s1 add
model s s2 multiply
model s s1_again add
cmp s1/libs.a s1_again/libs.a || fail "the same program, other bytes"
cmp s1/s_c.h s1_again/s_c.h || fail "the same program, another header"

# A program of both: each file gets the model whose header it includes.
for k in 1 2; do
  cat > "in$k.cc" << END
#include "s$k/s.h"
float Run$k() {
  float x[4] = {3, 3, 3, 3}, y[4];
  s::Context context;
  return s::run(context, x, y).ok() ? y[0] : -1;
}
END
done
printf '#include <cstdio>\nfloat Run1();\nfloat Run2();\nint main() { std::printf("%%g %%g\\n", Run1(), Run2()); }\n' > main.cc
for flags in "-O0" "-O2"; do
  c++ -std=c++17 $flags -Wall -Wextra -Werror main.cc in1.cc in2.cc s1/libs.a s2/libs.a -o both
  [ "$(./both)" = "6 9" ] || fail "two models of one name give $(./both)"
done
if c++ -std=c++17 main.cc in1.cc in2.cc s1/libs.a s1_again/libs.a -o both 2> err; then
  fail "a header linked with another build's archive"
fi
grep -q "undefined reference to .s_[0-9a-f]*_run" err || fail "the link error does not name the symbol: $(cat err)"

# The same from C; and both headers in one file are refused, as they define the same names.
cat > c.c << 'END'
#include "s1/s_c.h"
int main(void) {
  float x[4] = {3, 3, 3, 3}, y[4];
  void* arguments[] = {x};
  void* results[] = {y};
  return s_run(arguments, results, (kiln_arena){0, 0}, 0) == S_OK && y[0] == 6 ? 0 : 1;
}
END
cc -std=c99 -pedantic -Wall -Wextra -Werror c.c s1/libs.a -o c
./c || fail "the C program"
if cc -std=c99 c.c s2/libs.a -o c 2> err; then fail "a C header linked with another build's archive"; fi

# A pool, of this model or another, is no arena; neither is memory of unknown size.
for wrong in 'POOL' 'p' '(kiln_pool*)0' '(void*)0'; do
  printf '#include "s1/s_c.h"\nint f(void** a, void** r, void* p) { (void)p; return s_run(a, r, %s, 0); }\n' \
    "$(echo "$wrong" | sed 's/POOL/s_pool_create(2)/')" > wrong.c
  if cc -std=c11 -c wrong.c -o wrong.o 2> err; then fail "'$wrong' was taken for an arena in C"; fi
done
cat > types.cc << 'END'
#include <type_traits>
#include "s1/s.h"
static_assert(std::is_constructible<s::Context, kiln_pool*>::value, "a pool");
static_assert(std::is_constructible<s::Context, kiln_arena, kiln_pool*>::value, "an arena and a pool");
static_assert(std::is_constructible<s::Context, unsigned char (&)[64]>::value, "bytes");
static_assert(!std::is_constructible<s::Context, void*>::value, "memory of unknown size");
static_assert(!std::is_constructible<s::Context, float*>::value, "an array");
static_assert(!std::is_constructible<s::Context, kiln_comm*>::value, "a comm");
static_assert(!std::is_constructible<s::Context, kiln_pool*, kiln_pool*>::value, "two pools");
END
c++ -std=c++17 -fsyntax-only types.cc || fail "types of the context"
echo "symbols and types: ok"
