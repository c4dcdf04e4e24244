# what: a C program with musl, static and dynamic, and a shared object that musl's loader loads
# packages: gcc libc6-dev musl-tools
# kiln: tar
# expects: digits: 1 argument, 1 result; a 7
kiln=$KILN_HOME/bin/kiln
"$kiln" compile /examples/digits/digits.mlir --name digits -o build --shared
awk '/^cat > app.c/ { inside = 1; next } /^END$/ { inside = 0 } inside' /journeys/c.sh > app.c
grep -v '^#' /examples/digits/digit_7.pgm > seven.pgm
musl-gcc -std=c11 -O2 -Wall -Wextra -Werror -static -Ibuild app.c build/libdigits.a -lm -lpthread -o app_static
musl-gcc -std=c11 -O2 -Ibuild app.c build/libdigits.a -lm -lpthread -o app
test "$(./app_static seven.pgm)" = 7
test "$(./app seven.pgm)" = 7
cat > load.c <<'END'
#include <dlfcn.h>
#include <kiln/kiln_host.h>

int main(void) {
  void* library = dlopen("build/libdigits.so", RTLD_NOW);
  const kiln_model_list* list = library ? dlsym(library, KILN_MODELS_SYMBOL) : NULL;
  if (!list) return puts(dlerror()), 1;
  const kiln_model* m = kiln_find_model(list, "digits");
  printf("%s: %d argument, %d result; ", m->name, (int)m->arguments, (int)m->results);
  return 0;
}
END
musl-gcc -std=c11 -O2 "-I$KILN_HOME/include" load.c -o load
echo "$(./load)a $(./app seven.pgm)"
