#include "compiler/passes/sharding/halo.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace kiln {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Rows of the neighbours from `first` to `last`, counted from the device's own place: all of each, but of the first
// from row `begin` on and of the last up to row `end`.
struct Hops {
  int64_t first = 0, last = 0, begin = 0, end = 0;
};

// Rows that lie with one device for each of those that take them. In a round every device sends to one at most.
struct Piece {
  struct Move {
    int64_t source, target, row;
  };
  int64_t rows = 0;
  std::vector<Move> own;
  std::vector<std::vector<Move>> rounds;
};
constexpr int64_t kMostPieces = 4;

class Exchange {
 public:
  Exchange(const Part& p, size_t d, const Axes& axes, const Stretch& s, bool around, Resharder* reshard)
      : p_(p), d_(d), s_(s), around_(around), reshard_(*reshard), axes_(axes) {
    parts_ = mesh().SizeOf(axes_);
    extent_ = p.whole.dims()[d];
    part_ = (extent_ + parts_ - 1) / parts_;
  }

  bool IsOwn() const {
    return IsCut() && s_.first == 0 && s_.step == part_ && s_.over == 1 && s_.count == part_ && extent_ % parts_ == 0;
  }
  Expr Run(const std::optional<Expr>& fill) {
    if (!IsCut()) return FromWhole(fill);
    const Hops h = HopsOf();
    const std::vector<Piece> pieces = PiecesOf();
    const int64_t joined = Rows(h), single = Rows(pieces);
    if (std::min(joined, single) >= extent_) return FromWhole(fill);
    return joined <= single ? FromNeighbours(h, fill) : FromPieces(pieces, fill);
  }

 private:
  const DeviceMesh& mesh() const { return reshard_.mesh(); }
  bool IsCut() const { return !p_.tiling.dims[d_].empty(); }
  int64_t From(int64_t place) const { return s_.first + FloorDiv(s_.shift + place * s_.step, s_.over); }
  Expr From() {
    Expr moved = reshard_.Place(axes_) * static_cast<double>(s_.step);
    if (s_.over > 1) moved = (moved + static_cast<double>(s_.shift)) / static_cast<double>(s_.over);
    return moved + static_cast<double>(s_.first);
  }
  int64_t Begin(const Hops& h, int64_t hop) const { return hop == h.first ? h.begin : 0; }
  int64_t End(const Hops& h, int64_t hop) const { return hop == h.last ? h.end : part_; }

  Hops HopsOf() const {
    Hops h{INT64_MAX, INT64_MIN, 0, 0};
    for (int64_t i = 0; i < parts_; ++i) {
      const int64_t from = From(i) - i * part_, to = from + s_.count;
      const int64_t first = FloorDiv(from, part_), last = FloorDiv(to - 1, part_);
      const int64_t begin = from - first * part_, end = to - last * part_;
      h.begin = first < h.first ? begin : first == h.first ? std::min(h.begin, begin) : h.begin;
      h.end = last > h.last ? end : last == h.last ? std::max(h.end, end) : h.end;
      h.first = std::min(h.first, first);
      h.last = std::max(h.last, last);
    }
    return h;
  }

  // Whether any device takes rows of the neighbour.
  bool Reaches(int64_t hop, int64_t place) const {
    const int64_t source = place + hop;
    if (!around_ && (source < 0 || source >= parts_)) return false;
    return From(place) < (source + 1) * part_ && From(place) + s_.count > source * part_;
  }
  bool Any(int64_t hop) const {
    for (int64_t i = 0; i < parts_; ++i)
      if (Reaches(hop, i)) return true;
    return false;
  }

  // That are moved.
  int64_t Rows(const Hops& h) const {
    int64_t rows = 0;
    for (int64_t hop = h.first; hop <= h.last; ++hop)
      if (hop % parts_ != 0 && Any(hop)) rows += End(h, hop) - Begin(h, hop);
    return rows;
  }

  // A stretch as pieces that no boundary between parts divides; empty where they would be many.
  std::vector<Piece> PiecesOf() const {
    std::vector<Piece> out;
    const int64_t rows = std::gcd(std::gcd(part_, s_.count), std::gcd(s_.first, s_.step));
    if (around_ || rows == 0 || s_.over > 1 || s_.count / rows > kMostPieces) return out;
    for (int64_t from = 0; from < s_.count; from += rows) {
      Piece piece;
      piece.rows = rows;
      for (int64_t i = 0; i < parts_; ++i) {
        const int64_t source = FloorDiv(From(i) + from, part_), row = From(i) + from - source * part_;
        if (source < 0 || source >= parts_) continue;
        if (source == i)
          piece.own.push_back({i, i, row});
        else
          AddMove({source, i, row}, &piece.rounds);
      }
      out.push_back(std::move(piece));
    }
    return out;
  }
  static void AddMove(const Piece::Move& m, std::vector<std::vector<Piece::Move>>* rounds) {
    for (auto& round : *rounds)
      if (std::none_of(round.begin(), round.end(), [&](const Piece::Move& o) { return o.source == m.source; }))
        return round.push_back(m);
    rounds->push_back({m});
  }

