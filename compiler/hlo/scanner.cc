#include "compiler/hlo/scanner.h"

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

namespace kiln {

void Scanner::Skip() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (absl::ascii_isspace(c)) {
      ++pos_;
    } else if (c == '/' && PeekRaw(1) == '/') {
      const size_t nl = text_.find('\n', pos_);
      pos_ = nl == absl::string_view::npos ? text_.size() : nl;
    } else if (c == '/' && PeekRaw(1) == '*') {
      const size_t end = text_.find("*/", pos_ + 2);
      pos_ = end == absl::string_view::npos ? text_.size() : end + 2;
    } else {
      return;
    }
  }
}

bool Scanner::Eat(absl::string_view token) {
  Skip();
  if (text_.substr(pos_, token.size()) != token) return false;
  // A word must not continue behind the token.
  if (absl::ascii_isalnum(token.back()) && pos_ + token.size() < text_.size()) {
    const char next = text_[pos_ + token.size()];
    if (absl::ascii_isalnum(next) || next == '_') return false;
  }
  pos_ += token.size();
  return true;
}

absl::Status Scanner::Expect(absl::string_view token) {
  if (Eat(token)) return absl::OkStatus();
  Skip();
  std::string got(text_.substr(pos_, 12));
  for (char& c : got)
    if (!absl::ascii_isprint(c)) c = ' ';
  return Error(pos_ >= text_.size() ? absl::StrCat("expected '", token, "' but the text ends")
                                    : absl::StrCat("expected '", token, "' before '", got, "'"));
}

absl::string_view Scanner::PeekWord(absl::string_view extra) {
  Skip();
  size_t end = pos_;
  while (end < text_.size() && (absl::ascii_isalnum(text_[end]) || extra.find(text_[end]) != absl::string_view::npos)) {
    if (text_[end] == '-' && end + 1 < text_.size() && text_[end + 1] == '>') break;
    ++end;
  }
  return text_.substr(pos_, end - pos_);
}

absl::string_view Scanner::Word(absl::string_view extra) {
  const absl::string_view w = PeekWord(extra);
  pos_ += w.size();
  return w;
}

absl::StatusOr<int64_t> Scanner::Integer() {
  Skip();
  const size_t start = pos_;
  if (PeekRaw() == '-') ++pos_;
  while (absl::ascii_isdigit(PeekRaw())) ++pos_;
  int64_t v;
  const absl::string_view digits = text_.substr(start, pos_ - start);
  if (!absl::SimpleAtoi(digits, &v)) {
    uint64_t u;
    if (absl::SimpleAtoi(digits, &u)) return static_cast<int64_t>(u);
    pos_ = start;
    return Error("expected an integer that fits 64 bits");
  }
  return v;
}

absl::StatusOr<std::string> Scanner::Quoted() {
  Skip();
  const size_t start = pos_;
  const char quote = PeekRaw();
  if (quote != '"' && quote != '\'') return Error("expected a quoted string");
  ++pos_;
  while (pos_ < text_.size() && text_[pos_] != quote) pos_ += text_[pos_] == '\\' ? 2 : 1;
  if (pos_ >= text_.size()) {
    pos_ = text_.size();
    return ErrorAtPos(start, "unterminated string");
  }
  const absl::string_view body = text_.substr(start + 1, pos_ - start - 1);
  ++pos_;
  std::string out;
  if (!absl::CUnescape(body, &out)) out = std::string(body);
  return out;
}

std::string Scanner::Name() { return Peek() == '"' ? Quoted().value_or("") : std::string(Word("_.$-")); }

bool Scanner::IntList(std::vector<int64_t>* out) {
  out->clear();
  if (!Eat("[")) return false;
  while (!Eat("]")) {
    if (!out->empty() && !Eat(",")) return false;
    const auto n = Integer();
    if (!n.ok()) return false;
    out->push_back(*n);
  }
  return true;
}

absl::StatusOr<std::string> Scanner::Balanced(absl::string_view stops) {
  Skip();
  const size_t start = pos_;
  std::string out, open;
  bool space = false;
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (absl::ascii_isspace(c)) {
      if (c == '\n' && open.empty() && stops.find('\n') != absl::string_view::npos) break;
      space = true;
      ++pos_;
      continue;
    }
    if (c == '/' && (PeekRaw(1) == '/' || PeekRaw(1) == '*') && (PeekRaw(1) == '*' || !open.empty())) {
      Skip();
      space = true;
      continue;
    }
    if (open.empty() && stops.find(c) != absl::string_view::npos) break;
    if (c == '}' || c == ')' || c == ']') {
      if (open.empty()) break;
      const char want = c == '}' ? '{' : c == ')' ? '(' : '[';
      if (open.back() != want) return Error(absl::StrCat("unbalanced '", std::string(1, c), "'"));
      open.pop_back();
    }
    if (space && !out.empty()) out += ' ';
    space = false;
    if (c == '"') {
      const size_t s = pos_;
      RETURN_IF_ERROR(Quoted().status());
      out.append(text_.data() + s, pos_ - s);
      continue;
    }
    if (c == '{' || c == '(' || c == '[') open += c;
    out += c;
    ++pos_;
  }
  if (!open.empty()) return ErrorAtPos(start, absl::StrCat("'", open.substr(open.size() - 1), "' is never closed"));
  return out;
}

SourceLoc Scanner::Loc(size_t pos) const {
  pos = std::min(pos, text_.size());
  if (pos < loc_pos_) {
    loc_pos_ = 0;
    loc_line_ = 1;
    loc_line_start_ = 0;
  }
  while (loc_pos_ < pos) {
    const void* nl = std::memchr(text_.data() + loc_pos_, '\n', pos - loc_pos_);
    if (!nl) break;
    loc_pos_ = static_cast<const char*>(nl) - text_.data() + 1;
    ++loc_line_;
    loc_line_start_ = loc_pos_;
  }
  return {loc_line_, static_cast<int>(pos - loc_line_start_) + 1};
}

absl::Status Scanner::ErrorAtPos(size_t pos, absl::string_view message) const {
  const SourceLoc l = Loc(pos);
  return InvalidArgument(file_, ":", l.line, ":", l.column, ": error: ", message);
}

}  // namespace kiln
