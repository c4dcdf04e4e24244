#include "compiler/import/stablehlo/converter.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/infer.h"
#include "compiler/import/bytecode.h"
#include "compiler/import/check_program.h"
#include "compiler/import/chlo.h"
#include "compiler/import/dense.h"
#include "compiler/import/symbols.h"

namespace kiln::stablehlo {

using mlir::Function;
using mlir::Op;
using mlir::Region;

std::string EnumWord(absl::string_view text) {
  absl::ConsumeSuffix(&text, ">");
  const size_t at = text.find_last_of(" <.");
  return std::string(at == absl::string_view::npos ? text : text.substr(at + 1));
}

std::optional<Ints> FieldInts(absl::string_view text, absl::string_view key) {
  size_t at = 0;
  while ((at = text.find(key, at)) != absl::string_view::npos) {
    const bool starts = at == 0 || !(absl::ascii_isalnum(text[at - 1]) || text[at - 1] == '_');
    size_t p = at + key.size();
    while (p < text.size() && text[p] == ' ') ++p;
    if (starts && p < text.size() && text[p] == '=') {
      ++p;
      while (p < text.size() && text[p] == ' ') ++p;
      if (p < text.size() && text[p] == '[') return ParseIntList(text.substr(p, text.find(']', p) - p + 1));
      size_t e = p;
      while (e < text.size() && (absl::ascii_isdigit(text[e]) || text[e] == '-')) ++e;
      return ParseIntList(text.substr(p, e - p));
    }
    at += key.size();
  }
  return std::nullopt;
}

std::optional<Ints> SomeInts(absl::string_view text, absl::string_view key) {
  auto v = FieldInts(text, key);
  return v && !v->empty() ? v : std::nullopt;
}

bool Unbounded(const Shape& s) {
  if (s.IsTuple()) return std::any_of(s.tuple().begin(), s.tuple().end(), Unbounded);
  return std::any_of(s.dims().begin(), s.dims().end(), [](int64_t d) { return d < 0; });
}

absl::StatusOr<Instruction*> Lookup(const Env& env, const std::string& name) {
  const size_t hash = name.find('#');
  auto it = env.find(name.substr(0, hash));
  if (it == env.end()) return InvalidArgument("value '%", name, "' is not defined");
  int64_t k = 0;
  if (hash != std::string::npos && !absl::SimpleAtoi(name.substr(hash + 1), &k))
    return InvalidArgument("bad result number in '%", name, "'");
  if (k < 0 || k >= static_cast<int64_t>(it->second.size()))
    return InvalidArgument("value '%", name, "' has ", it->second.size(), " results");
  return it->second[k];
}

void Bind(Env* env, const std::string& name, Instruction* value) {
  const size_t hash = name.find('#');
  Values& slot = (*env)[name.substr(0, hash)];
  size_t k = 0;
  if (hash != std::string::npos) (void)absl::SimpleAtoi(name.substr(hash + 1), &k);
  // Other results of the group stay unused in this scope; any value holds their place.
  if (slot.size() <= k) slot.resize(k + 1, value);
  slot[k] = value;
}

Values Call::Split(Instruction* tuple) {
  Values out;
  for (size_t k = 0; k < tuple->shape().tuple().size(); ++k) {
    Instruction* g = Add(Opcode::GetTupleElement, tuple->shape().tuple()[k], {tuple});
    g->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    out.push_back(g);
  }
  return out;
}

absl::Status Call::Need(size_t operands) const {
  if (x.size() != operands) return Fail(absl::StrCat("takes ", operands, " operands, not ", x.size()));
  return absl::OkStatus();
}

Ints Call::List(absl::string_view key) const {
  return op.Has(key) ? ParseIntList(Resolve(op.Attr(key))).value_or(Ints()) : Ints();
}

int64_t Call::One(absl::string_view key, int64_t otherwise) const {
  const Ints v = List(key);
  return v.empty() ? otherwise : v[0];
}

bool Call::Flag(absl::string_view key, bool otherwise) const {
  if (!op.Has(key)) return otherwise;
  return op.Attr(key) == "unit" || absl::StartsWith(op.Attr(key), "true");
}

Ints Call::Dims() const {
  for (const char* k : {"dims", "dimensions", "broadcast_dimensions", "permutation"})
    if (op.Has(k)) return List(k);
  return {};
}

absl::StatusOr<Computation*> Call::CalledComputation() {
  const std::string called = Resolve(op.Attr("called_computations"));
  const std::vector<std::string> names = mlir::SymbolsIn(called);
  if (names.size() != 1) return Fail(absl::StrCat("needs one called computation, not '", called, "'"));
  return converter.FunctionOf(names[0], op);
}

absl::StatusOr<Ints> Call::Known(size_t operand) {
  if (operand >= x.size()) return Fail(absl::StrCat("operand ", operand, " is missing"));
  auto value = converter.Evaluate(x[operand]);
  if (!value.ok())
    return Fail(absl::StrCat("operand ", operand, " states extents, but ", value.status().message()),
                value.status().code());
  if (!IsIntegral(value->type())) return Fail(absl::StrCat("operand ", operand, " does not hold integers"));
  Ints out;
  for (int64_t k = 0; k < value->size(); ++k) out.push_back(value->Get(k).i);
  return out;
}

Converter::Converter(const mlir::Program& program, const std::string& file, const ImportOptions& options)
    : program_(program), options_(options), origins_(program.aliases) {
  module_ = std::make_unique<Module>(program.name.empty() ? "main" : NameInText(program.name));
  module_->file = file;
  module_->limits = options.limits;
}

absl::Status Converter::Fail(const Op& op, absl::string_view why, absl::StatusCode code) const {
  return absl::Status(
      code, absl::StrCat(module_->file, ":", op.loc.line, ":", op.loc.column, ": error: ", op.name, ": ", why));
}

std::string Converter::Resolve(const std::string& text) const {
  auto it = program_.aliases.find(text);
  return it == program_.aliases.end() ? text : it->second;
}

QuantizedPtr Converter::QuantizationOf(const Instruction* i) const {
  auto it = quantized_.find(i);
  return it == quantized_.end() ? nullptr : it->second;
}

void Converter::Mark(const Instruction* i, QuantizedPtr type) {
  if (type) quantized_[i] = std::move(type);
}

bool Converter::DependsOnOtherArgument(const Instruction* i) const {
  absl::flat_hash_set<const Instruction*> seen;
  std::vector<const Instruction*> left = {i};
  while (!left.empty()) {
    const Instruction* x = left.back();
    left.pop_back();
    if (!seen.insert(x).second || evaluated_.contains(x)) continue;
    if (x->Is(Opcode::Parameter) && !always_.contains(x)) return true;
    if (auto it = always_.find(x); it != always_.end())
      left.push_back(it->second);
    else
      left.insert(left.end(), x->operands().begin(), x->operands().end());
  }
  return false;
}

absl::StatusOr<Literal> Converter::Evaluate(Instruction* i) {
  if (auto it = evaluated_.find(i); it != evaluated_.end()) return it->second;
  if (auto it = always_.find(i); it != always_.end()) return Evaluate(it->second);
  std::vector<Literal> operands;
  for (Instruction* o : i->operands()) {
    ASSIGN_OR_RETURN(Literal v, Evaluate(o));
    operands.push_back(std::move(v));
  }
  if (i->Is(Opcode::Parameter)) {
    const int64_t number = *i->attrs().parameter_number;
    auto given = options_.argument_values.find(number);
    const bool known = given != options_.argument_values.end();
    if (i->parent() != entry_ || i->shape().rank() != 0 || !IsIntegral(i->shape().type()) ||
        (!known && options_.dim < 0))
      return InvalidArgument("it depends on argument ", number, ", whose value is not known when the program is built");
    const int64_t value = known ? given->second : options_.dim;
    const std::pair<int64_t, int64_t> stated = {number, value};
    auto& list = module_->dimension_arguments;
    if (std::find(list.begin(), list.end(), stated) == list.end()) list.push_back(stated);
    return evaluated_[i] = Literal::Int(i->shape().type(), value);
  }
  if (i->HasSideEffect() || i->Is(Opcode::CustomCall))
    return InvalidArgument("it depends on '", i->name(), "', which only runs at run time");
  std::vector<const Literal*> pointers;
  for (const Literal& l : operands) pointers.push_back(&l);
  ASSIGN_OR_RETURN(Literal value, EvaluateInstruction(*i, pointers));
  return evaluated_[i] = std::move(value);
}

namespace {

struct NameSearch {
  absl::flat_hash_map<absl::string_view, int> bound;  // how often, by regions around
  absl::flat_hash_set<std::string> found;
  std::vector<std::string>* out;
};

void FindFreeNames(const Region& r, NameSearch* s) {
  std::vector<absl::string_view> here;
  const auto bind = [&](absl::string_view name) {
    ++s->bound[name];
    here.push_back(name);
  };
  for (const auto& a : r.arguments) bind(a.name);
  for (const auto& op : r.ops) {
    for (const std::string& o : op->operands) {
      auto it = s->bound.find(absl::string_view(o).substr(0, o.find('#')));
      if ((it == s->bound.end() || it->second == 0) && s->found.insert(o).second) s->out->push_back(o);
    }
    for (const Region& inner : op->regions) FindFreeNames(inner, s);
    for (const auto& [name, n] : op->results) bind(name);
  }
  for (absl::string_view name : here) --s->bound[name];
}

}  // namespace

void Converter::FreeNames(const Region& r, std::vector<std::string>* out) {
  NameSearch s;
  s.out = out;
  s.found.insert(out->begin(), out->end());
  FindFreeNames(r, &s);
}

absl::StatusOr<Instruction*> Converter::CloneConstant(Instruction* i, Computation* into, const Op& op) {
  // A loop or a branch around the region is handed what it uses, constants too.
  if (auto it = always_.find(i); it != always_.end()) return CloneConstant(it->second, into, op);
  if (i->Is(Opcode::Parameter) || i->HasSideEffect() || !i->called().empty())
    return Fail(op, absl::StrCat("its region uses '", i->name(), "' from outside, which is not a constant"),
                absl::StatusCode::kUnimplemented);
  Values ops;
  for (Instruction* o : i->operands()) {
    ASSIGN_OR_RETURN(Instruction * n, CloneConstant(o, into, op));
    ops.push_back(n);
  }
  return into->AddClone(i, i->shape(), ops);
}

absl::StatusOr<Computation*> Converter::ScalarRegion(const Region& r, const Op& op, const Env& outer,
                                                     absl::string_view name) {
  Computation* c = module_->AddComputation(absl::StrCat(name, "_", next_region_++));
  Env env;
  for (size_t k = 0; k < r.arguments.size(); ++k) {
    const mlir::Type& type = r.arguments[k].type;
    if (Unbounded(type)) return Fail(op, "a region's argument has an unbounded dimension");
    Instruction* p = c->AddParameter(static_cast<int64_t>(k), type, absl::StrCat("arg", k));
    Mark(p, type.quantized);
    env[r.arguments[k].name] = {p};
  }
  std::vector<std::string> free;
  FreeNames(r, &free);
  for (const std::string& n : free) {
    auto v = Lookup(outer, n);
    if (!v.ok()) return Fail(op, v.status().message());
    ASSIGN_OR_RETURN(Instruction * copy, CloneConstant(*v, c, op));
    Mark(copy, QuantizationOf(*v));
    Bind(&env, n, copy);
  }
  Values ret;
  RETURN_IF_ERROR(BuildOps(r, c, &env, &ret));
  if (ret.size() == 1) {
    c->set_root(ret[0]);
  } else {
    std::vector<Shape> shapes;
    for (Instruction* i : ret) shapes.push_back(i->shape());
    c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(shapes), ret));
  }
  return c;
}

