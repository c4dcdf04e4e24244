#!/usr/bin/env bash
# kiln compile of several functions: where they come from, what is in the archive once, what is refused and why.
. tests/link/prepare.sh
kiln=$root/$1 model=$root/$2
refused() {  # CODE TEXT ARGUMENTS...
  local code=0 want=$1 text=$2
  shift 2
  "$kiln" compile "$@" --name lm --out refused > out 2> err || code=$?
  [ $code = "$want" ] || fail "kiln compile $*: exit code $code"
  grep -qF -- "$text" err || fail "kiln compile $*: $(cat err)"
}

# The functions of one module, and the same as modules of their own, of mixed formats: the same library.
cp "$model" lm.mlir
awk '/func public @prefill/,/^  }/' lm.mlir > prefill.mlir
awk '/func public @decode/,/^  }/' lm.mlir > decode.mlir
"$kiln" opt decode.mlir > decode.hlo
"$kiln" compile lm.mlir --name lm --out all --shared | grep -q '^lm (prefill, decode): ' || fail "what compile prints"
"$kiln" compile --entry prefill=prefill.mlir --entry decode=decode.hlo --name lm --out files > /dev/null
"$kiln" compile --entry prefill=lm.mlir --entry decode=lm.mlir --name lm --out chosen > /dev/null
for f in liblm.a lm.h lm_c.h lm.manifest.json; do
  cmp all/$f files/$f && cmp all/$f chosen/$f || fail "$f differs"
done
echo 'entries: "decode" entries: "prefill"' > both.config
"$kiln" compile lm.mlir --config both.config --name lm --out turned | grep -q '^lm (decode, prefill): ' || fail "entries of a config"
# One function is a library without entries, wherever it comes from.
echo 'entries: "decode"' > one.config
"$kiln" compile decode.mlir --name lm --out alone > /dev/null
"$kiln" compile lm.mlir --entry decode --name lm --out one > /dev/null
"$kiln" compile --entry anything=decode.hlo --name lm --out named > /dev/null
"$kiln" compile lm.mlir --config one.config --name lm --out configured > /dev/null
for d in one named configured; do cmp alone/liblm.a $d/liblm.a && cmp alone/lm.h $d/lm.h || fail "$d: one function"; done
"$kiln" compile lm.mlir --entry prefill --name lm --out prefill > /dev/null
"$kiln" diff lm.mlir --config one.config > /dev/null || fail "an entry of a config, in diff"

# The table of 64 KiB is in the archive once, and the runtime too.
size() { wc -c < "$1"; }
[ $(($(size alone/liblm.a) + $(size prefill/liblm.a) - $(size all/liblm.a))) -gt 65536 ] || fail "the size of the archive"
grep -q '"constant_bytes":65536,' all/lm.manifest.json || fail "weights of the manifest"
[ "$(ar t all/liblm.a | grep -c '_pool.o')" = 1 ] || fail "the pool is there twice"
arena=$(sed -n 's/.*"temp_bytes":\([0-9]*\),"slow.*"constant.*/\1/p' all/lm.manifest.json)
[ "$arena" = "$(sed -n 's/.*"temp_bytes":\([0-9]*\),"slow.*"constant.*/\1/p' prefill/lm.manifest.json)" ] || fail "the arena: $arena"
# A file of constants has it once.
echo 'weights { constants_from_bytes: 1024 }' > file.config
"$kiln" compile lm.mlir --config file.config --name lm --out file > /dev/null
[ "$(size file/lm.safetensors)" -lt 70000 ] || fail "the table is in the file twice"
cat > file.cc << 'EOF'
#include "file/lm.h"
int main() {
  lm::Weights weights("file/lm.safetensors");
  lm::Context context;
  int words[8] = {1, 2, 3, 4, 5, 6, 7, 8}, word[1] = {9};
  float state[64], best[8], next[1];
  return weights.ok() && weights.Verify().ok() && lm::prefill::run(context, weights, words, state, best).ok() &&
                 lm::decode::run(context, weights, word, state, next).ok()
             ? 0
             : 1;
}
EOF
c++ -std=c++17 -Wall -Wextra -Werror file.cc file/liblm.a -lpthread -o file_main && ./file_main || fail "a file of constants"

