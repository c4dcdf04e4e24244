#include "compiler/import/mlir.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace kiln::mlir {
namespace {

constexpr int kMaxDepth = 256;

class Parser {
 public:
  Parser(absl::string_view text, const std::string& file) : s_(text, file) {}

  absl::StatusOr<Program> ParseProgram();
  absl::StatusOr<Type> ReadType();
  bool AtEnd() { return s_.AtEnd(); }
  absl::Status Error(absl::string_view m) { return s_.Error(m); }

 private:
  absl::Status ParseTopLevel(Program* p);
  absl::StatusOr<Function> ParseFunction();
  absl::StatusOr<std::unique_ptr<Op>> ParseOp();
  absl::Status ParseGeneric(Op* op);
  absl::Status ParsePretty(Op* op);
  absl::Status ParseWhile(Op* op);
  absl::Status ParseReduce(Op* op);
  absl::Status ParseScan(Op* op);
  absl::Status ParseManualComputation(Op* op);
  absl::Status ParseRegion(Region* r);
  absl::Status ParseOps(Region* r);
  absl::Status ParseDict(absl::flat_hash_map<std::string, std::string>* out);
  absl::Status ParseTypes(Op* op);
  absl::StatusOr<std::vector<Type>> TypeList();
  absl::StatusOr<std::string> Operand();
  absl::StatusOr<std::string> PrettyValue();
  // Text up to a stop character outside brackets and strings; `<`/`>` nest, `->` does not close.
  absl::StatusOr<std::string> Raw(absl::string_view stops);
  void SkipLoc();
  absl::string_view Ident() { return s_.Word("_.$-"); }

