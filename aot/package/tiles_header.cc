#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "aot/package/header_text.h"

namespace kiln {
namespace {

constexpr char kMovePart[] = R"(
// Every device holds parts of whole arrays; arrays that are not cut are whole on each. $NAME_cut_argument fills the part
// of `device` from the whole argument, $NAME_join_result copies the part of `device` to its place in the whole result.
// Both arrays are the host's, row major; `argument` and `result` are numbers. Where extents do not divide, what lies past
// the end of the whole array is zero in a part.
#define $UPPER_DEVICES $DEVICES
static inline void $NAME_move_part(const int64_t* whole, const int64_t* part, const int64_t* tiles, int64_t tile,
                                   int64_t rank, int64_t element, char* w, char* p, int join) {
  int64_t first[$RANK], rows = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    first[d] = tile % tiles[d] * part[d];
    tile /= tiles[d];
    if (d < rank - 1) rows *= part[d];
  }
  const int64_t width = part[rank - 1], left = whole[rank - 1] - first[rank - 1];
  const int64_t inside = left < 0 ? 0 : left < width ? left : width;
  for (int64_t row = 0; row < rows; ++row, p += width * element) {
    int64_t rest = row, place = first[rank - 1], stride = whole[rank - 1], count = inside;
    for (int64_t d = rank - 2; d >= 0; --d) {
      const int64_t x = rest % part[d] + first[d];
      rest /= part[d];
      if (x >= whole[d]) count = 0;
      place += x * stride;
      stride *= whole[d];
    }
    if (count > 0 && join) __builtin_memcpy(w + place * element, p, (size_t)(count * element));
    if (count > 0 && !join) __builtin_memcpy(p, w + place * element, (size_t)(count * element));
    if (!join) __builtin_memset(p + count * element, 0, (size_t)((width - count) * element));
  }
}
)";

bool IsPartitioned(const CompiledModel& m) {
  const auto has_parts = [](const Port& p) { return p.tiling && p.shape.HasDefaultLayout(); };
  return m.ports.batches.empty() && (std::any_of(m.ports.arguments.begin(), m.ports.arguments.end(), has_parts) ||
                                     std::any_of(m.ports.results.begin(), m.ports.results.end(), has_parts));
}

std::string List(const Ints& v) { return absl::StrCat("{", absl::StrJoin(v, ", "), "}"); }

// One of the two functions; `tables` holds each list of tiles that several arrays share once.
std::string MoveFunction(const CompiledModel& m, bool join, std::vector<Ints>* tables) {
  const std::vector<Port>& ports = join ? m.ports.results : m.ports.arguments;
  std::string out =
      absl::StrCat("static inline void $NAME_", join ? "join_result(int64_t result" : "cut_argument(int64_t argument",
                   ", int64_t device, const void* ", join ? "part, void* whole" : "whole, void* part",
                   ") {\n  switch (", join ? "result" : "argument", ") {\n");
  for (size_t k = 0; k < ports.size(); ++k) {
    const Port& p = ports[k];
    if (!p.tiling || !p.shape.HasDefaultLayout()) continue;
    absl::StrAppend(&out, "    case ", k, ": {  // ", p.name, "\n");
    if (!p.tiling->IsCut()) {
      absl::StrAppend(&out, "      __builtin_memcpy(", join ? "whole, part" : "part, whole", ", ", p.shape.ByteSize(),
                      ");\n      return;\n    }\n");
      continue;
    }
    auto table = std::find(tables->begin(), tables->end(), p.tiling->tile_of_partition);
    if (table == tables->end()) table = tables->insert(tables->end(), p.tiling->tile_of_partition);
    absl::StrAppend(&out, "      static const int64_t extents[] = ", List(p.tiling->whole.dims()),
                    ", mine[] = ", List(p.shape.dims()), ", tiles[] = ", List(p.tiling->tiles),
                    ";\n      $NAME_move_part(extents, mine, tiles, $NAME_tiles_", table - tables->begin(),
                    "[device % ", p.tiling->tile_of_partition.size(), "], ", p.shape.rank(), ", ",
                    ByteWidth(p.shape.type()), ", (char*)whole, (char*)part, ", join ? 1 : 0,
                    ");\n      return;\n    }\n");
  }
  return out + "    default: (void)device, (void)whole, (void)part;\n  }\n}\n";
}

}  // namespace

std::string TilingText(const Port& p) {
  if (!p.tiling || !p.tiling->IsCut()) return "";
  return absl::StrCat(", part of ", p.tiling->whole.ToString(false), " in ", absl::StrJoin(p.tiling->tiles, "x"),
                      " tiles");
}

std::string TileFunctions(const CompiledModel& m) {
  if (!IsPartitioned(m)) return "";
  std::vector<Ints> tables;
  const std::string functions = MoveFunction(m, false, &tables) + MoveFunction(m, true, &tables);
  int64_t rank = 1;
  for (const auto* ports : {&m.ports.arguments, &m.ports.results})
    for (const Port& p : *ports) rank = std::max(rank, p.shape.rank());
  std::string out = absl::StrReplaceAll(kMovePart, {{"$RANK", absl::StrCat(rank)}});
  for (size_t k = 0; k < tables.size(); ++k)
    absl::StrAppend(&out, "static const int64_t $NAME_tiles_", k, "[] = ", List(tables[k]), ";\n");
  return out + functions;
}

std::string TileMembers(const CompiledModel& m) {
  if (!IsPartitioned(m)) return "";
  std::string out = "\n  // Parts of whole arrays: see $NAME_cut_argument and $NAME_join_result.\n";
  for (const bool join : {false, true}) {
    const std::vector<Port>& ports = join ? m.ports.results : m.ports.arguments;
    for (size_t k = 0; k < ports.size(); ++k) {
      const Port& p = ports[k];
      if (!p.tiling || !p.shape.HasDefaultLayout()) continue;
      absl::StrAppend(&out, "  static void ", join ? "join_" : "cut_", p.name, "(std::int64_t device, ",
                      CppArray(join ? p.shape : p.tiling->whole, true), join ? " part, " : " whole, ",
                      CppArray(join ? p.tiling->whole : p.shape, false), join ? " whole" : " part", ") {\n    $NAME_",
                      join ? "join_result(" : "cut_argument(", k, ", device, ",
                      join ? "part.data(), whole.data()" : "whole.data(), part.data()", ");\n  }\n");
    }
  }
  return out;
}

}  // namespace kiln