  int64_t Rows(const std::vector<Piece>& pieces) const {
    int64_t rows = pieces.empty() ? extent_ : 0;
    for (const Piece& p : pieces) rows += p.rows * static_cast<int64_t>(p.rounds.size());
    return rows;
  }

  // `of` the device's place, as s32[].
  Expr Listed(const Ints& of) {
    if (std::adjacent_find(of.begin(), of.end(), std::not_equal_to<>()) == of.end())
      return IntegerIn(reshard_.computation(), PrimitiveType::S32, of[0]);
    Literal table(Shape::Array(PrimitiveType::S32, {parts_}));
    for (int64_t i = 0; i < parts_; ++i)
      table.Set(i, Literal::Int(PrimitiveType::S32, of[static_cast<size_t>(i)]).Get(0));
    Expr all = reshard_.computation()->AddConstant(std::move(table));
    return ReshapeTo(DynamicSliceOf(all, {reshard_.Place(axes_)}, {1}), {});
  }

  // The rows that each mover's source, or its target, has of its part.
  Expr Moved(const Piece& piece, const std::vector<Piece::Move>& moves) {
    Ints row(static_cast<size_t>(parts_), moves[0].row);
    for (const Piece::Move& m : moves) row[static_cast<size_t>(m.source)] = m.row;
    return At(p_.value, Listed(row), piece.rows);
  }

  Expr Fetched(const Piece& piece) {
    std::optional<Expr> out;
    if (!piece.own.empty()) out = Moved(piece, piece.own);
    for (const auto& round : piece.rounds) {
      std::vector<std::pair<int64_t, int64_t>> pairs;
      Ints here(static_cast<size_t>(parts_), 0);
      for (const Piece::Move& m : round) here[static_cast<size_t>(m.target)] = 1;
      for (const Ints& group : mesh().Groups(axes_))
        for (const Piece::Move& m : round)
          pairs.push_back({group[static_cast<size_t>(m.source)], group[static_cast<size_t>(m.target)]});
      Expr come = reshard_.PermuteTo(Moved(piece, round), pairs);
      if (out) come = SelectExpr(BroadcastTo(Listed(here) == 1.0, come.shape().dims()), come, *out);
      out = come;
    }
    return out ? *out : Zeros(piece.rows);
  }

  Expr FromPieces(const std::vector<Piece>& pieces, const std::optional<Expr>& fill) {
    std::vector<Expr> rows;
    for (const Piece& p : pieces) rows.push_back(Fetched(p));
    Expr all = rows.size() == 1 ? rows[0] : ConcatOf(rows, static_cast<int64_t>(d_));
    return fill ? Masked(all, *fill) : all;
  }

  Expr RowsOf(Expr x, int64_t begin, int64_t end) const {
    const Ints& dims = x.shape().dims();
    if (begin == 0 && end == dims[d_]) return x;
    Ints from(dims.size(), 0), to = dims;
    from[d_] = begin;
    to[d_] = end;
    return SliceOf(x, from, to);
  }

  Expr Zeros(int64_t rows) const {
    Ints dims = p_.value->shape().dims();
    dims[d_] = rows;
    return BroadcastTo(reshard_.computation()->AddConstant(Literal::Of(p_.value->shape().type(), 0)), dims);
  }