absl::StatusOr<Computation*> Converter::TupleRegion(const Region& r, const std::vector<Shape>& arguments,
                                                    const std::vector<std::string>& captured, const Env& outer,
                                                    absl::string_view name, const std::vector<int64_t>& forwarded,
                                                    const Values& always) {
  Computation* c = module_->AddComputation(absl::StrCat(name, "_", next_region_++));
  std::vector<Shape> shapes = arguments;
  for (const std::string& n : captured) {
    ASSIGN_OR_RETURN(Instruction * v, Lookup(outer, n));
    shapes.push_back(v->shape());
  }
  Instruction* p = c->AddParameter(0, Shape::Tuple(shapes), "state");
  Values parts;
  for (size_t k = 0; k < shapes.size(); ++k) {
    parts.push_back(c->Add(Opcode::GetTupleElement, shapes[k], {p}));
    parts.back()->mutable_attrs().tuple_index = static_cast<int64_t>(k);
  }
  Env env;
  for (size_t k = 0; k < r.arguments.size(); ++k) {
    env[r.arguments[k].name] = {parts[k]};
    Mark(parts[k], r.arguments[k].type.quantized);
    if (k < always.size() && always[k]) Always(parts[k], always[k]);
  }
  for (size_t k = 0; k < captured.size(); ++k) {
    Instruction* v = parts[arguments.size() + k];
    ASSIGN_OR_RETURN(Instruction * from, Lookup(outer, captured[k]));
    Mark(v, QuantizationOf(from));
    Always(v, from);
    Bind(&env, captured[k], v);
  }
  Values ret;
  RETURN_IF_ERROR(BuildOps(r, c, &env, &ret));
  for (int64_t k : forwarded) ret.push_back(parts[k]);
  if (name == "cond") {
    if (ret.empty()) return InvalidArgument("a while condition returns nothing");
    c->set_root(ret[0]);
  } else {
    std::vector<Shape> out;
    for (Instruction* i : ret) out.push_back(i->shape());
    c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(out), ret));
  }
  return c;
}

