// Moves one device's part of an array from one tiling to another.
//
// What: slices for axes that are added, all-to-all for axes that change their dimension, a permutation where only the
//   devices differ, all-gathers for axes that go, and reductions of partial results.
// Guarantees: axes of a manual region take part in nothing; collectives have channels of their own. What lies past the
//   end of an uneven array is any value in its last parts.
// Cost: the fewest bytes (reshard_path.h); of uneven arrays axes are added before any exchange and gathered last. Equal
//   moves of a value are made once.
#pragma once

#include <map>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/sharding/reshard_path.h"

namespace kiln {

// An array as one device holds it.
struct Part {
  Instruction* value = nullptr;
  Tiling tiling;
  Shape whole;
};

// An exchange of nothing costs as much as these bytes of one.
constexpr int64_t kExchange = 4096;

// What a part is an operation of; it can be made again, cut in another way.
struct Recipe {
  const Instruction* op = nullptr;
  std::vector<Part> operands;
};

class Resharder {
 public:
  Resharder(Computation* c, const DeviceMesh& mesh, int64_t* next_channel)
      : c_(c), mesh_(mesh), next_channel_(next_channel) {}

  Computation* computation() const { return c_; }
  const DeviceMesh& mesh() const { return mesh_; }
  // The device's place on the axes, s32[].
  Expr Place(const Axes& axes);
  Part To(const Part& from, const Tiling& target);
  // The form that a part has been brought to, or null; and another way to have come there.
  const Part* Known(const Part& from, const Tiling& target) const;
  void Keep(const Part& from, const Part& moved) { moved_[from.value->id()].push_back({from, moved}); }
  // Whether no exchange brings the part there: it is cut further, as it is or as an argument that it was cut from.
  bool IsFree(const Part& from, const Tiling& target) const;
  // What exchanges that bring the part there move.
  int64_t BytesTo(const Part& from, const Tiling& target) const;
  // `cut` is a part of what `origin` holds, which stays.
  void KeepOrigin(const Part& cut, const Part& origin);
  // How values were made (remake.h), by their ids.
  std::map<int64_t, Recipe>& recipes() { return recipes_; }
  // Blocks along dimension 0 of all devices that differ in `axes`.
  Expr GatherOver(Expr x, const Axes& axes);
  // Of all devices that differ in `axes`: block j along `dim`, which has as many blocks, is what device j had as the
  // block of this device.
  Expr SwapBlocks(Expr x, size_t dim, const Axes& axes);
  // `x` of the first device of a pair, on the second; zero on devices that are the second of none.
  Expr PermuteTo(Expr x, const std::vector<std::pair<int64_t, int64_t>>& pairs);
  // What was made before of the same value, by a key of the caller's; null for what is new.
  Instruction*& Made(const std::vector<int64_t>& key) { return made_[key]; }
  // A part whose value is to be combined over `axes` by `function`, in the tiling `target` or one that differs from it
  // by more than these axes.
  Part Combine(const Part& partial, const Axes& axes, Computation* function, const Tiling& target);

 private:
  const Part* OriginOf(const Part& p) const;
  bool SliceFree(Part* p, const Tiling& target);
  bool Exchange(Part* p, const Tiling& target);
  bool CanMove(const Part& p, size_t from, size_t to, int64_t n) const;
  bool Permute(Part* p, const Tiling& target);
  void GatherOne(Part* p, const Tiling& target);
  // Dimension `d` along all but its first axes.
  void Gather(Part* p, size_t d, size_t kept);
  const ReshardPath* PathOf(const Part& from, const Tiling& target) const;
  void Follow(const ReshardPath& path, Part* p);
  Instruction* Collective(Opcode op, Shape shape, Expr x, const Axes& axes);
  void AllToAll(Part* p, size_t from, size_t to, const Axes& axes);

  Computation* c_;
  const DeviceMesh& mesh_;
  int64_t* next_channel_;
  Instruction* partition_ = nullptr;
  std::map<Axes, Instruction*> places_;
  std::map<std::vector<int64_t>, Instruction*> made_;
  std::map<int64_t, Recipe> recipes_;
  // By extents with the type, axes that are written for, and both tilings.
  mutable std::map<std::tuple<Ints, AxisMask, std::vector<Axes>, std::vector<Axes>>, std::optional<ReshardPath>> paths_;
  std::map<std::pair<int64_t, Ints>, Part> origins_;  // by ids of values that are cut from them, and whole extents
  // By the value's id: parts and each form that they have been brought to. A value may be the part of several arrays,
  // such as one and the beginning of it.
  std::map<int64_t, std::vector<std::pair<Part, Part>>> moved_;
};

}  // namespace kiln
