#include <algorithm>

#include "compiler/hlo/replica_groups.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/sharding.h"
#include "compiler/hlo/verify_rules.h"

namespace kiln::verify {
namespace {

constexpr int64_t kMaxDevices = 1 << 20;

// The grammar of shardings. One of an array is a kind or tiles, then a group that it is to agree with, then metadata;
// a tuple lists one for each of its arrays.
class Reader {
 public:
  Reader(absl::string_view text, const Module& m) : text_(text), s_(text, ""), m_(m) {}

  // `leaves`: the arrays of the shape, in order.
  absl::Status Read(const std::vector<Shape>& leaves, bool tuple) {
    if (!s_.Eat("{")) return Bad("is not in braces");
    if (s_.Peek() == '{' || s_.Peek() == '}') {
      size_t n = 0;
      while (!s_.Eat("}")) {
        if (n && !s_.Eat(",")) return Bad("is not a list");
        if (n >= leaves.size()) return Bad(absl::StrCat("lists more than the ", leaves.size(), " arrays"));
        if (!s_.Eat("{")) return Bad("is not a list of shardings");
        RETURN_IF_ERROR(ReadOne({leaves[n++]}));
      }
      if (!tuple) return Bad("lists shardings for one array");
      if (n != leaves.size() && !(n == 0 && leaves.empty()))
        return Bad(absl::StrCat("lists ", n, " shardings for ", leaves.size(), " arrays"));
    } else {
      RETURN_IF_ERROR(ReadOne(leaves));
    }
    return s_.AtEnd() ? absl::OkStatus() : Bad("is followed by more text");
  }

 private:
  absl::Status Bad(absl::string_view why) const { return InvalidArgument("sharding ", text_, " ", why); }

  // Behind its opening brace; for each of `arrays`.
  absl::Status ReadOne(const std::vector<Shape>& arrays) {
    const absl::string_view word = s_.Word("_");
    if (word == "devices") {
      RETURN_IF_ERROR(ReadTiles(arrays));
    } else if (word == "maximal") {
      if (!s_.Eat("device") || !s_.Eat("=")) return Bad("names no device");
      const auto device = s_.Integer();
      if (!device.ok() || *device < -1) return Bad("names no device");
      RETURN_IF_ERROR(CheckDevice(*device));
    } else if (word == "mesh") {
      return ReadMesh(arrays);
    } else if (word != "replicated" && word != "manual" && word != "unknown" && word != "unreduced") {
      return Bad(absl::StrCat("has no kind '", word, "'"));
    }
    if (s_.Eat("shard_as") || s_.Eat("shard_like")) {
      const auto group = s_.Integer();
      if (!group.ok() || *group < 0) return Bad("names no group");
    }
    if (s_.Eat("metadata")) {
      if (!s_.Eat("=") || !s_.Balanced("}").ok()) return Bad("has metadata that is not closed");
    }
    return s_.Eat("}") ? absl::OkStatus() : Bad("has text that is not understood");
  }

  absl::Status CheckDevice(int64_t device) const {
    if (m_.partition_count > 1 && device >= m_.partition_count)
      return Bad(absl::StrCat("names device ", device, " of ", m_.partition_count));
    if (device >= kMaxDevices) return Bad(absl::StrCat("names device ", device, ", beyond ", kMaxDevices, ""));
    return absl::OkStatus();
  }

  // devices=[2,1,4]<=[8] last_tile_dim_replicate, devices=[2,1]1,0
  absl::Status ReadTiles(const std::vector<Shape>& arrays) {
    if (!s_.Eat("=")) return Bad("has no tiles");
    Ints tiles;
    if (!s_.IntList(&tiles) || tiles.empty()) return Bad("has no tiles");
    int64_t all = 1;
    for (int64_t t : tiles) {
      if (t < 1) return Bad(absl::StrCat("cuts a dimension into ", t, " parts"));
      if (all > kMaxDevices / t) return Bad(absl::StrCat("has more than ", kMaxDevices, " tiles"));
      all *= t;
    }
    if (all == 1) return Bad("has one tile: replicated or maximal is meant");
    Ints devices;
    if (s_.Eat("<=")) {
      const size_t start = (s_.Peek(), s_.pos());
      Ints list;
      if (!s_.IntList(&list)) return Bad("has no list behind <=");
      if (s_.PeekRaw() == 'T') {
        const size_t end = text_.find(')', s_.pos());
        if (end == absl::string_view::npos) return Bad("has an order that is not closed");
        s_.set_pos(end + 1);
      }
      auto ids = ParseIota(text_.substr(start, s_.pos() - start));
      if (!ids.ok()) return Bad(ids.status().message());
      devices = *std::move(ids);
    } else {
      do {
        const auto d = s_.Integer();
        if (!d.ok()) return Bad("has no list of devices");
        devices.push_back(*d);
      } while (s_.Eat(","));
    }
    if (static_cast<int64_t>(devices.size()) != all)
      return Bad(absl::StrCat("has ", all, " tiles, but ", devices.size(), " devices"));
    absl::flat_hash_set<int64_t> seen;
    for (int64_t d : devices) {
      if (d < 0) return Bad(absl::StrCat("names device ", d));
      if (!seen.insert(d).second) return Bad(absl::StrCat("names device ", d, " twice"));
      RETURN_IF_ERROR(CheckDevice(d));
    }
    size_t without_array = 0;  // trailing tile dimensions that do not cut the array
    if (s_.Eat("last_tile_dim_replicate")) {
      without_array = 1;
    } else if (s_.Eat("last_tile_dims")) {
      if (!s_.Eat("=") || !s_.Eat("{")) return Bad("has no list of last_tile_dims");
      for (bool first = true; !s_.Eat("}"); first = false, ++without_array) {
        if (!first && !s_.Eat(",")) return Bad("has no list of last_tile_dims");
        const absl::string_view kind = s_.Word("_");
        if (kind != "manual" && kind != "replicated" && kind != "unreduced" && kind != "unknown" && kind != "maximal")
          return Bad(absl::StrCat("has a tile dimension of kind '", kind, "'"));
      }
    }
    for (const Shape& array : arrays) {
      if (array.IsToken() || !array.IsArray()) continue;
      if (tiles.size() < without_array || static_cast<int64_t>(tiles.size() - without_array) != array.rank())
        return Bad(absl::StrCat("has ", tiles.size() - std::min(without_array, tiles.size()),
                                " tile dimensions for rank ", array.rank()));
    }
    return absl::OkStatus();
  }