  Scanner s_;
  int depth_ = 0;
};

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

void Parser::SkipLoc() {
  while (s_.PeekWord() == "loc") {
    const size_t save = s_.pos();
    s_.Word();
    if (s_.Peek() != '(') {
      s_.set_pos(save);
      return;
    }
    s_.Eat("(");
    if (!Raw(")").ok()) return;
    s_.Eat(")");
  }
}

absl::StatusOr<Type> Parser::ReadType() {
  if (++depth_ > kMaxDepth) return s_.Error("types nest too deep");
  struct Leave {
    int* d;
    ~Leave() { --*d; }
  } leave{&depth_};
  if (s_.Eat("tensor")) {
    RETURN_IF_ERROR(s_.Expect("<"));
    Ints dims;
    std::vector<bool> dynamic;
    for (;;) {
      s_.Peek();
      if (s_.PeekRaw() == '?') {
        s_.set_pos(s_.pos() + 1);
        dims.push_back(-1);
        dynamic.push_back(true);
        if (s_.PeekRaw() != 'x') return s_.Error("expected 'x' behind an extent");
        s_.set_pos(s_.pos() + 1);
        continue;
      }
      if (!absl::ascii_isdigit(s_.PeekRaw())) break;
      ASSIGN_OR_RETURN(int64_t d, s_.Integer());
      dims.push_back(d);
      dynamic.push_back(false);
      if (s_.PeekRaw() != 'x') return s_.Error("expected 'x' behind an extent");
      s_.set_pos(s_.pos() + 1);
    }
    int64_t n = 1;
    for (int64_t d : dims) {
      if (d > 0 && n > (int64_t{1} << 40) / d) return s_.Error("more elements than kiln handles (2^40)");
      n *= std::max<int64_t>(d, 1);
    }
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(std::string elem, Raw(",>"));
    QuantizedPtr quantized;
    auto type = ElementType(elem);
    if (absl::StartsWith(elem, "!quant.")) {
      auto q = ParseQuantizedType(elem);
      if (!q.ok()) return s_.ErrorAtPos(at, q.status().message());
      type = q->storage;
      quantized = std::make_shared<QuantizedType>(std::move(*q));
    }
    if (!type) return s_.ErrorAtPos(at, absl::StrCat("element type '", elem, "' is not supported"));
    mlir::Type shape = Shape::Array(*type, dims);
    shape.quantized = std::move(quantized);
    for (size_t d = 0; d < dims.size(); ++d) shape.set_dynamic(static_cast<int64_t>(d), dynamic[d]);
    if (s_.Eat(",")) {
      ASSIGN_OR_RETURN(std::string enc, Raw(">"));
      absl::string_view e = enc;
      if (absl::ConsumePrefix(&e, "#stablehlo.bounds<")) {
        absl::ConsumeSuffix(&e, ">");
        size_t d = 0;
        for (absl::string_view b : absl::StrSplit(e, ',')) {
          int64_t bound;
          if (d < dims.size() && absl::SimpleAtoi(absl::StripAsciiWhitespace(b), &bound))
            shape.mutable_dims()[d] = bound;
          ++d;
        }
      }
    }
    RETURN_IF_ERROR(s_.Expect(">"));
    return shape;
  }
  if (s_.Eat("tuple")) {
    RETURN_IF_ERROR(s_.Expect("<"));
    std::vector<Shape> parts;
    while (!s_.Eat(">")) {
      if (!parts.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Type e, ReadType());
      parts.push_back(std::move(e));
    }
    return mlir::Type(Shape::Tuple(std::move(parts)));
  }
  if (s_.Eat("!stablehlo.token") || s_.Eat("!mhlo.token")) return mlir::Type(Shape::Token());
  const size_t at = (s_.Peek(), s_.pos());
  ASSIGN_OR_RETURN(std::string t, Raw(" ,)}{\n"));
  if (auto e = ElementType(t)) return mlir::Type(Shape::Scalar(*e));
  return s_.ErrorAtPos(at, absl::StrCat("type '", t, "' is not supported"));
}

absl::StatusOr<std::vector<Type>> Parser::TypeList() {
  std::vector<Type> out;
  if (s_.Eat("(")) {
    while (!s_.Eat(")")) {
      if (!out.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Type t, ReadType());
      out.push_back(std::move(t));
    }
    return out;
  }
  do {
    ASSIGN_OR_RETURN(Type t, ReadType());
    out.push_back(std::move(t));
  } while (s_.Eat(","));
  return out;
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

absl::Status Parser::ParseDict(absl::flat_hash_map<std::string, std::string>* out) {
  RETURN_IF_ERROR(s_.Expect("{"));
  while (!s_.Eat("}")) {
    std::string key;
    if (s_.Peek() == '"') {
      ASSIGN_OR_RETURN(key, s_.Quoted());
    } else {
      key = std::string(Ident());
    }
    if (key.empty()) return s_.Error("expected an attribute name");
    if (s_.Eat("=")) {
      ASSIGN_OR_RETURN((*out)[key], Raw(",}"));
    } else {
      (*out)[key] = "unit";
    }
    s_.Eat(",");
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseOps(Region* r) {
  if (++depth_ > kMaxDepth) return s_.Error("regions nest too deep");
  while (s_.Peek() != '}' && !s_.AtEnd()) {
    ASSIGN_OR_RETURN(auto op, ParseOp());
    r->ops.push_back(std::move(op));
  }
  --depth_;
  return absl::OkStatus();
}

absl::Status Parser::ParseRegion(Region* r) {
  RETURN_IF_ERROR(s_.Expect("{"));
  if (s_.Eat("^")) {
    Ident();
    if (s_.Eat("(")) {
      while (!s_.Eat(")")) {
        if (!r->arguments.empty()) RETURN_IF_ERROR(s_.Expect(","));
        BlockArgument a;
        ASSIGN_OR_RETURN(a.name, Operand());
        RETURN_IF_ERROR(s_.Expect(":"));
        ASSIGN_OR_RETURN(a.type, ReadType());
        SkipLoc();
        r->arguments.push_back(std::move(a));
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

absl::Status Parser::ParseWhile(Op* op) {
  RETURN_IF_ERROR(s_.Expect("("));
  Region cond;
  while (!s_.Eat(")")) {
    if (!op->operands.empty()) RETURN_IF_ERROR(s_.Expect(","));
    BlockArgument a;
    ASSIGN_OR_RETURN(a.name, Operand());
    RETURN_IF_ERROR(s_.Expect("="));
    ASSIGN_OR_RETURN(std::string v, Operand());
    op->operands.push_back(std::move(v));
    cond.arguments.push_back(std::move(a));
  }
  if (s_.Eat(":")) {
    ASSIGN_OR_RETURN(op->operand_types, TypeList());
  }
  if (op->operand_types.size() != op->operands.size())
    return s_.ErrorAtPos(op->pos, "while: as many types as operands are needed");
  for (size_t i = 0; i < cond.arguments.size(); ++i) cond.arguments[i].type = op->operand_types[i];
  op->result_types = op->operand_types;
  if (s_.Eat("attributes")) RETURN_IF_ERROR(ParseDict(&op->attributes));
  Region body;
  body.arguments = cond.arguments;
  RETURN_IF_ERROR(s_.Expect("cond"));
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&cond));
  RETURN_IF_ERROR(s_.Expect("}"));
  RETURN_IF_ERROR(s_.Expect("do"));
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&body));
  RETURN_IF_ERROR(s_.Expect("}"));
  op->regions.push_back(std::move(cond));
  op->regions.push_back(std::move(body));
  return absl::OkStatus();
}

absl::Status Parser::ParseReduce(Op* op) {
  std::vector<std::string> inits;
  do {
    RETURN_IF_ERROR(s_.Expect("("));
    ASSIGN_OR_RETURN(std::string x, Operand());
    RETURN_IF_ERROR(s_.Expect("init"));
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(std::string i, Operand());
    RETURN_IF_ERROR(s_.Expect(")"));
    op->operands.push_back(std::move(x));
    inits.push_back(std::move(i));
  } while (s_.Eat(","));
  op->operands.insert(op->operands.end(), inits.begin(), inits.end());
  if (s_.Eat("applies")) op->attributes["applies"] = std::string(Ident());
  RETURN_IF_ERROR(s_.Expect("across"));
  RETURN_IF_ERROR(s_.Expect("dimensions"));
  RETURN_IF_ERROR(s_.Expect("="));
  ASSIGN_OR_RETURN(op->attributes["dimensions"], PrettyValue());
  if (s_.Peek() == '{') RETURN_IF_ERROR(ParseDict(&op->attributes));
  RETURN_IF_ERROR(s_.Expect(":"));
  RETURN_IF_ERROR(ParseTypes(op));
  if (op->Has("applies")) return absl::OkStatus();
  RETURN_IF_ERROR(s_.Expect("reducer"));
  // (%lhs: t, %rhs: t) per operand; block arguments are all left sides, then all right sides.
  Region r;
  std::vector<BlockArgument> rhs;
  while (s_.Eat("(")) {
    BlockArgument a, b;
    ASSIGN_OR_RETURN(a.name, Operand());
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(a.type, ReadType());
    SkipLoc();
    RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(b.name, Operand());
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(b.type, ReadType());
    SkipLoc();
    RETURN_IF_ERROR(s_.Expect(")"));
    r.arguments.push_back(std::move(a));
    rhs.push_back(std::move(b));
  }
  r.arguments.insert(r.arguments.end(), rhs.begin(), rhs.end());
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&r));
  RETURN_IF_ERROR(s_.Expect("}"));
  op->regions.push_back(std::move(r));
  return absl::OkStatus();
}

// chlo.scan(%a, %b) inits(%c) dimension=0 [attributes {...}] { body } : (types) -> (types)
absl::Status Parser::ParseScan(Op* op) {
  RETURN_IF_ERROR(s_.Expect("("));
  int inits = 0;
  for (bool first = true; !s_.Eat(")"); first = false) {
    if (!first) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(std::string o, Operand());
    op->operands.push_back(std::move(o));
  }
  RETURN_IF_ERROR(s_.Expect("inits"));
  RETURN_IF_ERROR(s_.Expect("("));
  while (!s_.Eat(")")) {
    if (inits++) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(std::string o, Operand());
    op->operands.push_back(std::move(o));
  }
  op->attributes["operandSegmentSizes"] =
      absl::StrCat("[", static_cast<int>(op->operands.size()) - inits, ", ", inits, "]");
  RETURN_IF_ERROR(s_.Expect("dimension"));
  RETURN_IF_ERROR(s_.Expect("="));
  ASSIGN_OR_RETURN(op->attributes["dimension"], PrettyValue());
  if (s_.Eat("attributes")) RETURN_IF_ERROR(ParseDict(&op->attributes));
  op->regions.emplace_back();
  RETURN_IF_ERROR(ParseRegion(&op->regions.back()));
  RETURN_IF_ERROR(s_.Expect(":"));
  return ParseTypes(op);
}

// sdy.manual_computation(%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: type) { body } : (types) ->
// types
absl::Status Parser::ParseManualComputation(Op* op) {
  RETURN_IF_ERROR(s_.Expect("("));
  while (!s_.Eat(")")) {
    if (!op->operands.empty()) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(std::string o, Operand());
    op->operands.push_back(std::move(o));
  }
  for (const char* key : {"in_shardings", "out_shardings", "manual_axes"}) {
    RETURN_IF_ERROR(s_.Expect(key));
    RETURN_IF_ERROR(s_.Expect("="));
    const char open = s_.Peek(), close = open == '[' ? ']' : '}';
    const size_t start = s_.pos();
    RETURN_IF_ERROR(s_.Expect(open == '[' ? "[" : "{"));
    RETURN_IF_ERROR(Raw(std::string(1, close)).status());
    RETURN_IF_ERROR(s_.Expect(std::string(1, close)));
    op->attributes[key] = std::string(s_.text().substr(start, s_.pos() - start));
  }
  RETURN_IF_ERROR(s_.Expect("("));
  Region body;
  while (!s_.Eat(")")) {
    if (!body.arguments.empty()) RETURN_IF_ERROR(s_.Expect(","));
    BlockArgument a;
    ASSIGN_OR_RETURN(a.name, Operand());
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(a.type, ReadType());
    SkipLoc();
    body.arguments.push_back(std::move(a));
  }
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&body));
  RETURN_IF_ERROR(s_.Expect("}"));
  op->regions.push_back(std::move(body));
  RETURN_IF_ERROR(s_.Expect(":"));
  return ParseTypes(op);
}

