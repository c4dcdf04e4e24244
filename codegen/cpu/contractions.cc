// Kernels of dot and convolution on top of the blocked matrix product.
#include <algorithm>

#include "codegen/cpu/kernels.h"
#include "codegen/cpu/matmul.h"
#include "codegen/elemental/element.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kSlabBytes = 256 << 10;  // stack that copies of A may take

// The type products are summed in, or nullopt where only the plain loop serves.
std::optional<PrimitiveType> ComputeType(PrimitiveType a, PrimitiveType b, PrimitiveType c) {
  using P = PrimitiveType;
  auto small_int = [](P t) { return IsIntegral(t) && InfoOf(t).bits <= 8; };
  if (IsFloat(c)) {
    if (c == P::F64) return P::F64;
    if ((IsFloat(a) || small_int(a)) && (IsFloat(b) || small_int(b)) && a != P::F64 && b != P::F64) return P::F32;
    return std::nullopt;
  }
  if (c == P::S32 && small_int(a) && small_int(b)) return P::F32;  // exact in blocks of k
  return std::nullopt;
}

}  // namespace

absl::StatusOr<int64_t> EmitDot(Body& body) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Instruction* i = body.i;
  const Shape &l = i->operand(0)->shape(), &r = i->operand(1)->shape(), &o = i->shape();
  const PrimitiveType at = l.type(), bt = r.type(), ct = o.type();
  const auto contracts_one = [](const std::optional<Ints>& dims) { return dims && dims->size() == 1; };
  if (l.rank() != 3 || r.rank() != 3 || o.rank() != 3 || !contracts_one(i->attrs().lhs_contracting_dims) ||
      !contracts_one(i->attrs().rhs_contracting_dims))
    return ErrorAt(i, "is not a product of two batched matrices, which dot-decomposer makes of every dot",
                   absl::StatusCode::kInternal);
  const int64_t batch = o.dim(0), m = o.dim(1), n = o.dim(2);
  const bool a_kfirst = (*i->attrs().lhs_contracting_dims)[0] == 1,
             b_kfirst = (*i->attrs().rhs_contracting_dims)[0] == 1;
  const int64_t k = l.dim(a_kfirst ? 1 : 2);
  const int64_t a_m = a_kfirst ? 1 : k, a_k = a_kfirst ? m : 1, b_k = b_kfirst ? n : 1, b_n = b_kfirst ? 1 : k;
  llvm::Value *A = body.operands[0], *B = body.operands[1], *C = body.results[0];
  const auto compute = ComputeType(at, bt, ct);
  auto offset = [&](llvm::Value* base, PrimitiveType t, llvm::Value* e) {
    return b.CreateInBoundsGEP(ir.MemType(t), base, IsComplex(t) ? ir.Mul(e, 2) : e);
  };
  if (k == 0 || !compute) {
    const PrimitiveType t = ct;
    llvm::Value* acc = ir.Alloca(ir.RegType(t), 2, 16);
    auto get = [&]() -> Val {
      Val v{b.CreateLoad(ir.RegType(t), acc)};
      if (IsComplex(t)) v.im = b.CreateLoad(ir.RegType(t), b.CreateGEP(ir.RegType(t), acc, ir.I64(1)));
      return v;
    };
    auto put = [&](const Val& v) {
      b.CreateStore(v.re, acc);
      if (v.im) b.CreateStore(v.im, b.CreateGEP(ir.RegType(t), acc, ir.I64(1)));
    };
    ir.Loop(body.begin, body.end, 1, [&](llvm::Value* g) {
      ir.Loop(ir.I64(0), ir.I64(m), 1, [&](llvm::Value* row) {
        ir.Loop(ir.I64(0), ir.I64(n), 1, [&](llvm::Value* col) {
          put(ir.Constant(t, Element{}));
          ir.Loop(ir.I64(0), ir.I64(k), 1, [&](llvm::Value* q) {
            llvm::Value* ai = ir.Add(ir.Mul(g, m * k), ir.Add(ir.Mul(row, a_m), ir.Mul(q, a_k)));
            llvm::Value* bi = ir.Add(ir.Mul(g, n * k), ir.Add(ir.Mul(q, b_k), ir.Mul(col, b_n)));
            put(MultiplyAdd(ir, t, get(), ir.Convert(ir.Load(at, A, ai), at, t),
                            ir.Convert(ir.Load(bt, B, bi), bt, t)));
          });
          Val v = get();
          if (IsFloat(t)) v.re = ir.Round(t, v.re);
          ir.Store(t, v, C, ir.Add(ir.Mul(g, m * n), ir.Add(ir.Mul(row, n), col)));
        });
      });
    });
    return batch;
  }
  const PrimitiveType t = *compute;
  llvm::Type* el = ir.RegType(t);
  // Products with a vector: streaming sums along the matrix's contiguous dimension.
  if ((m == 1 || n == 1) && ct == t) {
    llvm::Value *mat = n == 1 ? A : B, *vec = n == 1 ? B : A;
    const PrimitiveType mt = n == 1 ? at : bt, vt = n == 1 ? bt : at;
    const int64_t rows = n == 1 ? m : n, row_stride = n == 1 ? a_m : b_n, k_stride = n == 1 ? a_k : b_k;
    llvm::FastMathFlags fast;
    fast.setAllowReassoc();
    fast.setAllowContract();
    b.setFastMathFlags(fast);
    if (k_stride == 1) {
      // Rows of the matrix times the vector, four rows at a time.
      const int64_t group = 4;
      const int64_t groups = (rows + group - 1) / group;
      ir.Loop(body.begin, body.end, 1, [&](llvm::Value* u) {
        llvm::Value* g = batch == 1 ? ir.I64(0) : b.CreateUDiv(u, ir.I64(groups));
        llvm::Value* q = batch == 1 ? u : b.CreateURem(u, ir.I64(groups));
        llvm::Value* r0 = ir.Mul(q, group);
        auto some = [&](llvm::Value* row0, int64_t count) {
          std::vector<llvm::AllocaInst*> acc;
          for (int64_t x = 0; x < count; ++x) {
            acc.push_back(ir.Alloca(el, 1, 8));
            b.CreateStore(llvm::Constant::getNullValue(el), acc.back());
          }
          ir.Loop(ir.I64(0), ir.I64(k), 1, [&](llvm::Value* kk) {
            Val v = ir.Convert(ir.Load(vt, vec, ir.Add(ir.Mul(g, k), kk)), vt, t);
            for (int64_t x = 0; x < count; ++x) {
              llvm::Value* at_ = ir.Add(ir.Mul(g, rows * k), ir.Add(ir.Mul(ir.Add(row0, ir.I64(x)), row_stride), kk));
              Val e = ir.Convert(ir.Load(mt, mat, at_), mt, t);
              b.CreateStore(b.CreateFAdd(b.CreateLoad(el, acc[x]), b.CreateFMul(e.re, v.re)), acc[x]);
            }
          });
          for (int64_t x = 0; x < count; ++x)
            ir.Store(ct, Val{b.CreateLoad(el, acc[x])}, C, ir.Add(ir.Mul(g, rows), ir.Add(row0, ir.I64(x))));
        };
        if (rows % group == 0) {
          some(r0, group);
        } else {
          llvm::Value* last = b.CreateICmpSGT(ir.Add(r0, ir.I64(group)), ir.I64(rows));
          ir.If(b.CreateNot(last), [&] { some(r0, group); });
          ir.If(last, [&] { ir.Loop(r0, ir.I64(rows), 1, [&](llvm::Value* row) { some(row, 1); }); });
        }
      });
      b.setFastMathFlags({});
      return batch * groups;
    }
    // Rows of the matrix are contiguous: add multiples of them, eight at a time, over a strip that stays in cache.
    const int64_t strip = std::min<int64_t>(rows, 2048), strips = (rows + strip - 1) / strip;
    ir.Loop(body.begin, body.end, 1, [&](llvm::Value* u) {
      llvm::Value* g = batch == 1 ? ir.I64(0) : b.CreateUDiv(u, ir.I64(strips));
      llvm::Value* s0 = ir.Mul(batch == 1 ? u : b.CreateURem(u, ir.I64(strips)), strip);
      llvm::Value* s1 = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.Add(s0, ir.I64(strip)), ir.I64(rows));
      ir.Loop(
          s0, s1, 1, [&](llvm::Value* c) { ir.Store(ct, ir.Constant(ct, Element{}), C, ir.Add(ir.Mul(g, rows), c)); },
          true);
      auto add = [&](llvm::Value* k0, int64_t count) {
        std::vector<llvm::Value*> v;
        for (int64_t x = 0; x < count; ++x)
          v.push_back(ir.Convert(ir.Load(vt, vec, ir.Add(ir.Mul(g, k), ir.Add(k0, ir.I64(x)))), vt, t).re);
        ir.Loop(
            s0, s1, 1,
            [&](llvm::Value* c) {
              llvm::Value* out = ir.Add(ir.Mul(g, rows), c);
              llvm::Value* sum = ir.Load(ct, C, out).re;
              for (int64_t x = 0; x < count; ++x) {
                llvm::Value* at_ = ir.Add(ir.Mul(g, rows * k), ir.Add(ir.Mul(ir.Add(k0, ir.I64(x)), k_stride), c));
                sum = b.CreateFAdd(sum, b.CreateFMul(ir.Convert(ir.Load(mt, mat, at_), mt, t).re, v[x]));
              }
              ir.Store(ct, Val{sum}, C, out);
            },
            true);
      };
      const int64_t group = 8, whole = k / group * group;
      ir.Loop(ir.I64(0), ir.I64(whole), group, [&](llvm::Value* k0) { add(k0, group); });
      ir.Loop(ir.I64(whole), ir.I64(k), 1, [&](llvm::Value* k0) { add(k0, 1); });
    });
    b.setFastMathFlags({});
    return batch * strips;
  }
  // Sums are kept in `t`; A is read as `t`, or as it is where tile products take it.
  const bool tiles = a_k == 1 && TilesApply(ir.level, at, bt, ct, m, n, k);
  const PrimitiveType held = tiles ? at : t;
  llvm::Type* held_el = ir.MemType(held);
  MatmulShape s;
  s.compute = held;
  s.b_type = bt;
  s.c_type = ct;
  s.n = n;
  s.c_stride = n;
  s.run = k;
  s.b_k_stride = b_k;
  s.b_n_stride = b_n;
  // A result of another type cannot be accumulated in place over blocks of k: sums go to a tile of the compute type.
  const bool via_tile = ct != t && !IsIntegral(ct);
  // Long sums go in pieces of k, so that a block of rows stays in cache.
  const int64_t piece = tiles || k <= 1024 ? k : 512, pieces = k / piece, rest = k % piece;
  // Rows with a stride of whole pages would fight for the same cache sets.
  const bool pack_a =
      at != held || a_k != 1 || (m > 1 && !tiles && (k * ByteWidth(t)) % 2048 == 0 && n >= 64 && k >= 512);
  const int64_t mr = tiles ? 32 : TileRows(ir.level, t, n, m), stride = piece + 16;
  const int64_t row_bytes = stride * ByteWidth(held);
  int64_t block = std::max<int64_t>(1, (pack_a ? kSlabBytes : 4 * kSlabBytes) / row_bytes / mr) * mr;
  if (via_tile) {
    if (n * ByteWidth(t) > kSlabBytes)
      return ErrorAt(i, absl::StrCat("a row of ", n, " results of ", TextOf(ct), " is too wide"),
                     absl::StatusCode::kUnimplemented);
    s.c_type = PrimitiveType::F32;
    block = std::max<int64_t>(1, std::min(block, std::max<int64_t>(kSlabBytes / (n * ByteWidth(t)), tiles ? 16 : 1)));
  }
  block = std::min(block, m);
  // Tile products need 16 rows in the last block too.
  if (tiles && m % block != 0 && m % block < 16)
    block = m / (m / block + 1) >= 16 ? (m + m / block) / (m / block + 1) : m;
  s.a_stride = pack_a ? stride : a_m;
  llvm::Value* slab = pack_a ? ir.Alloca(held_el, block * stride) : nullptr;
  llvm::Value* tile = via_tile ? ir.Alloca(el, block * n) : nullptr;
  const int64_t blocks = (m + block - 1) / block, tail = m % block;
  auto run_block = [&](llvm::Value* g, llvm::Value* m0, int64_t rows) {
    llvm::Value* a0 = offset(A, at, ir.Add(ir.Mul(g, m * k), ir.Mul(m0, a_m)));
    llvm::Value* c = offset(C, ct, ir.Add(ir.Mul(g, m * n), ir.Mul(m0, n)));
    llvm::Value* out = via_tile ? tile : c;
    auto part = [&](llvm::Value* k0, int64_t depth, bool accumulate) {
      llvm::Value* a = offset(a0, at, ir.Mul(k0, a_k));
      if (pack_a) {
        auto move = [&](llvm::Value* x, llvm::Value* q) {
          ir.Store(held, ir.Convert(ir.Load(at, a, ir.Add(ir.Mul(x, a_m), ir.Mul(q, a_k))), at, held), slab,
                   ir.Add(ir.Mul(x, stride), q));
        };
        if (a_k == 1) {
          ir.Loop(ir.I64(0), ir.I64(rows), 1, [&](llvm::Value* x) {
            ir.Loop(
                ir.I64(0), ir.I64(depth), 1, [&](llvm::Value* q) { move(x, q); }, true);
          });
        } else {  // transposed, in blocks of 16 columns
          ir.Loop(ir.I64(0), ir.I64(rows), 16, [&](llvm::Value* x0) {
            llvm::Value* x1 = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.Add(x0, ir.I64(16)), ir.I64(rows));
            ir.Loop(ir.I64(0), ir.I64(depth), 1, [&](llvm::Value* q) {
              ir.Loop(
                  x0, x1, 1, [&](llvm::Value* x) { move(x, q); }, true);
            });
          });
        }
        a = slab;
      }
      MatmulShape shape = s;
      shape.run = depth;
      shape.accumulate = accumulate;
      Matmul(ir, shape, rows)
          .Emit(offset(B, bt, ir.Add(ir.Mul(g, n * k), ir.Mul(k0, b_k))), ir.I64(1), [&](llvm::Value*) {
            return RowRange{a, out};
          });
    };
    part(ir.I64(0), piece, false);
    ir.Loop(ir.I64(1), ir.I64(pieces), 1, [&](llvm::Value* q) { part(ir.Mul(q, piece), piece, true); });
    if (rest) part(ir.I64(pieces * piece), rest, true);
    if (via_tile) {
      ir.Loop(
          ir.I64(0), ir.I64(rows * n), 1,
          [&](llvm::Value* e) { ir.Store(ct, ir.Convert(ir.Load(t, tile, e), t, ct), c, e); }, true);
    }
  };
  ir.Loop(body.begin, body.end, 1, [&](llvm::Value* u) {
    llvm::Value* g = blocks == 1 ? u : batch == 1 ? ir.I64(0) : b.CreateUDiv(u, ir.I64(blocks));
    if (blocks == 1) return run_block(g, ir.I64(0), m);
    llvm::Value* q = batch == 1 ? u : b.CreateURem(u, ir.I64(blocks));
    llvm::Value* m0 = ir.Mul(q, block);
    if (tail == 0) return run_block(g, m0, block);
    llvm::Value* last = b.CreateICmpEQ(q, ir.I64(blocks - 1));
    ir.If(b.CreateNot(last), [&] { run_block(g, m0, block); });
    ir.If(last, [&] { run_block(g, ir.I64((blocks - 1) * block), tail); });
  });
  return batch * blocks;
}

