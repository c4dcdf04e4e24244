// Products of matrices tile by tile through shared memory.
//
// While a block multiplies one step's tiles it holds the next step's elements in registers, so that memory and
// arithmetic overlap. tiles.h says how a block's part is divided; sums of narrow floats are in f32. On tensor cores f32
// is rounded to TF32 where it comes into shared memory, once.
#include "codegen/gpu/product_kernel.h"

#include "codegen/elemental/element.h"

namespace kiln::gpu {
namespace {

PrimitiveType SumType(PrimitiveType result) {
  return IsFloat(result) && result != PrimitiveType::F64 ? PrimitiveType::F32 : result;
}

// What a block reads of one operand in a step, and where it puts it.
struct Side {
  const Source* source;
  PrimitiveType held;    // in the tile
  int64_t extent;        // of the operand's own dimension, m or n
  llvm::Value* first;    // of that dimension, that the block has
  int64_t lines, depth;  // of the tile
  bool lines_minor;      // in the tile: element (line, depth) at depth * pitch + line
  bool tensor;           // for fragments
  int64_t pitch = 0;
  int64_t width = 1;                 // elements along the operand's minor dimension that one thread moves together
  int64_t size = 0;                  // of the tile, elements
  llvm::Value* tile = nullptr;       // both of them, where there are two
  llvm::Value* now = nullptr;        // the one of this step
  std::vector<llvm::Value*> staged;  // by chunk and place in it
};

class Kernel {
 public:
  Kernel(Body& body, const Product& p, const Tile& t)
      : body_(body), ir_(body.ir), b_(body.ir.b), p_(p), s_(p.shape), t_(t) {}

  absl::Status Emit(SharedTiles* shared) {
    const bool tensor = t_.kind == Tile::kTensor;
    const int64_t row_tiles = (s_.m + t_.rows - 1) / t_.rows, column_tiles = (s_.n + t_.columns - 1) / t_.columns;
    workers_ = t_.down * t_.across * (tensor ? kWarp : 1);
    body_.threads = workers_ * t_.groups;
    body_.blocks = s_.batch * row_tiles * column_tiles;
    const std::vector<llvm::Value*> at =
        Delinearize(ir_, body_.grid.Block(), {s_.batch, row_tiles, column_tiles}, {0, 1, 2});
    batch_ = at[0];
    thread_ = body_.grid.Thread();
    sum_ = SumType(s_.out);
    depth_ = tensor && InfoOf(s_.a).bits == 8 ? 2 * t_.depth : t_.depth;
    first_row_ = ir_.Mul(at[1], t_.rows);
    first_column_ = ir_.Mul(at[2], t_.columns);
    worker_ = t_.groups == 1 ? thread_ : b_.CreateURem(thread_, ir_.I64(workers_));
    group_ = t_.groups == 1 ? ir_.I64(0) : b_.CreateUDiv(thread_, ir_.I64(workers_));
    if (tensor)
      StartWarps();
    else
      StartThreads();
    for (size_t k = 0; k < p_.terms.size(); ++k) {
      if (k > 0) body_.grid.Barrier();
      RETURN_IF_ERROR(Multiply(p_.terms[k], tensor, shared));
    }
    const auto store = [&] { return tensor ? StoreFromWarps() : StoreFromThreads(); };
    if (t_.groups == 1) return store();
    MeetGroups(&shared->sums);
    absl::Status status;
    ir_.If(b_.CreateICmpEQ(group_, ir_.I64(0)), [&] { status = store(); });
    return status;
  }

