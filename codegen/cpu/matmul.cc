#include "codegen/cpu/matmul.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::cpu {
namespace {

int64_t Lanes(const CpuLevel& l, PrimitiveType t) { return l.vector_bytes / ByteWidth(t); }

// Vectors of columns in a tile: enough accumulators to hide latency, few enough to stay in registers.
int64_t TileVectors(const CpuLevel& l, PrimitiveType t, int64_t n, int64_t m) {
  const int64_t vectors = (n + Lanes(l, t) - 1) / Lanes(l, t);
  const int64_t budget = l.vector_registers == 32 ? 28 : 12;
  // Few rows leave registers for more columns.
  int64_t nv = 2;
  if (m <= budget / 4) nv = 4;
  if (m <= budget / 6) nv = 6;
  if (l.vector_registers == 16) nv = std::min<int64_t>(nv, 4);
  return std::max<int64_t>(1, std::min(nv, vectors));
}

}  // namespace

bool TilesApply(const CpuLevel& l, PrimitiveType a, PrimitiveType b, PrimitiveType c, int64_t rows, int64_t n,
                int64_t run) {
  using P = PrimitiveType;
  auto byte = [](P t) { return t == P::S8 || t == P::U8; };
  const bool types =
      (a == P::BF16 && b == P::BF16 && (c == P::F32 || c == P::BF16)) || (byte(a) && byte(b) && c == P::S32);
  // The panel of B for all of k lies on the stack: 1 MiB at most.
  constexpr int64_t kLongestRun = 16384;
  return l.amx && types && rows >= 16 && n >= 16 && run <= kLongestRun && run % (64 / ByteWidth(a)) == 0;
}

int64_t TileRows(const CpuLevel& l, PrimitiveType t, int64_t n, int64_t m) {
  const int64_t budget = l.vector_registers == 32 ? 28 : 12;
  const int64_t most = budget / TileVectors(l, t, n, m);
  // Equal tiles: 16 rows are two of 8, not 14 and 2.
  const int64_t tiles = (m + most - 1) / most;
  return std::min(most, (m + tiles - 1) / std::max<int64_t>(tiles, 1));
}

