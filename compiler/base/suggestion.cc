#include "compiler/base/suggestion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln {
namespace {

// How many letters to add, drop or change between two words.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t k = 0; k <= b.size(); ++k) row[k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t k = 1; k <= b.size(); ++k)
      diagonal = std::exchange(row[k], std::min({row[k] + 1, row[k - 1] + 1, diagonal + (a[i - 1] != b[k - 1])}));
  }
  return row[b.size()];
}

}  // namespace

std::string Suggestion(const std::string& word, const std::vector<std::string>& words, const char* prefix) {
  const std::string* best = nullptr;
  size_t nearest = 1 + word.size() / 3;
  for (const std::string& w : words)
    if (const size_t d = Distance(word, w); d <= nearest && (!best || d < nearest)) {
      best = &w;
      nearest = d;
    }
  return best ? absl::StrCat("; did you mean ", prefix, *best, "?") : "";
}

}  // namespace kiln