absl::StatusOr<std::string> Parser::PrettyValue() {
  // A run of bracketed groups and words without a comma at the top: [0] x [1], [b,f]x[i,o]->[b,f], e5m10, "text".
  s_.Peek();
  const size_t start = s_.pos();
  for (;;) {
    const char c = s_.Peek();
    if (c == '[' || c == '<') {
      s_.Eat(c == '[' ? "[" : "<");
      RETURN_IF_ERROR(Raw(c == '[' ? "]" : ">").status());
      RETURN_IF_ERROR(s_.Expect(c == '[' ? "]" : ">"));
    } else if (c == '{' && s_.pos() == start) {
      s_.set_pos(s_.pos() + 1);
      RETURN_IF_ERROR(Raw("}").status());
      RETURN_IF_ERROR(s_.Expect("}"));
      break;
    } else if (c == '"') {
      RETURN_IF_ERROR(s_.Quoted().status());
    } else if (c == '-' && s_.PeekRaw(1) == '>') {
      s_.set_pos(s_.pos() + 2);
    } else if (c == 'x' && (s_.PeekRaw(1) == '[' || s_.PeekRaw(1) == ' ')) {
      s_.set_pos(s_.pos() + 1);
    } else if (s_.pos() == start) {
      if (s_.Word("_.-+#").empty()) return s_.Error("expected a value");
      if (s_.PeekRaw() != '<') break;
    } else {
      break;
    }
  }
  return std::string(absl::StripAsciiWhitespace(s_.text().substr(start, s_.pos() - start)));
}

