// Modules and functions: pretty forms become the operations of the generic form, and these a Program.
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/mesh.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/import/mlir_parser.h"

namespace kiln::mlir {

// builtin.module [@name] [attributes {...}] { operations }
absl::Status Parser::ParseModule(Op* op) {
  if (s_.Peek() == '@') {
    ASSIGN_OR_RETURN(const std::string name, SymbolName());
    op->attributes["sym_name"] = QuoteMlir(name);
  }
  if (s_.Eat("attributes")) RETURN_IF_ERROR(ParseDict(&op->attributes));
  op->regions.emplace_back();
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&op->regions[0]));
  return s_.Expect("}");
}

// func.func [public|private|nested] @name(%a: type {...}, ...) [-> types] [attributes {...}] { operations }
absl::Status Parser::ParseFunction(Op* op) {
  for (const char* visibility : {"public", "private", "nested"})
    if (s_.Eat(visibility)) op->attributes["sym_visibility"] = QuoteMlir(visibility);
  ASSIGN_OR_RETURN(const std::string name, SymbolName());
  op->attributes["sym_name"] = QuoteMlir(name);
  Region body;
  RETURN_IF_ERROR(s_.Expect("("));
  bool declared = false;  // types alone: there is no body
  while (!s_.Eat(")")) {
    if (!body.arguments.empty()) RETURN_IF_ERROR(s_.Expect(","));
    BlockArgument a;
    declared = s_.Peek() != '%';
    if (!declared) {
      ASSIGN_OR_RETURN(a.name, Operand());
      RETURN_IF_ERROR(s_.Expect(":"));
    }
    ASSIGN_OR_RETURN(a.type, ReadType());
    if (s_.Peek() == '{') {
      s_.Eat("{");
      ASSIGN_OR_RETURN(a.attributes, Raw("}"));
      RETURN_IF_ERROR(s_.Expect("}"));
    }
    a.origin = ReadOrigin();
    body.arguments.push_back(std::move(a));
  }
  std::vector<std::string> result_attributes;
  if (s_.Eat("->")) {
    const bool list = s_.Eat("(");
    while (!list || !s_.Eat(")")) {
      if (!op->result_types.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Type t, ReadType());
      op->result_types.push_back(std::move(t));
      result_attributes.push_back("{}");
      if (!list) break;
      if (s_.Peek() == '{') {
        ASSIGN_OR_RETURN(result_attributes.back(), Raw(",)"));
      }
    }
  }
  op->attributes["res_attrs"] = absl::StrCat("[", absl::StrJoin(result_attributes, ", "), "]");
  if (s_.Eat("attributes")) RETURN_IF_ERROR(ParseDict(&op->attributes));
  if (declared || s_.Peek() != '{') return s_.ErrorAtPos(op->pos, absl::StrCat("function @", name, " has no body"));
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(ParseOps(&body));
  op->regions.push_back(std::move(body));
  return s_.Expect("}");
}

// sdy.mesh @name = <["x"=2]>
absl::Status Parser::ParseMesh(Op* op) {
  ASSIGN_OR_RETURN(const std::string name, SymbolName());
  op->attributes["sym_name"] = QuoteMlir(name);
  RETURN_IF_ERROR(s_.Expect("="));
  ASSIGN_OR_RETURN(op->attributes["mesh"], PrettyValue());
  return s_.Peek() == '{' ? ParseDict(&op->attributes) : absl::OkStatus();
}

// #name = value or !name = type, to the end of the line or of the bracket that is open there.
absl::Status Parser::ParseAlias() {
  const absl::string_view name = s_.Word("_.#!-");
  RETURN_IF_ERROR(s_.Expect("="));
  ASSIGN_OR_RETURN(aliases_[std::string(name)], Raw("\n"));
  return absl::OkStatus();
}

absl::Status Parser::ParseTopLevel(Region* top) {
  while (!s_.AtEnd()) {
    if (s_.Peek() == '}') return s_.Error("unbalanced '}'");
    if (s_.Peek() == '#' || s_.Peek() == '!') {
      RETURN_IF_ERROR(ParseAlias());
      continue;
    }
    ASSIGN_OR_RETURN(auto op, ParseOp());
    top->ops.push_back(std::move(op));
  }
  return absl::OkStatus();
}

absl::StatusOr<Program> Parser::ParseProgram() {
  Region top;
  RETURN_IF_ERROR(ParseTopLevel(&top));
  Program p;
  for (auto& op : top.ops) RETURN_IF_ERROR(AddTopLevel(std::move(op), s_.file(), &p));
  p.aliases = std::move(aliases_);
  return p;
}

absl::StatusOr<std::vector<std::string>> Parser::ReadList() {
  std::vector<std::string> out;
  RETURN_IF_ERROR(s_.Expect("["));
  while (!s_.Eat("]")) {
    if (!out.empty()) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(std::string element, Raw(",]"));
    if (element.empty()) return s_.Error("expected an element");
    out.push_back(std::move(element));
  }
  return out;
}

