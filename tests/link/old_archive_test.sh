#!/usr/bin/env bash
# tests/link/abi holds a library of the kiln that first wrote kiln_model (version 1). Hosts of today's kiln.h run it.
. tests/link/prepare.sh
kiln=$root/$1
old=$root/tests/link/abi
# Its header and its archive, as a program of that time would have them.
cat > old.c << 'END'
#include "v1_c.h"
int main(void) {
  float x[4] = {1, 2, 3, 4}, y[4];
  void* arguments[] = {x};
  void* results[] = {y};
  const kiln_arena none = {NULL, 0};
  return v1_run(arguments, results, none, NULL) != V1_OK || y[3] != 8;
}
END
cc -std=c99 -Wall -Wextra -Werror "-I$old" old.c "$old/libv1.a" -o old && ./old || fail "its own header"
cat > main.c << 'END'
#include "v1_c.h"
#include "host.c"
END
cc -std=c99 -Wall -Wextra -Werror -DMODEL=v1_model "-I$old" "-I$root/tests/link" "-I$root/runtime_min" main.c "$old/libv1.a" -o host
printf 'v1, version 1, ABI 4\nok\nresult0 f32: 2 2 2 2\n' > want
./host > got && diff want got || fail "a host of today"
"$kiln" inspect "$old/libv1.a" > text
grep -q '^v1: kiln 0.1.0, ABI 4, build v1_' text || fail "inspect: $(cat text)"
"$kiln" link "$old/libv1.a" --out v1.so
"$kiln" inspect v1.so | cmp - text || fail "inspect of the shared object"
echo "an old archive: ok"
