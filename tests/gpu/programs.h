// Programs that tests of the GPU runtime run.
#pragma once

namespace kiln {

// A loop of known length over a product and an activation, then sums of rows: (f32[40,40]) -> (f32[40,40], f32[40]).
inline constexpr char kProgram[] = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
body {
  s = (s32[], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[40,40] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = f32[40,40] transpose(x), dimensions={1,0}
  d = f32[40,40] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[40,40] tanh(d)
  ROOT r = (s32[], f32[40,40]) tuple(j, y)
}
cond {
  s = (s32[], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[40,40] parameter(0)
  w = f32[40] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40})
  wb = f32[40,40] broadcast(w), dimensions={1}
  z = s32[] constant(0)
  xs = f32[40,40] multiply(x, wb)
  s = (s32[], f32[40,40]) tuple(z, xs)
  v = (s32[], f32[40,40]) while(s), condition=cond, body=body
  y = f32[40,40] get-tuple-element(v), index=1
  f = f32[] constant(0)
  sum = f32[40] reduce(y, f), dimensions={1}, to_apply=add
  ROOT t = (f32[40,40], f32[40]) tuple(y, sum)
})";

// Newton's square root until it is good enough, then one of three ends by the number of steps.
inline constexpr char kDecisions[] = R"(HloModule c
body {
  s = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[64] get-tuple-element(s), index=1
  x = f32[64] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  q = f32[64] divide(a, x)
  m = f32[64] add(x, q)
  h = f32[] constant(0.5)
  hb = f32[64] broadcast(h), dimensions={}
  y = f32[64] multiply(m, hb)
  ROOT r = (s32[], f32[64], f32[64]) tuple(j, a, y)
}
larger { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] maximum(p, q) }
cond {
  s = (s32[], f32[64], f32[64]) parameter(0)
  a = f32[64] get-tuple-element(s), index=1
  x = f32[64] get-tuple-element(s), index=2
  xx = f32[64] multiply(x, x)
  d = f32[64] subtract(xx, a)
  e = f32[64] abs(d)
  z = f32[] constant(0)
  worst = f32[] reduce(e, z), dimensions={0}, to_apply=larger
  tol = f32[] constant(0.001)
  ROOT l = pred[] compare(worst, tol), direction=GT
}
b0 { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }
b1 { p = f32[64] parameter(0) ROOT r = f32[64] sine(p) }
b2 { p = f32[64] parameter(0) ROOT r = f32[64] exponential(p) }
ENTRY e {
  a = f32[64] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[64], f32[64]) tuple(z, a, a)
  w = (s32[], f32[64], f32[64]) while(s), condition=cond, body=body
  n = s32[] get-tuple-element(w), index=0
  x = f32[64] get-tuple-element(w), index=2
  five = s32[] constant(5)
  k = s32[] subtract(n, five)
  c = f32[64] conditional(k, x, x, x), branch_computations={b0, b1, b2}
  ROOT t = (s32[], f32[64]) tuple(n, c)
})";

}  // namespace kiln