namespace {

absl::Status Fail(const Op& op, const std::string& file, absl::string_view why) {
  return InvalidArgument(file, ":", op.loc.line, ":", op.loc.column, ": error: ", op.name, ": ", why);
}

// Attributes of arguments or results, without their braces; as many as `count`, or none.
absl::StatusOr<std::vector<std::string>> Dictionaries(const Op& op, const std::string& file, const char* key,
                                                      size_t count) {
  std::vector<std::string> out(count);
  if (!op.Has(key)) return out;
  auto list = Parser(op.Attr(key), file).ReadList();
  if (!list.ok() || list->size() != count)
    return Fail(op, file, absl::StrCat(key, " is no list of ", count, " dictionaries"));
  for (size_t k = 0; k < count; ++k) {
    absl::string_view text = (*list)[k];
    if (!absl::ConsumePrefix(&text, "{") || !absl::ConsumeSuffix(&text, "}"))
      return Fail(op, file, absl::StrCat(key, " is no list of ", count, " dictionaries"));
    out[k] = std::string(text);
  }
  return out;
}

absl::StatusOr<Function> MakeFunction(Op& op, const std::string& file) {
  Function f;
  f.loc = op.loc;
  f.name = MlirStringValue(op.Attr("sym_name"));
  if (f.name.empty()) return Fail(op, file, "a function without a name (sym_name)");
  const std::string visibility = MlirStringValue(op.Attr("sym_visibility"));
  f.is_public = visibility.empty() || visibility == "public";
  if (op.regions.size() != 1) return Fail(op, file, "a function needs one region");
  f.body = std::move(op.regions[0]);
  f.result_types = std::move(op.result_types);
  if (op.Has("function_type")) {
    std::vector<Type> arguments;
    if (auto s = Parser(op.Attr("function_type"), file).ReadFunctionType(&arguments, &f.result_types); !s.ok())
      return Fail(op, file,
                  absl::StrCat("its function_type '", op.Attr("function_type"), "' is not one that is supported"));
    bool fits = arguments.size() == f.body.arguments.size();
    for (size_t k = 0; fits && k < arguments.size(); ++k) fits = SameType(arguments[k], f.body.arguments[k].type);
    if (!fits) return Fail(op, file, absl::StrCat("the arguments of @", f.name, " are not those of its function_type"));
  }
  ASSIGN_OR_RETURN(const auto arguments, Dictionaries(op, file, "arg_attrs", f.body.arguments.size()));
  for (size_t k = 0; k < arguments.size(); ++k)
    if (f.body.arguments[k].attributes.empty()) f.body.arguments[k].attributes = arguments[k];
  ASSIGN_OR_RETURN(f.result_attributes, Dictionaries(op, file, "res_attrs", f.result_types.size()));
  return f;
}

}  // namespace

absl::Status AddTopLevel(std::unique_ptr<Op> op, const std::string& file, Program* p) {
  if (op->name == "builtin.module") {
    if (op->regions.size() != 1 || !op->regions[0].arguments.empty())
      return Fail(*op, file, "a module needs one region without arguments");
    for (auto& [key, value] : op->attributes) {
      if (key == "sym_name")
        p->name = MlirStringValue(value);
      else
        p->attributes[key] = std::move(value);
    }
    for (auto& inner : op->regions[0].ops) RETURN_IF_ERROR(AddTopLevel(std::move(inner), file, p));
    return absl::OkStatus();
  }
  if (op->name == "func.func") {
    ASSIGN_OR_RETURN(Function f, MakeFunction(*op, file));
    p->functions.push_back(std::move(f));
  } else if (op->name == "sdy.mesh") {
    absl::string_view text = op->Attr("mesh");
    absl::ConsumePrefix(&text, "#sdy.mesh");
    Scanner mesh_text(text, file);
    const auto mesh = ReadMesh(mesh_text);
    const std::string name = MlirStringValue(op->Attr("sym_name"));
    if (!mesh || !mesh_text.AtEnd())
      return Fail(*op, file, "a mesh is written <[\"axis\"=size, ...]>, with device_ids=[...] or without");
    Scanner scanner(name, file);
    if (scanner.Word("_.-$").size() != name.size() || name.empty())
      return Fail(*op, file, "the name of a mesh has letters, digits and any of _ . - $");
    p->meshes[name] = MeshText(*mesh);
  } else {
    p->top_level.push_back(std::move(op));
  }
  return absl::OkStatus();
}

bool SameType(const Type& a, const Type& b) {
  if (!(static_cast<const Shape&>(a) == static_cast<const Shape&>(b))) return false;
  return a.quantized == b.quantized || (a.quantized && b.quantized && *a.quantized == *b.quantized);
}

absl::StatusOr<Program> Parse(absl::string_view text, const std::string& file) {
  return Parser(text, file).ParseProgram();
}

}  // namespace kiln::mlir