llvm::Function* Matmul::Micro(int64_t mr, int64_t nv, int64_t cols, const std::vector<Segment>& segments, int64_t run,
                              int64_t b_stride, Sum sum) {
  std::string name = absl::StrCat("ukr.", TextOf(s_.compute), ".", TextOf(s_.c_type), ".", mr, "x", nv, ".", cols, ".r",
                                  run, ".b", b_stride, ".a", s_.a_stride, ".c", s_.c_stride,
                                  sum == Sum::kNew     ? ".n"
                                  : sum == Sum::kAdded ? ".a"
                                                       : "");
  for (const Segment& s : segments) absl::StrAppend(&name, ".", s.count, "_", s.a_stride);
  if (llvm::Function* f = ir_.module.getFunction(name)) return f;
  llvm::IRBuilder<>& b = ir_.b;
  llvm::Type* ptr = b.getPtrTy();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, b.getInt1Ty()}, false),
                                   llvm::Function::InternalLinkage, name, ir_.module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(kWrittenAsRun);
  for (int k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::MDNode* group = ir_.access_group;
  ir_.access_group = nullptr;
  b.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f));
  const bool fp = IsFloat(s_.compute);
  llvm::Type* el = ir_.RegType(s_.compute);
  const int64_t w = Lanes(ir_.level, s_.compute);
  auto* vec = llvm::FixedVectorType::get(el, static_cast<unsigned>(w));
  const llvm::Align ea(static_cast<uint64_t>(ByteWidth(s_.compute)));
  llvm::Value* zero = llvm::Constant::getNullValue(vec);
  llvm::Value *a = f->getArg(0), *bp = f->getArg(1), *c = f->getArg(2);
  using Acc = std::vector<llvm::Value*>;
  // Nested loops over segments and the run; accumulators travel as phis.
  std::function<Acc(size_t, llvm::Value*, llvm::Value*, Acc)> level = [&](size_t depth, llvm::Value* ap,
                                                                          llvm::Value* bq, Acc acc) -> Acc {
    const bool inner = depth == segments.size();
    const int64_t count = inner ? run : segments[depth].count;
    int64_t inner_k = 1;
    if (!inner) {
      inner_k = run;
      for (size_t k = depth + 1; k < segments.size(); ++k) inner_k *= segments[k].count;
    }
    auto step = [&](llvm::Value* ai, llvm::Value* bi, Acc in) -> Acc {
      if (!inner) return level(depth + 1, ai, bi, std::move(in));
      Acc bv;
      for (int64_t v = 0; v < nv; ++v)
        bv.push_back(b.CreateAlignedLoad(vec, b.CreateInBoundsGEP(el, bi, ir_.I64(v * w)), ea));
      for (int64_t m = 0; m < mr; ++m) {
        llvm::Value* x =
            b.CreateVectorSplat(static_cast<unsigned>(w),
                                b.CreateAlignedLoad(el, b.CreateInBoundsGEP(el, ai, ir_.I64(m * s_.a_stride)), ea));
        for (int64_t v = 0; v < nv; ++v) {
          llvm::Value*& d = in[m * nv + v];
          if (fp)
            d = ir_.level.fma ? b.CreateIntrinsic(llvm::Intrinsic::fma, {vec}, {x, bv[v], d})
                              : b.CreateFAdd(d, b.CreateFMul(x, bv[v]));
          else
            d = b.CreateAdd(d, b.CreateMul(x, bv[v]));
        }
      }
      return in;
    };
    const int64_t da = inner ? 1 : segments[depth].a_stride, db = inner ? b_stride : inner_k * b_stride;
    // Enough products between branches; more only costs code.
    const int64_t unroll = !inner || count < 8 ? 1 : mr * nv >= 12 ? 2 : 4;
    const int64_t whole = count / unroll * unroll;
    if (count == 1) return step(ap, bq, std::move(acc));
    auto* head = llvm::BasicBlock::Create(ir_.ctx, "k", f);
    auto* done = llvm::BasicBlock::Create(ir_.ctx, "kdone", f);
    llvm::BasicBlock* before = b.GetInsertBlock();
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(ir_.I64(0), before);
    llvm::PHINode* ai = b.CreatePHI(ptr, 2);
    ai->addIncoming(ap, before);
    llvm::PHINode* bi = b.CreatePHI(ptr, 2);
    bi->addIncoming(bq, before);
    std::vector<llvm::PHINode*> phis;
    Acc cur;
    for (llvm::Value* v : acc) {
      phis.push_back(b.CreatePHI(vec, 2));
      phis.back()->addIncoming(v, before);
      cur.push_back(phis.back());
    }
    for (int64_t u = 0; u < unroll; ++u)
      cur = step(u ? b.CreateInBoundsGEP(el, ai, ir_.I64(u * da)) : ai,
                 u ? b.CreateInBoundsGEP(el, bi, ir_.I64(u * db)) : bi, std::move(cur));
    llvm::Value* ni = b.CreateAdd(i, ir_.I64(unroll), "", true, true);
    llvm::Value *na = b.CreateInBoundsGEP(el, ai, ir_.I64(unroll * da)),
                *nb = b.CreateInBoundsGEP(el, bi, ir_.I64(unroll * db));
    llvm::BasicBlock* latch = b.GetInsertBlock();
    i->addIncoming(ni, latch);
    ai->addIncoming(na, latch);
    bi->addIncoming(nb, latch);
    for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(cur[k], latch);
    llvm::BranchInst* br = b.CreateCondBr(b.CreateICmpSLT(ni, ir_.I64(whole)), head, done);
    llvm::MDNode* id = llvm::MDNode::getDistinct(
        ir_.ctx, {nullptr, llvm::MDNode::get(ir_.ctx, {llvm::MDString::get(ir_.ctx, "llvm.loop.unroll.disable")})});
    id->replaceOperandWith(0, id);
    br->setMetadata(llvm::LLVMContext::MD_loop, id);
    b.SetInsertPoint(done);
    for (int64_t u = whole; u < count; ++u) {
      cur = step(na, nb, std::move(cur));
      if (u + 1 < count) {
        na = b.CreateInBoundsGEP(el, na, ir_.I64(da));
        nb = b.CreateInBoundsGEP(el, nb, ir_.I64(db));
      }
    }
    return cur;
  };
  Acc acc(static_cast<size_t>(mr * nv), zero);
  acc = level(0, a, bp, std::move(acc));
  // Results: whole vectors, then a masked one; another type goes through a conversion.
  llvm::Type* cel = ir_.MemType(s_.c_type);
  const bool convert = s_.c_type != s_.compute;
  const auto store = [&](bool first) {
    for (int64_t m = 0; m < mr; ++m) {
      for (int64_t v = 0; v < nv; ++v) {
        const int64_t live = std::min(w, cols - v * w);
        if (live <= 0) continue;
        llvm::Value* p = b.CreateInBoundsGEP(cel, c, ir_.I64(m * s_.c_stride + v * w));
        llvm::Value* r = acc[m * nv + v];
        const llvm::Align ca(static_cast<uint64_t>(ByteWidth(s_.c_type)));
        if (!convert) {
          if (live == w) {
            if (!first)
              r = fp ? b.CreateFAdd(r, b.CreateAlignedLoad(vec, p, ca))
                     : b.CreateAdd(r, b.CreateAlignedLoad(vec, p, ca));
            b.CreateAlignedStore(r, p, ca);
            continue;
          }
          std::vector<llvm::Constant*> bits;
          for (int64_t k = 0; k < w; ++k) bits.push_back(b.getInt1(k < live));
          llvm::Value* mask = llvm::ConstantVector::get(bits);
          if (!first) {
            llvm::Value* old = b.CreateMaskedLoad(vec, p, ca, mask, zero);
            r = fp ? b.CreateFAdd(r, old) : b.CreateAdd(r, old);
          }
          b.CreateMaskedStore(r, p, ca, mask);
          continue;
        }
        if (IsIntegral(s_.c_type)) {  // exact sums in f32, added as integers
          auto* iv = llvm::FixedVectorType::get(cel, static_cast<unsigned>(w));
          llvm::Value* x = b.CreateFPToSI(r, iv);
          for (int64_t k = 0; k < live; ++k) {
            llvm::Value* q = b.CreateInBoundsGEP(cel, p, ir_.I64(k));
            llvm::Value* e = b.CreateExtractElement(x, ir_.I64(k));
            if (live == w) break;
            if (!first) e = b.CreateAdd(e, b.CreateAlignedLoad(cel, q, ca));
            b.CreateAlignedStore(e, q, ca);
          }
          if (live == w) {
            if (!first) x = b.CreateAdd(x, b.CreateAlignedLoad(iv, p, ca));
            b.CreateAlignedStore(x, p, ca);
          }
          continue;
        }
        for (int64_t k = 0; k < live; ++k) {
          Val e{b.CreateExtractElement(r, ir_.I64(k))};
          ir_.Store(s_.c_type, ir_.Convert(e, s_.compute, s_.c_type), p, ir_.I64(k));
        }
      }
    }
    b.CreateRetVoid();
  };
  if (sum == Sum::kEither) {
    auto* fresh = llvm::BasicBlock::Create(ir_.ctx, "new", f);
    auto* added = llvm::BasicBlock::Create(ir_.ctx, "added", f);
    b.CreateCondBr(f->getArg(3), fresh, added);
    b.SetInsertPoint(fresh);
    store(true);
    b.SetInsertPoint(added);
    store(false);
  } else {
    store(sum == Sum::kNew);
  }
  ir_.access_group = group;
  return f;
}

