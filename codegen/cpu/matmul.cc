#include "codegen/cpu/matmul.h"

#include <algorithm>

#include "codegen/cpu/matmul_micro.h"
#include "codegen/cpu/matmul_pack.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

// Products of vectors, as PlanMatmul says.
class VectorProducts {
 public:
  VectorProducts(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan, int64_t rows, llvm::Value* count,
                 const RowRanges& ranges)
      : ir_(ir), b_(ir.b), s_(shape), plan_(plan), rows_(rows), count_(count), ranges_(ranges) {}

  void Emit(llvm::Value* b_array) {
    b_array_ = b_array;
    if (!plan_.direct) panel_ = PanelStack(ir_, plan_.panel_rows * plan_.span * ByteWidth(SumType(s_.compute)));
    if (OffsetOfB(s_)) SumRows();
    const int64_t width = s_.panel_columns ? s_.panel_columns : plan_.span, whole = s_.n / width * width;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), width, [&](llvm::Value* column) { Columns(column, width); });
    if (whole < s_.n) Columns(ir_.I64(whole), s_.n - whole);
  }

 private:
  // All of k for `columns` columns from `column`.
  void Columns(llvm::Value* column, int64_t columns) {
    ForSumSteps(ir_, s_, plan_, [&](const SumStep& k) {
      if (columns == plan_.span && plan_.span > plan_.tile_columns) return Span(k, column);
      owed_ = &k.block == &plan_.blocks.front() ? b_.CreateICmpEQ(k.step, ir_.I64(0)) : b_.getFalse();
      // What a panel has of the block stays in cache while its tiles' columns take turns.
      const int64_t width = plan_.tile_columns, whole = columns / width * width;
      ir_.Loop(ir_.I64(0), ir_.I64(whole), width, [&](llvm::Value* strip) { Block(k, column, strip, width); });
      if (whole < columns) Block(k, column, ir_.I64(whole), columns - whole);
    });
  }

  // What the sums of each row begin with where B is held with an offset: that times the sum of the row's elements.
  void SumRows() {
    llvm::Type* i32 = b_.getInt32Ty();
    const int64_t ranges = llvm::cast<llvm::ConstantInt>(count_)->getSExtValue();
    first_sums_ = ir_.Alloca(i32, ranges * rows_);
    no_sums_ = ir_.Alloca(i32, plan_.tile_rows);
    b_.CreateMemSet(no_sums_, b_.getInt8(0), static_cast<uint64_t>(plan_.tile_rows * 4), llvm::Align(4));
    llvm::Value* sum = ir_.Alloca(i32, 1);
    ir_.Loop(ir_.I64(0), count_, 1, [&](llvm::Value* r) {
      llvm::Value* a = ranges_(r).a;
      ir_.Loop(ir_.I64(0), ir_.I64(rows_), 1, [&](llvm::Value* m) {
        b_.CreateStore(b_.getInt32(0), sum);
        AddElements(0, a, ir_.Mul(m, s_.a_stride), sum);
        llvm::Value* owed = b_.CreateMul(b_.CreateLoad(i32, sum), b_.getInt32(static_cast<uint32_t>(OffsetOfB(s_))));
        b_.CreateStore(owed, b_.CreateInBoundsGEP(i32, first_sums_, ir_.Add(ir_.Mul(r, rows_), m)));
      });
    });
  }

  // Adds A's elements from `at` on, of segments from `depth` on and of the run, to `sum`.
  void AddElements(size_t depth, llvm::Value* a, llvm::Value* at, llvm::Value* sum) {
    llvm::Type* i32 = b_.getInt32Ty();
    const bool inner = depth == s_.segments.size();
    ir_.Loop(ir_.I64(0), ir_.I64(inner ? s_.run : s_.segments[depth].count), 1, [&](llvm::Value* k) {
      if (!inner) return AddElements(depth + 1, a, ir_.Add(at, ir_.Mul(k, s_.segments[depth].a_stride)), sum);
      llvm::Value* x = b_.CreateIntCast(ir_.Load(s_.compute, a, ir_.Add(at, k)).re, i32, IsSigned(s_.compute));
      b_.CreateStore(b_.CreateAdd(b_.CreateLoad(i32, sum), x), sum);
    });
  }

  // One block of k for `columns` columns of all rows: those `strip` behind `first`, with which a panel begins that is
  // not copied.
  void Block(const SumStep& k, llvm::Value* first, llvm::Value* strip, int64_t columns) {
    const auto& [block, step, start, sum, is_first] = k;
    llvm::Value* column = ir_.Add(first, strip);
    llvm::Type *element = ElementOfA(ir_, s_), *c_element = ir_.MemType(s_.c_type);
    const int64_t vectors = (columns + plan_.lanes - 1) / plan_.lanes, packed = vectors * plan_.lanes;
    const bool made = MadeByTiles(columns);
    llvm::Value* source = panel_;
    if (plan_.direct)
      source = InPlace(start.k, first, strip);
    else if (s_.panel_columns)
      CopyPanel(block, InPlace(start.k, first, strip), packed);
    else if (!made)
      PackPanel(block, start.k, column, columns, packed);
    const int64_t stride = plan_.direct ? s_.b_k_stride : packed;
    const int64_t whole = rows_ / plan_.tile_rows, fetching = FetchingTiles(block, columns);
    // Tiles that fetch: the first of the first range, or the first of as many ranges if each has but one.
    const int64_t ranges_fetching = fetching == 0 ? 0 : whole >= fetching ? 1 : fetching;
    const bool all_fetch = fetching && s_.panel_columns;
    const int64_t ahead = s_.panel_columns ? 0 : s_.b_k_stride * ByteWidth(s_.b_type);
    const auto tiles_of = [&](llvm::Value* r, int64_t fetching_tiles, bool makes) {
      const RowRange range = ranges_(r);
      llvm::Value* a = b_.CreateInBoundsGEP(element, range.a, start.a);
      llvm::Value* c = b_.CreateInBoundsGEP(c_element, range.c, column);
      const auto tile = [&](llvm::Value* t, int64_t rows, bool fetches, bool copies = false) {
        llvm::Value* m = ir_.Mul(t, plan_.tile_rows);
        llvm::Value* of_b = copies ? RowsOfB(start.k, column) : source;
        std::vector<llvm::Value*> arguments = {b_.CreateInBoundsGEP(element, a, ir_.Mul(m, s_.a_stride)), of_b,
                                               b_.CreateInBoundsGEP(c_element, c, ir_.Mul(m, s_.c_stride)), is_first};
        if (copies) arguments.push_back(panel_);
        if (first_sums_) {
          llvm::Value* of_row = b_.CreateInBoundsGEP(b_.getInt32Ty(), first_sums_, ir_.Add(ir_.Mul(r, rows_), m));
          arguments.push_back(b_.CreateSelect(owed_, of_row, no_sums_));
        }
        if (fetches) {
          llvm::Value* before = ir_.Add(all_fetch ? ir_.Mul(r, whole) : r, t);
          arguments.push_back(NextRows(block, start.k, first, before, fetching));
        }
        b_.CreateCall(
            MicroKernel(ir_, s_,
                        {rows, vectors, plan_.lanes, columns, block.segments, block.run,
                         copies ? s_.b_k_stride : stride, PanelRows(s_, block.run), sum, fetches ? ahead : 0,
                         fetches && ahead ? fetching : 1, fetches && all_fetch ? fetching : 0, copies ? packed : 0}),
            arguments);
      };
      if (makes) tile(ir_.I64(0), plan_.tile_rows, fetching_tiles > 0, true);
      const int64_t begin = makes ? 1 : 0;
      ir_.Loop(ir_.I64(begin), ir_.I64(fetching_tiles), 1, [&](llvm::Value* t) { tile(t, plan_.tile_rows, true); });
      ir_.Loop(ir_.I64(std::max(begin, fetching_tiles)), ir_.I64(whole), 1,
               [&](llvm::Value* t) { tile(t, plan_.tile_rows, false); });
      if (rows_ % plan_.tile_rows) tile(ir_.I64(whole), rows_ % plan_.tile_rows, false);
    };
    if (all_fetch) return ir_.Loop(ir_.I64(0), count_, 1, [&](llvm::Value* r) { tiles_of(r, whole, false); });
    const int64_t of_each = whole >= fetching ? fetching : 1;
    if (made) tiles_of(ir_.I64(0), ranges_fetching > 0 ? of_each : 0, true);
    const int64_t begin = made ? 1 : 0;
    ir_.Loop(ir_.I64(begin), ir_.I64(ranges_fetching), 1, [&](llvm::Value* r) { tiles_of(r, of_each, false); });
    ir_.Loop(ir_.I64(std::max(begin, ranges_fetching)), count_, 1, [&](llvm::Value* r) { tiles_of(r, 0, false); });
  }

  // One block of k for the span of columns from `column`: while rows of A are in the first cache, they take all panels.
  void Span(const SumStep& k, llvm::Value* column) {
    const auto& [block, step, start, sum, is_first] = k;
    const int64_t width = plan_.tile_columns, panel = ElementsOf(block.segments, block.run) * width;
    PackRows(block, start.k, column, width, width, plan_.span / width, panel);
    llvm::Type *element = ElementOfA(ir_, s_), *c_element = ir_.MemType(s_.c_type);
    const auto behind = [&](llvm::Type* type, llvm::Value* array, llvm::Value* elements) {
      return b_.CreateInBoundsGEP(type, array, elements);
    };
    ir_.Loop(ir_.I64(0), count_, 1, [&](llvm::Value* r) {
      const RowRange range = ranges_(r);
      llvm::Value *a = behind(element, range.a, start.a), *c = behind(c_element, range.c, column);
      const auto tile = [&](llvm::Value* t, int64_t rows) {
        llvm::Value* m = ir_.Mul(t, plan_.tile_rows);
        ir_.Loop(ir_.I64(0), ir_.I64(plan_.span / width), 1, [&](llvm::Value* p) {
          llvm::Value* at = ir_.Add(ir_.Mul(m, s_.c_stride), ir_.Mul(p, width));
          b_.CreateCall(MicroKernel(ir_, s_,
                                    {rows, width / plan_.lanes, plan_.lanes, width, block.segments, block.run, width,
                                     PanelRows(s_, block.run), sum, 0, 1, 0, 0, sum != Sum::kNew, true}),
                        {behind(element, a, ir_.Mul(m, s_.a_stride)), behind(element, panel_, ir_.Mul(p, panel)),
                         behind(c_element, c, at), is_first});
        });
      };
      ir_.Loop(ir_.I64(0), ir_.I64(rows_ / plan_.tile_rows), 1, [&](llvm::Value* t) { tile(t, plan_.tile_rows); });
      if (rows_ % plan_.tile_rows) tile(ir_.I64(rows_ / plan_.tile_rows), rows_ % plan_.tile_rows);
    });
  }

  // Whether the first tile of a panel makes it of what it reads of B: whole vectors of a row, as they are.
  bool MadeByTiles(int64_t columns) const {
    return !plan_.direct && !s_.panel_columns && !SumsInF16() && LiesAsRows(s_) &&
           HasVectorsAs(ir_.level, s_.b_type, s_.compute) && columns % plan_.lanes == 0 && rows_ >= plan_.tile_rows &&
           llvm::isa<llvm::ConstantInt>(count_);
  }

  // Row `k` of B from `column` on.
  llvm::Value* RowsOfB(llvm::Value* k, llvm::Value* column) {
    return b_.CreateInBoundsGEP(ir_.MemType(s_.b_type), b_array_, ir_.Add(ir_.Mul(k, s_.b_k_stride), column));
  }

  bool SumsInF16() const { return s_.compute == PrimitiveType::F16; }

  // Element `from` of B as the panel holds it, at `to`.
  void CopyElement(llvm::Value* from, llvm::Value* to) {
    const PrimitiveType b = SumsInF16() ? PrimitiveType::U16 : s_.b_type, held = SumsInF16() ? b : s_.compute;
    ir_.Store(held, ir_.Convert(ir_.Load(b, b_array_, from), b, held), panel_, to);
  }

  // Copies `columns` of each of the block's rows of B, the first of which is row `k`, into each of `panels` panels,
  // which have `panel` elements and rows of `width`.
  void PackRows(const SumBlock& block, llvm::Value* k, llvm::Value* column, int64_t columns, int64_t width,
                int64_t panels, int64_t panel) {
    ir_.Loop(ir_.I64(0), ir_.I64(ElementsOf(block.segments, block.run)), 1, [&](llvm::Value* i) {
      llvm::Value* row = OffsetOfRow(ir_, s_, ir_.Add(k, i));
      for (int64_t p = 0; p < panels; ++p)
        ir_.Loop(
            ir_.I64(0), ir_.I64(columns), 1,
            [&](llvm::Value* j) {
              llvm::Value* at = ir_.Add(column, ir_.Add(ir_.I64(p * width), j));
              llvm::Value* from = ir_.Add(row, ir_.Mul(at, s_.b_n_stride));
              CopyElement(from, ir_.Add(ir_.Add(ir_.Mul(i, width), ir_.I64(p * panel)), j));
            },
            true);
    });
  }

  // Where B has row `k` of the column `strip` behind `first`.
  llvm::Value* InPlace(llvm::Value* k, llvm::Value* first, llvm::Value* strip) {
    llvm::Value* at = ir_.Add(ir_.Mul(first, s_.b_n_stride), ir_.Mul(strip, s_.panel_group));
    return b_.CreateInBoundsGEP(ir_.MemType(s_.b_type), b_array_, ir_.Add(ir_.Mul(k, s_.b_k_stride), at));
  }

  // Copies the block's rows of a panel of B, of which `from` is the first, converted into rows of `width` elements.
  void CopyPanel(const SumBlock& block, llvm::Value* from, int64_t width) {
    const int64_t group = s_.panel_group;
    ir_.Loop(ir_.I64(0), ir_.I64(ElementsOf(block.segments, block.run) / group), 1, [&](llvm::Value* q) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(width), 1,
          [&](llvm::Value* j) {
            for (int64_t e = 0; e < group; ++e) {
              llvm::Value* at = ir_.Add(ir_.Mul(q, group * s_.b_k_stride), ir_.Add(ir_.Mul(j, group), ir_.I64(e)));
              ir_.Store(s_.compute, ir_.Convert(ir_.Load(s_.b_type, from, at), s_.b_type, s_.compute), panel_,
                        ir_.Add(ir_.Mul(ir_.Add(ir_.Mul(q, group), ir_.I64(e)), width), j));
            }
          },
          true);
    });
  }

  // The first tiles of a panel fetch the rows of B that the next panel takes, packed or in place: where rows lie far
  // apart, one row in two steps, the machine would not foresee them, and a B beyond the second cache is far away. How
  // many tiles share that; 0: none.
  int64_t FetchingTiles(const SumBlock& block, int64_t columns) const {
    constexpr int64_t kFarBytes = 1024, kManyRows = 64, kFewRows = 128, kSecondCache = 1 << 20, kMostSharing = 8;
    const auto* ranges = llvm::dyn_cast<llvm::ConstantInt>(count_);
    if (!ranges || SumsInF16() || columns != plan_.tile_columns) return 0;
    const int64_t whole = rows_ / plan_.tile_rows, tiles = ranges->getSExtValue() * whole;
    if (s_.panel_columns) {
      if (!plan_.direct || ElementsOf(block.segments, block.run) < kManyRows) return 0;
      // As few lines at a time as may be. Tiles behind these fetch again what the last of them did: they are the same
      // code, and find it in the cache.
      int64_t sharing = kMostSharing;
      while (sharing > tiles) sharing /= 2;
      return sharing > 1 ? sharing : 0;
    }
    const int64_t row_bytes = s_.b_k_stride * ByteWidth(s_.b_type);
    // Many rows take so long that a small B from far away does not show.
    const int64_t near = ranges->getSExtValue() * rows_ <= kFewRows ? kSecondCache / 2 : kSecondCache;
    const bool far = row_bytes >= kFarBytes && row_bytes * s_.K() > near;
    const bool rows = LiesAsRows(s_) && block.segments.empty();
    if (!far || !rows || block.run < kManyRows) return 0;
    for (int64_t sharing : {4, 2})
      if (whole >= sharing || (whole == 1 && ranges->getSExtValue() >= sharing)) return sharing;
    return 0;
  }

  // What tile `t` of `sharing` fetches first of the panel behind the one of `k` and `column`.
  llvm::Value* NextRows(const SumBlock& block, llvm::Value* k, llvm::Value* column, llvm::Value* t, int64_t sharing) {
    const int64_t rows = ElementsOf(block.segments, block.run);
    llvm::Value* next = ir_.Add(k, ir_.I64(rows));
    llvm::Value* around = b_.CreateICmpSGE(next, ir_.I64(s_.K()));
    next = b_.CreateSelect(around, b_.CreateSub(next, ir_.I64(s_.K())), next);
    const int64_t columns = s_.panel_columns ? s_.panel_columns : plan_.tile_columns;
    column = b_.CreateSelect(around, ir_.Add(column, ir_.I64(columns)), column);
    llvm::Value* at = s_.panel_columns ? ir_.Mul(column, s_.b_n_stride) : column;
    if (s_.panel_columns) t = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, t, ir_.I64(sharing - 1));
    llvm::Value* row = ir_.Add(next, ir_.Mul(t, rows / sharing));
    return b_.CreateGEP(ir_.MemType(s_.b_type), b_array_, ir_.Add(ir_.Mul(row, s_.b_k_stride), at));
  }

  // Copies the block's rows of B from row `k` into the panel, whose rows have `width` elements; zeros past `columns`.
  void PackPanel(const SumBlock& block, llvm::Value* k, llvm::Value* column, int64_t columns, int64_t width) {
    if (s_.complex_b) return PackComplex(ir_, s_, block.run, b_array_, k, column, columns, panel_, width);
    if (Group(s_.compute) != 1) return PackGroups(ir_, s_, block, b_array_, k, column, columns, {panel_, width, 0});
    const int64_t depth = ElementsOf(block.segments, block.run);
    auto at = [&](llvm::Value* j, llvm::Value* offset) {
      return ir_.Add(offset, ir_.Mul(ir_.Add(column, j), s_.b_n_stride));
    };
    auto copy = [&](llvm::Value* from, llvm::Value* row, llvm::Value* j) {
      CopyElement(from, ir_.Add(ir_.Mul(row, width), j));
    };
    if (plan_.taps_together) {
      PackTaps(block, k, columns, width, at, copy);
    } else if (s_.b_k_stride == 1 && !s_.b_tap_rows && !s_.reverse_b) {
      PackRuns(
          depth, columns, width, [&](llvm::Value* j, llvm::Value* q) { return at(j, ir_.Add(k, q)); },
          [&](llvm::Value* q) { return [=, this](int64_t e) { return ir_.Add(q, ir_.I64(e)); }; }, copy);
    } else {
      PackRows(block, k, column, columns, width, 1, 0);
    }
    if (columns == width) return;
    ir_.Loop(ir_.I64(0), ir_.I64(depth), 1, [&](llvm::Value* i) {
      for (int64_t j = columns; j < width; ++j)
        ir_.Store(s_.compute, ir_.Constant(s_.compute, Element{}), panel_, ir_.Add(ir_.Mul(i, width), ir_.I64(j)));
    });
  }

  // The same where the taps of a feature lie side by side: those of the block's features, of which `k` is the first.
  template <typename At, typename Copy>
  void PackTaps(const SumBlock& block, llvm::Value* k, int64_t columns, int64_t width, const At& at, const Copy& copy) {
    const int64_t taps = s_.K() / s_.run;
    auto row_of = [&](llvm::Value* tap, llvm::Value* feature) {
      if (s_.reverse_b) tap = b_.CreateSub(ir_.I64(taps - 1), tap);
      return ir_.Add(ir_.Mul(tap, block.run), feature);
    };
    if (s_.b_k_stride == taps) {  // and the features beside them
      llvm::Value* table = RowsOfTaps(taps, block.run);
      return PackRuns(
          taps * block.run, columns, width,
          [&](llvm::Value* j, llvm::Value* q) { return at(j, ir_.Add(ir_.Mul(k, taps), q)); },
          [&](llvm::Value* q) {
            llvm::Value *tap = b_.CreateURem(q, ir_.I64(taps)), *feature = b_.CreateUDiv(q, ir_.I64(taps));
            return [=, this](int64_t e) {
              llvm::Type* i64 = b_.getInt64Ty();
              return ir_.Add(feature, b_.CreateLoad(i64, b_.CreateInBoundsGEP(i64, table, ir_.Add(tap, ir_.I64(e)))));
            };
          },
          copy);
    }
    ir_.Loop(ir_.I64(0), ir_.I64(block.run), 1, [&](llvm::Value* feature) {
      llvm::Value* begin = ir_.Mul(ir_.Add(k, feature), s_.b_k_stride);
      ir_.Loop(ir_.I64(0), ir_.I64(columns), 1, [&](llvm::Value* j) {
        for (int64_t t = 0; t < taps; ++t) copy(at(j, ir_.Add(begin, ir_.I64(t))), row_of(ir_.I64(t), feature), j);
      });
    });
  }

  // The panel's row of each tap of a feature, and of those of the next features as far as a vector reaches: a division
  // for each row would take longer than its copy.
  llvm::Value* RowsOfTaps(int64_t taps, int64_t run) {
    std::vector<uint64_t> rows;
    for (int64_t t = 0; t < taps + plan_.lanes - 1; ++t) {
      const int64_t tap = s_.reverse_b ? taps - 1 - t % taps : t % taps;
      rows.push_back(static_cast<uint64_t>(tap * run + t / taps));
    }
    llvm::Constant* init = llvm::ConstantDataArray::get(ir_.ctx, rows);
    auto* table = new llvm::GlobalVariable(ir_.module, init->getType(), true, llvm::GlobalValue::PrivateLinkage, init,
                                           "rows_of_taps");
    table->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return table;
  }

  // Columns of B are runs of `length` elements, which become elements of different rows: squares of a vector's length
  // are transposed in registers, what is left element by element. `at(j, q)`: where element q of column j lies;
  // `rows_from(q)(e)`: the row of element q + e in the panel.
  template <typename At, typename RowsFrom, typename Copy>
  void PackRuns(int64_t length, int64_t columns, int64_t width, const At& at, const RowsFrom& rows_from,
                const Copy& copy) {
    const int64_t lanes = HasVectorsAs(ir_.level, s_.b_type, s_.compute) ? SideOfSquare() : 1;
    const int64_t whole_length = lanes > 1 ? length / lanes * lanes : 0, whole_columns = columns / lanes * lanes;
    // Short runs keep both sides in cache.
    constexpr int64_t kShortRun = 16;
    auto rest = [&](int64_t from, int64_t to, int64_t first_column) {
      for (int64_t q0 = from; first_column < columns && q0 < to;) {
        const int64_t step = std::min(kShortRun, to - q0), end = q0 + (to - q0) / step * step;
        ir_.Loop(ir_.I64(q0), ir_.I64(end), step, [&](llvm::Value* begin) {
          ir_.Loop(ir_.I64(first_column), ir_.I64(columns), 1, [&](llvm::Value* j) {
            ir_.Loop(
                ir_.I64(0), ir_.I64(step), 1,
                [&](llvm::Value* e) {
                  llvm::Value* q = ir_.Add(begin, e);
                  copy(at(j, q), rows_from(q)(0), j);
                },
                true);
          });
        });
        q0 = end;
      }
    };
    // Along the columns first: as many streams as a vector has elements are what the machine foresees.
    ir_.Loop(ir_.I64(0), ir_.I64(whole_columns), lanes, [&](llvm::Value* j) {
      ir_.Loop(ir_.I64(0), ir_.I64(whole_length), lanes,
               [&](llvm::Value* q) { PackSquare(q, j, width, at, rows_from); });
    });
    rest(0, whole_length, whole_columns);
    rest(whole_length, length, 0);
  }

  // Rows and columns that are transposed in registers at a time.
  int64_t SideOfSquare() const { return std::min<int64_t>(plan_.lanes, ir_.level.vector_registers / 2); }

  llvm::Value* LoadVector(llvm::Value* offset) {
    llvm::Value* from = b_.CreateInBoundsGEP(ir_.MemType(s_.b_type), b_array_, offset);
    return LoadComputed(ir_, s_.b_type, s_.compute, SideOfSquare(), from);
  }

  template <typename At, typename RowsFrom>
  void PackSquare(llvm::Value* q, llvm::Value* j, int64_t width, const At& at, const RowsFrom& rows_from) {
    const int64_t lanes = SideOfSquare();
    llvm::Type* element = ir_.MemType(s_.compute);
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(s_.compute)));
    std::vector<llvm::Value*> rows;
    for (int64_t e = 0; e < lanes; ++e) rows.push_back(LoadVector(at(ir_.Add(j, ir_.I64(e)), q)));
    rows = Transposed(b_, std::move(rows));
    const auto row_of = rows_from(q);
    for (int64_t e = 0; e < lanes; ++e)
      b_.CreateAlignedStore(rows[e], b_.CreateInBoundsGEP(element, panel_, ir_.Add(ir_.Mul(row_of(e), width), j)),
                            align);
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MatmulPlan& plan_;
  const int64_t rows_;
  llvm::Value* const count_;
  const RowRanges& ranges_;
  llvm::Value *b_array_ = nullptr, *panel_ = nullptr;
  // Where B is held with an offset: what sums begin with, by range and row, in the first block of all and in others.
  llvm::Value *first_sums_ = nullptr, *no_sums_ = nullptr;
  llvm::Value* owed_ = nullptr;  // whether the block is the first
};

}  // namespace

