// The tilings of all values of a module, between the text that instructions carry and what passes work with.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "compiler/sharding/manual_region.h"
#include "compiler/sharding/window_rule.h"

namespace kiln {

// One array leaf of a value.
struct LeafSharding {
  Tiling tiling;
  std::vector<bool> closed;  // dimensions that stay as they are
  bool written = false;      // by the user
  int changes = 0;           // since it was read
  Shape shape;
  bool even = false;  // is not cut unevenly
};

// A leaf outside of a manual region and the tile of it inside, cut by a rule with the region's axes (manual_region.h).
struct LeafBoundary {
  LeafSharding *outside, *inside;
};

// The leaf `to` holds the value of the leaf `from`.
struct LeafEdge {
  LeafSharding *from, *to;
};

class ModuleShardings {
 public:
  // Reads what is written on the instructions that the entry reaches, and marks what lies in manual regions.
  absl::Status Read(Module* m);
  // Writes what has changed. True if anything has.
  bool Write();

  const DeviceMesh& mesh() const { return mesh_; }
  // Whether a computation was cloned for a caller of its own.
  bool separated() const { return separated_; }
  // Whether any value is cut, or a manual region begins.
  bool cuts_anything() const { return cuts_anything_; }
  std::vector<LeafSharding>& Of(const Instruction* i) { return leaves_[i]; }
  const std::vector<Computation*>& computations() const { return computations_; }
  // Between the leaves of tuples, of loops, of branches and of calls.
  const std::vector<LeafEdge>& edges() const { return edges_; }
  // Whose tiles the region's axes make evenly.
  const std::vector<LeafBoundary>& boundaries() const { return boundaries_; }

 private:
  // The boundary of a manual region: the axes that it is written for, and those that values outside of it are.
  struct Region {
    bool inwards;
    AxisMask axes, outside;
  };

  absl::Status ReadInstruction(const Instruction* i);
  absl::Status ReadBoundary(const Instruction* i);
  void AddEdges(const Instruction* i);
  void Connect(const Instruction* from, size_t first, const Instruction* to, size_t to_first, size_t count);
  void ConnectAll(const Instruction* from, const Instruction* to);
  void MarkManual();
  void MarkRegion(const Instruction* i, const Region& r, bool* changed);
  static bool Mark(LeafSharding* leaf, AxisMask axes);

  Module* m_ = nullptr;
  DeviceMesh mesh_;
  bool cuts_anything_ = false, separated_ = false;
  std::vector<Computation*> computations_;
  std::map<const Instruction*, std::vector<LeafSharding>> leaves_;
  std::vector<LeafEdge> edges_;
  std::vector<LeafBoundary> boundaries_;
  std::map<const Instruction*, Region> regions_;
  // What manual regions take, and the values that they take it of.
  std::deque<std::pair<LeafSharding, const Instruction*>> entries_;
};

// Computations that control flow reaches from the entry, callers first; each is made to have one caller.
std::vector<Computation*> SeparateBodies(Module* m, bool* changed);

// A custom call that says how its operand is cut.
bool IsShardingCall(const Instruction& i);
// One that passes its operand on, with or without a meaning for shardings.
bool IsIdentityCall(const Instruction& i);
size_t LeafCount(const Shape& s);
// Without the axes of dimensions that they do not cut evenly.
void MakeEven(const DeviceMesh& mesh, const Ints& dims, Tiling* t);

}  // namespace kiln