void Matmul::PackPanel(llvm::Value* bp, llvm::Value* k0, const std::vector<Segment>& segments, int64_t run,
                       llvm::Value* col_value, int64_t cols, int64_t width, llvm::Value* panel) {
  int64_t k = run;
  for (const Segment& s : segments) k *= s.count;
  llvm::IRBuilder<>& b = ir_.b;
  auto source_row = [&](llvm::Value* i) {
    llvm::Value* row = ir_.Add(k0, i);
    if (!s_.reverse_b) return row;
    // Taps in reverse, the run in order: row = (last tap - tap) * run + r.
    llvm::Value* tap = b.CreateUDiv(row, ir_.I64(s_.run));
    llvm::Value* r = b.CreateURem(row, ir_.I64(s_.run));
    return ir_.Add(ir_.Mul(b.CreateSub(ir_.I64(s_.K() / s_.run - 1), tap), s_.run), r);
  };
  auto element = [&](llvm::Value* i, llvm::Value* j) {
    llvm::Value* at = ir_.Add(ir_.Mul(source_row(i), s_.b_k_stride), ir_.Mul(ir_.Add(col_value, j), s_.b_n_stride));
    Val v = ir_.Convert(ir_.Load(s_.b_type, bp, at), s_.b_type, s_.compute);
    ir_.Store(s_.compute, v, panel, ir_.Add(ir_.Mul(i, width), j));
  };
  if (s_.b_n_stride == 1 || s_.b_k_stride != 1) {
    ir_.Loop(ir_.I64(0), ir_.I64(k), 1, [&](llvm::Value* i) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(cols), 1, [&](llvm::Value* j) { element(i, j); }, true);
      for (int64_t j = cols; j < width; ++j)
        ir_.Store(s_.compute, ir_.Constant(s_.compute, Element{}), panel, ir_.Add(ir_.Mul(i, width), ir_.I64(j)));
    });
    return;
  }
  // Columns of B are contiguous in k: short runs of k per column keep both sides in cache.
  constexpr int64_t kBlock = 16;
  const int64_t whole = k / kBlock * kBlock;
  auto rows = [&](llvm::Value* i0, int64_t n) {
    ir_.Loop(ir_.I64(0), ir_.I64(cols), 1, [&](llvm::Value* j) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(n), 1, [&](llvm::Value* i) { element(ir_.Add(i0, i), j); }, true);
    });
  };
  ir_.Loop(ir_.I64(0), ir_.I64(whole), kBlock, [&](llvm::Value* i0) { rows(i0, kBlock); });
  if (whole < k) rows(ir_.I64(whole), k - whole);
  if (cols < width)
    ir_.Loop(ir_.I64(0), ir_.I64(k), 1, [&](llvm::Value* i) {
      for (int64_t j = cols; j < width; ++j)
        ir_.Store(s_.compute, ir_.Constant(s_.compute, Element{}), panel, ir_.Add(ir_.Mul(i, width), ir_.I64(j)));
    });
}

