#include "compiler/passes/layout/flow_network.h"

#include <algorithm>
#include <queue>

namespace kiln {

int FlowNetwork::AddNode() {
  edges_.emplace_back();
  return static_cast<int>(edges_.size()) - 1;
}

void FlowNetwork::AddEdge(int from, int to, int64_t capacity) {
  edges_[from].push_back({to, static_cast<int>(edges_[to].size()), capacity});
  edges_[to].push_back({from, static_cast<int>(edges_[from].size()) - 1, 0});
}

int64_t FlowNetwork::MaximumFlow(int source, int sink) {
  int64_t flow = 0;
  while (FindLevels(source, sink)) {
    next_.assign(edges_.size(), 0);
    while (const int64_t pushed = Push(source, sink)) flow += pushed;
  }
  return flow;
}

std::vector<bool> FlowNetwork::ReachesSink(int sink) const {
  std::vector<bool> reaches(edges_.size());
  std::vector<int> stack = {sink};
  reaches[sink] = true;
  while (!stack.empty()) {
    const int n = stack.back();
    stack.pop_back();
    for (const Edge& e : edges_[n])
      if (!reaches[e.to] && edges_[e.to][e.back].capacity > 0) {
        reaches[e.to] = true;
        stack.push_back(e.to);
      }
  }
  return reaches;
}

bool FlowNetwork::FindLevels(int source, int sink) {
  level_.assign(edges_.size(), -1);
  level_[source] = 0;
  std::queue<int> queue({source});
  while (!queue.empty()) {
    const int n = queue.front();
    queue.pop();
    for (const Edge& e : edges_[n])
      if (e.capacity > 0 && level_[e.to] < 0) {
        level_[e.to] = level_[n] + 1;
        queue.push(e.to);
      }
  }
  return level_[sink] >= 0;
}

int64_t FlowNetwork::Push(int source, int sink) {
  std::vector<Edge*> path;
  int n = source;
  while (n != sink) {
    Edge* step = nullptr;
    for (size_t& k = next_[n]; k < edges_[n].size(); ++k) {
      Edge& e = edges_[n][k];
      if (e.capacity > 0 && level_[e.to] == level_[n] + 1) {
        step = &e;
        break;
      }
    }
    if (step) {
      path.push_back(step);
      n = step->to;
      continue;
    }
    if (path.empty()) return 0;
    n = edges_[path.back()->to][path.back()->back].to;
    path.pop_back();
    ++next_[n];
  }
  int64_t pushed = kUnlimited;
  for (const Edge* e : path) pushed = std::min(pushed, e->capacity);
  for (Edge* e : path) {
    e->capacity -= pushed;
    edges_[e->to][e->back].capacity += pushed;
  }
  return pushed;
}

}  // namespace kiln
