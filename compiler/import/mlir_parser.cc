#include "compiler/import/mlir_parser.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/mlir_string.h"

namespace kiln::mlir {

absl::StatusOr<std::string> Parser::Raw(absl::string_view stops) {
  s_.Peek();
  const size_t start = s_.pos();
  const absl::string_view t = s_.text();
  size_t p = start;
  std::string open;
  while (p < t.size()) {
    const char c = t[p];
    if (c == '"') {
      ++p;
      while (p < t.size() && t[p] != '"') p += t[p] == '\\' ? 2 : 1;
      if (p >= t.size()) return s_.ErrorAtPos(start, "unterminated string");
      ++p;
      continue;
    }
    if (open.empty() && stops.find(c) != absl::string_view::npos) break;
    if (c == '-' && p + 1 < t.size() && t[p + 1] == '>') {
      p += 2;
      continue;
    }
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      open += c;
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (open.empty()) break;
      const char want = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';
      if (open.back() != want) return s_.ErrorAtPos(p, absl::StrCat("unbalanced '", std::string(1, c), "'"));
      open.pop_back();
    }
    ++p;
  }
  if (!open.empty()) return s_.ErrorAtPos(start, absl::StrCat("'", open.substr(open.size() - 1), "' is never closed"));
  s_.set_pos(p);
  return std::string(absl::StripAsciiWhitespace(t.substr(start, p - start)));
}

std::string Parser::ReadOrigin() {
  std::string text;
  while (s_.PeekWord() == "loc") {
    const size_t save = s_.pos();
    s_.Word();
    if (s_.Peek() != '(') {
      s_.set_pos(save);
      return text;
    }
    s_.Eat("(");
    auto inside = Raw(")");
    if (!inside.ok()) return text;
    text = *std::move(inside);
    s_.Eat(")");
  }
  return text;
}

