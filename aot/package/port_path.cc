#include "aot/package/port_path.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace kiln {
namespace {

constexpr size_t kMostSteps = 64;

bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_'; }

absl::string_view Word(absl::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsWord(text[n])) ++n;
  return text.substr(0, n);
}

// Reads 'key'] or "key"] behind the bracket.
bool ReadKey(absl::string_view* text, PortPath* path) {
  const char quote = (*text)[0];
  std::string key;
  for (size_t k = 1; k + 1 < text->size(); ++k) {
    char c = (*text)[k];
    if (c == quote) {
      if ((*text)[k + 1] != ']') return false;
      path->push_back({std::move(key)});
      text->remove_prefix(k + 2);
      return true;
    }
    if (c == '\\') c = (*text)[++k];
    key += c;
  }
  return false;
}

// Reads 3], <flat index 3>] or whatever else stands before the bracket closes.
bool ReadIndex(absl::string_view* text, PortPath* path) {
  const size_t close = text->find(']');
  if (close == absl::string_view::npos || close == 0) return false;
  absl::string_view inside = text->substr(0, close);
  PathStep step{std::string(inside)};
  if (absl::ConsumePrefix(&inside, "<flat index ")) absl::ConsumeSuffix(&inside, ">");
  int64_t index;
  if (absl::SimpleAtoi(inside, &index) && index >= 0) step = {"", index};
  path->push_back(std::move(step));
  text->remove_prefix(close + 1);
  return true;
}

bool ReadAttribute(absl::string_view* text, PortPath* path) {
  const absl::string_view word = Word(*text);
  if (word.empty() || absl::ascii_isdigit(word[0])) return false;
  path->push_back({std::string(word)});
  text->remove_prefix(word.size());
  return true;
}

std::string NameOf(const PathStep& s) { return s.index < 0 ? s.name : absl::StrCat(s.index); }

}  // namespace

PortPath ParsePortPath(absl::string_view text) {
  const PortPath whole = {{std::string(text)}};
  PortPath path;
  absl::string_view rest = text;
  if (const absl::string_view root = Word(rest); !root.empty()) {
    path.push_back({std::string(root)});
    rest.remove_prefix(root.size());
  }
  while (!rest.empty()) {
    bool read;
    if (absl::ConsumePrefix(&rest, "["))
      read = !rest.empty() && (rest[0] == '\'' || rest[0] == '"' ? ReadKey(&rest, &path) : ReadIndex(&rest, &path));
    else if (absl::ConsumePrefix(&rest, "."))
      read = ReadAttribute(&rest, &path);
    else {
      // The size of a dimension: params['w']_size0.
      const absl::string_view tail = Word(rest);
      read = !path.empty() && tail.size() == rest.size();
      if (read) path.back() = {absl::StrCat(NameOf(path.back()), tail)};
      rest.remove_prefix(tail.size());
    }
    if (!read) return whole;
  }
  return path.empty() || path.size() > kMostSteps ? whole : path;
}

PortPath ParseResultPath(absl::string_view text) {
  PortPath path = ParsePortPath(text);
  const bool from_root = path[0] == PathStep{"result"};
  if (path.size() == 1 && from_root) return {{"result0"}};
  if (from_root) path.erase(path.begin());
  if (path[0].index >= 0) path[0] = {absl::StrCat("result", path[0].index)};
  return path;
}

std::string FlatName(const PortPath& path) {
  std::string out;
  for (const PathStep& s : path) absl::StrAppend(&out, out.empty() ? "" : "_", NameOf(s));
  return out;
}

}  // namespace kiln
