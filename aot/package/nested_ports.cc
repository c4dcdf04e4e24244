#include "aot/package/nested_ports.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "aot/package/names.h"

namespace kiln {
namespace {

// A struct, or a port (then it has no members).
struct Node {
  PathStep step;
  std::vector<Node> members;
  int64_t port = -1;
  std::string name, type;  // as C++ declares the member
};

Node* MemberOf(Node* node, const PathStep& step) {
  // Front ends list what stands together together.
  for (size_t k = node->members.size(); k-- > 0;)
    if (node->members[k].step == step && node->members[k].port < 0) return &node->members[k];
  node->members.push_back({step});
  return &node->members.back();
}

void Insert(const PortPath& path, int64_t port, Node* root) {
  Node* at = root;
  for (size_t k = 0; k + 1 < path.size(); ++k) at = MemberOf(at, path[k]);
  at->members.push_back({path.back(), {}, port});
}

// What C++ knows of a struct: two with the same text can share a type.
std::string Signature(const Node& n, const std::function<std::string(size_t)>& type) {
  if (n.port >= 0) return type(static_cast<size_t>(n.port));
  std::string out = "{";
  for (const Node& m : n.members) absl::StrAppend(&out, m.step.name, "#", m.step.index, ":", Signature(m, type), ";");
  return out + "}";
}

std::string Capital(std::string name) {
  const size_t letter = name.find_first_not_of('_');
  if (letter != std::string::npos) name[letter] = absl::ascii_toupper(name[letter]);
  return name;
}

class Writer {
 public:
  Writer(const std::function<std::string(size_t)>& type, NestedPorts* out) : type_(type), out_(out) {}

  // The members of `node`, whose leaves are reached by `prefix`.
  void Write(Node& node, const std::string& of_type, const std::string& prefix, int indent) {
    Name(&node, of_type);
    for (Node& m : node.members) {
      const std::string margin(static_cast<size_t>(indent), ' ');
      if (m.port >= 0) {
        absl::StrAppend(&out_->members, margin, type_(static_cast<size_t>(m.port)), " ", m.name, ";\n");
        out_->expressions[static_cast<size_t>(m.port)] = prefix + m.name;
        continue;
      }
      const bool list = IsList(m);
      const std::string count = list ? absl::StrCat("[", m.members.size(), "]") : "";
      if (list && m.members[0].port >= 0) {
        absl::StrAppend(&out_->members, margin, type_(static_cast<size_t>(m.members[0].port)), " ", m.name, count,
                        ";\n");
        Reach(m, m, prefix);
        continue;
      }
      Node& shown = list ? m.members[0] : m;
      absl::StrAppend(&out_->members, margin, "struct ", m.type, " {\n");
      Write(shown, m.type, absl::StrCat(prefix, m.name, list ? "[0]." : "."), indent + 2);
      absl::StrAppend(&out_->members, margin, "};\n", margin, m.type, " ", m.name, count, ";\n");
      for (size_t k = 1; list && k < m.members.size(); ++k)
        ReachMembers(shown, m.members[k], absl::StrCat(prefix, m.name, "[", k, "]."));
    }
  }

 private:
  // Elements 0, 1, 2, ... of one kind.
  bool IsList(const Node& n) const {
    for (size_t k = 0; k < n.members.size(); ++k)
      if (n.members[k].step.index != static_cast<int64_t>(k) ||
          Signature(n.members[k], type_) != Signature(n.members[0], type_))
        return false;
    return n.members.size() > 1;
  }

  // Names of members differ from one another, from the types beside them and from the type they stand in.
  void Name(Node* node, const std::string& of_type) {
    absl::flat_hash_set<std::string> used = {of_type};
    for (Node& m : node->members) {
      m.name = MemberName(m.step.index < 0 ? m.step.name : absl::StrCat(m.step.index));
      while (!used.insert(m.name).second) m.name += '_';
    }
    for (Node& m : node->members) {
      if (m.port >= 0) continue;
      m.type = Capital(m.name);
      while (!used.insert(m.type).second) m.type += '_';
    }
  }

  // The expressions of what is below `m`, which has the name of `named`.
  void Reach(const Node& named, const Node& m, const std::string& prefix) {
    if (m.port >= 0) {
      out_->expressions[static_cast<size_t>(m.port)] = prefix + named.name;
    } else if (!IsList(m)) {
      ReachMembers(named, m, absl::StrCat(prefix, named.name, "."));
    } else {
      for (size_t k = 0; k < m.members.size(); ++k) {
        const std::string element = absl::StrCat(prefix, named.name, "[", k, "]");
        if (m.members[k].port >= 0)
          out_->expressions[static_cast<size_t>(m.members[k].port)] = element;
        else
          ReachMembers(named.members[0], m.members[k], element + ".");
      }
    }
  }
  void ReachMembers(const Node& named, const Node& m, const std::string& prefix) {
    for (size_t k = 0; k < m.members.size(); ++k) Reach(named.members[k], m.members[k], prefix);
  }

  const std::function<std::string(size_t)>& type_;
  NestedPorts* out_;
};

}  // namespace

NestedPorts NestPorts(const std::vector<Port>& ports, const std::function<std::string(size_t)>& type) {
  Node root;
  for (size_t k = 0; k < ports.size(); ++k)
    if (!type(k).empty()) Insert(ports[k].steps, static_cast<int64_t>(k), &root);
  NestedPorts out;
  out.expressions.resize(ports.size());
  Writer(type, &out).Write(root, "", "", 4);
  return out;
}

}  // namespace kiln
