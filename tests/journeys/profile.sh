# what: where the time goes: kiln profile, counters and a trace of the program itself, names in the symbol table
# packages: g++ python3-venv
# kiln: deb
# expects: 11 runs of every operation
kiln profile /examples/digits/digits.mlir --repeat 5 --threads 2 --html page.html --trace trace.json | tee profile
grep '%  %fusion.3 (convolution)  digits.mlir:18$' profile
grep -q '<svg' page.html
python3 /tools/check_trace.py trace.json

echo 'debug { profile: true symbols: true }' > digits.config
kiln compile /examples/digits/digits.mlir --name digits --config digits.config -o build
nm build/libdigits.a | grep ' t digits_.*_fusion_3_convolution_v3$'
cat > app.cc <<'END'
#include <cstdio>
#include <vector>

#include "digits.h"

int main() {
  std::vector<kiln_profile_event> events(10000);
  digits::Profile::trace(events.data(), static_cast<std::int64_t>(events.size()));
  digits::Context context;
  const float pixels[64] = {};
  float scores[10];
  for (int k = 0; k < 11; ++k)
    if (!digits::run(context, digits::Argument_arg0::Unchecked(pixels), scores)) return 1;
  if (!digits::Profile::write_trace("trace_of_app.json")) return 1;
  for (std::int64_t k = 0; k < digits::Profile::size(); ++k) {
    const kiln_profile_entry e = digits::Profile::entry(k);
    if (e.calls != 11) return std::printf("%s ran %lld times\n", e.op.name, static_cast<long long>(e.calls)), 1;
  }
  std::puts("11 runs of every operation");
}
END
g++ -std=c++17 -O2 -Wall -Wextra -Werror -Ibuild app.cc build/libdigits.a -lm -lpthread -o app
./app > counted
python3 /tools/check_trace.py trace_of_app.json
cat counted