PartOfUnit SplitUnit(Ir& ir, llvm::Value* unit, llvm::Value* first_unit, int64_t parts) {
  if (parts == 1) return {ir.I64(0), unit, nullptr};
  llvm::Value* part = ir.b.CreateURem(unit, ir.I64(parts));
  llvm::Value* fresh = ir.b.CreateOr(ir.b.CreateICmpEQ(part, ir.I64(0)), ir.b.CreateICmpEQ(unit, first_unit));
  return {part, ir.b.CreateUDiv(unit, ir.I64(parts)), fresh};
}

void PrepareWhole(Ir& ir, const PartOfUnit& unit, const std::function<void()>& prepare) {
  if (unit.fresh)
    ir.If(unit.fresh, prepare);
  else
    prepare();
}

void VisitPiece(Ir& ir, const Pieces& pieces, llvm::Value* k,
                const std::function<void(llvm::Value* first, int64_t size)>& visit) {
  if (pieces.count == 1) return visit(ir.I64(0), pieces.size);
  llvm::Value* first = ir.Mul(k, pieces.size);
  if (pieces.tail == 0) return visit(first, pieces.size);
  llvm::Value* last = ir.b.CreateICmpEQ(k, ir.I64(pieces.count - 1));
  ir.If(ir.b.CreateNot(last), [&] { visit(first, pieces.size); });
  ir.If(last, [&] { visit(ir.I64((pieces.count - 1) * pieces.size), pieces.tail); });
}

void EmitMatmul(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, llvm::Value* count,
                const RowRanges& ranges) {
  if (FewColumnsApply(ir.level, shape)) return EmitFewColumns(ir, shape, rows, b, count, ranges);
  std::optional<int64_t> known;
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(count)) known = constant->getSExtValue();
  if (known == 1 && FewRowsApply(ir.level, shape, rows)) return EmitFewRows(ir, shape, rows, b, ranges(ir.I64(0)));
  if (known == 1 && FewLinesApply(ir.level, shape, rows)) return EmitFewLines(ir, shape, rows, b, ranges(ir.I64(0)));
  const MatmulPlan plan = PlanMatmul(ir.level, shape, rows, known);
  if (shape.tiles) return EmitTileProducts(ir, shape, plan, rows, b, count, ranges);
  VectorProducts(ir, shape, plan, rows, count, ranges).Emit(b);
}

}  // namespace kiln::cpu
