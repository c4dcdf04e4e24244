# As C++ too, without a warning; and the question that a host asks about a younger field.
for file in any load; do
  g++ -x c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -Ibuild $(pkg-config --cflags kiln) $file.c
  gcc -std=c99 -Wall -Wextra -Werror -fsyntax-only -Ibuild $(pkg-config --cflags kiln) $file.c
done
cat > has.c <<'END_OF_FILE'
#include <kiln/kiln_host.h>
#include "mlp_c.h"
int main(void) {
  const kiln_model* model = mlp_model();
#include "has.inc"
  return 0;
}
END_OF_FILE
cc -std=c99 -Ibuild $(pkg-config --cflags kiln) has.c build/libmlp.a $(pkg-config --libs kiln) -o has
test -z "$(./has)"
