# what: gdb stops on lines of the HLO and of the user's source with a whole stack, perf names operations and their callers
# packages: g++ gdb linux-perf
# kiln: deb
# expects: perf: 2 functions by name, below main
awk -f /tools/blocks.awk /docs/profile_and_debug.md  # step.hlo
cat > app.cc <<'END'
#include <cstdlib>

#include "step.h"

int main(int argc, char** argv) {
  step::Argument_pixels::Owned pixels;
  step::Argument_w::Owned w;
  step::Result_result0::Owned out;
  step::Context context;
  for (int k = 0; k < (argc > 1 ? std::atoi(argv[1]) : 1); ++k)
    if (!step::run(context, pixels, w, out)) return 1;
}
END
build() { # FOLDER OPTION
  echo "debug { $2 }" > "$1.config"
  kiln compile step.hlo --name step --config "$1.config" -o "$1"
  g++ -std=c++17 -g "-I$1" app.cc "$1/libstep.a" -lm -lpthread -o "$1/app"
}

build lines 'line_tables: HLO'
line=$(awk '/^ENTRY/ { entry = 1 } entry && / fusion\(/ { print NR }' lines/step.hlo)
(cd lines && gdb -q -nx -batch -ex "break step.hlo:$line" -ex run -ex continue -ex bt ./app) 2>&1 | tee session
grep "^Breakpoint 1.*_entry_v[234] () at ./step.hlo:$line" session
grep "^#0 .*fusion_layer0_dot_general () at ./step.hlo:$line" session
grep '^#[0-9]* .* in main (' session

build source 'line_tables: SOURCE'
gdb -q -nx -batch -ex 'break step.py:12' -ex run -ex bt source/app 2>&1 | tee session
grep '^Breakpoint 1.* at /src/step.py:12' session

build symbols 'symbols: true'
perf record -e cpu-clock -g -o samples symbols/app 200000
perf report -i samples --stdio --no-children --sort symbol -G > report
head -60 report
grep -q -e '---main' report
named=0
for name in fusion_layer0_dot_general entry; do
  if grep -q "step_[0-9a-f]*_.*${name}_v[234]" report; then named=$((named + 1)); fi
done
echo "perf: $named functions by name, below main"
