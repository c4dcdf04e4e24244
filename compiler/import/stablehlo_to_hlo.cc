#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/infer.h"
#include "compiler/import/chlo.h"
#include "compiler/import/dense.h"
#include "compiler/import/import.h"
#include "compiler/import/mlir.h"

namespace kiln {
namespace {

using mlir::Function;
using mlir::Op;
using mlir::Program;
using mlir::Region;

// Values of one scope by their SSA names; a result group holds several.
using Env = absl::flat_hash_map<std::string, std::vector<Instruction*>>;

// Word inside an enum attribute: "#stablehlo<comparison_direction LT>" -> "LT".
std::string EnumWord(absl::string_view text) {
  absl::ConsumeSuffix(&text, ">");
  const size_t at = text.find_last_of(" <.");
  return std::string(at == absl::string_view::npos ? text : text.substr(at + 1));
}

// "key = [1, 2]" inside #stablehlo.gather<...>.
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

class Converter {
 public:
  Converter(const Program& p, const std::string& file) : p_(p) {
    m_ = std::make_unique<Module>(p.name.empty() ? "main" : p.name);
    m_->file = file;
  }

  absl::StatusOr<std::unique_ptr<Module>> Run();

 private:
  absl::Status Fail(const Op& op, absl::string_view why, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    return absl::Status(code,
                        absl::StrCat(m_->file, ":", op.loc.line, ":", op.loc.column, ": error: ", op.name, ": ", why));
  }
  absl::StatusOr<Computation*> FunctionOf(const std::string& name, const Op& caller);
  absl::StatusOr<Computation*> BuildFunction(const Function& f);
  absl::Status BuildOps(const Region& r, Computation* c, Env* env, std::vector<Instruction*>* returned);
  absl::Status BuildOp(const Op& op, Computation* c, Env* env);
  absl::StatusOr<std::vector<Instruction*>> Convert(const Op& op, Computation* c, Env* env);
  // A region over scalars (reducer, comparator): parameters are its block arguments.
  absl::StatusOr<Computation*> ScalarRegion(const Region& r, const Op& op, const Env& outer, absl::string_view name);
  // A region with one tuple parameter: block arguments, then captured values.
  absl::StatusOr<Computation*> TupleRegion(const Region& r, const std::vector<std::string>& captured, const Env& outer,
                                           absl::string_view name, const std::vector<int64_t>& forwarded);
  void FreeNames(const Region& r, absl::flat_hash_set<std::string> bound, std::vector<std::string>* out);
  absl::StatusOr<Instruction*> CloneConstant(Instruction* i, Computation* into, const Op& op);
  absl::StatusOr<std::vector<Instruction*>> ConvertControl(const Op& op, Computation* c,
                                                           const std::vector<Instruction*>& x, Env* env);
  absl::StatusOr<Instruction*> ConvertConvolution(const Op& op, Computation* c, const std::vector<Instruction*>& x,
                                                  const Shape& shape);
  absl::Status Collective(const Op& op, Attributes* a);
  std::string Resolve(const std::string& text) const {
    auto it = p_.aliases.find(text);
    return it == p_.aliases.end() ? text : it->second;
  }
  Instruction* Finish(Instruction* i, const Op& op) {
    i->set_loc(op.loc);
    return i;
  }
  std::vector<Instruction*> Split(Instruction* tuple, Computation* c) {
    std::vector<Instruction*> out;
    for (size_t k = 0; k < tuple->shape().tuple().size(); ++k) {
      Instruction* g = c->Add(Opcode::GetTupleElement, tuple->shape().tuple()[k], {tuple});
      g->attrs().tuple_index = static_cast<int64_t>(k);
      g->set_loc(tuple->loc());
      out.push_back(g);
    }
    return out;
  }