void Matmul::EmitTiles(llvm::Value* bp, llvm::Value* count, const std::function<RowRange(llvm::Value*)>& ranges) {
  namespace Intr = llvm::Intrinsic;
  llvm::IRBuilder<>& b = ir_.b;
  llvm::Type* byte = b.getInt8Ty();
  const int64_t width = ByteWidth(s_.compute), group = 4 / width, step = 64 / width, K = s_.K();
  auto tile = [&](int k) -> llvm::Value* { return b.getInt8(static_cast<uint8_t>(k)); };
  // Eight tiles of 16 rows of 64 bytes.
  llvm::Value* config = ir_.Alloca(byte, 64);
  b.CreateMemSet(config, b.getInt8(0), 64, llvm::Align(64));
  b.CreateStore(b.getInt8(1), config);
  for (int k = 0; k < 8; ++k) {
    b.CreateStore(b.getInt16(64), b.CreateInBoundsGEP(byte, config, ir_.I64(16 + 2 * k)));
    b.CreateStore(b.getInt8(16), b.CreateInBoundsGEP(byte, config, ir_.I64(48 + k)));
  }
  b.CreateIntrinsic(Intr::x86_ldtilecfg, {}, {config});
  const bool sa = IsSigned(s_.compute), sb = IsSigned(s_.b_type);
  const Intr::ID product = s_.compute == PrimitiveType::BF16 ? Intr::x86_tdpbf16ps
                           : sa                              ? (sb ? Intr::x86_tdpbssd : Intr::x86_tdpbsud)
                                                             : (sb ? Intr::x86_tdpbusd : Intr::x86_tdpbuud);
  llvm::Value* panel = ir_.Alloca(byte, K / group * 128);
  auto columns = [&](llvm::Value* col, int64_t tiles) {
    const int64_t cols = 16 * tiles, row_bytes = 64 * tiles;
    // Groups of consecutive k lie together, column by column.
    ir_.Loop(ir_.I64(0), ir_.I64(K / group), 1, [&](llvm::Value* q) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(cols), 1,
          [&](llvm::Value* j) {
            for (int64_t e = 0; e < group; ++e) {
              llvm::Value* k = ir_.Add(ir_.Mul(q, group), ir_.I64(e));
              llvm::Value* at = ir_.Add(ir_.Mul(k, s_.b_k_stride), ir_.Mul(ir_.Add(col, j), s_.b_n_stride));
              llvm::Type* el = ir_.MemType(s_.b_type);
              llvm::Value* v = b.CreateAlignedLoad(el, b.CreateInBoundsGEP(el, bp, at), llvm::Align(1));
              b.CreateAlignedStore(
                  v, b.CreateInBoundsGEP(el, panel, ir_.Add(ir_.Mul(ir_.Add(ir_.Mul(q, cols), j), group), ir_.I64(e))),
                  llvm::Align(1));
            }
          },
          true);
    });
    ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* r) {
      const RowRange rows = ranges(r);
      auto block = [&](llvm::Value* m, int64_t row_tiles) {
        for (int x = 0; x < row_tiles * tiles; ++x) b.CreateIntrinsic(Intr::x86_tilezero, {}, {tile(x)});
        auto a_at = [&](llvm::Value* off, int64_t x) {
          return b.CreateInBoundsGEP(
              byte, rows.a,
              ir_.Mul(ir_.Add(ir_.Add(off, ir_.Mul(m, s_.a_stride)), ir_.I64(16 * x * s_.a_stride)), width));
        };
        std::function<void(size_t, llvm::Value*, llvm::Value*)> nest = [&](size_t depth, llvm::Value* a,
                                                                           llvm::Value* k) {
          if (depth < s_.segments.size()) {
            int64_t inner = s_.run;
            for (size_t q = depth + 1; q < s_.segments.size(); ++q) inner *= s_.segments[q].count;
            ir_.Loop(ir_.I64(0), ir_.I64(s_.segments[depth].count), 1, [&](llvm::Value* q) {
              nest(depth + 1, ir_.Add(a, ir_.Mul(q, s_.segments[depth].a_stride)), ir_.Add(k, ir_.Mul(q, inner)));
            });
            return;
          }
          ir_.Loop(ir_.I64(0), ir_.I64(s_.run), step, [&](llvm::Value* q) {
            for (int64_t x = 0; x < row_tiles; ++x)
              b.CreateIntrinsic(Intr::x86_tileloadd64, {},
                                {tile(static_cast<int>(4 + x)), a_at(ir_.Add(a, q), x), ir_.I64(s_.a_stride * width)});
            llvm::Value* prow = ir_.Mul(b.CreateUDiv(ir_.Add(k, q), ir_.I64(group)), row_bytes);
            for (int64_t y = 0; y < tiles; ++y)
              b.CreateIntrinsic(Intr::x86_tileloadd64, {},
                                {tile(static_cast<int>(6 + y)),
                                 b.CreateInBoundsGEP(byte, panel, ir_.Add(prow, ir_.I64(64 * y))), ir_.I64(row_bytes)});
            for (int64_t x = 0; x < row_tiles; ++x)
              for (int64_t y = 0; y < tiles; ++y)
                b.CreateIntrinsic(product, {},
                                  {tile(static_cast<int>(x * tiles + y)), tile(static_cast<int>(4 + x)),
                                   tile(static_cast<int>(6 + y))});
          });
        };
        nest(0, ir_.I64(0), ir_.I64(0));
        for (int64_t x = 0; x < row_tiles; ++x)
          for (int64_t y = 0; y < tiles; ++y) {
            llvm::Value* c = ir_.Add(ir_.Mul(ir_.Add(m, ir_.I64(16 * x)), s_.c_stride), ir_.Add(col, ir_.I64(16 * y)));
            b.CreateIntrinsic(Intr::x86_tilestored64, {},
                              {tile(static_cast<int>(x * tiles + y)), b.CreateInBoundsGEP(b.getInt32Ty(), rows.c, c),
                               ir_.I64(4 * s_.c_stride)});
          }
      };
      const int64_t pairs = rows_ / 32 * 32;
      ir_.Loop(ir_.I64(0), ir_.I64(pairs), 32, [&](llvm::Value* m) { block(m, 2); });
      if (rows_ - pairs >= 16) block(ir_.I64(pairs), 1);
      if (rows_ % 16) block(ir_.I64(rows_ - 16), 1);
    });
  };
  const int64_t pairs = s_.n / 32 * 32;
  ir_.Loop(ir_.I64(0), ir_.I64(pairs), 32, [&](llvm::Value* col) { columns(col, 2); });
  if (s_.n - pairs >= 16) columns(ir_.I64(pairs), 1);
  if (s_.n % 16) columns(ir_.I64(s_.n - 16), 1);
  b.CreateIntrinsic(Intr::x86_tilerelease, {}, {});
}