absl::Status Parser::ParsePretty(Op* op) {
  const absl::string_view n = op->name;
  if (n == "stablehlo.while") return ParseWhile(op);
  if (n == "stablehlo.reduce") return ParseReduce(op);
  if (n == "chlo.scan") return ParseScan(op);
  if (n == "sdy.manual_computation") return ParseManualComputation(op);
  if (n == "sdy.sharding_constraint" || n == "sdy.reshard") {
    ASSIGN_OR_RETURN(std::string o, Operand());
    op->operands.push_back(std::move(o));
    ASSIGN_OR_RETURN(op->attributes["sharding"], PrettyValue());
    RETURN_IF_ERROR(s_.Expect(":"));
    return ParseTypes(op);
  }
  if (n == "stablehlo.constant" || n == "mhlo.constant") {
    if (s_.Peek() == '{') RETURN_IF_ERROR(ParseDict(&op->attributes));
    s_.Peek();
    const size_t start = s_.pos();
    RETURN_IF_ERROR(Raw(":").status());
    op->attributes["value"] = std::string(absl::StripAsciiWhitespace(s_.text().substr(start, s_.pos() - start)));
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(op->result_types, TypeList());
    return absl::OkStatus();
  }
  int parens = 0;
  for (;;) {
    const char c = s_.Peek();
    if (c == 0) return s_.Error("the text ends inside an operation");
    if (c == '%') {
      ASSIGN_OR_RETURN(std::string o, Operand());
      op->operands.push_back(std::move(o));
      // get_tuple_element %x[0]
      if (s_.PeekRaw() == '[') {
        ASSIGN_OR_RETURN(op->attributes["brackets"], PrettyValue());
      }
    } else if (c == '@') {
      s_.Eat("@");
      std::string name;
      if (s_.PeekRaw() == '"') {
        ASSIGN_OR_RETURN(name, s_.Quoted());
      } else {
        name = std::string(s_.Word("_.$-"));
      }
      op->attributes["callee"] = std::move(name);
    } else if (c == '(') {
      s_.Eat("(");
      ++parens;
    } else if (c == ')') {
      if (parens-- == 0) return s_.Error("unbalanced ')'");
      s_.Eat(")");
    } else if (c == ',') {
      s_.Eat(",");
    } else if (c == '[') {
      ASSIGN_OR_RETURN(op->attributes["brackets"], PrettyValue());
    } else if (c == '{') {
      RETURN_IF_ERROR(ParseDict(&op->attributes));
    } else if (c == '<') {
      s_.Eat("<");
      RETURN_IF_ERROR(ParseDict(&op->attributes));
      RETURN_IF_ERROR(s_.Expect(">"));
    } else if (c == '"') {
      ASSIGN_OR_RETURN(std::string w, s_.Quoted());
      op->words.push_back(std::move(w));
    } else if (c == ':') {
      s_.Eat(":");
      return ParseTypes(op);
    } else if (absl::ascii_isalnum(c) || c == '-' || c == '#') {
      const size_t save = s_.pos();
      const absl::string_view w = s_.Word("_.-#");
      if (w.empty()) return s_.Error("unexpected character");
      if (w == "dense") {  // check.expect_eq_const %x, dense<...> : type
        s_.set_pos(save);
        ASSIGN_OR_RETURN(op->attributes["value"], Raw(":,"));
      } else if (s_.Eat("=")) {
        ASSIGN_OR_RETURN(op->attributes[std::string(w)], PrettyValue());
      } else if (n == "stablehlo.return" || n == "func.return" || n == "return") {
        s_.set_pos(save);  // an empty return: the next operation starts here
        return absl::OkStatus();
      } else {
        op->words.emplace_back(w);
      }
    } else if (c == '}' && (absl::EndsWith(n, "return"))) {
      return absl::OkStatus();
    } else {
      return s_.Error(absl::StrCat("unexpected '", std::string(1, c), "' in ", n));
    }
  }
}