 private:
  int64_t Parts() const { return IsComplex(sum_) ? 2 : 1; }
  // Adds the products of a term to its sums.
  absl::Status Multiply(const Term& term, bool tensor, SharedTiles* shared) {
    // A word of a fragment lies along the depth; one of 32 bits may come from either order.
    const auto lines_minor = [&](const Source& s) {
      return tensor ? s_.a == PrimitiveType::F32 && s.depth_first : true;
    };
    Side a{&term.a, tensor ? s_.a : sum_, s_.m, first_row_, t_.rows, depth_, lines_minor(term.a), tensor};
    Side b{&term.b, tensor ? s_.b : sum_, s_.n, first_column_, t_.columns, depth_, lines_minor(term.b), tensor};
    Prepare(a);
    Prepare(b);
    constexpr int64_t kMostShared = 48 << 10;
    const int64_t sums = t_.groups / 2 * t_.rows * t_.columns * ByteWidth(sum_);
    const bool twice = 2 * (Bytes(a) + Bytes(b)) + sums <= kMostShared;
    const auto reserve = [&](Side& s, llvm::Value** tile) {
      if (!*tile) *tile = body_.grid.Shared(ir_.MemType(s.held), s.size * (twice ? 2 : 1));
      s.tile = *tile;
    };
    reserve(a, &shared->a);
    reserve(b, &shared->b);
    k_ = term.depth;
    at_ = term.sum;
    RETURN_IF_ERROR(Stage(a, ir_.I64(0)));
    RETURN_IF_ERROR(Stage(b, ir_.I64(0)));
    absl::Status status;
    ir_.Loop(ir_.I64(0), ir_.I64(k_), depth_, [&](llvm::Value* k0) {
      // Of two tiles one is filled while threads still read the other.
      llvm::Value* odd = b_.CreateURem(b_.CreateUDiv(k0, ir_.I64(depth_)), ir_.I64(2));
      for (Side* s : {&a, &b})
        s->now = twice ? b_.CreateInBoundsGEP(ir_.MemType(s->held), s->tile, ir_.Mul(odd, s->size)) : s->tile;
      Commit(a);
      Commit(b);
      body_.grid.Barrier();
      if (k_ > depth_) {
        llvm::Value* next = ir_.Add(k0, ir_.I64(depth_));
        status.Update(Stage(a, next));
        status.Update(Stage(b, next));
      }
      if (tensor)
        MultiplyByWarps(a, b);
      else
        MultiplyByThreads(a, b);
      if (!twice) body_.grid.Barrier();
    });
    return status;
  }

  bool Raw(const Side& s) const { return s.source->array && s.source->type == s.held && !IsComplex(s.held); }
  llvm::Type* RawType(const Side& s) { return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(s.held))); }

  int64_t Bytes(const Side& s) const { return s.size * ByteWidth(s.held); }

  void Prepare(Side& s) {
    constexpr int64_t kWidest = 16;  // bytes
    const int64_t minor = s.source->depth_first ? s.lines : s.depth;
    for (s.width = kWidest / ByteWidth(s.held); s.width > 1; s.width /= 2)
      if (s.source->run % s.width == 0 && minor % s.width == 0 && s.lines * s.depth % (s.width * body_.threads) == 0)
        break;
    s.width = std::max<int64_t>(s.width, 1);
    // Rows of words that lanes read together begin in different banks.
    const int64_t by_depth = s.lines + (s.tensor ? 8 : 4), by_line = s.depth + 16 / ByteWidth(s.held);
    s.pitch = s.lines_minor ? by_depth : by_line;
    // Terms that share a tile may fill it in either order.
    s.size = Parts() * (Rounds(s) ? std::max(by_depth * s.depth, by_line * s.lines)
                                  : s.pitch * (s.lines_minor ? s.depth : s.lines));
    const int64_t chunks = Chunks(s);
    for (int64_t k = 0; k < chunks * (Raw(s) ? 1 : s.width); ++k)
      s.staged.push_back(Raw(s)
                             ? ir_.Alloca(llvm::FixedVectorType::get(RawType(s), static_cast<unsigned>(s.width)), 1, 16)
                             : ir_.Alloca(ir_.RegType(s.held), Parts(), 16));
  }

  int64_t Chunks(const Side& s) const {
    const int64_t each = s.width * body_.threads;
    return (s.lines * s.depth + each - 1) / each;
  }

  // Calls `visit(chunk, line, depth)` for each of this thread's chunks: the place in the tile of its first element.
  template <typename Visit>
  void ForChunks(const Side& s, const Visit& visit) {
    const int64_t minor = s.source->depth_first ? s.lines : s.depth;
    for (int64_t c = 0; c < Chunks(s); ++c) {
      llvm::Value* linear = ir_.Mul(ir_.Add(thread_, ir_.I64(c * body_.threads)), s.width);
      llvm::Value *inner = b_.CreateURem(linear, ir_.I64(minor)), *outer = b_.CreateUDiv(linear, ir_.I64(minor));
      const auto place = [&] {
        visit(c, s.source->depth_first ? inner : outer, s.source->depth_first ? outer : inner);
      };
      if (s.lines * s.depth % (s.width * body_.threads) == 0)
        place();
      else
        ir_.If(b_.CreateICmpULT(linear, ir_.I64(s.lines * s.depth)), place);
    }
  }