# What knows libraries knows their entries.
"$kiln" inspect all/liblm.a > text
grep -q '^entry prefill of lm$' text && grep -q '^entry decode of lm$' text || fail "inspect: $(cat text)"
"$kiln" inspect all/liblm.so | cmp - text || fail "inspect of the shared object"
"$kiln" inspect all/liblm.a --entry decode --json | grep -q '"library":"lm","entry":"decode"' || fail "inspect --json"
if "$kiln" inspect all/liblm.a --entry train 2> err; then fail "inspect --entry train"; fi
grep -q 'no --entry train: there are prefill, decode' err || fail "inspect --entry train: $(cat err)"
"$kiln" sizes all/lm.manifest.json > sizes
[ "$(awk '$1 == "decode" || $1 == "prefill"' sizes | wc -l)" = 2 ] || fail "sizes: $(cat sizes)"
if "$kiln" benchmark all/lm.manifest.json --out b.c 2> err; then fail "a benchmark of no entry"; fi
grep -q 'entries prefill, decode' err || fail "benchmark: $(cat err)"
"$kiln" benchmark all/lm.manifest.json --entry decode --out b.c
cc -std=gnu11 -Wall -Iall b.c all/liblm.a -lpthread -o b && ./b --runs 5 | grep -q '^lm_decode ' || fail "the benchmark"
cc -std=c99 -Wall -Wextra -Werror "-I$root/runtime_min" "$root/tests/link/host.c" -ldl -o host
./host all/liblm.so lm_decode | grep -q '^lm_decode, version 2' || fail "a host of any model"