namespace {

// Output rows of one slab, and the bytes of input (padded, dilated, converted to 4- or 8-byte elements) that they read.
struct SlabPlan {
  int64_t rows, bytes;
};

SlabPlan PlanSlab(const Instruction* i, int64_t element_bytes) {
  const Shape &x = i->operand(0)->shape(), &o = i->shape();
  const attr::Win w = i->attrs().window.value_or(attr::Win());
  const int64_t sp = x.rank() - 2;
  int64_t inner = x.dim(sp + 1);
  for (int64_t d = 1; d < sp; ++d) inner *= (o.dim(d + 1) - 1) * w[d].stride + w[d].DilatedSize();
  auto bytes = [&](int64_t r) {
    const int64_t outputs = sp == 1 ? o.dim(1) : r;
    return ((outputs - 1) * w[0].stride + w[0].DilatedSize()) * inner * element_bytes;
  };
  int64_t rows = sp == 1 ? 1 : o.dim(1);
  while (rows > 1 && bytes(rows) > kSlabBytes) rows = (rows + 1) / 2;
  return {rows, bytes(rows)};
}

struct Conv {
  int64_t batch, groups, cin, cout;  // channels of one group
  Ints in, out;                      // spatial extents
  attr::Win w;
  PrimitiveType at, bt, ct;
};

}  // namespace

