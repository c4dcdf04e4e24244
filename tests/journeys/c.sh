# what: a C11 program by hand, also linked statically
# packages: cmake g++ make pkg-config
# kiln: tar
# expects: 7
# within: 120
cat > app.c <<'END'
#include <stdio.h>
#include <string.h>

#include "digits_c.h"

static _Alignas(64) unsigned char arena[DIGITS_ARENA_BYTES];

int main(int argc, char** argv) {
  static _Alignas(64) float pixels[DIGITS_ARGUMENT_ARG0_COUNT];
  static _Alignas(64) float scores[DIGITS_RESULT_RESULT0_COUNT];
  FILE* f = argc == 2 ? fopen(argv[1], "r") : NULL;
  int most = 0;
  if (!f || fscanf(f, "P2 8 8 %d", &most) != 1) return 2;
  for (int k = 0; k < 64; ++k) {
    int v = 0;
    if (fscanf(f, "%d", &v) != 1) return 2;
    pixels[k] = 16.0f * (float)v / (float)most;
  }
  void *arguments[] = {pixels}, *results[] = {scores};
  const kiln_arena memory = {arena, sizeof arena};
  const int status = digits_run(arguments, results, memory, NULL);
  if (status != DIGITS_OK) return puts(digits_status_text(status)), 1;
  int best = 0;
  for (int k = 1; k < 10; ++k)
    if (scores[k] > scores[best]) best = k;
  printf("%d\n", best);
  return 0;
}
END
"$KILN_HOME/bin/kiln" compile /examples/digits/digits.mlir --name digits -o build
grep -v '^#' /examples/digits/digit_7.pgm > seven.pgm
gcc -std=c11 -O2 -Wall -Wextra -Werror -Ibuild app.c build/libdigits.a -lm -lpthread -o app
gcc -std=c11 -O2 -static -Ibuild app.c build/libdigits.a -lm -lpthread -o app_static
test "$(./app_static seven.pgm)" = 7
./app seven.pgm
