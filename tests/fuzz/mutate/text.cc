#include <algorithm>
#include <cctype>
#include <cstddef>

#include "tests/fuzz/mutate/mutations.h"

namespace kiln::mutate {
namespace {

struct Token {
  enum Kind { kName, kNumber, kType, kMark } kind;
  size_t begin, end;
};

const std::vector<std::string>& Types() {
  static const auto* out = new std::vector<std::string>{
      "pred",   "s1",       "s2",     "s4",       "s8",  "s16", "s32",  "s64",   "u4",   "u8",
      "u16",    "u32",      "u64",    "f16",      "f32", "f64", "bf16", "c64",   "c128", "token",
      "opaque", "f8e4m3fn", "f8e5m2", "f4e2m1fn", "i1",  "i4",  "i8",   "i32",   "i64",  "ui8",
      "ui32",   "index",    "none",   "tuple",    "F32", "S32", "PRED", "TUPLE", "TOKEN"};
  return *out;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool InName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-'; }

std::vector<Token> Tokens(const std::string& s) {
  std::vector<Token> out;
  for (size_t k = 0; k < s.size();) {
    const size_t begin = k;
    const char c = s[k];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++k;
      continue;
    }
    const bool sigil = c == '%' || c == '@' || c == '#' || c == '!';
    if (IsDigit(c) || (c == '-' && k + 1 < s.size() && IsDigit(s[k + 1]))) {
      for (++k; k < s.size() && (IsDigit(s[k]) || s[k] == '.'); ++k) continue;
      out.push_back({Token::kNumber, begin, k});
    } else if (sigil || std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      for (++k; k < s.size() && InName(s[k]); ++k) continue;
      const std::string text = s.substr(begin, k - begin);
      const bool type = std::find(Types().begin(), Types().end(), text) != Types().end();
      out.push_back({type ? Token::kType : Token::kName, begin, k});
    } else {
      out.push_back({Token::kMark, begin, ++k});
    }
  }
  return out;
}

std::vector<Token> Only(const std::vector<Token>& all, Token::Kind kind) {
  std::vector<Token> out;
  for (const Token& t : all)
    if (t.kind == kind) out.push_back(t);
  return out;
}

std::string Text(const std::string& s, const Token& t) { return s.substr(t.begin, t.end - t.begin); }
void Replace(std::string* s, const Token& t, const std::string& by) { s->replace(t.begin, t.end - t.begin, by); }

// Where the bracket at `open` closes; npos if nowhere.
size_t Close(const std::string& s, size_t open) {
  int depth = 0;
  for (size_t k = open; k < s.size(); ++k) {
    if (s[k] == '(' || s[k] == '{' || s[k] == '[') ++depth;
    if ((s[k] == ')' || s[k] == '}' || s[k] == ']') && --depth == 0) return k;
  }
  return std::string::npos;
}

// The parts of the list that the brackets at [open, close] hold, as begin and end.
std::vector<std::pair<size_t, size_t>> Elements(const std::string& s, size_t open, size_t close) {
  std::vector<std::pair<size_t, size_t>> out;
  int depth = 0;
  size_t begin = open + 1;
  for (size_t k = open + 1; k <= close; ++k) {
    if (k == close || (depth == 0 && s[k] == ',')) {
      if (k > begin) out.emplace_back(begin, k);
      begin = k + 1;
    } else if (s[k] == '(' || s[k] == '{' || s[k] == '[') {
      ++depth;
    } else if (s[k] == ')' || s[k] == '}' || s[k] == ']') {
      --depth;
    }
  }
  return out;
}

// A bracket that closes, with its end; npos twice if there is none.
std::pair<size_t, size_t> SomeBrackets(const std::string& s, Random& random) {
  std::vector<size_t> opens;
  for (size_t k = 0; k < s.size(); ++k)
    if (s[k] == '(' || s[k] == '{' || s[k] == '[') opens.push_back(k);
  if (opens.empty()) return {std::string::npos, std::string::npos};
  const size_t open = random.Of(opens);
  return {open, Close(s, open)};
}

std::vector<std::string> Lines(const std::string& s) {
  std::vector<std::string> out;
  for (size_t k = 0; k < s.size();) {
    const size_t end = std::min(s.find('\n', k), s.size() - 1) + 1;
    out.push_back(s.substr(k, end - k));
    k = end;
  }
  return out;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += l;
  return out;
}

size_t Often(Random& random) {
  static const std::vector<size_t> kTimes = {1, 1, 2, 5, 40, 1000, 20000};
  return random.Of(kTimes);
}

std::string Repeat(const std::string& what, size_t times) {
  std::string out;
  if (!what.empty()) times = std::min(times, kLargestMutant / 2 / what.size() + 1);
  for (size_t k = 0; k < times; ++k) out += what;
  return out;
}

// ", key=value" or "key = value" of some line, as it stands there.
std::string SomeAttribute(const std::string& s, Random& random) {
  std::vector<size_t> at;
  for (size_t k = 1; k < s.size(); ++k)
    if (s[k] == '=') at.push_back(k);
  if (at.empty()) return "";
  const size_t equals = random.Of(at);
  size_t begin = equals;
  while (begin > 0 && s[begin - 1] != ',' && s[begin - 1] != '\n' && s[begin - 1] != '{') --begin;
  size_t end = equals + 1;
  while (end < s.size() && s[end] == ' ') ++end;
  if (end < s.size() && (s[end] == '{' || s[end] == '(' || s[end] == '[' || s[end] == '<')) end = Close(s, end);
  end = std::min(s.find_first_of(",\n}", end), s.size());
  return s.substr(begin, end - begin);
}

void ChangeNumber(std::string* s, const std::vector<Token>& tokens, Random& random) {
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "-1",
                                                    "-2",
                                                    "7",
                                                    "63",
                                                    "64",
                                                    "65",
                                                    "127",
                                                    "255",
                                                    "256",
                                                    "1024",
                                                    "65536",
                                                    "1000000",
                                                    "2147483647",
                                                    "2147483648",
                                                    "4294967296",
                                                    "9223372036854775807",
                                                    "-9223372036854775808",
                                                    "9223372036854775808",
                                                    "18446744073709551615",
                                                    "1000000000000000000000000000000",
                                                    "1e308",
                                                    "1e400",
                                                    "-0.0",
                                                    "nan",
                                                    "inf",
                                                    ""};
  const auto numbers = Only(tokens, Token::kNumber);
  if (numbers.empty()) return;
  const Token& t = random.Of(numbers);
  if (random.Below(3) == 0)
    Replace(s, t, Text(*s, random.Of(numbers)));
  else
    Replace(s, t, random.Of(kNumbers));
}

void ChangeName(std::string* s, const std::vector<Token>& tokens, const std::string& other, Random& random) {
  const auto names = Only(tokens, Token::kName);
  if (names.empty()) return;
  const Token &a = random.Of(names), &b = random.Of(names);
  switch (random.Below(4)) {
    case 0: {  // both ways
      const std::string x = Text(*s, a), y = Text(*s, b);
      Replace(s, a.begin > b.begin ? a : b, a.begin > b.begin ? y : x);
      if (a.begin != b.begin) Replace(s, a.begin > b.begin ? b : a, a.begin > b.begin ? x : y);
      break;
    }
    case 1: {
      const auto others = Only(Tokens(other), Token::kName);
      if (!others.empty()) Replace(s, a, Text(other, random.Of(others)));
      break;
    }
    default:
      Replace(s, a, Text(*s, b));
  }
}

// A reference becomes one to what it stands in: the last name before it that begins a line or a computation.
void MakeCycle(std::string* s, const std::vector<Token>& tokens, Random& random) {
  const auto names = Only(tokens, Token::kName);
  if (names.size() < 2) return;
  const size_t k = 1 + random.Below(names.size() - 1);
  size_t around = k;
  const size_t back = 1 + random.Below(k);
  for (size_t step = 0; step < back && around > 0; ++step) {
    --around;
    const size_t line = s->rfind('\n', names[around].begin);
    const size_t first = s->find_first_not_of(" \n%", line == std::string::npos ? 0 : line);
    if (first == names[around].begin || first + 1 == names[around].begin) break;
  }
  Replace(s, names[k], Text(*s, names[around]));
}

void ChangeList(std::string* s, Random& random) {
  const auto [open, close] = SomeBrackets(*s, random);
  if (close == std::string::npos) return;
  const auto elements = Elements(*s, open, close);
  if (elements.empty()) return;
  const auto text = [&](const std::pair<size_t, size_t>& e) { return s->substr(e.first, e.second - e.first); };
  auto a = random.Of(elements), b = random.Of(elements);
  if (a.first > b.first) std::swap(a, b);
  const std::string x = text(a), y = text(b);
  switch (random.Below(4)) {
    case 0:
      if (a != b) s->replace(b.first, b.second - b.first, x).replace(a.first, a.second - a.first, y);
      break;
    case 1:
      s->erase(a.first, std::min(a.second + 1, close) - a.first);
      break;
    case 2:
      s->replace(b.first, b.second - b.first, x);
      break;
    default:
      s->insert(close, Repeat("," + x, Often(random)));
  }
}

void ChangeBracket(std::string* s, Random& random) {
  const auto [open, close] = SomeBrackets(*s, random);
  if (close == std::string::npos) return;
  const size_t n = Often(random);
  switch (random.Below(5)) {
    case 0:
      s->erase(close, 1);
      break;
    case 1:
      s->erase(open, 1);
      break;
    case 2:
      s->insert(open, Repeat(s->substr(open, 1), n));
      break;
    case 3:
      s->insert(close, Repeat(s->substr(close, 1), n)).insert(open, Repeat(s->substr(open, 1), n));
      break;
    default:  // with the word before it
      const size_t word = s->find_last_of(" \n,(", open ? open - 1 : 0);
      const size_t begin = word == std::string::npos ? 0 : word + 1;
      const std::string head = s->substr(begin, open + 1 - begin), tail = s->substr(close, 1);
      const size_t times = std::min(n, kLargestMutant / 2 / head.size());
      s->insert(close, Repeat(tail, times)).insert(begin, Repeat(head, times));
  }
}

void ChangeLines(std::string* s, const std::string& other, Random& random) {
  std::vector<std::string> lines = Lines(*s);
  if (lines.empty()) return;
  const size_t a = random.Below(lines.size()), b = random.Below(lines.size());
  switch (random.Below(6)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
      break;
    case 1:
      lines[a] = Repeat(lines[a], 1 + Often(random));
      break;
    case 2:
      std::swap(lines[a], lines[b]);
      break;
    case 3:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(a), lines[b]);
      break;
    case 4: {  // a region
      const size_t n = std::min(lines.size() - a, 1 + random.Below(8));
      const auto from = lines.begin() + static_cast<std::ptrdiff_t>(a);
      const std::string region = Join(std::vector<std::string>(from, from + static_cast<std::ptrdiff_t>(n)));
      lines[b] += Repeat(region, Often(random));
      break;
    }
    default: {
      const std::vector<std::string> others = Lines(other);
      if (!others.empty()) lines[a] = random.Of(others);
    }
  }
  *s = Join(lines);
}