  // A value of type `t` in the slot at `at`.
  void Put(PrimitiveType t, llvm::Value* at, const Val& v) {
    b_.CreateStore(v.re, at);
    if (v.im) b_.CreateStore(v.im, b_.CreateInBoundsGEP(ir_.RegType(t), at, ir_.I64(1)));
  }
  Val Get(PrimitiveType t, llvm::Value* at) {
    llvm::Type* type = ir_.RegType(t);
    Val v{b_.CreateLoad(type, at)};
    if (IsComplex(t)) v.im = b_.CreateLoad(type, b_.CreateInBoundsGEP(type, at, ir_.I64(1)));
    return v;
  }
  void PutStaged(const Side& s, int64_t slot, const Val& v) { Put(s.held, s.staged[static_cast<size_t>(slot)], v); }
  Val GetStaged(const Side& s, int64_t slot) { return Get(s.held, s.staged[static_cast<size_t>(slot)]); }

  // Reads this thread's elements of the step that begins at `k0`; past the operand's ends they are zero.
  absl::Status Stage(Side& s, llvm::Value* k0) {
    absl::Status status;
    const Source& from = *s.source;
    ForChunks(s, [&](int64_t c, llvm::Value* line, llvm::Value* depth) {
      line = ir_.Add(s.first, line);
      depth = ir_.Add(k0, depth);
      const auto step = [&](llvm::Value* v, int64_t w) { return w ? ir_.Add(v, ir_.I64(w)) : v; };
      llvm::Value* inside =
          b_.CreateAnd(b_.CreateICmpULT(line, ir_.I64(s.extent)), b_.CreateICmpULT(depth, ir_.I64(k_)));
      if (Raw(s)) {
        auto* type = llvm::FixedVectorType::get(RawType(s), static_cast<unsigned>(s.width));
        llvm::Value* slot = s.staged[static_cast<size_t>(c)];
        b_.CreateStore(llvm::Constant::getNullValue(type), slot);
        const Place at = from.place(batch_, line, depth);
        ir_.If(at.inside ? b_.CreateAnd(inside, at.inside) : inside, [&] {
          llvm::Value* address = b_.CreateInBoundsGEP(RawType(s), from.array, at.offset);
          const auto align = static_cast<uint64_t>(s.width * ByteWidth(s.held));
          b_.CreateStore(b_.CreateAlignedLoad(type, address, llvm::Align(align)), slot);
        });
        return;
      }
      for (int64_t w = 0; w < s.width; ++w) PutStaged(s, c * s.width + w, ir_.Constant(s.held, Element{}));
      for (int64_t w = 0; w < s.width; ++w) {
        llvm::Value *l = step(line, from.depth_first ? w : 0), *d = step(depth, from.depth_first ? 0 : w);
        const auto put = [&](const Val& v) { PutStaged(s, c * s.width + w, ir_.Convert(v, from.type, s.held)); };
        if (from.array) {
          const Place at = from.place(batch_, l, d);
          ir_.If(at.inside ? b_.CreateAnd(inside, at.inside) : inside,
                 [&] { put(ir_.Load(from.type, from.array, at.offset)); });
          continue;
        }
        ir_.If(inside, [&] {
          auto v = from.element(batch_, l, d);
          if (v.ok())
            put(*v);
          else
            status.Update(v.status());
        });
      }
    });
    return status;
  }