absl::StatusOr<int64_t> EmitConvolution(Body& body) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Instruction* i = body.i;
  const Shape &x = i->operand(0)->shape(), &kern = i->operand(1)->shape(), &o = i->shape();
  const int64_t sp = x.rank() - 2;
  Conv c;
  c.batch = x.dim(0);
  c.groups = i->attrs().feature_group_count.value_or(1);
  c.cin = kern.dim(sp);
  c.cout = kern.dim(sp + 1) / c.groups;
  c.w = i->attrs().window.value_or(attr::Win());
  c.at = x.type();
  c.bt = kern.type();
  c.ct = o.type();
  for (int64_t d = 0; d < sp; ++d) {
    c.in.push_back(x.dim(d + 1));
    c.out.push_back(o.dim(d + 1));
  }
  const int64_t C = c.cin * c.groups, O = c.cout * c.groups;
  llvm::Value *X = body.operands[0], *W = body.operands[1], *Y = body.results[0];
  const auto compute = ComputeType(c.at, c.bt, c.ct);
  bool reversed = false, mixed = false, dilated = false, padded = false;
  int64_t taps = 1;
  for (int64_t d = 0; d < sp; ++d) {
    reversed = reversed || (c.w[d].reversed && c.w[d].size > 1);
    mixed = mixed || (!c.w[d].reversed && c.w[d].size > 1);
    dilated = dilated || c.w[d].lhs_dilate > 1;
    padded = padded || c.w[d].pad_low || c.w[d].pad_high;
    taps *= c.w[d].size;
  }
  const bool depthwise = c.cin == 1 && c.cout == 1 && c.groups > 1;
  // The engine writes out a run for each tap that it cannot merge with its neighbour.
  constexpr int64_t kMostRuns = 1024;
  const int64_t runs =
      c.groups == 1 && sp >= 1 && c.w[sp - 1].rhs_dilate == 1 && c.w[sp - 1].size > 0 ? taps / c.w[sp - 1].size : taps;
  const bool engine = compute && !depthwise && !(reversed && mixed) && runs <= kMostRuns && sp >= 1 &&
                      o.ElementCount() > 0 && kern.ElementCount() > 0 &&
                      (c.ct == *compute || IsIntegral(c.ct) || c.cin * taps <= 2048);
  if (!engine) {
    // Plain loops, channels innermost: for each output position, each tap adds a row of channels.
    const PrimitiveType t = compute && !IsIntegral(c.ct) ? *compute : c.ct;
    llvm::Type* el = ir.RegType(t);
    const int64_t width = O;
    if (width > 65536)
      return ErrorAt(i, absl::StrCat(width, " output features are not supported here"),
                     absl::StatusCode::kUnimplemented);
    llvm::Value* acc = ir.Alloca(el, width * (IsComplex(t) ? 2 : 1));
    Ints order;
    std::vector<llvm::Value*> at(sp);
    int64_t positions = c.batch;
    for (int64_t e : c.out) positions *= e;
    llvm::FastMathFlags fast;
    fast.setAllowContract();
    b.setFastMathFlags(fast);
    ir.Loop(body.begin, body.end, 1, [&](llvm::Value* p) {
      llvm::Value* rest = p;
      for (int64_t d = sp - 1; d >= 0; --d) {
        at[d] = b.CreateURem(rest, ir.I64(c.out[d]));
        rest = b.CreateUDiv(rest, ir.I64(c.out[d]));
      }
      ir.Loop(
          ir.I64(0), ir.I64(width), 1, [&](llvm::Value* f) { ir.Store(t, ir.Constant(t, Element{}), acc, f); }, true);
      std::function<void(int64_t, llvm::Value*, llvm::Value*, llvm::Value*)> tap = [&](int64_t d, llvm::Value* pixel,
                                                                                       llvm::Value* k,
                                                                                       llvm::Value* inside) {
        if (d == sp) {
          auto work = [&] {
            llvm::Value *xb = ir.Mul(pixel, C), *kb = ir.Mul(k, c.cin * O);
            ir.Loop(ir.I64(0), ir.I64(c.cin), 1, [&](llvm::Value* ci) {
              ir.Loop(
                  ir.I64(0), ir.I64(c.groups), 1,
                  [&](llvm::Value* g) {
                    auto one = [&](llvm::Value* f) {
                      llvm::Value* of = ir.Add(ir.Mul(g, c.cout), f);
                      Val xv = ir.Convert(ir.Load(c.at, X, ir.Add(xb, ir.Add(ir.Mul(g, c.cin), ci))), c.at, t);
                      Val kv = ir.Convert(ir.Load(c.bt, W, ir.Add(kb, ir.Add(ir.Mul(ci, O), of))), c.bt, t);
                      ir.Store(t, MultiplyAdd(ir, t, ir.Load(t, acc, of), xv, kv), acc, of);
                    };
                    ir.Loop(ir.I64(0), ir.I64(c.cout), 1, one, c.cout > 1);
                  },
                  c.cout == 1);
            });
          };
          if (inside)
            ir.If(inside, work);
          else
            work();
          return;
        }
        const WindowDim& w = c.w[d];
        auto step = [&](llvm::Value* q) {
          llvm::Value* pos = b.CreateSub(ir.Add(ir.Mul(at[d], w.stride), ir.Mul(q, w.rhs_dilate)), ir.I64(w.pad_low));
          llvm::Value* ok = inside;
          auto also = [&](llvm::Value* v) { ok = ok ? b.CreateAnd(ok, v) : v; };
          if (w.lhs_dilate > 1) {
            also(b.CreateICmpSGE(pos, ir.I64(0)));
            also(b.CreateICmpEQ(b.CreateSRem(pos, ir.I64(w.lhs_dilate)), ir.I64(0)));
            pos = b.CreateSDiv(pos, ir.I64(w.lhs_dilate));
            also(b.CreateICmpSLT(pos, ir.I64(c.in[d])));
          } else if (w.pad_low || w.pad_high) {
            also(b.CreateICmpULT(pos, ir.I64(c.in[d])));
          }
          llvm::Value* kq = w.reversed ? b.CreateSub(ir.I64(w.size - 1), q) : q;
          tap(d + 1, ir.Add(ir.Mul(pixel, c.in[d]), pos), ir.Add(ir.Mul(k, w.size), kq), ok);
        };
        ir.Loop(ir.I64(0), ir.I64(w.size), 1, step);
      };
      tap(0, rest, ir.I64(0), nullptr);
      ir.Loop(
          ir.I64(0), ir.I64(width), 1,
          [&](llvm::Value* f) {
            Val v = ir.Load(t, acc, f);
            ir.Store(c.ct, t == c.ct ? v : ir.Convert(v, t, c.ct), Y, ir.Add(ir.Mul(p, O), f));
          },
          true);
    });
    b.setFastMathFlags({});
    return positions;
  }

  const WindowDim& last = c.w[sp - 1];
  const bool merge_last = c.groups == 1 && last.rhs_dilate == 1;
  const bool tiles = !reversed && c.ct != PrimitiveType::BF16 &&
                     TilesApply(ir.level, c.at, c.bt, c.ct, c.out[sp - 1], c.cout, merge_last ? last.size * C : c.cin);
  const PrimitiveType t = tiles ? c.at : *compute;
  llvm::Type* el = ir.MemType(t);
  MatmulShape s;
  s.compute = t;
  s.b_type = c.bt;
  s.c_type = c.ct;
  s.n = c.cout;
  s.c_stride = O;
  s.b_k_stride = O;
  s.b_n_stride = 1;
  s.reverse_b = reversed;
  const bool pack = padded || dilated || c.at != t;
  bool pointwise = taps == 1 && !pack;
  for (int64_t d = 0; d < sp; ++d) pointwise = pointwise && c.w[d].stride == 1;
  if (pointwise && c.groups == 1) {
    int64_t pixels = c.batch;
    for (int64_t e : c.out) pixels *= e;
    s.a_stride = C;
    s.run = C;
    const int64_t mr = tiles ? 32 : TileRows(ir.level, t, s.n, pixels);
    int64_t block = std::max<int64_t>(1, 4 * kSlabBytes / (C * ByteWidth(t)) / mr) * mr;
    block = std::min(block, pixels);
    if (tiles && pixels % block != 0 && pixels % block < 16) block = pixels;
    const int64_t blocks = (pixels + block - 1) / block, tail = pixels % block;
    auto run_block = [&](llvm::Value* q, int64_t rows) {
      llvm::Value* p0 = ir.Mul(q, block);
      llvm::Value *a = b.CreateInBoundsGEP(el, X, ir.Mul(p0, C)),
                  *y = b.CreateInBoundsGEP(ir.MemType(c.ct), Y, ir.Mul(p0, O));
      Matmul(ir, s, rows).Emit(W, ir.I64(1), [&](llvm::Value*) { return RowRange{a, y}; });
    };
    ir.Loop(body.begin, body.end, 1, [&](llvm::Value* q) {
      if (tail == 0) return run_block(q, block);
      llvm::Value* is_last = b.CreateICmpEQ(q, ir.I64(blocks - 1));
      ir.If(b.CreateNot(is_last), [&] { run_block(q, block); });
      ir.If(is_last, [&] { run_block(q, tail); });
    });
    return blocks;
  }
  // The innermost spatial dimension is the row of the product; the outermost is cut into slabs; those between are
  // whole. A slab holds the (padded, dilated, converted) input that a run of outermost output positions reads.
  Ints slab_extent(sp);  // input extents with holes and padding that the outputs touch
  for (int64_t d = 0; d < sp; ++d) slab_extent[d] = (c.out[d] - 1) * c.w[d].stride + c.w[d].DilatedSize();
  const bool one_d = sp == 1;
  const int64_t window0 = c.w[0].DilatedSize();
  const SlabPlan plan = PlanSlab(i, ByteWidth(*compute));
  const int64_t rows = plan.rows, need = plan.bytes;
  const bool in_arena = pack && need > 4 * kSlabBytes;
  const int64_t slabs = one_d ? 1 : (c.out[0] + rows - 1) / rows, tail = one_d ? 0 : c.out[0] % rows;
  // Strides of A in elements: of the slab, or of the input itself.
  Ints stride(sp);
  stride[sp - 1] = C;
  for (int64_t d = sp - 2; d >= 0; --d) stride[d] = stride[d + 1] * (pack ? slab_extent[d + 1] : c.in[d + 1]);
  s.a_stride = last.stride * C;
  for (int64_t d = 0; d < sp; ++d) {
    if (d == sp - 1 && merge_last && !reversed) break;
    s.segments.push_back({c.w[d].size, c.w[d].rhs_dilate * stride[d]});
  }
  s.run = merge_last && !reversed ? last.size * C : c.cin;
  s.segments.erase(std::remove_if(s.segments.begin(), s.segments.end(), [](const Segment& q) { return q.count == 1; }),
                   s.segments.end());
  if (c.groups > 1) s.c_stride = O;
  llvm::Value* slab = !pack ? nullptr : in_arena ? body.scratch : ir.Alloca(el, need / ByteWidth(*compute));
  auto run_slab = [&](llvm::Value* n, llvm::Value* q, int64_t count0) {
    llvm::Value* o0 = one_d ? ir.I64(0) : ir.Mul(q, rows);
    llvm::Value* image = b.CreateInBoundsGEP(ir.MemType(c.at), X, ir.Mul(n, Product(c.in) * C));
    llvm::Value* a =
        pack ? slab : b.CreateInBoundsGEP(el, image, one_d ? ir.I64(0) : ir.Mul(ir.Mul(o0, c.w[0].stride), stride[0]));
    if (pack) {
      const int64_t rows0 = one_d ? 1 : (count0 - 1) * c.w[0].stride + window0;
      // Fill line by line (all but the last spatial dimension), zero where there is no input.
      std::vector<llvm::Value*> pos(sp);
      std::function<void(int64_t, llvm::Value*, llvm::Value*, llvm::Value*)> fill = [&](int64_t d, llvm::Value* dst,
                                                                                        llvm::Value* src,
                                                                                        llvm::Value* inside) {
        const WindowDim& w = c.w[d];
        llvm::Value* base = d == 0 && !one_d ? ir.Mul(o0, w.stride) : ir.I64(0);
        if (d == sp - 1) {
          llvm::Value* line = ir.Mul(dst, C * slab_extent[d]);
          auto zero = [&](llvm::Value* from, llvm::Value* to) {
            ir.Loop(
                from, to, 1, [&](llvm::Value* e) { ir.Store(t, ir.Constant(t, Element{}), slab, ir.Add(line, e)); },
                true);
          };
          auto copy = [&] {
            const int64_t first = std::max<int64_t>(0, w.pad_low);  // first position with input
            if (w.lhs_dilate == 1) {
              const int64_t skip = std::max<int64_t>(0, -w.pad_low);
              const int64_t n_in = std::max<int64_t>(0, std::min(c.in[d] - skip, slab_extent[d] - first));
              zero(ir.I64(0), ir.I64(std::min(first, slab_extent[d]) * C));
              ir.Loop(
                  ir.I64(0), ir.I64(n_in * C), 1,
                  [&](llvm::Value* e) {
                    ir.Store(t,
                             ir.Convert(
                                 ir.Load(c.at, image, ir.Add(ir.Mul(ir.Add(ir.Mul(src, c.in[d]), ir.I64(skip)), C), e)),
                                 c.at, t),
                             slab, ir.Add(line, ir.Add(e, ir.I64(first * C))));
                  },
                  true);
              zero(ir.I64((std::min(first, slab_extent[d]) + n_in) * C), ir.I64(slab_extent[d] * C));
            } else {
              zero(ir.I64(0), ir.I64(slab_extent[d] * C));
              ir.Loop(ir.I64(0), ir.I64(c.in[d]), 1, [&](llvm::Value* p) {
                llvm::Value* at = b.CreateAdd(ir.Mul(p, w.lhs_dilate), ir.I64(w.pad_low));
                ir.If(b.CreateICmpULT(at, ir.I64(slab_extent[d])), [&] {
                  ir.Loop(
                      ir.I64(0), ir.I64(C), 1,
                      [&](llvm::Value* e) {
                        ir.Store(t,
                                 ir.Convert(ir.Load(c.at, image, ir.Add(ir.Mul(ir.Add(ir.Mul(src, c.in[d]), p), C), e)),
                                            c.at, t),
                                 slab, ir.Add(line, ir.Add(ir.Mul(at, C), e)));
                      },
                      true);
                });
              });
            }
          };
          if (!inside) {
            copy();
          } else {
            ir.If(inside, copy);
            ir.If(b.CreateNot(inside), [&] { zero(ir.I64(0), ir.I64(slab_extent[d] * C)); });
          }
          return;
        }
        const int64_t extent = d == 0 ? rows0 : slab_extent[d];
        ir.Loop(ir.I64(0), ir.I64(extent), 1, [&](llvm::Value* r) {
          llvm::Value* p = b.CreateSub(b.CreateAdd(base, r), ir.I64(w.pad_low));
          llvm::Value* ok = inside;
          auto also = [&](llvm::Value* v) { ok = ok ? b.CreateAnd(ok, v) : v; };
          if (w.lhs_dilate > 1) {
            also(b.CreateICmpSGE(p, ir.I64(0)));
            also(b.CreateICmpEQ(b.CreateSRem(p, ir.I64(w.lhs_dilate)), ir.I64(0)));
            p = b.CreateSDiv(p, ir.I64(w.lhs_dilate));
            also(b.CreateICmpSLT(p, ir.I64(c.in[d])));
          } else if (w.pad_low || w.pad_high) {
            also(b.CreateICmpULT(p, ir.I64(c.in[d])));
          }
          fill(d + 1, d == 0 ? r : ir.Add(ir.Mul(dst, slab_extent[d]), r), ir.Add(ir.Mul(src, c.in[d]), p), ok);
        });
      };
      fill(0, ir.I64(0), ir.I64(0), nullptr);
    }
    // Row ranges: every output position of the outer spatial dimensions inside the slab.
    int64_t ranges = one_d ? 1 : count0;
    for (int64_t d = 1; d + 1 < sp; ++d) ranges *= c.out[d];
    auto groups = [&](llvm::Value* g) {
      llvm::Value* kernel = b.CreateInBoundsGEP(ir.MemType(c.bt), W, ir.Mul(g, c.cout));
      Matmul(ir, s, c.out[sp - 1]).Emit(kernel, ir.I64(ranges), [&](llvm::Value* r) {
        llvm::Value* rest = r;
        llvm::Value *ao = ir.Mul(g, c.cin), *yo = ir.I64(0);
        int64_t weight = c.out[sp - 1];
        for (int64_t d = sp - 2; d >= 0; --d) {
          llvm::Value* p = d == 0 ? rest : b.CreateURem(rest, ir.I64(c.out[d]));
          if (d) rest = b.CreateUDiv(rest, ir.I64(c.out[d]));
          ao = ir.Add(ao, ir.Mul(p, c.w[d].stride * stride[d]));
          yo = ir.Add(yo, ir.Mul(d == 0 ? ir.Add(p, o0) : p, weight));
          weight *= c.out[d];
        }
        yo = ir.Add(yo, ir.Mul(n, Product(c.out)));
        return RowRange{b.CreateInBoundsGEP(el, a, ao),
                        b.CreateInBoundsGEP(ir.MemType(c.ct), Y, ir.Add(ir.Mul(yo, O), ir.Mul(g, c.cout)))};
      });
    };
    ir.Loop(ir.I64(0), ir.I64(c.groups), 1, groups);
  };
  auto unit = [&](llvm::Value* u) {
    llvm::Value* n = slabs == 1 ? u : b.CreateUDiv(u, ir.I64(slabs));
    if (slabs == 1) return run_slab(n, ir.I64(0), rows);
    llvm::Value* q = b.CreateURem(u, ir.I64(slabs));
    if (tail == 0) return run_slab(n, q, rows);
    llvm::Value* is_last = b.CreateICmpEQ(q, ir.I64(slabs - 1));
    ir.If(b.CreateNot(is_last), [&] { run_slab(n, q, rows); });
    ir.If(is_last, [&] { run_slab(n, ir.I64(slabs - 1), tail); });
  };
  if (in_arena) {
    ir.Loop(ir.I64(0), ir.I64(c.batch * slabs), 1, unit);
    return 1;
  }
  ir.Loop(body.begin, body.end, 1, unit);
  return c.batch * slabs;
}

int64_t ConvolutionScratchBytes(const Instruction* i) {
  if (i->operand(0)->shape().rank() < 3 || i->shape().ElementCount() == 0) return 0;
  const auto compute = ComputeType(i->operand(0)->shape().type(), i->operand(1)->shape().type(), i->shape().type());
  if (!compute) return 0;
  const int64_t bytes = PlanSlab(i, ByteWidth(*compute)).bytes;
  return bytes > 4 * kSlabBytes ? bytes : 0;
}

}  // namespace kiln::cpu
