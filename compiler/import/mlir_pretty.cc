// The pretty forms of operations. Most are operands, words and `key = value` in some order; some have their own.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/import/mlir_parser.h"

namespace kiln::mlir {

// [{attributes}] dense<...> : type
absl::Status Parser::ParseConstant(Op* op) {
  if (s_.Peek() == '{') RETURN_IF_ERROR(ParseDict(&op->attributes));
  ASSIGN_OR_RETURN(op->attributes["value"], Raw(":"));
  RETURN_IF_ERROR(s_.Expect(":"));
  ASSIGN_OR_RETURN(op->result_types, TypeList());
  return absl::OkStatus();
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
  Region r, rhs;
  while (s_.Eat("(")) {
    RETURN_IF_ERROR(ParseBlockArgument(&r));
    RETURN_IF_ERROR(s_.Expect(","));
    RETURN_IF_ERROR(ParseBlockArgument(&rhs));
    RETURN_IF_ERROR(s_.Expect(")"));
  }
  for (BlockArgument& a : rhs.arguments) r.arguments.push_back(std::move(a));
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
    RETURN_IF_ERROR(ParseBlockArgument(&body));
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
  if (n == "builtin.module") return ParseModule(op);
  if (n == "func.func") return ParseFunction(op);
  if (n == "sdy.mesh") return ParseMesh(op);
  if (n == "stablehlo.constant" || n == "mhlo.constant") return ParseConstant(op);
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
      ASSIGN_OR_RETURN(op->attributes["callee"], SymbolName());
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
      ASSIGN_OR_RETURN(std::string w, ReadMlirString(&s_));
      op->words.push_back(std::move(w));
    } else if (c == ':') {
      if (parens > 0) return s_.Error("'(' is never closed");
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

}  // namespace kiln::mlir