void Matmul::Emit(llvm::Value* bp, llvm::Value* count, const std::function<RowRange(llvm::Value*)>& ranges) {
  if (s_.compute != PrimitiveType::F32 && s_.compute != PrimitiveType::F64) return EmitTiles(bp, count, ranges);
  llvm::IRBuilder<>& b = ir_.b;
  const int64_t w = Lanes(ir_.level, s_.compute), nv = TileVectors(ir_.level, s_.compute, s_.n, rows_), width = nv * w;
  const int64_t mr = TileRows(ir_.level, s_.compute, s_.n, rows_);
  llvm::Type* el = ir_.RegType(s_.compute);
  // Blocks of k: short sums round less and keep the panel in the first cache. One block if it all fits; else outer
  // segments are peeled until one does, and if the run alone is too long it is cut into pieces and a rest.
  struct Block {
    std::vector<Segment> segments;
    int64_t run;
    int64_t pieces;  // blocks of the run, `run` apart
    int64_t start;   // in the run, of the first
  };
  const bool exact = s_.compute == PrimitiveType::F32 && IsIntegral(s_.c_type);
  // A converted result cannot be read back and added to: its sums stay in registers over all of k.
  const bool whole_k = s_.c_type != s_.compute && !exact;
  const int64_t limit = whole_k ? s_.K() : exact ? (IsUnsigned(s_.b_type) ? 256 : 1024) : 256;
  std::vector<Segment> inner = s_.segments, outer;
  const auto size = [&] {
    int64_t k = s_.run;
    for (const Segment& q : inner) k *= q.count;
    return k;
  };
  while (!inner.empty() && size() > limit) {
    outer.push_back(inner.front());
    inner.erase(inner.begin());
  }
  const int64_t period = size();  // rows of B between steps of the innermost peeled segment
  int64_t repeat = 1;
  for (const Segment& q : outer) repeat *= q.count;
  std::vector<Block> blocks;
  if (period <= limit) {
    blocks.push_back({inner, s_.run, 1, 0});
  } else {
    const int64_t pieces = s_.run / limit;
    blocks.push_back({{}, limit, pieces, 0});
    if (s_.run % limit) blocks.push_back({{}, s_.run % limit, 1, pieces * limit});
  }
  int64_t panel_rows = 0;
  for (const Block& k : blocks) {
    int64_t n = k.run;
    for (const Segment& q : k.segments) n *= q.count;
    panel_rows = std::max(panel_rows, n);
  }
  // Reading B in place saves the copy where few rows would use it.
  const bool same_type = s_.b_type == s_.compute && s_.b_n_stride == 1 && !s_.reverse_b;
  auto* cnt = llvm::dyn_cast<llvm::ConstantInt>(count);
  const int64_t total_rows = cnt ? cnt->getSExtValue() * rows_ : INT64_MAX;
  const bool direct = same_type && s_.n % w == 0 && total_rows <= 4 * mr;
  llvm::Value* panel = direct ? nullptr : ir_.Alloca(el, panel_rows * width);
  auto columns = [&](llvm::Value* col, int64_t cols) {
    const int64_t vectors = (cols + w - 1) / w;
    bool fresh = !s_.accumulate;  // the first block of all still has to write C
    for (const Block& k : blocks) {
      const int64_t steps = k.pieces * repeat;
      const Sum sum = !fresh ? Sum::kAdded : steps == 1 ? Sum::kNew : Sum::kEither;
      ir_.Loop(ir_.I64(0), ir_.I64(steps), 1, [&](llvm::Value* q) {
        llvm::Value* is_first = sum == Sum::kEither ? b.CreateICmpEQ(q, ir_.I64(0)) : b.getInt1(sum == Sum::kNew);
        // q counts the pieces of the run fastest, then the peeled segments from the innermost out.
        llvm::Value* rest = k.pieces == 1 ? q : b.CreateUDiv(q, ir_.I64(k.pieces));
        llvm::Value* piece = k.pieces == 1 ? ir_.I64(0) : b.CreateURem(q, ir_.I64(k.pieces));
        llvm::Value* a0 = ir_.Add(ir_.I64(k.start), ir_.Mul(piece, k.run));
        llvm::Value* k0 = ir_.Add(a0, ir_.Mul(rest, period));
        for (size_t d = outer.size(); d-- > 0;) {
          llvm::Value* digit = d == 0 ? rest : b.CreateURem(rest, ir_.I64(outer[d].count));
          if (d) rest = b.CreateUDiv(rest, ir_.I64(outer[d].count));
          a0 = ir_.Add(a0, ir_.Mul(digit, outer[d].a_stride));
        }
        const int64_t pw = vectors * w;
        llvm::Value* src = panel;
        int64_t stride = pw;
        if (direct) {
          src = b.CreateInBoundsGEP(el, bp, ir_.Add(ir_.Mul(k0, s_.b_k_stride), col));
          stride = s_.b_k_stride;
        } else {
          PackPanel(bp, k0, k.segments, k.run, col, cols, pw, panel);
        }
        ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* r) {
          const RowRange rows = ranges(r);
          llvm::Value* a = b.CreateInBoundsGEP(el, rows.a, a0);
          llvm::Value* c = b.CreateInBoundsGEP(ir_.MemType(s_.c_type), rows.c, col);
          auto tile = [&](llvm::Value* m, int64_t count_rows) {
            b.CreateCall(Micro(count_rows, vectors, cols, k.segments, k.run, stride, sum),
                         {b.CreateInBoundsGEP(el, a, ir_.Mul(m, s_.a_stride)), src,
                          b.CreateInBoundsGEP(ir_.MemType(s_.c_type), c, ir_.Mul(m, s_.c_stride)), is_first});
          };
          const int64_t whole = rows_ / mr * mr;
          ir_.Loop(ir_.I64(0), ir_.I64(whole), mr, [&](llvm::Value* m) { tile(m, mr); });
          if (whole < rows_) tile(ir_.I64(whole), rows_ - whole);
        });
      });
      fresh = false;
    }
  };
  const int64_t whole = s_.n / width * width;
  ir_.Loop(ir_.I64(0), ir_.I64(whole), width, [&](llvm::Value* col) { columns(col, width); });
  if (whole < s_.n) columns(ir_.I64(whole), s_.n - whole);
}

}  // namespace kiln::cpu