absl::StatusOr<std::unique_ptr<Op>> Parser::ParseOp() {
  auto op = std::make_unique<Op>();
  if (s_.Peek() == '%') {
    do {
      RETURN_IF_ERROR(s_.Expect("%"));
      const absl::string_view name = s_.Word("_.$-");
      int count = 1;
      if (s_.Eat(":")) {
        ASSIGN_OR_RETURN(int64_t c, s_.Integer());
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
    ASSIGN_OR_RETURN(op->name, s_.Quoted());
    RETURN_IF_ERROR(ParseGeneric(op.get()));
  } else {
    op->name = std::string(Ident());
    if (op->name.empty()) return s_.Error("expected an operation");
    if (op->name == "return") op->name = "func.return";
    if (op->name == "call") op->name = "func.call";
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
  SkipLoc();
  return op;
}

absl::StatusOr<Function> Parser::ParseFunction() {
  Function f;
  f.loc = s_.Loc(s_.pos());
  if (s_.Eat("public")) f.is_public = true;
  s_.Eat("private");
  s_.Eat("nested");
  RETURN_IF_ERROR(s_.Expect("@"));
  if (s_.PeekRaw() == '"') {
    ASSIGN_OR_RETURN(f.name, s_.Quoted());
  } else {
    f.name = std::string(s_.Word("_.$-"));
  }
  RETURN_IF_ERROR(s_.Expect("("));
  while (!s_.Eat(")")) {
    if (!f.body.arguments.empty()) RETURN_IF_ERROR(s_.Expect(","));
    BlockArgument a;
    ASSIGN_OR_RETURN(a.name, Operand());
    RETURN_IF_ERROR(s_.Expect(":"));
    ASSIGN_OR_RETURN(a.type, ReadType());
    if (s_.Peek() == '{') {
      s_.Eat("{");
      ASSIGN_OR_RETURN(a.attributes, Raw("}"));
      RETURN_IF_ERROR(s_.Expect("}"));
    }
    SkipLoc();
    f.body.arguments.push_back(std::move(a));
  }
  if (s_.Eat("->")) {
    const bool list = s_.Eat("(");
    for (;;) {
      if (list && s_.Eat(")")) break;
      if (!f.result_types.empty()) {
        if (!list) break;
        RETURN_IF_ERROR(s_.Expect(","));
      }
      ASSIGN_OR_RETURN(Type t, ReadType());
      f.result_types.push_back(std::move(t));
      f.result_attributes.emplace_back();
      if (list && s_.Peek() == '{') {
        s_.Eat("{");
        ASSIGN_OR_RETURN(f.result_attributes.back(), Raw("}"));
        RETURN_IF_ERROR(s_.Expect("}"));
      }
    }
  }
  if (s_.Eat("attributes")) {
    absl::flat_hash_map<std::string, std::string> ignored;
    RETURN_IF_ERROR(ParseDict(&ignored));
  }
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&f.body));
  RETURN_IF_ERROR(s_.Expect("}"));
  SkipLoc();
  return f;
}

absl::Status Parser::ParseTopLevel(Program* p) {
  while (!s_.AtEnd() && s_.Peek() != '}') {
    if (s_.Peek() == '#' || s_.Peek() == '!') {
      const absl::string_view name = s_.Word("_.#!-");
      RETURN_IF_ERROR(s_.Expect("="));
      s_.Peek();
      // To the end of the line, or of the bracket that is open there.
      ASSIGN_OR_RETURN(std::string v, Raw("\n"));
      p->aliases[std::string(name)] = std::move(v);
      continue;
    }
    const size_t save = s_.pos();
    const absl::string_view word = Ident();
    if (word == "module") {
      if (s_.Eat("@")) {
        if (s_.PeekRaw() == '"') {
          ASSIGN_OR_RETURN(p->name, s_.Quoted());
        } else {
          p->name = std::string(s_.Word("_.$-"));
        }
      }
      if (s_.Eat("attributes")) RETURN_IF_ERROR(ParseDict(&p->attributes));
      RETURN_IF_ERROR(s_.Expect("{"));
      if (++depth_ > kMaxDepth) return s_.Error("modules nest too deep");
      RETURN_IF_ERROR(ParseTopLevel(p));
      --depth_;
      RETURN_IF_ERROR(s_.Expect("}"));
      SkipLoc();
    } else if (word == "func.func" || word == "func") {
      s_.Peek();
      ASSIGN_OR_RETURN(Function f, ParseFunction());
      p->functions.push_back(std::move(f));
    } else if (word == "sdy.mesh") {
      RETURN_IF_ERROR(s_.Expect("@"));
      const std::string name(s_.Word("_.$-"));
      RETURN_IF_ERROR(s_.Expect("="));
      ASSIGN_OR_RETURN(std::string v, PrettyValue());
      p->attributes[absl::StrCat("sdy.mesh.", name)] = v;
      absl::flat_hash_map<std::string, std::string> ignored;
      if (s_.Peek() == '{') RETURN_IF_ERROR(ParseDict(&ignored));
      SkipLoc();
    } else {
      s_.set_pos(save);
      ASSIGN_OR_RETURN(auto op, ParseOp());
      p->top_level.push_back(std::move(op));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Program> Parser::ParseProgram() {
  Program p;
  RETURN_IF_ERROR(ParseTopLevel(&p));
  if (!s_.AtEnd()) return s_.Error("unbalanced '}'");
  return p;
}

}  // namespace

const std::string& Op::Attr(absl::string_view key) const {
  static const auto* empty = new std::string;
  auto it = attributes.find(key);
  return it == attributes.end() ? *empty : it->second;
}

std::optional<PrimitiveType> ElementType(absl::string_view t) {
  using P = PrimitiveType;
  static const auto* map = new absl::flat_hash_map<std::string, P>{{"i1", P::Pred},
                                                                   {"i2", P::S2},
                                                                   {"i4", P::S4},
                                                                   {"i8", P::S8},
                                                                   {"i16", P::S16},
                                                                   {"i32", P::S32},
                                                                   {"i64", P::S64},
                                                                   {"si2", P::S2},
                                                                   {"si4", P::S4},
                                                                   {"si8", P::S8},
                                                                   {"si16", P::S16},
                                                                   {"si32", P::S32},
                                                                   {"si64", P::S64},
                                                                   {"ui2", P::U2},
                                                                   {"ui4", P::U4},
                                                                   {"ui8", P::U8},
                                                                   {"ui16", P::U16},
                                                                   {"ui32", P::U32},
                                                                   {"ui64", P::U64},
                                                                   {"ui1", P::U1},
                                                                   {"si1", P::S1},
                                                                   {"index", P::S64},
                                                                   {"f16", P::F16},
                                                                   {"bf16", P::BF16},
                                                                   {"f32", P::F32},
                                                                   {"f64", P::F64},
                                                                   {"complex<f32>", P::C64},
                                                                   {"complex<f64>", P::C128}};
  if (auto it = map->find(std::string(t)); it != map->end()) return it->second;
  if (t.size() > 3 && t[0] == 'f') return TypeFromText(absl::AsciiStrToLower(t));
  return std::nullopt;
}

absl::StatusOr<Type> ParseType(absl::string_view text) {
  Parser p(text, "<type>");
  return p.ReadType();
}

absl::StatusOr<Program> Parse(absl::string_view text, const std::string& file) {
  return Parser(text, file).ParseProgram();
}

}  // namespace kiln::mlir
