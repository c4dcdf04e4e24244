// Which values lie in the host's memory: what a program moves there, what the caller keeps there, and all that lies
// where such a value lies.
//
// What: a leaf that names a value, hands it on or updates it in place is joined with the leaf that it takes it from:
//   both are in one memory. What computes a value, a copy included, begins one of its own and feeds its readers.
//   Copies of what lies on the host, and arrays that it updates, lie there too.
// Cost: linear in the leaves of the entry and of all that it runs.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/plan/alias.h"

namespace kiln {

// Calls that say where their operand is to lie.
bool MovesToHost(const Instruction* i);
bool MovesToDevice(const Instruction* i);
// A call that stands for memory whose contents do not matter.
inline constexpr char kAllocation[] = "AllocateBuffer";

// An array of one number, which may as well be filled in another memory or layout.
bool IsFill(const Instruction* i);

// What an update is given, if that is to lie on the host: a value that is moved there and then laid out or read in
// another form; null if it is not. And the same made of what was to be moved, without the move.
const Instruction* MoveOfUpdate(const Instruction* given);
Instruction* WithoutMove(Instruction* given);

// The entry, and the bodies of loops, branches and calls, each once.
std::vector<Computation*> RunningComputations(const Module& m);

// The same shape in the host's memory, or in the device's.
Shape OnHost(Shape s);
Shape OnDevice(Shape s);

// What parameter `k` of the entry, or its result, is to the caller.
const Shape& EntryParameter(const Module& m, int64_t k);
const Shape& EntryResult(const Module& m);

// Whether the program moves anything, or the caller keeps an argument on the host.
bool PlacesValues(const Module& m);

// Whether a result of `i` lies where an operand lies, or a caller's value does.
bool KeepsPlace(const Instruction* i);

class HostValues {
 public:
  // `also`: further values that shall lie there.
  explicit HostValues(const Module& m, absl::Span<Instruction* const> also = {});

  bool Contains(const Leaf& l) const;
  // Of any of its leaves.
  bool ContainsPart(Instruction* i) const;
  // The leaf where user `u` has what leaf `index` of its operand `k` gives it, if it keeps that in its place.
  static std::vector<Leaf> PlacesIn(Instruction* u, int64_t k, const ShapeIndex& index);

  // In the order of the program.
  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<int>& joined(int leaf) const { return joined_[static_cast<size_t>(leaf)]; }
  const std::vector<int>& feeders(int leaf) const { return feeders_[static_cast<size_t>(leaf)]; }
  int Find(const Leaf& l) const;
  bool IsOnHost(int leaf) const { return on_host_[static_cast<size_t>(leaf)]; }

 private:
  int Id(const Leaf& l);
  void Join(const Leaf& from, const Leaf& to);
  void Feed(const Leaf& from, const Leaf& to);
  void Connect(Instruction* u);
  void Spread(std::vector<int> work);

  std::vector<Leaf> leaves_;
  absl::flat_hash_map<Leaf, int> ids_;
  std::vector<std::vector<int>> joined_, fed_, feeders_;
  std::vector<bool> on_host_;
};

}  // namespace kiln