  // Zero where there is no such neighbour.
  Expr FromHop(const Hops& h, int64_t hop) {
    const int64_t begin = Begin(h, hop), end = End(h, hop);
    if (!Any(hop)) return Zeros(end - begin);
    Expr rows = RowsOf(p_.value, begin, end);
    if (hop % parts_ == 0) return rows;
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const Ints& group : mesh().Groups(axes_))
      for (int64_t i = 0; i < parts_; ++i)
        if (Reaches(hop, i))
          pairs.push_back(
              {group[static_cast<size_t>(((i + hop) % parts_ + parts_) % parts_)], group[static_cast<size_t>(i)]});
    return reshard_.PermuteTo(rows, pairs);
  }

  Expr At(Expr x, Expr start) { return At(x, start, s_.count); }
  Expr At(Expr x, Expr start, int64_t count) {
    Ints sizes = x.shape().dims();
    if (sizes[d_] == count) return x;
    sizes[d_] = count;
    std::vector<Expr> starts(sizes.size(), IntegerIn(reshard_.computation(), PrimitiveType::S32, 0));
    starts[d_] = start;
    return DynamicSliceOf(x, starts, sizes);
  }

  Expr FromNeighbours(const Hops& h, const std::optional<Expr>& fill) {
    std::vector<Expr> rows;
    for (int64_t hop = h.first; hop <= h.last; ++hop) rows.push_back(FromHop(h, hop));
    Expr all = rows.size() == 1 ? rows[0] : ConcatOf(rows, static_cast<int64_t>(d_));
    if (s_.over > 1) {
      Expr own = reshard_.Place(axes_) * static_cast<double>(part_);
      all = At(all, From() - own - static_cast<double>(h.first * part_ + h.begin));
    } else if (s_.step != part_) {
      Expr moved = reshard_.Place(axes_) * static_cast<double>(s_.step - part_);
      all = At(all, moved + static_cast<double>(s_.first - h.first * part_ - h.begin));
    }
    return fill && !around_ ? Filled(all, *fill) : all;
  }

  Expr FromWhole(const std::optional<Expr>& fill) {
    Tiling target = p_.tiling;
    target.dims[d_].clear();
    Expr all = reshard_.To(p_, target).value;
    if (around_) {
      all = ConcatOf({all, all}, static_cast<int64_t>(d_));
      return At(all, reshard_.Place(axes_) * static_cast<double>(s_.step) + static_cast<double>(s_.first));
    }
    int64_t low = 0, high = 0;
    for (int64_t i = 0; i < parts_; ++i) {
      low = std::max(low, -From(i));
      high = std::max(high, From(i) + s_.count - extent_);
    }
    std::vector<Expr> rows;
    if (low > 0) rows.push_back(Zeros(low));
    rows.push_back(all);
    if (high > 0) rows.push_back(Zeros(high));
    if (rows.size() > 1) all = ConcatOf(rows, static_cast<int64_t>(d_));
    Expr start = From() + static_cast<double>(low);
    return fill ? Filled(At(all, start), *fill) : At(all, start);
  }

  bool ReachesOutside() const {
    for (int64_t i = 0; i < parts_; ++i)
      if (From(i) < 0 || From(i) + s_.count > extent_) return true;
    return false;
  }
  // Where what lies past the ends is zero so far, but for what fills up an uneven part.
  Expr Filled(Expr x, Expr fill) {
    const Instruction* f = fill.get();
    const bool zero = f->Is(Opcode::Constant) && f->literal() == Literal::Of(f->shape().type(), 0);
    return zero && extent_ % parts_ == 0 ? x : Masked(x, fill);
  }

  Expr Masked(Expr x, Expr fill) {
    if (!ReachesOutside()) return x;
    const Ints& dims = x.shape().dims();
    Expr first = From();
    Expr at = IotaOf(x.computation(), PrimitiveType::S32, dims, static_cast<int64_t>(d_)) + BroadcastTo(first, dims);
    Expr inside = (at >= 0) & (at < static_cast<double>(extent_));
    return SelectExpr(inside, x, BroadcastTo(fill, dims));
  }

  const Part& p_;
  const size_t d_;
  const Stretch s_;
  const bool around_;
  Resharder& reshard_;
  const Axes axes_;
  int64_t parts_, extent_, part_;
};

}  // namespace

Expr FetchStretch(const Part& p, size_t d, const Axes& axes, const Stretch& s, const std::optional<Expr>& fill,
                  bool around, Resharder* reshard) {
  Exchange exchange(p, d, axes, s, around, reshard);
  if (exchange.IsOwn()) return p.value;
  // Values that are constants fill alike. A value may be the part of several arrays.
  std::vector<int64_t> key{
      p.value->id(), static_cast<int64_t>(d), p.whole.dims()[d], s.first, s.step, s.count, s.over, s.shift, around};
  key.insert(key.end(), axes.begin(), axes.end());
  if (fill && fill->get()->Is(Opcode::Constant)) {
    const Element e = fill->get()->literal().Get(0);
    key.insert(key.end(), {-1, e.i, std::bit_cast<int64_t>(e.re), std::bit_cast<int64_t>(e.im)});
  } else if (fill) {
    key.push_back(fill->get()->id());
  }
  Instruction*& made = reshard->Made(key);
  if (!made) made = exchange.Run(fill).get();
  return made;
}

}  // namespace kiln