absl::Status Parser::ParseTypes(Op* op) {
  ASSIGN_OR_RETURN(op->operand_types, TypeList());
  if (s_.Eat("->")) {
    op->has_function_type = true;
    ASSIGN_OR_RETURN(op->result_types, TypeList());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Parser::Operand() {
  RETURN_IF_ERROR(s_.Expect("%"));
  const absl::string_view w = s_.Word("_.$-#");
  if (w.empty()) return s_.Error("expected a value name");
  return std::string(w);
}

absl::StatusOr<std::string> Parser::SymbolName() {
  RETURN_IF_ERROR(s_.Expect("@"));
  if (s_.PeekRaw() == '"') return ReadMlirString(&s_);
  const absl::string_view name = s_.Word("_.$-");
  if (name.empty()) return s_.Error("expected a symbol's name");
  return std::string(name);
}

absl::Status Parser::ParseDict(absl::flat_hash_map<std::string, std::string>* out) {
  RETURN_IF_ERROR(s_.Expect("{"));
  for (bool first = true; !s_.Eat("}"); first = false) {
    if (!first) RETURN_IF_ERROR(s_.Expect(","));
    std::string key;
    if (s_.Peek() == '"') {
      ASSIGN_OR_RETURN(key, ReadMlirString(&s_));
    } else {
      key = std::string(Ident());
    }
    if (key.empty()) return s_.Error("expected an attribute name");
    std::string value = "unit";
    if (s_.Eat("=")) {
      ASSIGN_OR_RETURN(value, Raw(",}="));
      if (value.empty()) return s_.Error(absl::StrCat("attribute '", key, "' has no value"));
    }
    if (!out->insert({key, std::move(value)}).second)
      return s_.Error(absl::StrCat("attribute '", key, "' is given twice"));
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseOps(Region* r) {
  if (++depth_ > kMaxDepth) return s_.Error("regions nest too deep");
  const absl::Cleanup leave = [&] { --depth_; };
  while (s_.Peek() != '}' && !s_.AtEnd()) {
    if (s_.Peek() == '^') return s_.Error("a region of several blocks is not supported");
    ASSIGN_OR_RETURN(auto op, ParseOp());
    r->ops.push_back(std::move(op));
  }
  return absl::OkStatus();
}

// %name: type
absl::Status Parser::ParseBlockArgument(Region* r) {
  BlockArgument a;
  ASSIGN_OR_RETURN(a.name, Operand());
  RETURN_IF_ERROR(s_.Expect(":"));
  ASSIGN_OR_RETURN(a.type, ReadType());
  a.origin = ReadOrigin();
  r->arguments.push_back(std::move(a));
  return absl::OkStatus();
}

absl::Status Parser::ParseRegion(Region* r) {
  RETURN_IF_ERROR(s_.Expect("{"));
  if (s_.Eat("^")) {
    Ident();
    if (s_.Eat("(")) {
      while (!s_.Eat(")")) {
        if (!r->arguments.empty()) RETURN_IF_ERROR(s_.Expect(","));
        RETURN_IF_ERROR(ParseBlockArgument(r));
      }
    }
    RETURN_IF_ERROR(s_.Expect(":"));
  }
  RETURN_IF_ERROR(ParseOps(r));
  return s_.Expect("}");
}

absl::Status Parser::ParseGeneric(Op* op) {
  RETURN_IF_ERROR(s_.Expect("("));
  while (!s_.Eat(")")) {
    if (!op->operands.empty()) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(std::string o, Operand());
    op->operands.push_back(std::move(o));
  }
  if (s_.Eat("<")) {
    RETURN_IF_ERROR(ParseDict(&op->attributes));
    RETURN_IF_ERROR(s_.Expect(">"));
  }
  if (s_.Peek() == '(') {
    s_.Eat("(");
    while (!s_.Eat(")")) {
      if (!op->regions.empty()) RETURN_IF_ERROR(s_.Expect(","));
      op->regions.emplace_back();
      RETURN_IF_ERROR(ParseRegion(&op->regions.back()));
    }
  }
  if (s_.Peek() == '{') RETURN_IF_ERROR(ParseDict(&op->attributes));
  RETURN_IF_ERROR(s_.Expect(":"));
  return ParseTypes(op);
}

// More results than this in one group are a mistake.
constexpr int64_t kMaxResults = 1 << 20;

absl::StatusOr<std::unique_ptr<Op>> Parser::ParseOp() {
  auto op = std::make_unique<Op>();
  if (s_.Peek() == '%') {
    do {
      RETURN_IF_ERROR(s_.Expect("%"));
      const absl::string_view name = s_.Word("_.$-");
      int count = 1;
      if (s_.Eat(":")) {
        ASSIGN_OR_RETURN(int64_t c, s_.Integer());
        if (c < 1 || c > kMaxResults) return s_.Error(absl::StrCat("a group of ", c, " results"));
        count = static_cast<int>(c);
      }
      op->results.push_back({std::string(name), count});
    } while (s_.Eat(","));
    RETURN_IF_ERROR(s_.Expect("="));
  }
  s_.Peek();
  op->pos = s_.pos();
  op->loc = s_.Loc(s_.pos());
  if (s_.Peek() == '"') {
    ASSIGN_OR_RETURN(op->name, ReadMlirString(&s_));
    RETURN_IF_ERROR(ParseGeneric(op.get()));
  } else {
    op->name = std::string(Ident());
    if (op->name.empty()) return s_.Error("expected an operation");
    if (op->name == "return" || op->name == "call" || op->name == "func") op->name.insert(0, "func.");
    if (op->name == "module") op->name = "builtin.module";
    RETURN_IF_ERROR(ParsePretty(op.get()));
  }
  // One type for everything: `add %a, %b : t`.
  if (!op->has_function_type && op->result_types.empty() && !op->results.empty()) {
    int n = 0;
    for (auto& [name, count] : op->results) n += count;
    if (op->operand_types.size() == 1)
      op->result_types.assign(n, op->operand_types[0]);
    else if (n == 1 && !op->operand_types.empty())
      op->result_types = {op->operand_types.back()};
    else
      op->result_types = op->operand_types;
  }
  op->origin = ReadOrigin();
  return op;
}

const std::string& Op::Attr(absl::string_view key) const {
  static const auto* empty = new std::string;
  auto it = attributes.find(key);
  return it == attributes.end() ? *empty : it->second;
}

}  // namespace kiln::mlir
