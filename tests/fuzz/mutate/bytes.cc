#include <algorithm>

#include "tests/fuzz/mutate/mutations.h"

namespace kiln::mutate {

std::string MutateBytes(std::string s, const std::string& other, Random& random) {
  static const std::vector<int> kEdges = {0, 1, 2, 3, 4, 5, 7, 8, 16, 127, 128, 129, 254, 255};
  if (s.empty()) return other;
  const size_t at = random.Below(s.size());
  switch (random.Below(10)) {
    case 0:
    case 1:
    case 2:
      s[at] = static_cast<char>(random.Of(kEdges));
      break;
    case 3:
      s[at] = static_cast<char>(s[at] ^ (1 << random.Below(8)));
      break;
    case 4:
      s[at] = static_cast<char>(s[at] + (random.Below(2) ? 1 : -1));
      break;
    case 5:
      s.erase(at, 1 + random.Below(8));
      break;
    case 6:
      s.insert(at, s.substr(random.Below(s.size()), 1 + random.Below(64)));
      break;
    case 7:
      s.resize(at);
      break;
    case 8:  // a number of eight bytes
      for (size_t k = at; k < std::min(at + 8, s.size()); ++k) s[k] = static_cast<char>(k + 1 == at + 8 ? 0x7f : 0xff);
      break;
    default:
      s = s.substr(0, at) + other.substr(std::min(other.size(), random.Below(4) ? at : random.Below(other.size())));
  }
  return s;
}

}  // namespace kiln::mutate