  // mesh['a'=2,'b'=4], [{'a'}, {}], ...: axes by name, then those that cut each dimension. The rest is kept as it is.
  absl::Status ReadMesh(const std::vector<Shape>& arrays) {
    if (!s_.Eat("[")) return Bad("has no mesh");
    absl::flat_hash_set<std::string> axes, used;
    int64_t all = 1;
    while (!s_.Eat("]")) {
      if (!axes.empty() && !s_.Eat(",")) return Bad("has no mesh");
      const auto name = s_.Quoted();
      if (!name.ok() || !s_.Eat("=")) return Bad("has an axis without name or size");
      const auto size = s_.Integer();
      if (!size.ok() || *size < 1) return Bad(absl::StrCat("has an axis '", *name, "' without a size"));
      if (!axes.insert(*name).second) return Bad(absl::StrCat("has two axes '", *name, "'"));
      if (all > kMaxDevices / *size) return Bad("has too many devices");
      all *= *size;
    }
    while (s_.Peek() != '[' && s_.Peek() != '}' && !s_.AtEnd()) s_.set_pos(s_.pos() + 1);
    if (!s_.Eat("[")) return Bad("says of no dimension what cuts it");
    int64_t dims = 0;
    for (; !s_.Eat("]"); ++dims) {
      if (dims && !s_.Eat(",")) return Bad("has no list of dimensions");
      if (!s_.Eat("{")) return Bad("has no list of dimensions");
      for (bool first = true; !s_.Eat("}"); first = false) {
        if (!first && !s_.Eat(",")) return Bad("has no list of axes");
        if (s_.Eat("?")) continue;
        const auto name = s_.Quoted();
        if (!name.ok() || !axes.contains(*name)) return Bad("is cut along an axis that its mesh lacks");
        const bool part = s_.Eat(":");
        if (part && (!s_.Balanced(",}").ok())) return Bad("has an axis that is not understood");
        if (!part && !used.insert(*name).second) return Bad(absl::StrCat("is cut along '", *name, "' twice"));
      }
      if (s_.Peek() == 'p') s_.Word();  // a priority
    }
    for (const Shape& array : arrays)
      if (array.IsArray() && array.rank() != dims)
        return Bad(absl::StrCat("speaks of ", dims, " dimensions for rank ", array.rank()));
    if (!s_.Balanced("}").ok() || !s_.Eat("}")) return Bad("is not closed");
    return absl::OkStatus();
  }

  const absl::string_view text_;
  Scanner s_;
  const Module& m_;
};

}  // namespace

absl::Status CheckSharding(const Instruction* i) {
  if (!i->attrs().sharding) return absl::OkStatus();
  // What leaves the program is sharded, not the token that is left of it.
  const Shape& of = i->Is(Opcode::Outfeed) ? i->operand(0)->shape() : i->shape();
  std::vector<Shape> leaves;
  ForEachLeaf(of, [&](const ShapeIndex&, const Shape& leaf) { leaves.push_back(leaf); });
  if (i->Is(Opcode::Outfeed)) leaves.push_back(Shape::Token());
  const bool tuple = of.IsTuple() || i->Is(Opcode::Outfeed);
  auto s = Reader(i->attrs().sharding->text, *i->parent()->module()).Read(leaves, tuple);
  return s.ok() ? s : ErrorAt(i, s.message());
}

}  // namespace kiln::verify