  const Program& p_;
  std::unique_ptr<Module> m_;
  absl::flat_hash_map<std::string, Computation*> functions_;
  absl::flat_hash_set<std::string> building_;
  int64_t next_region_ = 0;
};

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

void Converter::FreeNames(const Region& r, absl::flat_hash_set<std::string> bound, std::vector<std::string>* out) {
  for (const auto& a : r.arguments) bound.insert(a.name);
  for (const auto& op : r.ops) {
    for (const std::string& o : op->operands) {
      const std::string base = o.substr(0, o.find('#'));
      if (!bound.contains(base) && std::find(out->begin(), out->end(), o) == out->end()) out->push_back(o);
    }
    for (const Region& inner : op->regions) FreeNames(inner, bound, out);
    for (const auto& [name, n] : op->results) bound.insert(name);
  }
}

absl::StatusOr<Instruction*> Converter::CloneConstant(Instruction* i, Computation* into, const Op& op) {
  if (i->Is(Opcode::Parameter) || i->HasSideEffect() || !i->called().empty())
    return Fail(op, absl::StrCat("its region uses '", i->name(), "' from outside, which is not a constant"),
                absl::StatusCode::kUnimplemented);
  std::vector<Instruction*> ops;
  for (Instruction* o : i->operands()) {
    ASSIGN_OR_RETURN(Instruction * n, CloneConstant(o, into, op));
    ops.push_back(n);
  }
  return into->AddClone(i, i->shape(), ops);
}

absl::StatusOr<Computation*> Converter::ScalarRegion(const Region& r, const Op& op, const Env& outer,
                                                     absl::string_view name) {
  Computation* c = m_->AddComputation(absl::StrCat(name, "_", next_region_++));
  Env env;
  for (size_t k = 0; k < r.arguments.size(); ++k) {
    Shape s = r.arguments[k].type;
    env[r.arguments[k].name] = {c->AddParameter(static_cast<int64_t>(k), s, absl::StrCat("arg", k))};
  }
  std::vector<std::string> free;
  FreeNames(r, {}, &free);
  for (const std::string& n : free) {
    auto v = Lookup(outer, n);
    if (!v.ok()) return Fail(op, v.status().message());
    ASSIGN_OR_RETURN(Instruction * copy, CloneConstant(*v, c, op));
    const std::string base = n.substr(0, n.find('#'));
    if (base == n) {
      env[base] = {copy};
    } else {
      auto& slot = env[base];
      int64_t k = 0;
      (void)absl::SimpleAtoi(n.substr(base.size() + 1), &k);
      slot.resize(std::max<size_t>(slot.size(), k + 1), copy);
      slot[k] = copy;
    }
  }
  std::vector<Instruction*> ret;
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

absl::StatusOr<Computation*> Converter::TupleRegion(const Region& r, const std::vector<std::string>& captured,
                                                    const Env& outer, absl::string_view name,
                                                    const std::vector<int64_t>& forwarded) {
  Computation* c = m_->AddComputation(absl::StrCat(name, "_", next_region_++));
  std::vector<Shape> shapes;
  for (const auto& a : r.arguments) shapes.push_back(a.type);
  for (const std::string& n : captured) {
    ASSIGN_OR_RETURN(Instruction * v, Lookup(outer, n));
    shapes.push_back(v->shape());
  }
  Instruction* p = c->AddParameter(0, Shape::Tuple(shapes), "state");
  const std::vector<Instruction*> parts = Split(p, c);
  Env env;
  for (size_t k = 0; k < r.arguments.size(); ++k) env[r.arguments[k].name] = {parts[k]};
  for (size_t k = 0; k < captured.size(); ++k) {
    const std::string& n = captured[k];
    Instruction* v = parts[r.arguments.size() + k];
    const size_t hash = n.find('#');
    if (hash == std::string::npos) {
      env[n] = {v};
    } else {
      auto& slot = env[n.substr(0, hash)];
      int64_t idx = 0;
      (void)absl::SimpleAtoi(n.substr(hash + 1), &idx);
      slot.resize(std::max<size_t>(slot.size(), idx + 1), v);
      slot[idx] = v;
    }
  }
  std::vector<Instruction*> ret;
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

absl::Status Converter::BuildOps(const Region& r, Computation* c, Env* env, std::vector<Instruction*>* returned) {
  for (const auto& op : r.ops) {
    if (op->name == "stablehlo.return" || op->name == "func.return" || op->name == "mhlo.return" ||
        op->name == "sdy.return") {
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
  ASSIGN_OR_RETURN(std::vector<Instruction*> values, Convert(op, c, env));
  size_t next = 0;
  for (const auto& [name, count] : op.results) {
    std::vector<Instruction*> group;
    for (int k = 0; k < count; ++k) {
      if (next >= values.size()) return Fail(op, absl::StrCat("has ", values.size(), " results, more are named"));
      group.push_back(values[next++]);
    }
    if (!env->insert({name, std::move(group)}).second)
      return Fail(op, absl::StrCat("value '%", name, "' is defined twice"));
  }
  // Shapes that the text states must be the ones the op has.
  for (size_t k = 0; k < values.size() && k < op.result_types.size(); ++k) {
    const Instruction* v = values[k];
    if (v->Is(Opcode::Tuple) || v->loc().line != op.loc.line) continue;
    auto inferred = InferShape(*v);
    if (!inferred.ok()) return ErrorAt(v, inferred.status().message(), inferred.status().code());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Instruction*>> Converter::ConvertControl(const Op& op, Computation* c,
                                                                    const std::vector<Instruction*>& x, Env* env) {
  if (op.name == "stablehlo.while") {
    if (op.regions.size() != 2) return Fail(op, "needs a condition and a body");
    std::vector<std::string> captured;
    FreeNames(op.regions[0], {}, &captured);
    FreeNames(op.regions[1], {}, &captured);
    std::vector<Instruction*> init = x;
    std::vector<int64_t> forwarded;
    for (const std::string& n : captured) {
      auto v = Lookup(*env, n);
      if (!v.ok()) return Fail(op, v.status().message());
      forwarded.push_back(static_cast<int64_t>(init.size()));
      init.push_back(*v);
    }
    ASSIGN_OR_RETURN(Computation * cond, TupleRegion(op.regions[0], captured, *env, "cond", {}));
    ASSIGN_OR_RETURN(Computation * body, TupleRegion(op.regions[1], captured, *env, "body", forwarded));
    std::vector<Shape> shapes;
    for (Instruction* i : init) shapes.push_back(i->shape());
    Instruction* t = Finish(c->Add(Opcode::Tuple, Shape::Tuple(shapes), init), op);
    Instruction* w = Finish(c->Add(Opcode::While, t->shape(), {t}), op);
    w->attrs().condition = cond;
    w->attrs().body = body;
    auto parts = Split(w, c);
    parts.resize(x.size());
    return parts;
  }
  // case / if
  if (x.size() != 1) return Fail(op, "takes one index");
  std::vector<Computation*> branches;
  std::vector<Instruction*> operands = {x[0]};
  for (const Region& r : op.regions) {
    std::vector<std::string> captured;
    FreeNames(r, {}, &captured);
    std::vector<Instruction*> vals;
    std::vector<Shape> shapes;
    for (const std::string& n : captured) {
      auto v = Lookup(*env, n);
      if (!v.ok()) return Fail(op, v.status().message());
      vals.push_back(*v);
      shapes.push_back((*v)->shape());
    }
    operands.push_back(Finish(c->Add(Opcode::Tuple, Shape::Tuple(shapes), vals), op));
    ASSIGN_OR_RETURN(Computation * b, TupleRegion(r, captured, *env, "branch", {}));
    branches.push_back(b);
  }
  if (branches.empty()) return Fail(op, "has no branch");
  if (op.name == "stablehlo.if" && branches.size() != 2) return Fail(op, "needs two branches");
  Instruction* cond = Finish(c->Add(Opcode::Conditional, branches[0]->root()->shape(), operands), op);
  if (op.name == "stablehlo.if") {
    cond->attrs().true_computation = branches[0];
    cond->attrs().false_computation = branches[1];
  } else {
    cond->attrs().branch_computations = branches;
  }
  return Split(cond, c);
}

absl::StatusOr<Instruction*> Converter::ConvertConvolution(const Op& op, Computation* c,
                                                           const std::vector<Instruction*>& x, const Shape& shape) {
  std::string dims = Resolve(op.Has("dim_numbers") ? op.Attr("dim_numbers") : op.Attr("dimension_numbers"));
  absl::string_view d = dims;
  absl::ConsumePrefix(&d, "#stablehlo.conv<");
  absl::ConsumeSuffix(&d, ">");
  // [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]  ->  b01f_01io->b01f
  std::string label;
  int group = 0;
  for (char ch : d) {
    if (ch == '[') {
      if (group == 1) label += '_';
      if (group == 2) label += "->";
      ++group;
    } else if (absl::ascii_isalnum(ch) && ch != 'x') {
      label += ch;
    }
  }
  auto numbers = ParseConvDims(label);
  if (!numbers) return Fail(op, absl::StrCat("dimension numbers '", d, "' are not understood"));
  const size_t n = numbers->input_spatial.size();
  attr::Win w(n);
  const std::string win = op.Attr("window");
  auto list = [&](const char* pretty, const char* generic) -> std::optional<Ints> {
    if (!win.empty())
      if (auto v = FieldInts(win, pretty)) return v;
    if (op.Has(generic)) return ParseIntList(op.Attr(generic));
    return std::nullopt;
  };
  auto apply = [&](std::optional<Ints> v, auto set) -> absl::Status {
    if (!v) return absl::OkStatus();
    if (v->size() != n) return Fail(op, absl::StrCat("a window field has ", v->size(), " entries, not ", n));
    for (size_t k = 0; k < n; ++k) set(&w[k], (*v)[k]);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(apply(list("stride", "window_strides"), [](WindowDim* q, int64_t v) { q->stride = v; }));
  RETURN_IF_ERROR(apply(list("lhs_dilate", "lhs_dilation"), [](WindowDim* q, int64_t v) { q->lhs_dilate = v; }));
  RETURN_IF_ERROR(apply(list("rhs_dilate", "rhs_dilation"), [](WindowDim* q, int64_t v) { q->rhs_dilate = v; }));
  std::optional<Ints> pad;
  if (const size_t at = win.find("pad ="); at != std::string::npos) {
    size_t e = win.find("]]", at);
    if (e != std::string::npos) pad = ParseIntList(absl::string_view(win).substr(at + 5, e + 2 - at - 5));
  } else if (op.Has("padding")) {
    pad = ParseIntList(op.Attr("padding"));
  }
  if (pad && pad->size() == 2 * n)
    for (size_t k = 0; k < n; ++k) {
      w[k].pad_low = (*pad)[2 * k];
      w[k].pad_high = (*pad)[2 * k + 1];
    }
  std::string rev = op.Has("window_reversal") ? op.Attr("window_reversal") : "";
  if (const size_t at = win.find("reverse"); at != std::string::npos) rev = win.substr(at);
  if (!rev.empty()) {
    size_t k = 0;
    for (absl::string_view word : absl::StrSplit(rev, absl::ByAnyChar("[]<>{},=: "), absl::SkipEmpty())) {
      if (k >= n) break;
      if (word == "true" || word == "1")
        w[k++].reversed = true;
      else if (word == "false" || word == "0")
        w[k++].reversed = false;
    }
  }
  for (size_t k = 0; k < n; ++k) w[k].size = x[1]->shape().dim(numbers->kernel_spatial[k]);
  Instruction* i = Finish(c->Add(Opcode::Convolution, shape, {x[0], x[1]}), op);
  i->attrs().window = std::move(w);
  i->attrs().dim_labels = *numbers;
  auto count = [&](const char* key) -> std::optional<int64_t> {
    if (!op.Has(key)) return std::nullopt;
    const Ints v = ParseIntList(op.Attr(key)).value_or(Ints());
    return v.empty() || v[0] == 1 ? std::optional<int64_t>() : v[0];
  };
  i->attrs().feature_group_count = count("feature_group_count");
  i->attrs().batch_group_count = count("batch_group_count");
  return i;
}

absl::Status Converter::Collective(const Op& op, Attributes* a) {
  if (op.Has("replica_groups")) {
    const std::string t = Resolve(op.Attr("replica_groups"));
    // dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, -1 pads a short group.
    const size_t lt = t.find('<');
    int depth = 0;
    size_t e = lt;
    for (; e < t.size(); ++e) {
      if (t[e] == '<') ++depth;
      if (t[e] == '>' && --depth == 0) break;
    }
    std::string groups = lt == std::string::npos ? "" : t.substr(lt + 1, e - lt - 1);
    groups = absl::StrReplaceAll(groups, {{"[", "{"}, {"]", "}"}, {" ", ""}, {",-1", ""}});
    if (groups.empty())
      groups = "{}";
    else if (groups[0] != '{')
      groups = absl::StrCat("{{", groups, "}}");
    a->replica_groups = attr::Raw(groups);
  }
  if (op.Has("channel_handle")) {
    if (auto h = FieldInts(op.Attr("channel_handle"), "handle"); h && !h->empty() && (*h)[0] > 0)
      a->channel_id = (*h)[0];
  }
  if (op.Has("channel_id")) {
    if (auto h = ParseIntList(op.Attr("channel_id")); h && !h->empty() && (*h)[0] > 0) a->channel_id = (*h)[0];
  }
  if (op.Has("use_global_device_ids")) a->use_global_device_ids = op.Attr("use_global_device_ids") != "false";
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Instruction*>> Converter::Convert(const Op& op, Computation* c, Env* env) {
  std::vector<Instruction*> x;
  for (const std::string& o : op.operands) {
    auto v = Lookup(*env, o);
    if (!v.ok()) return Fail(op, v.status().message());
    x.push_back(*v);
  }
  if (op.operand_types.size() == x.size() && op.has_function_type)
    for (size_t k = 0; k < x.size(); ++k)
      if (!op.operand_types[k].Compatible(x[k]->shape()) && !op.operand_types[k].HasDynamic())
        return Fail(op, absl::StrCat("operand ", k, " is ", x[k]->shape().ToString(false), ", the text says ",
                                     op.operand_types[k].ToString(false)));
  absl::string_view name = op.name;
  const bool chlo = absl::ConsumePrefix(&name, "chlo.");
  const bool stable = absl::ConsumePrefix(&name, "stablehlo.") || absl::ConsumePrefix(&name, "mhlo.");
  const Shape result = op.result_types.empty() ? Shape::Tuple({}) : op.result_types[0];
  using V = std::vector<Instruction*>;
  auto add = [&](Opcode o, const Shape& s, V operands) { return Finish(c->Add(o, s, std::move(operands)), op); };
  auto need = [&](size_t n) -> absl::Status {
    if (x.size() != n) return Fail(op, absl::StrCat("takes ", n, " operands, not ", x.size()));
    return absl::OkStatus();
  };
  auto ints = [&](const char* key) -> Ints {
    return op.Has(key) ? ParseIntList(Resolve(op.Attr(key))).value_or(Ints()) : Ints();
  };
  auto one = [&](const char* key, int64_t otherwise) -> int64_t {
    const Ints v = ints(key);
    return v.empty() ? otherwise : v[0];
  };
  auto flag = [&](const char* key, bool otherwise) {
    if (!op.Has(key)) return otherwise;
    return op.Attr(key) == "true" || op.Attr(key) == "unit" || absl::StartsWith(op.Attr(key), "true");
  };
  auto dims = [&]() -> Ints {
    for (const char* k : {"dims", "dimensions", "broadcast_dimensions", "permutation"})
      if (op.Has(k)) return ints(k);
    return {};
  };

  if (op.name == "func.call" || (stable && name == "composite")) {
    std::string callee = op.Attr("callee");
    if (name == "composite") callee = op.Attr("decomposition");
    if (callee.empty()) callee = op.Attr("callee");
    while (!callee.empty() && (callee[0] == '@')) callee.erase(0, 1);
    ASSIGN_OR_RETURN(Computation * f, FunctionOf(callee, op));
    Instruction* call = add(Opcode::Call, f->root()->shape(), x);
    call->attrs().to_apply = f;
    if (static_cast<int64_t>(f->parameters().size()) != call->operand_count())
      return Fail(op, absl::StrCat("@", callee, " takes ", f->parameters().size(), " arguments, not ", x.size()));
    return op.result_types.size() == 1 && !f->root()->shape().IsTuple() ? V{call} : Split(call, c);
  }
  if (chlo) {
    if (name == "top_k") {
      RETURN_IF_ERROR(need(1));
      Shape s = x[0]->shape();
      const int64_t k = one("k", -1);
      if (s.rank() == 0 || k < 0 || k > s.dims().back()) return Fail(op, "k is out of range");
      s.mutable_dims().back() = k;
      Instruction* t = add(Opcode::TopK, Shape::Tuple({s, Shape::Array(PrimitiveType::S32, s.dims())}), x);
      t->attrs().k = k;
      t->attrs().largest = true;
      return Split(t, c);
    }
    auto built = BuildChlo(name, std::vector<Expr>(x.begin(), x.end()));
    if (!built.ok())
      return Fail(op, built.status().message(),
                  built.status().code() == absl::StatusCode::kNotFound ? absl::StatusCode::kUnimplemented
                                                                       : built.status().code());
    return V{Finish(built->get(), op)};
  }
  if (absl::StartsWith(op.name, "check.")) {
    // The self-checks of StableHLO's test programs; the constant forms get their constant as an operand.
    if (op.Has("value")) {
      RETURN_IF_ERROR(need(1));
      auto lit = ParseDense(op.Attr("value"), x[0]->shape());
      if (!lit.ok()) return Fail(op, lit.status().message());
      x.push_back(c->AddConstant(std::move(*lit)));
    }
    Instruction* i = add(Opcode::CustomCall, Shape::Tuple({}), x);
    i->attrs().custom_call_target = attr::Str(op.name);
    i->attrs().custom_call_has_side_effect = true;
    return V{};
  }
  if (!stable) return Fail(op, "this dialect is not supported", absl::StatusCode::kUnimplemented);

  if (name == "constant") {
    auto lit = ParseDense(op.Attr("value"), result);
    if (!lit.ok()) return Fail(op, lit.status().message());
    Instruction* k = c->AddConstant(std::move(*lit));
    return V{Finish(k, op)};
  }
  if (name == "while" || name == "case" || name == "if") return ConvertControl(op, c, x, env);
  if (name == "broadcast_in_dim" || name == "broadcast") {
    RETURN_IF_ERROR(need(1));
    Ints map = dims();
    const Shape& s = x[0]->shape();
    if (name == "broadcast") {
      map.clear();
      for (int64_t d = 0; d < s.rank(); ++d) map.push_back(result.rank() - s.rank() + d);
    }
    if (static_cast<int64_t>(map.size()) != s.rank())
      return Fail(op, absl::StrCat("dims has ", map.size(), " entries for rank ", s.rank()));
    // Extent 1 that grows is dropped first: HLO's broadcast only adds dimensions.
    Ints kept_dims, kept_map;
    for (int64_t d = 0; d < s.rank(); ++d) {
      if (map[d] < 0 || map[d] >= result.rank()) return Fail(op, "dims is out of range");
      if (s.dim(d) == 1 && result.dim(map[d]) != 1) continue;
      kept_dims.push_back(s.dim(d));
      kept_map.push_back(map[d]);
    }
    Instruction* from = x[0];
    if (kept_dims != s.dims()) from = add(Opcode::Reshape, Shape::Array(s.type(), kept_dims), {from});
    Instruction* b = add(Opcode::Broadcast, result, {from});
    b->attrs().dimensions = kept_map;
    return V{b};
  }
  if (name == "dot_general" || name == "dot") {
    RETURN_IF_ERROR(need(2));
    Instruction* d = add(Opcode::Dot, result, x);
    Attributes& a = d->attrs();
    auto pair = [&](const std::string& t, std::optional<Ints>* l, std::optional<Ints>* r) {
      const size_t mid = t.find(" x ");
      *l = ParseIntList(t.substr(0, mid)).value_or(Ints());
      *r = mid == std::string::npos ? Ints() : ParseIntList(t.substr(mid + 3)).value_or(Ints());
    };
    if (name == "dot") {
      a.lhs_contracting_dims = Ints{x[0]->shape().rank() - 1};
      a.rhs_contracting_dims = Ints{0};
    } else if (op.Has("dot_dimension_numbers")) {
      const std::string t = Resolve(op.Attr("dot_dimension_numbers"));
      a.lhs_batch_dims = FieldInts(t, "lhs_batching_dimensions");
      a.rhs_batch_dims = FieldInts(t, "rhs_batching_dimensions");
      a.lhs_contracting_dims = FieldInts(t, "lhs_contracting_dimensions").value_or(Ints());
      a.rhs_contracting_dims = FieldInts(t, "rhs_contracting_dimensions").value_or(Ints());
    } else {
      if (op.Has("batching_dims")) pair(op.Attr("batching_dims"), &a.lhs_batch_dims, &a.rhs_batch_dims);
      pair(op.Attr("contracting_dims"), &a.lhs_contracting_dims, &a.rhs_contracting_dims);
    }
    if (a.lhs_batch_dims && a.lhs_batch_dims->empty()) {
      a.lhs_batch_dims.reset();
      a.rhs_batch_dims.reset();
    }
    return V{d};
  }
  if (name == "convolution") {
    RETURN_IF_ERROR(need(2));
    ASSIGN_OR_RETURN(Instruction * i, ConvertConvolution(op, c, x, result));
    return V{i};
  }
  if (name == "reduce") {
    Computation* f;
    if (op.Has("applies")) {
      Region r;
      auto body = std::make_unique<Op>();
      body->name = op.Attr("applies");
      body->operands = {"l", "r"};
      body->results = {{"o", 1}};
      const Shape s = Shape::Scalar(x[0]->shape().type());
      body->result_types = {s};
      body->loc = op.loc;
      r.arguments = {{"l", s, ""}, {"r", s, ""}};
      r.ops.push_back(std::move(body));
      auto ret = std::make_unique<Op>();
      ret->name = "stablehlo.return";
      ret->operands = {"o"};
      r.ops.push_back(std::move(ret));
      ASSIGN_OR_RETURN(f, ScalarRegion(r, op, *env, "region"));
    } else {
      if (op.regions.size() != 1) return Fail(op, "needs one reducer");
      ASSIGN_OR_RETURN(f, ScalarRegion(op.regions[0], op, *env, "region"));
    }
    const bool tuple = op.result_types.size() > 1;
    Instruction* r = add(Opcode::Reduce, tuple ? Shape::Tuple(op.result_types) : result, x);
    r->attrs().dimensions = dims();
    r->attrs().to_apply = f;
    return tuple ? Split(r, c) : V{r};
  }
  if (name == "reduce_window") {
    if (op.regions.size() != 1 || x.empty()) return Fail(op, "needs one reducer");
    ASSIGN_OR_RETURN(Computation * f, ScalarRegion(op.regions[0], op, *env, "region"));
    const size_t n = x[0]->shape().rank();
    attr::Win w(n);
    auto fill = [&](const char* key, auto set) -> absl::Status {
      if (!op.Has(key)) return absl::OkStatus();
      const Ints v = ParseIntList(op.Attr(key)).value_or(Ints());
      if (v.size() != n) return Fail(op, absl::StrCat(key, " has ", v.size(), " entries, not ", n));
      for (size_t k = 0; k < n; ++k) set(&w[k], v[k]);
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(fill("window_dimensions", [](WindowDim* q, int64_t v) { q->size = v; }));
    RETURN_IF_ERROR(fill("window_strides", [](WindowDim* q, int64_t v) { q->stride = v; }));
    RETURN_IF_ERROR(fill("base_dilations", [](WindowDim* q, int64_t v) { q->lhs_dilate = v; }));
    RETURN_IF_ERROR(fill("window_dilations", [](WindowDim* q, int64_t v) { q->rhs_dilate = v; }));
    if (op.Has("padding")) {
      const Ints p = ParseIntList(op.Attr("padding")).value_or(Ints());
      if (p.size() != 2 * n) return Fail(op, "padding needs two entries per dimension");
      for (size_t k = 0; k < n; ++k) {
        w[k].pad_low = p[2 * k];
        w[k].pad_high = p[2 * k + 1];
      }
    }
    const bool tuple = op.result_types.size() > 1;
    Instruction* r = add(Opcode::ReduceWindow, tuple ? Shape::Tuple(op.result_types) : result, x);
    r->attrs().window = std::move(w);
    r->attrs().to_apply = f;
    return tuple ? Split(r, c) : V{r};
  }
  if (name == "select_and_scatter") {
    RETURN_IF_ERROR(need(3));
    if (op.regions.size() != 2) return Fail(op, "needs select and scatter");
    ASSIGN_OR_RETURN(Computation * sel, ScalarRegion(op.regions[0], op, *env, "select"));
    ASSIGN_OR_RETURN(Computation * sca, ScalarRegion(op.regions[1], op, *env, "scatter"));
    const size_t n = x[0]->shape().rank();
    attr::Win w(n);
    const Ints size = ParseIntList(op.Attr("window_dimensions")).value_or(Ints());
    const Ints stride =
        op.Has("window_strides") ? ParseIntList(op.Attr("window_strides")).value_or(Ints()) : Ints(n, 1);
    const Ints pad = op.Has("padding") ? ParseIntList(op.Attr("padding")).value_or(Ints()) : Ints(2 * n, 0);
    if (size.size() != n || stride.size() != n || pad.size() != 2 * n)
      return Fail(op, "window attributes do not fit the operand's rank");
    for (size_t k = 0; k < n; ++k) {
      w[k].size = size[k];
      w[k].stride = stride[k];
      w[k].pad_low = pad[2 * k];
      w[k].pad_high = pad[2 * k + 1];
    }
    Instruction* i = add(Opcode::SelectAndScatter, result, x);
    i->attrs().window = std::move(w);
    i->attrs().select = sel;
    i->attrs().scatter = sca;
    return V{i};
  }
  if (name == "sort") {
    if (op.regions.size() != 1 || x.empty()) return Fail(op, "needs one comparator");
    ASSIGN_OR_RETURN(Computation * f, ScalarRegion(op.regions[0], op, *env, "compare"));
    const bool tuple = x.size() > 1;
    Instruction* s = add(Opcode::Sort, tuple ? Shape::Tuple(op.result_types) : result, x);
    int64_t d = one("dimension", -1);
    if (d < 0) d += x[0]->shape().rank();
    s->attrs().dimensions = Ints{d};
    if (flag("is_stable", false)) s->attrs().is_stable = true;
    s->attrs().to_apply = f;
    return tuple ? Split(s, c) : V{s};
  }
  if (name == "map") {
    if (op.regions.size() != 1) return Fail(op, "needs one computation");
    ASSIGN_OR_RETURN(Computation * f, ScalarRegion(op.regions[0], op, *env, "map"));
    Instruction* i = add(Opcode::Map, result, x);
    i->attrs().dimensions = dims();
    i->attrs().to_apply = f;
    return V{i};
  }
  if (name == "gather") {
    RETURN_IF_ERROR(need(2));
    Instruction* i = add(Opcode::Gather, result, x);
    const std::string t = Resolve(op.Attr("dimension_numbers"));
    Attributes& a = i->attrs();
    a.offset_dims = FieldInts(t, "offset_dims").value_or(Ints());
    a.collapsed_slice_dims = FieldInts(t, "collapsed_slice_dims").value_or(Ints());
    a.start_index_map = FieldInts(t, "start_index_map").value_or(Ints());
    a.operand_batching_dims = FieldInts(t, "operand_batching_dims");
    a.start_indices_batching_dims = FieldInts(t, "start_indices_batching_dims");
    a.index_vector_dim = FieldInts(t, "index_vector_dim").value_or(Ints{0})[0];
    a.slice_sizes = ParseIntList(op.Attr("slice_sizes")).value_or(Ints());
    if (flag("indices_are_sorted", false)) a.indices_are_sorted = true;
    return V{i};
  }
  if (name == "scatter") {
    if (op.regions.size() != 1 || x.size() < 3) return Fail(op, "needs operands, indices, updates and one computation");
    ASSIGN_OR_RETURN(Computation * f, ScalarRegion(op.regions[0], op, *env, "update"));
    const bool tuple = op.result_types.size() > 1;
    Instruction* i = add(Opcode::Scatter, tuple ? Shape::Tuple(op.result_types) : result, x);
    const std::string t = Resolve(op.Attr("scatter_dimension_numbers"));
    Attributes& a = i->attrs();
    a.update_window_dims = FieldInts(t, "update_window_dims").value_or(Ints());
    a.inserted_window_dims = FieldInts(t, "inserted_window_dims").value_or(Ints());
    a.scatter_dims_to_operand_dims = FieldInts(t, "scatter_dims_to_operand_dims").value_or(Ints());
    a.input_batching_dims = FieldInts(t, "input_batching_dims");
    a.scatter_indices_batching_dims = FieldInts(t, "scatter_indices_batching_dims");
    a.index_vector_dim = FieldInts(t, "index_vector_dim").value_or(Ints{0})[0];
    if (flag("indices_are_sorted", false)) a.indices_are_sorted = true;
    if (flag("unique_indices", false)) a.unique_indices = true;
    a.to_apply = f;
    return tuple ? Split(i, c) : V{i};
  }
  if (name == "all_reduce" || name == "reduce_scatter" || name == "all_gather" || name == "all_to_all" ||
      name == "collective_permute" || name == "collective_broadcast") {
    auto o = OpcodeFromText(absl::StrReplaceAll(name, {{"_", "-"}}));
    const bool tuple = op.result_types.size() > 1;
    Instruction* i = add(*o, tuple ? Shape::Tuple(op.result_types) : result, x);
    RETURN_IF_ERROR(Collective(op, &i->attrs()));
    if (!op.regions.empty()) {
      ASSIGN_OR_RETURN(Computation * f, ScalarRegion(op.regions[0], op, *env, "region"));
      i->attrs().to_apply = f;
    }
    if (op.Has("all_gather_dim")) i->attrs().dimensions = Ints{one("all_gather_dim", 0)};
    if (op.Has("scatter_dimension")) i->attrs().dimensions = Ints{one("scatter_dimension", 0)};
    if (name == "all_to_all") {
      i->attrs().dimensions = Ints{one("split_dimension", 0)};
      i->attrs().split_dimension = one("split_dimension", 0);
      i->attrs().concat_dimension = one("concat_dimension", 0);
      i->attrs().split_count = one("split_count", 1);
    }
    if (op.Has("source_target_pairs")) {
      const Ints pairs = ParseIntList(op.Attr("source_target_pairs")).value_or(Ints());
      std::string t = "{";
      for (size_t k = 0; k + 1 < pairs.size(); k += 2)
        absl::StrAppend(&t, k ? "," : "", "{", pairs[k], ",", pairs[k + 1], "}");
      i->attrs().source_target_pairs = attr::Raw(t + "}");
    }
    return tuple ? Split(i, c) : V{i};
  }
  if (name == "custom_call") {
    Instruction* i = add(Opcode::CustomCall, op.result_types.size() == 1 ? result : Shape::Tuple(op.result_types), x);
    std::string target = op.Has("callee") ? op.Attr("callee") : op.Attr("call_target_name");
    if (target.size() > 1 && target[0] == '"') target = target.substr(1, target.size() - 2);
    i->attrs().custom_call_target = attr::Str(target);
    if (flag("has_side_effect", false)) i->attrs().custom_call_has_side_effect = true;
    for (const char* key : {"backend_config", "mhlo.backend_config"}) {
      std::string cfg = op.Attr(key);
      if (!cfg.empty() && cfg != "\"\"" && cfg != "{}") i->attrs().backend_config = attr::Raw(cfg);
    }
    if (op.Has("mhlo.frontend_attributes"))
      i->attrs().frontend_attributes = attr::Raw(op.Attr("mhlo.frontend_attributes"));
    if (op.Has("mhlo.sharding")) {
      std::string sh = op.Attr("mhlo.sharding");
      if (sh.size() > 2 && sh[0] == '"') sh = sh.substr(1, sh.size() - 2);
      i->attrs().sharding = attr::Raw(sh);
    }
    if (op.Has("api_version")) {
      const int64_t v = one("api_version", 1);
      if (v == 2) i->attrs().api_version = "API_VERSION_STATUS_RETURNING";
      if (v == 3) i->attrs().api_version = "API_VERSION_STATUS_RETURNING_UNIFIED";
      if (v == 4) i->attrs().api_version = "API_VERSION_TYPED_FFI";
    }
    return op.result_types.size() == 1 ? V{i} : Split(i, c);
  }
  if (name == "iota") {
    Instruction* i = add(Opcode::Iota, result, {});
    i->attrs().iota_dimension = op.Has("dim") ? one("dim", 0) : one("iota_dimension", 0);
    return V{i};
  }
  if (name == "compare") {
    RETURN_IF_ERROR(need(2));
    Shape s = Shape::Array(PrimitiveType::Pred, x[0]->shape().dims());
    Instruction* i = add(Opcode::Compare, s, x);
    std::string dir = op.words.empty() ? EnumWord(op.Attr("comparison_direction")) : op.words[0];
    std::string type = op.words.size() > 1      ? op.words[1]
                       : op.Has("compare_type") ? EnumWord(op.Attr("compare_type"))
                                                : "";
    i->attrs().direction = attr::Raw(dir);
    if (type == "TOTALORDER") i->attrs().compare_type = "TOTALORDER";
    return V{i};
  }
  if (name == "slice") {
    RETURN_IF_ERROR(need(1));
    attr::Slices r;
    if (op.Has("brackets")) {
      for (absl::string_view part : absl::StrSplit(op.Attr("brackets"), absl::ByAnyChar("[], "), absl::SkipEmpty())) {
        const std::vector<absl::string_view> n = absl::StrSplit(part, ':');
        SliceDim d;
        if (n.size() < 2 || !absl::SimpleAtoi(n[0], &d.start) || !absl::SimpleAtoi(n[1], &d.limit) ||
            (n.size() > 2 && !absl::SimpleAtoi(n[2], &d.stride)))
          return Fail(op, absl::StrCat("range '", part, "' is not start:limit:stride"));
        r.push_back(d);
      }
    } else {
      const Ints start = ints("start_indices"), limit = ints("limit_indices"), stride = ints("strides");
      if (start.size() != limit.size() || start.size() != stride.size())
        return Fail(op, "start, limit and strides differ in length");
      for (size_t k = 0; k < start.size(); ++k) r.push_back({start[k], limit[k], stride[k]});
    }
    Instruction* i = add(Opcode::Slice, result, x);
    i->attrs().slice = std::move(r);
    return V{i};
  }
  if (name == "pad") {
    RETURN_IF_ERROR(need(2));
    Instruction* i = add(Opcode::Pad, result, x);
    const Ints low = op.Has("low") ? ints("low") : ints("edge_padding_low"),
               high = op.Has("high") ? ints("high") : ints("edge_padding_high"),
               in = op.Has("interior") ? ints("interior") : ints("interior_padding");
    if (low.size() != high.size() || low.size() != in.size())
      return Fail(op, "low, high and interior differ in length");
    attr::Padding p;
    for (size_t k = 0; k < low.size(); ++k) p.push_back({low[k], high[k], in[k]});
    i->attrs().padding = std::move(p);
    return V{i};
  }
  if (name == "dynamic_slice") {
    if (x.empty()) return Fail(op, "takes an array and start indices");
    Instruction* i = add(Opcode::DynamicSlice, result, x);
    i->attrs().dynamic_slice_sizes = op.Has("sizes") ? ints("sizes") : ints("slice_sizes");
    return V{i};
  }
  if (name == "concatenate") {
    Instruction* i = add(Opcode::Concatenate, result, x);
    i->attrs().dimensions = Ints{op.Has("dim") ? one("dim", 0) : one("dimension", 0)};
    return V{i};
  }
  if (name == "transpose" || name == "reverse") {
    RETURN_IF_ERROR(need(1));
    Instruction* i = add(name == "reverse" ? Opcode::Reverse : Opcode::Transpose, result, x);
    i->attrs().dimensions = dims();
    return V{i};
  }
  if (name == "fft") {
    RETURN_IF_ERROR(need(1));
    Instruction* i = add(Opcode::Fft, result, x);
    i->attrs().fft_type = attr::Raw(EnumWord(op.Has("type") ? op.Attr("type") : op.Attr("fft_type")));
    i->attrs().fft_length = op.Has("length") ? ints("length") : ints("fft_length");
    return V{i};
  }
  if (name == "cholesky") {
    RETURN_IF_ERROR(need(1));
    Instruction* i = add(Opcode::Cholesky, result, x);
    i->attrs().lower = flag("lower", false);
    return V{i};
  }
  if (name == "triangular_solve") {
    RETURN_IF_ERROR(need(2));
    Instruction* i = add(Opcode::TriangularSolve, result, x);
    i->attrs().left_side = flag("left_side", false);
    i->attrs().lower = flag("lower", false);
    i->attrs().unit_diagonal = flag("unit_diagonal", false);
    i->attrs().transpose_a = attr::Raw(EnumWord(op.Attr("transpose_a")));
    return V{i};
  }
  if (name == "rng") {
    RETURN_IF_ERROR(need(3));
    Instruction* i = add(Opcode::Rng, result, {x[0], x[1]});
    const std::string d = EnumWord(op.Has("distribution") ? op.Attr("distribution") : op.Attr("rng_distribution"));
    i->attrs().distribution = attr::Raw(d == "NORMAL" ? "rng_normal" : "rng_uniform");
    return V{i};
  }
  if (name == "rng_bit_generator") {
    RETURN_IF_ERROR(need(1));
    Instruction* i = add(Opcode::RngBitGenerator, Shape::Tuple(op.result_types), x);
    const std::string alg = EnumWord(op.Has("algorithm") ? op.Attr("algorithm") : op.Attr("rng_algorithm"));
    i->attrs().algorithm = attr::Raw(alg == "THREE_FRY" ? "rng_three_fry"
                                     : alg == "PHILOX"  ? "rng_philox"
                                                        : "rng_default");
    return Split(i, c);
  }
  if (name == "reduce_precision") {
    RETURN_IF_ERROR(need(1));
    Instruction* i = add(Opcode::ReducePrecision, result, x);
    int64_t e = one("exponent_bits", -1), m = one("mantissa_bits", -1);
    const std::string f = op.Attr("format");
    if (const size_t at = f.find('m'); f.size() > 3 && f[0] == 'e' && at != std::string::npos) {
      (void)absl::SimpleAtoi(f.substr(1, at - 1), &e);
      (void)absl::SimpleAtoi(f.substr(at + 1), &m);
    }
    if (e < 1 || m < 0) return Fail(op, "format is not understood");
    i->attrs().exponent_bits = e;
    i->attrs().mantissa_bits = m;
    return V{i};
  }
  if (name == "get_tuple_element") {
    RETURN_IF_ERROR(need(1));
    const int64_t k = op.Has("brackets") ? one("brackets", 0) : one("index", 0);
    if (!x[0]->shape().IsTuple() || k < 0 || k >= static_cast<int64_t>(x[0]->shape().tuple().size()))
      return Fail(op, "index is out of range");
    Instruction* i = add(Opcode::GetTupleElement, x[0]->shape().tuple()[k], x);
    i->attrs().tuple_index = k;
    return V{i};
  }
  if (name == "tuple") {
    std::vector<Shape> s;
    for (Instruction* o : x) s.push_back(o->shape());
    return V{add(Opcode::Tuple, Shape::Tuple(s), x)};
  }
  if (name == "optimization_barrier") {
    if (x.size() == 1) return V{add(Opcode::OptimizationBarrier, x[0]->shape(), x)};
    std::vector<Shape> s;
    for (Instruction* o : x) s.push_back(o->shape());
    Instruction* t = add(Opcode::Tuple, Shape::Tuple(s), x);
    return Split(add(Opcode::OptimizationBarrier, t->shape(), {t}), c);
  }
  if (name == "get_dimension_size" || name == "set_dimension_size") {
    Instruction* i = add(name[0] == 'g' ? Opcode::GetDimensionSize : Opcode::SetDimensionSize, result, x);
    i->attrs().dimensions = Ints{op.Has("dim") ? one("dim", 0) : one("dimension", 0)};
    return V{i};
  }
  if (name == "batch_norm_inference" || name == "batch_norm_training" || name == "batch_norm_grad") {
    auto o = OpcodeFromText(absl::StrReplaceAll(name, {{"_", "-"}}));
    Instruction* i = add(*o, op.result_types.size() > 1 ? Shape::Tuple(op.result_types) : result, x);
    i->attrs().feature_index = one("feature_index", 0);
    const std::string e = op.Attr("epsilon");
    double eps = 0;
    (void)absl::SimpleAtod(e.substr(0, e.find(' ')), &eps);
    i->attrs().epsilon = eps;
    return op.result_types.size() > 1 ? Split(i, c) : V{i};
  }
  if (name == "create_token" || name == "after_all") return V{add(Opcode::AfterAll, Shape::Token(), x)};
  // The rest is named as in HLO and takes no attribute that matters.
  auto o = OpcodeFromText(absl::StrReplaceAll(name, {{"_", "-"}}));
  if (!o || (InfoOf(*o).arity >= 0 && InfoOf(*o).arity != static_cast<int>(x.size())) ||
      (!(InfoOf(*o).traits & Elementwise) && *o != Opcode::Reshape && *o != Opcode::BitcastConvert &&
       *o != Opcode::DynamicUpdateSlice && *o != Opcode::PartitionId && *o != Opcode::ReplicaId)) {
    return Fail(op, "this operation is not supported", absl::StatusCode::kUnimplemented);
  }
  return V{add(*o, result, x)};
}

absl::StatusOr<Computation*> Converter::FunctionOf(const std::string& name, const Op& caller) {
  if (auto it = functions_.find(name); it != functions_.end()) return it->second;
  if (!building_.insert(name).second) return Fail(caller, absl::StrCat("@", name, " calls itself"));
  for (const Function& f : p_.functions)
    if (f.name == name) return BuildFunction(f);
  return Fail(caller, absl::StrCat("function @", name, " is not defined"));
}

absl::StatusOr<Computation*> Converter::BuildFunction(const Function& f) {
  Computation* c = m_->AddComputation(f.name);
  Env env;
  for (size_t k = 0; k < f.body.arguments.size(); ++k) {
    const auto& a = f.body.arguments[k];
    Instruction* p = c->AddParameter(static_cast<int64_t>(k), a.type, a.name);
    p->set_loc(f.loc);
    env[a.name] = {p};
  }
  std::vector<Instruction*> ret;
  RETURN_IF_ERROR(BuildOps(f.body, c, &env, &ret));
  if (ret.size() != f.result_types.size())
    return InvalidArgument(m_->file, ":", f.loc.line, ":", f.loc.column, ": error: @", f.name, " returns ", ret.size(),
                           " values, its type says ", f.result_types.size());
  if (ret.size() == 1) {
    c->set_root(ret[0]);
  } else {
    std::vector<Shape> s;
    for (Instruction* i : ret) s.push_back(i->shape());
    c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(s), ret));
  }
  functions_[f.name] = c;
  return c;
}

absl::StatusOr<std::unique_ptr<Module>> Converter::Run() {
  const Function* main = nullptr;
  const Function* lone = nullptr;
  int without_arguments = 0;
  for (const Function& f : p_.functions) {
    if (f.name == "main") main = &f;
    if (f.body.arguments.empty()) {
      lone = &f;
      ++without_arguments;
    }
  }
  if (!main && p_.functions.size() == 1) main = &p_.functions[0];
  if (!main && without_arguments == 1) main = lone;
  if (!main)
    return InvalidArgument(m_->file, ":1:1: error: no function @main, and not exactly one function without arguments");
  building_.insert(main->name);
  ASSIGN_OR_RETURN(Computation * entry, BuildFunction(*main));
  m_->set_entry(entry);
  for (const char* prefix : {"mhlo.num_replicas", "mhlo.num_partitions"}) {
    auto it = p_.attributes.find(prefix);
    if (it == p_.attributes.end()) continue;
    const Ints v = ParseIntList(it->second).value_or(Ints{1});
    (absl::StrContains(prefix, "replicas") ? m_->replica_count : m_->partition_count) = v.empty() ? 1 : v[0];
  }
  for (size_t k = 0; k < main->body.arguments.size(); ++k) {
    const std::string& a = main->body.arguments[k].attributes;
    m_->argument_names.push_back(main->body.arguments[k].name);
    if (const size_t at = a.find("tf.aliasing_output"); at != std::string::npos) {
      const Ints v = ParseIntList(absl::string_view(a).substr(a.find('=', at) + 1,
                                                              a.find_first_of(",:}", at) - a.find('=', at) - 1))
                         .value_or(Ints());
      if (!v.empty()) {
        AliasEntry e;
        if (main->result_types.size() > 1) e.output = {v[0]};
        e.parameter = static_cast<int64_t>(k);
        m_->aliases.push_back(e);
      }
    }
    if (absl::StrContains(a, "jax.buffer_donor = true")) m_->buffer_donors.push_back({static_cast<int64_t>(k), {}});
  }
  std::sort(m_->aliases.begin(), m_->aliases.end(),
            [](const AliasEntry& a, const AliasEntry& b) { return a.output < b.output; });
  m_->RemoveUnreachableComputations();
  return std::move(m_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportStableHlo(absl::string_view text, const std::string& file) {
  ASSIGN_OR_RETURN(Program p, mlir::Parse(text, file));
  if (p.functions.empty() && !p.top_level.empty()) {  // a bare list of operations
    Function f;
    f.name = "main";
    f.body.ops = std::move(p.top_level);
    p.functions.push_back(std::move(f));
  }
  return Converter(p, file).Run();
}

}  // namespace kiln
