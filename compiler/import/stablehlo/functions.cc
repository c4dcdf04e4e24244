// Functions become computations: callees first, those of unbounded types at each call.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/interface_names.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/import/bytecode.h"
#include "compiler/import/check_program.h"
#include "compiler/import/dense.h"
#include "compiler/import/platform.h"
#include "compiler/import/stablehlo/converter.h"
#include "compiler/import/symbols.h"

namespace kiln::stablehlo {

using mlir::Function;
using mlir::Op;
using mlir::Region;

namespace {

// Functions whose shapes depend on the caller are inlined at each call: how deep.
constexpr int kMaxInlineDepth = 64;

bool IsUnbounded(const Function& f) {
  return std::any_of(f.body.arguments.begin(), f.body.arguments.end(),
                     [](const mlir::BlockArgument& a) { return Unbounded(a.type); }) ||
         std::any_of(f.result_types.begin(), f.result_types.end(), [](const mlir::Type& t) { return Unbounded(t); });
}

}  // namespace

const Function* Converter::Find(const std::string& name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

absl::StatusOr<Computation*> Converter::FunctionOf(const std::string& name, const Op& caller) {
  if (auto it = functions_.find(name); it != functions_.end()) return it->second;
  const Function* f = Find(name);
  if (!f) return Fail(caller, absl::StrCat("function @", name, " is not defined"));
  return BuildFunction(*f);
}

absl::StatusOr<Values> Converter::CallFunction(const std::string& name, const Op& caller, Computation* c,
                                               const Values& arguments) {
  const Function* f = Find(name);
  if (!f) return Fail(caller, absl::StrCat("function @", name, " is not defined"));
  if (f->body.arguments.size() != arguments.size())
    return Fail(caller,
                absl::StrCat("@", name, " takes ", f->body.arguments.size(), " arguments, not ", arguments.size()));
  if (IsUnbounded(*f)) {
    if (++inline_depth_ > kMaxInlineDepth)
      return Fail(caller, absl::StrCat("calls of functions with unbounded types nest deeper than ", kMaxInlineDepth));
    Env env;
    for (size_t k = 0; k < arguments.size(); ++k) env[f->body.arguments[k].name] = {arguments[k]};
    Values returned;
    RETURN_IF_ERROR(BuildOps(f->body, c, &env, &returned));
    --inline_depth_;
    return returned;
  }
  ASSIGN_OR_RETURN(Computation * callee, FunctionOf(name, caller));
  Instruction* call = c->Add(Opcode::Call, callee->root()->shape(), arguments);
  call->set_loc(caller.loc);
  call->mutable_attrs().to_apply = callee;
  if (!callee->root()->shape().IsTuple() || f->result_types.size() == 1) return Values{call};
  Values out;
  for (size_t k = 0; k < call->shape().tuple().size(); ++k) {
    out.push_back(c->Add(Opcode::GetTupleElement, call->shape().tuple()[k], {call}));
    out.back()->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    out.back()->set_loc(caller.loc);
  }
  return out;
}

absl::StatusOr<Shape> Converter::ArgumentShape(const Function& f, size_t k) const {
  Shape s = f.body.arguments[k].type;
  const std::string where =
      absl::StrCat(module_->file, ":", f.loc.line, ":", f.loc.column, ": error: argument ", k, " of @", f.name);
  if (k < options_.argument_shapes.size() && s.IsArray()) {
    const Shape& given = options_.argument_shapes[k];
    if (s.rank() == 0 && given.dims() == Ints{1}) return s;  // how some writers store a scalar
    bool fits = given.rank() == s.rank();
    for (int64_t d = 0; fits && d < s.rank(); ++d) fits = s.dim(d) < 0 || s.dim(d) == given.dim(d);
    if (!fits) return InvalidArgument(where, " is ", s.ToString(false), "; ", given.ToString(false), " was given");
    s = Shape::Array(s.type(), given.dims());
  } else if (Unbounded(s) && options_.dim >= 0) {
    for (int64_t d = 0; d < s.rank(); ++d)
      if (s.dim(d) < 0) {
        s.mutable_dims()[d] = options_.dim;
        s.set_dynamic(d, false);
      }
  }
  if (Unbounded(s))
    return InvalidArgument(where, " has an unbounded dimension; its extent is needed (--dim N, or inputs)");
  return s;
}

absl::StatusOr<Computation*> Converter::BuildFunction(const Function& f) {
  Computation* c = module_->AddComputation(f.name);
  const bool is_entry = building_entry_;
  if (is_entry) entry_ = c;
  Env env;
  for (size_t k = 0; k < f.body.arguments.size(); ++k) {
    const auto& a = f.body.arguments[k];
    Shape shape = a.type;
    if (is_entry) {
      ASSIGN_OR_RETURN(shape, ArgumentShape(f, k));
    }
    Instruction* p = c->AddParameter(static_cast<int64_t>(k), shape, a.name);
    p->set_loc(f.loc);
    if (is_entry) SetEntrySharding(a.attributes, p);
    Origin origin = origins_.Of(a.origin);
    if (is_entry) origin.name = ArgumentName(f, a);  // so that HLO text keeps it
    if (const std::string m = origin.Metadata(); !m.empty()) p->mutable_attrs().metadata = attr::Raw(m);
    Mark(p, a.type.quantized);
    env[a.name] = {p};
  }
  Values ret;
  RETURN_IF_ERROR(BuildOps(f.body, c, &env, &ret));
  if (ret.size() != f.result_types.size())
    return InvalidArgument(module_->file, ":", f.loc.line, ":", f.loc.column, ": error: @", f.name, " returns ",
                           ret.size(), " values, its type says ", f.result_types.size());
  if (is_entry)
    for (size_t k = 0; k < ret.size() && k < f.result_attributes.size(); ++k)
      ret[k] = WithResultSharding(f.result_attributes[k], ret[k]);
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

std::string TextAttribute(absl::string_view attributes, absl::string_view key) {
  for (size_t at = attributes.find(key); at != attributes.npos; at = attributes.find(key, at + 1)) {
    Scanner s(attributes.substr(at + key.size()), "");
    if (s.Eat("=") && s.Peek() == '"') return ReadMlirString(&s).value_or("");
  }
  return "";
}

std::string Converter::GivenName(const mlir::BlockArgument& a) {
  for (const char* key : {"jax.arg_info", "jax.global_constant"})
    if (std::string name = TextAttribute(a.attributes, key); !name.empty()) return name;
  return origins_.Of(a.origin).name;
}

// jax.export with symbolic dimensions wraps the function that has the names in one that has none.
std::string Converter::NameInCallee(const Function& f, const std::string& argument) {
  for (const auto& op : f.body.ops) {
    if (op->name != "func.call") continue;
    const Function* callee = Find(mlir::CalleeOf(*op));
    const auto at = std::find(op->operands.begin(), op->operands.end(), argument) - op->operands.begin();
    if (!callee || static_cast<size_t>(at) >= std::min(op->operands.size(), callee->body.arguments.size())) continue;
    if (std::string name = GivenName(callee->body.arguments[at]); !name.empty()) return name;
  }
  return "";
}

std::string Converter::ArgumentName(const Function& main, const mlir::BlockArgument& a) {
  std::string name = GivenName(a);
  if (name.empty()) name = NameInCallee(main, a.name);
  return name.empty() ? a.name : name;
}

// What the front end calls arguments and results.
void Converter::ReadNames(const Function& main) {
  std::vector<std::string> results;
  for (const mlir::BlockArgument& a : main.body.arguments) module_->argument_names.push_back(ArgumentName(main, a));
  for (const std::string& attributes : main.result_attributes)
    results.push_back(TextAttribute(attributes, "jax.result_info"));
  SetResultNames(results, module_.get());
}

// Donated arguments and the results that take their storage.
void Converter::ReadSharing(const Function& main) {
  for (size_t k = 0; k < main.body.arguments.size(); ++k) {
    const std::string& a = main.body.arguments[k].attributes;
    if (const size_t at = a.find("tf.aliasing_output"); at != std::string::npos) {
      const Ints v = ParseIntList(absl::string_view(a).substr(a.find('=', at) + 1,
                                                              a.find_first_of(",:}", at) - a.find('=', at) - 1))
                         .value_or(Ints());
      if (!v.empty()) {
        AliasEntry e;
        if (main.result_types.size() > 1) e.output = {v[0]};
        e.parameter = static_cast<int64_t>(k);
        module_->aliases.push_back(e);
      }
    }
    if (absl::StrContains(a, "jax.buffer_donor = true"))
      module_->buffer_donors.push_back({static_cast<int64_t>(k), {}});
  }
  std::sort(module_->aliases.begin(), module_->aliases.end(),
            [](const AliasEntry& a, const AliasEntry& b) { return a.output < b.output; });
}

namespace {

// Row major, in the host's memory where the attributes of an argument or result say so.
Shape Placed(Shape s, const std::string& attributes) {
  const std::string kind = TextAttribute(attributes, "mhlo.memory_kind");
  if (!s.IsArray() || (kind != "pinned_host" && kind != "unpinned_host")) return s;
  s.SetDefaultLayouts();
  Layout l = *s.layout();
  l.extras = absl::StrCat("S(", kSlowMemorySpace, ")");
  s.set_layout(l);
  return s;
}

// Arguments and results that the caller has in the host's memory.
void ReadPlaces(const Function& main, Module* m) {
  EntryLayout l;
  for (size_t k = 0; k < main.body.arguments.size(); ++k)
    l.parameters.push_back(
        Placed(m->entry()->parameter(static_cast<int64_t>(k))->shape(), main.body.arguments[k].attributes));
  l.result = m->entry()->root()->shape();
  for (size_t k = 0; k < main.result_attributes.size(); ++k) {
    Shape& s = l.result.IsTuple() ? l.result.mutable_tuple()[k] : l.result;
    s = Placed(s, main.result_attributes[k]);
  }
  const auto on_host = [](const Shape& s) {
    const std::vector<Shape> arrays = ArrayLeaves(s);
    return std::any_of(arrays.begin(), arrays.end(), [](const Shape& a) { return a.LiesInSlowMemory(); });
  };
  if (on_host(l.result) || std::any_of(l.parameters.begin(), l.parameters.end(), on_host)) m->entry_layout = l;
}

// The meshes of a program, as a module's frontend attribute lists them; empty if there is none.
std::string Meshes(const mlir::Program& p) {
  if (p.meshes.empty()) return "";
  std::string out;
  for (const auto& [name, value] : p.meshes)
    absl::StrAppend(&out, out.empty() ? "{" : ", ", name, " = #sdy.mesh", value);
  return out + "}";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> Converter::Run() {
  for (const char* key : {"mhlo.num_replicas", "mhlo.num_partitions"}) {
    auto it = program_.attributes.find(key);
    if (it == program_.attributes.end()) continue;
    const Ints v = ParseIntList(it->second).value_or(Ints{1});
    const int64_t n = v.empty() ? 1 : v[0];
    if (n < 1) return InvalidArgument(module_->file, ":1:1: error: ", key, " is ", n);
    (absl::EndsWith(key, "replicas") ? module_->replica_count : module_->partition_count) = n;
  }
  if (const std::string meshes = Meshes(program_); !meshes.empty())
    module_->extra_header.push_back({"frontend_attributes", absl::StrCat("{xla.sdy.meshes=", meshes, "}")});
  else if (auto it = program_.attributes.find("mhlo.frontend_attributes"); it != program_.attributes.end())
    module_->extra_header.push_back({"frontend_attributes", it->second});
  for (const Function& f : program_.functions) by_name_[f.name] = &f;
  ASSIGN_OR_RETURN(const Function* main, mlir::EntryOf(program_, module_->file, options_.entry));
  ASSIGN_OR_RETURN(const std::vector<const Function*> order, mlir::CalleesFirst(program_, module_->file, main));
  for (const auto& op : main->body.ops)
    if (op->name == "interpreter.run_parallel") RETURN_IF_ERROR(ReadDeviceGrid(*op, this));
  // Callees are built before their callers, so that long chains of calls need no deep recursion.
  for (const Function* f : order)
    if (f != main && !IsUnbounded(*f)) RETURN_IF_ERROR(BuildFunction(*f).status());
  building_entry_ = true;
  ASSIGN_OR_RETURN(Computation * entry, BuildFunction(*main));
  module_->set_entry(entry);
  ReadSharing(*main);
  ReadNames(*main);
  if (entry->parameters().size() == main->body.arguments.size()) ReadPlaces(*main, module_.get());
  module_->RemoveUnreachableComputations();
  return std::move(module_);
}

}  // namespace kiln::stablehlo

namespace kiln {

absl::StatusOr<std::unique_ptr<Module>> ImportStableHlo(absl::string_view text, const std::string& file,
                                                        const ImportOptions& options) {
  ASSIGN_OR_RETURN(mlir::Program p, mlir::Parse(text, file));
  RETURN_IF_ERROR(mlir::CheckProgram(p, file));
  if (p.functions.empty() && !p.top_level.empty()) {  // a bare list of operations
    mlir::Function f;
    f.name = "main";
    f.body.ops = std::move(p.top_level);
    p.functions.push_back(std::move(f));
  }
  return stablehlo::Converter(p, file, options).Run();
}

absl::StatusOr<std::unique_ptr<Module>> ImportBytecode(absl::string_view bytes, const std::string& file,
                                                       const ImportOptions& options) {
  ASSIGN_OR_RETURN(mlir::Program p, ParseBytecode(bytes, file));
  RETURN_IF_ERROR(mlir::CheckProgram(p, file));
  if (options.platform >= 0) SettlePlatform(&p, options.platform);
  return stablehlo::Converter(p, file, options).Run();
}

}  // namespace kiln