  // Puts them into the tile.
  void Commit(Side& s) {
    ForChunks(s, [&](int64_t c, llvm::Value* line, llvm::Value* depth) {
      llvm::Value* to = s.lines_minor ? ir_.Add(ir_.Mul(depth, s.pitch), line) : ir_.Add(ir_.Mul(line, s.pitch), depth);
      // How far the next element along the operand's minor dimension lies in the tile.
      const int64_t step = s.source->depth_first == s.lines_minor ? 1 : s.pitch;
      if (Raw(s)) {
        auto* type = llvm::FixedVectorType::get(RawType(s), static_cast<unsigned>(s.width));
        llvm::Value* v = b_.CreateLoad(type, s.staged[static_cast<size_t>(c)]);
        const auto place = [&](int64_t w) {
          return b_.CreateInBoundsGEP(RawType(s), s.now, ir_.Add(to, ir_.I64(w * step)));
        };
        if (Rounds(s)) v = Rounded(v, s.width);
        const int64_t bytes = s.width * ByteWidth(s.held);
        if (step == 1 && s.pitch * ByteWidth(s.held) % bytes == 0)
          b_.CreateAlignedStore(v, place(0), llvm::Align(static_cast<uint64_t>(bytes)));
        else
          for (int64_t w = 0; w < s.width; ++w)
            b_.CreateStore(b_.CreateExtractElement(v, static_cast<uint64_t>(w)), place(w));
        return;
      }
      for (int64_t w = 0; w < s.width; ++w) {
        Val v = GetStaged(s, c * s.width + w);
        if (Rounds(s))
          v.re = b_.CreateBitCast(body_.grid.RoundToTf32(b_.CreateBitCast(v.re, b_.getInt32Ty())), v.re->getType());
        ir_.Store(s.held, v, s.now, ir_.Add(to, ir_.I64(w * step)));
      }
    });
  }
  static bool Rounds(const Side& s) { return s.tensor && s.held == PrimitiveType::F32; }
  llvm::Value* Rounded(llvm::Value* words, int64_t count) {
    for (int64_t w = 0; w < count; ++w) {
      const auto at = static_cast<uint64_t>(w);
      words = b_.CreateInsertElement(words, body_.grid.RoundToTf32(b_.CreateExtractElement(words, at)), at);
    }
    return words;
  }

  // Threads: each has groups of up to four neighbouring rows and columns, spread over the tile.
  void StartThreads() {
    x_ = b_.CreateURem(worker_, ir_.I64(t_.across));
    y_ = b_.CreateUDiv(worker_, ir_.I64(t_.across));
    StartSums(t_.rows / t_.down * (t_.columns / t_.across));
  }
  static int64_t Group(int64_t each) { return std::min<int64_t>(each, 4); }
  // The place of this thread's line `k` in the tile, with `workers` of them each having `each` lines.
  llvm::Value* Line(llvm::Value* worker, int64_t workers, int64_t each, int64_t k) {
    const int64_t g = Group(each);
    return ir_.Add(ir_.Mul(worker, g), ir_.I64(k / g * g * workers + k % g));
  }
  // `count` of each of the product's sums are this thread's.
  void StartSums(int64_t count) {
    sums_.resize(p_.sums);
    for (at_ = 0; at_ < p_.sums; ++at_)
      for (int64_t k = 0; k < count; ++k) {
        sums_[at_].push_back(ir_.Alloca(ir_.RegType(sum_), Parts(), 16));
        PutSum(k, ir_.Constant(sum_, Element{}));
      }
  }
  Val GetSum(int64_t k) { return Get(sum_, sums_[at_][static_cast<size_t>(k)]); }
  void PutSum(int64_t k, const Val& v) { Put(sum_, sums_[at_][static_cast<size_t>(k)], v); }
  // This thread's lines at depth `q`, neighbours read together.
  std::vector<Val> Lines(const Side& s, llvm::Value* q, llvm::Value* worker, int64_t workers, int64_t each) {
    std::vector<Val> out;
    const int64_t g = Group(each), bytes = g * ByteWidth(sum_);
    const bool together = !IsComplex(sum_) && ir_.RegType(sum_) == ir_.MemType(sum_) && bytes <= 16;
    for (int64_t k = 0; k < each; ++k) {
      llvm::Value* at = ir_.Add(ir_.Mul(q, s.pitch), Line(worker, workers, each, k));
      if (!together) {
        out.push_back(ir_.Load(sum_, s.now, at));
      } else if (k % g == 0) {
        auto* type = llvm::FixedVectorType::get(ir_.MemType(sum_), static_cast<unsigned>(g));
        llvm::Value* v = b_.CreateAlignedLoad(type, b_.CreateInBoundsGEP(ir_.MemType(sum_), s.now, at),
                                              llvm::Align(static_cast<uint64_t>(bytes)));
        for (int64_t e = 0; e < g; ++e) out.push_back(Val{b_.CreateExtractElement(v, static_cast<uint64_t>(e))});
      }
    }
    return out;
  }
  void MultiplyByThreads(const Side& a, const Side& b) {
    const int64_t rows = t_.rows / t_.down, columns = t_.columns / t_.across;
    const int64_t own = depth_ / t_.groups;
    llvm::Value* first = ir_.Mul(group_, own);
    ir_.Loop(ir_.I64(0), ir_.I64(own), 1, [&](llvm::Value* step) {
      llvm::Value* q = ir_.Add(first, step);
      const std::vector<Val> x = Lines(a, q, y_, t_.down, rows), y = Lines(b, q, x_, t_.across, columns);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          PutSum(r * columns + c,
                 MultiplyAdd(ir_, sum_, GetSum(r * columns + c), x[static_cast<size_t>(r)], y[static_cast<size_t>(c)]));
    });
  }
  // The sums of all groups become those of the first: the upper half gives to the lower one, until one is left.
  void MeetGroups(llvm::Value** given) {
    const int64_t each = t_.rows * t_.columns / workers_, most = t_.groups / 2;
    llvm::Type* type = ir_.RegType(sum_);
    if (!*given) *given = body_.grid.Shared(type, most * each * workers_ * Parts());
    const auto at = [&](llvm::Value* group, int64_t k) {
      llvm::Value* place = ir_.Add(ir_.Add(ir_.Mul(group, each * workers_), ir_.I64(k * workers_)), worker_);
      return b_.CreateInBoundsGEP(type, *given, ir_.Mul(place, Parts()));
    };
    for (int64_t half = most; half > 0; half /= 2) {
      llvm::Value* lower = b_.CreateICmpULT(group_, ir_.I64(half));
      llvm::Value* upper = b_.CreateAnd(b_.CreateNot(lower), b_.CreateICmpULT(group_, ir_.I64(2 * half)));
      for (at_ = 0; at_ < p_.sums; ++at_) {
        ir_.If(upper, [&] {
          for (int64_t k = 0; k < each; ++k) Put(sum_, at(b_.CreateSub(group_, ir_.I64(half)), k), GetSum(k));
        });
        body_.grid.Barrier();
        ir_.If(lower, [&] {
          for (int64_t k = 0; k < each; ++k) PutSum(k, Sum(GetSum(k), Get(sum_, at(group_, k))));
        });
        body_.grid.Barrier();
      }
    }
  }
  Val Sum(const Val& x, const Val& y) {
    if (sum_ == PrimitiveType::Pred) return {b_.CreateOr(x.re, y.re)};
    if (!IsFloat(sum_) && !IsComplex(sum_)) return {b_.CreateAdd(x.re, y.re)};
    return {b_.CreateFAdd(x.re, y.re), x.im ? b_.CreateFAdd(x.im, y.im) : nullptr};
  }

