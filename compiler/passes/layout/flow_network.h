// A flow network with integer capacities, and its minimum cut (Dinic's algorithm).
//
// Time: of the order of nodes squared times edges at worst, near linear on the networks of programs. No recursion:
// programs are deep.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace kiln {

class FlowNetwork {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

  int AddNode();
  void AddEdge(int from, int to, int64_t capacity);
  int64_t MaximumFlow(int source, int sink);
  // After MaximumFlow: the smallest sink side of a minimum cut.
  std::vector<bool> ReachesSink(int sink) const;

 private:
  struct Edge {
    int to, back;
    int64_t capacity;
  };

  bool FindLevels(int source, int sink);
  // One augmenting path along rising levels; 0 if there is none.
  int64_t Push(int source, int sink);

  std::vector<std::vector<Edge>> edges_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace kiln