# Batch sizes, for those that have an unbounded dimension; profile and lines, of all.
cat > batch.mlir << 'EOF'
func.func public @double(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func public @sum(%x: tensor<2xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func public @turn(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.negate %x : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}
EOF
echo 'debug { profile: true line_tables: HLO }' > profile.config
"$kiln" compile batch.mlir --batch 1 --batch 3 --config profile.config --name m --out batch > /dev/null
[ -s batch/m_double__b3.hlo ] && [ -s batch/m_sum.hlo ] || fail "the texts that line tables name: $(ls batch)"
cat > batch.cc << 'EOF'
#include "batch/m.h"
int main() {
  m::Context context;
  float x[6] = {1, 2, 3, 4, 5, 6}, pair[2] = {3, 4}, y[6], s[1];
  if (!m::double_::run(context, 3, x, y).ok() || y[5] != 12 || m::double_::BatchFor(2) != 3) return 1;
  if (m::double_::run(context, 2, x, y).code != M_BATCH_SIZE) return 2;
  if (!m::sum::run(context, pair, s).ok() || s[0] != 7) return 3;
  std::complex<float> z[2] = {{1, 2}, {3, 4}}, turned[2];
  if (!m::turn::run(context, z, turned).ok() || turned[1] != std::complex<float>(-3, -4)) return 6;
  static_assert(M_DOUBLE__PROFILE_BEGIN == 0 && M_DOUBLE__PROFILE_END == M_SUM_PROFILE_BEGIN, "in order");
  if (m::Profile::size() != M_TURN_PROFILE_END) return 4;
  std::int64_t calls = 0;
  for (std::int64_t k = M_SUM_PROFILE_BEGIN; k < M_SUM_PROFILE_END; ++k) calls += m::Profile::entry(k).calls;
  return calls == 1 ? 0 : 5;
}
EOF
c++ -std=c++17 -Wall -Wextra -Werror batch.cc batch/libm.a -lpthread -o batch_main
./batch_main || fail "batch sizes: $?"

# A slow arena, of the entry that needs one.
"$kiln" compile --entry stacks="$root/tests/link/slow_arena.hlo" --entry decode=decode.mlir \
  --config "$root/tests/link/slow_arena.config" --name s --out slow > /dev/null
cat > slow.cc << 'EOF'
#include "slow/s.h"
static_assert(s::kSlowArenaBytes > 0, "of the library's contexts");
int main() {
  s::Context context;
  int word[1] = {1};
  float state[64] = {}, next[1];
  void *arguments[] = {word, state}, *results[] = {state, next};
  return s::decode::run(context, word, state, next).code || s_decode_run(arguments, results, context.arena(), nullptr);
}
EOF
c++ -std=c++17 -Wall -Wextra -Werror slow.cc slow/libs.a -lpthread -o slow_main && ./slow_main || fail "a slow arena"

# The rules: modules of their own, and functions by name.
grep -q '"name":"prefill"' "$root/$3" && grep -q '"name":"decode"' "$root/$3" || fail "entries of kiln_library: $3"
cat > CMakeLists.txt << EOF
cmake_minimum_required(VERSION 3.16)
project(p C)
set(KILN_EXECUTABLE "$kiln")
include("$root/aot/cmake/KilnLibrary.cmake")
kiln_library(lm ENTRIES prefill=prefill.mlir decode=decode.hlo)
kiln_library(some lm.mlir FUNCTIONS decode prefill LEVELS v3)
kiln_benchmark(time some ENTRY decode)
add_custom_target(both ALL DEPENDS lm_kiln)
EOF
{ cmake -S . -B cmake && cmake --build cmake; } > log 2>&1 || { cat log; fail "cmake"; }
cmp cmake/kiln_lm/liblm.a files/liblm.a || fail "ENTRIES of CMake"
cmake/time --runs 3 | grep -q '^some_decode ' || fail "a benchmark of CMake"

# Names that mean something in the header get '_'.
for name in run Context weights class pool std kiln_arena lm size_t Status; do
  "$kiln" compile --entry $name=decode.mlir --entry x=prefill.mlir --target v3 --name lm --out names > /dev/null
  printf '#include "names/lm.h"\nlm::Context context;\nusing Mine = lm::%s_::Arguments;\nint main() {}\n' $name > names.cc
  c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only names.cc || fail "an entry called $name"
done
refused 1 "entry 'a_result_x' is called like what belongs to entry 'a'" --entry a=decode.mlir --entry a_result_x=prefill.mlir
refused 1 "--entry a-b=decode.mlir: 'a-b' is not a C identifier" --entry a-b=decode.mlir
refused 1 '--entry decode is given twice' lm.mlir --entry decode --entry decode
refused 1 '--entry a is given twice' --entry a=decode.mlir --entry a=prefill.mlir
refused 1 'no function is named @train (--entry); there are @prefill, @decode' lm.mlir --entry train --entry decode
refused 1 'no function is named @train (--entry); there are @prefill, @decode' --entry train=lm.mlir --entry decode=decode.mlir
refused 1 'none.mlir: error: cannot open' --entry a=none.mlir --entry b=decode.mlir
refused 1 'no dimension is unbounded' lm.mlir --batch 4
"$kiln" compile lm.mlir --name lm --out gpu --target cuda > said 2>&1 || fail "entries for GPUs: $(cat said)"
for f in a b; do
  printf 'func.func public @%s(%%x: tensor<?xf32>) -> tensor<?xf32> {\n  %%y = stablehlo.add %%x, %%x : tensor<?xf32>\n' $f
  printf '  return %%y : tensor<?xf32>\n}\n'
done > sizes.mlir
refused 1 'batch_sizes: a GPU program has one size' sizes.mlir --target cuda --batch 4
echo 'argument_names: "x"' > argument_names.config
refused 1 "argument_names does not say which entry's they are" lm.mlir --config argument_names.config
echo 'max_arena_bytes: 1024' > small.config
refused 1 'error: entry prefill: the arena takes' lm.mlir --config small.config
echo 'weights { arguments: "nothing.*" }' > none.config
refused 1 "no argument's path or name matches 'nothing.*'" lm.mlir --config none.config
echo 'weights { arguments: "word.*" }' > shapes.config
sed 's/loc("words")/loc("word")/' lm.mlir > words.mlir
refused 1 'argument word is s32[1] in entry decode and s32[8] in another' words.mlir --config shapes.config
sed '1s/@language_model/@m attributes {mhlo.num_partitions = 2 : i32}/' lm.mlir > devices.mlir
refused 1 'entry prefill is a program of 2 devices' devices.mlir
refused 2 'a MODULE, or --entry NAME=FILE for each entry, is missing' --entry decode
refused 2 'stands for a MODULE, and one is given too' lm.mlir --entry a=decode.mlir
refused 2 'some --entry name a FILE, and some do not' --entry a=decode.mlir --entry b
[ ! -e refused ] || fail "files of what was refused"
echo "entries: ok"