void MoveAttribute(std::string* s, const std::string& other, Random& random) {
  const std::string attribute = SomeAttribute(random.Below(4) ? *s : other, random);
  std::vector<std::string> lines = Lines(*s);
  if (attribute.empty() || lines.empty()) return;
  std::string& line = lines[random.Below(lines.size())];
  const size_t equals = line.rfind('=');
  if (equals != std::string::npos && random.Below(2)) {  // in the place of another
    const size_t begin = line.find_last_of(",{", equals);
    const size_t end = std::min(line.find_first_of(",\n}", equals), line.size());
    if (begin != std::string::npos) line.replace(begin + 1, end - begin - 1, attribute);
  } else {
    const size_t end = line.find_last_not_of("\n");
    line.insert(end == std::string::npos ? 0 : end + 1, "," + attribute);
  }
  *s = Join(lines);
}

}  // namespace

std::string MutateText(std::string s, const std::string& other, Random& random) {
  const std::vector<Token> tokens = Tokens(s);
  switch (random.Below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      ChangeNumber(&s, tokens, random);
      break;
    case 5:
    case 6:
    case 7:
      ChangeName(&s, tokens, other, random);
      break;
    case 8:
    case 9:
      if (const auto types = Only(tokens, Token::kType); !types.empty())
        Replace(&s, random.Of(types), random.Of(Types()));
      break;
    case 10:
    case 11:
    case 12:
      ChangeList(&s, random);
      break;
    case 13:
    case 14:
      MoveAttribute(&s, other, random);
      break;
    case 15:
    case 16:
      ChangeLines(&s, other, random);
      break;
    case 17:
      ChangeBracket(&s, random);
      break;
    case 18:
      MakeCycle(&s, tokens, random);
      break;
    default:
      s = MutateBytes(std::move(s), other, random);
  }
  return s;
}

}  // namespace kiln::mutate