absl::Status Converter::BuildOps(const Region& r, Computation* c, Env* env, Values* returned) {
  for (const auto& op : r.ops) {
    if (absl::EndsWith(op->name, ".return")) {
      for (const std::string& o : op->operands) {
        auto v = Lookup(*env, o);
        if (!v.ok()) return Fail(*op, v.status().message());
        returned->push_back(*v);
      }
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(BuildOp(*op, c, env));
  }
  return absl::OkStatus();
}

absl::Status Converter::BuildOp(const Op& op, Computation* c, Env* env) {
  // An operation becomes some instructions.
  const int64_t most = options_.limits.inlined_instructions / 8;
  if (inline_depth_ > 0 && ++inlined_ > most)
    return Fail(op,
                absl::StrCat("functions with unbounded types are inlined at each call, and come to more than ", most,
                             " operations"),
                absl::StatusCode::kResourceExhausted);
  const int64_t first_new = c->module()->next_id();
  ASSIGN_OR_RETURN(Values values, Convert(op, c, env));
  // Extents that the text leaves open follow from the operands.
  const std::string metadata = origins_.Of(op.origin).Metadata();
  for (Instruction* i : c->AddedSince(first_new)) {
    if (!metadata.empty() && !i->attrs().metadata) i->mutable_attrs().metadata = attr::Raw(metadata);
    if (!Unbounded(i->shape())) continue;
    auto shape = InferShape(*i);
    if (!shape.ok()) return Fail(op, shape.status().message(), shape.status().code());
    if (Unbounded(*shape))
      return Fail(op, absl::StrCat("the extents of its result ", i->shape().ToString(false), " are not known"));
    i->mutable_shape() = *shape;
  }
  size_t next = 0;
  for (const auto& [name, count] : op.results) {
    Values group;
    for (int k = 0; k < count; ++k) {
      if (next >= values.size()) return Fail(op, absl::StrCat("has ", values.size(), " results, more are named"));
      group.push_back(values[next++]);
    }
    if (!env->insert({name, std::move(group)}).second)
      return Fail(op, absl::StrCat("value '%", name, "' is defined twice"));
  }
  // What the text states of its results must be so.
  for (size_t k = 0; k < values.size() && k < op.result_types.size(); ++k) {
    const Shape &got = values[k]->shape(), &said = op.result_types[k];
    bool fits = got.type() == said.type() && got.rank() == said.rank();
    for (int64_t d = 0; fits && d < got.rank(); ++d) fits = said.dim(d) < 0 || got.dim(d) == said.dim(d);
    if (!fits && !got.IsTuple())
      return Fail(op,
                  absl::StrCat("result ", k, " is ", got.ToString(false), ", the text says ", said.ToString(false)));
    if (!values[k]->Is(Opcode::Tuple) && values[k]->loc().line == op.loc.line) {
      auto inferred = InferShape(*values[k]);
      if (!inferred.ok()) return ErrorAt(values[k], inferred.status().message(), inferred.status().code());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Values> Converter::Convert(const Op& op, Computation* c, Env* env) {
  Call call{*this, op, op.name, c, env, {}, {}};
  bool quantized = false;
  for (const std::string& o : op.operands) {
    auto v = Lookup(*env, o);
    if (!v.ok()) return Fail(op, v.status().message());
    call.x.push_back(*v);
    quantized = quantized || QuantizationOf(*v);
  }
  if (op.operand_types.size() == call.x.size() && op.has_function_type)
    for (size_t k = 0; k < call.x.size(); ++k)
      if (!op.operand_types[k].Compatible(call.x[k]->shape()) && !op.operand_types[k].HasDynamic())
        return Fail(op, absl::StrCat("operand ", k, " is ", call.x[k]->shape().ToString(false), ", the text says ",
                                     op.operand_types[k].ToString(false)));
  for (const mlir::Type& t : op.result_types) {
    call.types.push_back(t);
    quantized = quantized || t.quantized;
  }
  const size_t dot = op.name.find('.');
  std::string dialect = op.name.substr(0, dot == std::string::npos ? 0 : dot);
  if (dialect == "mhlo") dialect = "stablehlo";
  call.name = absl::string_view(op.name).substr(dot == std::string::npos ? 0 : dot + 1);

  static const auto* handlers = new absl::flat_hash_map<std::string, Handler>{
#define OPERATION(dialect, name, handler) {#dialect "." #name, handler},
#include "compiler/import/stablehlo/operations.def"
  };
  auto it = handlers->find(absl::StrCat(dialect, ".", call.name));
  Handler handler = it != handlers->end()    ? it->second
                    : dialect == "stablehlo" ? ConvertElementwise
                    : dialect == "chlo"      ? ConvertChlo
                                             : nullptr;
  if (!handler) return Fail(op, "this operation is not supported", absl::StatusCode::kUnimplemented);
  if (!quantized) return handler(call);

  if (call.name == "uniform_quantize" || call.name == "uniform_dequantize") return ConvertQuantization(call);
  if (!op.regions.empty() || dialect == "func" || dialect == "check" || dialect == "interpreter" ||
      MovesStorage(call.name)) {
    ASSIGN_OR_RETURN(Values out, handler(call));
    for (size_t k = 0; k < out.size() && k < op.result_types.size(); ++k) Mark(out[k], op.result_types[k].quantized);
    return out;
  }
  // Everything else works on the real numbers that the integers stand for.
  for (Instruction*& x : call.x)
    if (QuantizedPtr q = QuantizationOf(x)) {
      auto real = Dequantize(x, *q);
      if (!real.ok()) return Fail(op, real.status().message(), real.status().code());
      x = real->get();
    }
  for (size_t k = 0; k < call.types.size(); ++k)
    if (op.result_types[k].quantized) call.types[k].set_type(op.result_types[k].quantized->expressed);
  ASSIGN_OR_RETURN(Values out, handler(call));
  for (size_t k = 0; k < out.size() && k < op.result_types.size(); ++k) {
    QuantizedPtr q = op.result_types[k].quantized;
    if (!q) continue;
    auto stored = Quantize(out[k], *q);
    if (!stored.ok()) return Fail(op, stored.status().message(), stored.status().code());
    out[k] = stored->get();
    Mark(out[k], q);
  }
  return out;
}

}  // namespace kiln::stablehlo