  absl::Status StoreFromThreads() {
    const int64_t rows = t_.rows / t_.down, columns = t_.columns / t_.across;
    absl::Status status;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        status.Update(StoreAt(Line(y_, t_.down, rows, r), Line(x_, t_.across, columns, c), r * columns + c));
    return status;
  }

  // Writes what is made of sums `k` to its place in the result, given the place in the tile, unless that is past the
  // result's edges.
  absl::Status StoreAt(llvm::Value* row, llvm::Value* column, int64_t k) {
    row = ir_.Add(first_row_, row);
    column = ir_.Add(first_column_, column);
    const bool whole = s_.m % t_.rows == 0 && s_.n % t_.columns == 0;
    absl::Status status;
    const auto store = [&] {
      std::vector<Val> sums;
      for (at_ = 0; at_ < p_.sums; ++at_) sums.push_back(ir_.Convert(GetSum(k), sum_, s_.out));
      status = p_.store(batch_, row, column, sums);
    };
    if (whole)
      store();
    else
      ir_.If(b_.CreateAnd(b_.CreateICmpULT(row, ir_.I64(s_.m)), b_.CreateICmpULT(column, ir_.I64(s_.n))), store);
    return status;
  }

  // Warps: fragments as mma.sync lays them out. A lane is (lane / 4, lane % 4); words hold 32 bits of a row.
  int64_t WarpRows() const { return t_.rows / t_.down / Grid::kMmaRows; }
  int64_t WarpColumns() const { return t_.columns / t_.across / Grid::kMmaColumns; }
  void StartWarps() {
    llvm::Value *lane = b_.CreateURem(worker_, ir_.I64(kWarp)), *warp = b_.CreateUDiv(worker_, ir_.I64(kWarp));
    quad_ = b_.CreateUDiv(lane, ir_.I64(4));
    member_ = b_.CreateURem(lane, ir_.I64(4));
    warp_row_ = ir_.Mul(b_.CreateUDiv(warp, ir_.I64(t_.across)), t_.rows / t_.down);
    warp_column_ = ir_.Mul(b_.CreateURem(warp, ir_.I64(t_.across)), t_.columns / t_.across);
    StartSums(WarpRows() * WarpColumns() * 4);
  }
  llvm::Value* Word(const Side& s, llvm::Value* line, llvm::Value* word) {
    const int64_t per_word = 4 / ByteWidth(s.held);
    word = ir_.Add(member_, word);
    llvm::Value* at =
        s.lines_minor ? ir_.Add(ir_.Mul(word, s.pitch), line) : ir_.Add(ir_.Mul(line, s.pitch / per_word), word);
    return b_.CreateLoad(b_.getInt32Ty(), b_.CreateInBoundsGEP(b_.getInt32Ty(), s.now, at));
  }
  void MultiplyByWarps(const Side& a, const Side& b) {
    constexpr int64_t kWords = 8;  // of a row that one instruction takes
    const int64_t words = depth_ * ByteWidth(a.held) / 4 / t_.groups;
    llvm::Value* own = ir_.Mul(group_, words);
    for (int64_t w = 0; w < words; w += kWords) {
      llvm::Value *first = ir_.Add(own, ir_.I64(w)), *second = ir_.Add(own, ir_.I64(w + kWords / 2));
      std::vector<std::array<llvm::Value*, 4>> x;
      std::vector<std::array<llvm::Value*, 2>> y;
      for (int64_t r = 0; r < WarpRows(); ++r) {
        llvm::Value* top = ir_.Add(ir_.Add(warp_row_, quad_), ir_.I64(r * Grid::kMmaRows));
        llvm::Value* low = ir_.Add(top, ir_.I64(Grid::kMmaRows / 2));
        x.push_back({Word(a, top, first), Word(a, low, first), Word(a, top, second), Word(a, low, second)});
      }
      for (int64_t c = 0; c < WarpColumns(); ++c) {
        llvm::Value* column = ir_.Add(ir_.Add(warp_column_, quad_), ir_.I64(c * Grid::kMmaColumns));
        y.push_back({Word(b, column, first), Word(b, column, second)});
      }
      for (int64_t r = 0; r < WarpRows(); ++r)
        for (int64_t c = 0; c < WarpColumns(); ++c) {
          const int64_t k = (r * WarpColumns() + c) * 4;
          std::array<llvm::Value*, 4> sum;
          for (int64_t e = 0; e < 4; ++e) sum[static_cast<size_t>(e)] = GetSum(k + e).re;
          sum = body_.grid.Mma(s_.a, x[static_cast<size_t>(r)], y[static_cast<size_t>(c)], sum);
          for (int64_t e = 0; e < 4; ++e) PutSum(k + e, Val{sum[static_cast<size_t>(e)]});
        }
    }
  }
  absl::Status StoreFromWarps() {
    absl::Status status;
    for (int64_t r = 0; r < WarpRows(); ++r)
      for (int64_t c = 0; c < WarpColumns(); ++c)
        for (int64_t e = 0; e < 4; ++e) {
          llvm::Value* row = ir_.Add(ir_.Add(warp_row_, quad_), ir_.I64(r * Grid::kMmaRows + e / 2 * 8));
          llvm::Value* column =
              ir_.Add(ir_.Add(warp_column_, ir_.Mul(member_, 2)), ir_.I64(c * Grid::kMmaColumns + e % 2));
          status.Update(StoreAt(row, column, (r * WarpColumns() + c) * 4 + e));
        }
    return status;
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Product& p_;
  const ProductShape& s_;
  const Tile& t_;
  PrimitiveType sum_ = PrimitiveType::F32;
  int64_t depth_ = 0, k_ = 0;  // of a tile, and of the term that is multiplied
  int64_t workers_ = 0;        // threads of a group
  size_t at_ = 0;              // which sums are meant
  llvm::Value *first_row_ = nullptr, *first_column_ = nullptr;
  llvm::Value *batch_ = nullptr, *thread_ = nullptr, *x_ = nullptr, *y_ = nullptr;
  llvm::Value* worker_ = nullptr;  // the thread's number in its group
  llvm::Value* group_ = nullptr;
  llvm::Value *quad_ = nullptr, *member_ = nullptr, *warp_row_ = nullptr, *warp_column_ = nullptr;
  std::vector<std::vector<llvm::Value*>> sums_;
};

}  // namespace

absl::Status EmitProduct(Body& body, const Product& p, const Tile& tile, SharedTiles* shared) {
  if (p.shape.batch * p.shape.m * p.shape.n == 0) return absl::OkStatus();
  return Kernel(body, p, tile).Emit(shared);
}

}  // namespace kiln::gpu
