// The operations of a portable artifact: VHLO's functions and operations as the importer's tree of StableHLO.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/base/status.h"
#include "compiler/import/bytecode.h"
#include "compiler/import/bytecode/locations.h"
#include "compiler/import/bytecode/vhlo.h"
#include "compiler/import/mlir_parser.h"

namespace kiln::bytecode {
namespace {

using mlir::Op;
using mlir::Region;
using Attributes = absl::flat_hash_map<std::string, std::string>;

constexpr int kMaxDepth = 256;

// Stands between VHLO's types and those of other dialects.
constexpr absl::string_view kCast = "builtin.unrealized_conversion_cast";

// Which parts an operation has.
enum Mask : uint8_t {
  kHasAttributes = 0x01,
  kHasResults = 0x02,
  kHasOperands = 0x04,
  kHasSuccessors = 0x08,
  kHasRegions = 0x10,
  kHasUseOrders = 0x20,
  kHasProperties = 0x40
};

std::string Take(Attributes* a, absl::string_view key) {
  auto it = a->find(key);
  if (it == a->end()) return "";
  std::string v = std::move(it->second);
  a->erase(it);
  return v;
}

// "3 : i64" -> "3", "array<i64: 1, 2>" -> "[1, 2]".
std::string Plain(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "array<")) {
    absl::ConsumeSuffix(&text, ">");
    const size_t colon = text.find(':');
    return colon == absl::string_view::npos
               ? "[]"
               : absl::StrCat("[", absl::StripAsciiWhitespace(text.substr(colon + 1)), "]");
  }
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find(':'))));
}

// Gathers the fields of `a` that StableHLO keeps inside one attribute.
std::string Group(Attributes* a, absl::string_view prefix, std::initializer_list<const char*> fields) {
  std::vector<std::string> parts;
  for (const char* f : fields)
    if (a->contains(f)) parts.push_back(absl::StrCat(f, " = ", Plain(Take(a, f))));
  return absl::StrCat(prefix, "<", absl::StrJoin(parts, ", "), ">");
}

// The label of one operand of a convolution: [b, 0, 1, f].
absl::StatusOr<std::string> Label(Attributes* a, absl::string_view what, const char* first, const char* first_letter,
                                  const char* second, const char* second_letter) {
  const auto number = [&](absl::string_view key, int64_t* v) {
    return absl::SimpleAtoi(Plain(Take(a, absl::StrCat(what, key))), v) && *v >= 0 && *v < 64;
  };
  int64_t one, two;
  if (!number(first, &one) || !number(second, &two)) return InvalidArgument("bad dimension numbers");
  const std::string list = Plain(Take(a, absl::StrCat(what, "_spatial_dimensions")));
  std::vector<int64_t> spatial;
  for (absl::string_view word : absl::StrSplit(list, absl::ByAnyChar("[], "), absl::SkipEmpty())) {
    int64_t v;
    if (!absl::SimpleAtoi(word, &v) || v < 0 || v >= 64) return InvalidArgument("bad spatial dimensions");
    spatial.push_back(v);
  }
  std::vector<std::string> label(spatial.size() + 2);
  const auto place = [&](int64_t at, std::string text) {
    if (at >= static_cast<int64_t>(label.size()) || !label[at].empty()) return false;
    label[at] = std::move(text);
    return true;
  };
  bool ok = place(one, first_letter) && place(two, second_letter);
  for (size_t k = 0; k < spatial.size(); ++k) ok = ok && place(spatial[k], absl::StrCat(k));
  if (!ok) return InvalidArgument("dimension numbers overlap");
  return absl::StrCat("[", absl::StrJoin(label, ", "), "]");
}

// VHLO keeps in single attributes what StableHLO groups; this groups them again.
absl::Status Regroup(absl::string_view op, Attributes* a) {
  if (op == "dot_general") {
    (*a)["dot_dimension_numbers"] = Group(a, "#stablehlo.dot",
                                          {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                           "lhs_contracting_dimensions", "rhs_contracting_dimensions"});
    if (a->contains("lhs_precision_type")) {
      const bool algorithm = a->at("lhs_precision_type") != "none";
      std::string text = Group(a, "#stablehlo.dot_algorithm",
                               {"lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
                                "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"});
      if (algorithm) (*a)["algorithm"] = std::move(text);
    }
  } else if (op == "convolution" || op == "dynamic_conv") {
    ASSIGN_OR_RETURN(std::string in, Label(a, "input", "_batch_dimension", "b", "_feature_dimension", "f"));
    ASSIGN_OR_RETURN(std::string kernel,
                     Label(a, "kernel", "_input_feature_dimension", "i", "_output_feature_dimension", "o"));
    ASSIGN_OR_RETURN(std::string out, Label(a, "output", "_batch_dimension", "b", "_feature_dimension", "f"));
    (*a)["dimension_numbers"] = absl::StrCat("#stablehlo.conv<", in, "x", kernel, "->", out, ">");
  } else if (op == "gather" || op == "dynamic_gather") {
    (*a)["dimension_numbers"] = Group(a, "#stablehlo.gather",
                                      {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                                       "start_indices_batching_dims", "start_index_map", "index_vector_dim"});
  } else if (op == "scatter") {
    (*a)["scatter_dimension_numbers"] =
        Group(a, "#stablehlo.scatter",
              {"update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
               "scatter_dims_to_operand_dims", "index_vector_dim"});
  } else if (op == "call" || op == "composite") {
    const char* key = op == "call" ? "callee" : "decomposition";
    std::string name = Take(a, key);
    if (name.size() >= 2 && name[0] == '"') name = name.substr(1, name.size() - 2);
    (*a)[key] = "@" + name;
  } else if (op == "custom_call" && a->contains("called_computations")) {
    // Strings here, symbols in text.
    std::string& names = (*a)["called_computations"];
    names = absl::StrReplaceAll(names, {{"[\"", "[@\""}, {", \"", ", @\""}});
  } else if (op == "constant" && a->contains("value") && absl::StartsWith(a->at("value"), "array<")) {
    (*a)["value"] = absl::StrCat("dense<", Plain(Take(a, "value")), ">");
  }
  if (a->contains("channel_id")) {
    const std::string id = Plain(Take(a, "channel_id")), type = Plain(Take(a, "channel_type"));
    if (id != "0" || !type.empty())
      (*a)["channel_handle"] =
          absl::StrCat("#stablehlo.channel_handle<handle = ", id, ", type = ", type.empty() ? "0" : type, ">");
  }
  // What StableHLO's own writer leaves out.
  for (const char* key : {"compare_type", "backend_config", "infeed_config", "outfeed_config"}) {
    auto it = a->find(key);
    if (it != a->end() && (it->second == "\"\"" || absl::EndsWith(it->second, " NOTYPE>"))) a->erase(it);
  }
  for (const char* key : {"operand_layouts", "result_layouts"})
    if (auto it = a->find(key); it != a->end() && it->second == "[]") a->erase(it);
  return absl::OkStatus();
}

class Builder {
 public:
  Builder(const Container& in, const std::string& file)
      : in_(in), file_(file), tables_(in, file), locations_(in, &tables_) {}

  absl::StatusOr<mlir::Program> Build() {
    Cursor c = in_.ir;
    std::vector<std::string> values;
    Region top;
    RETURN_IF_ERROR(ReadBlock(c, &values, 0, &top));
    if (top.ops.size() != 1 || top.ops[0]->name != "builtin.module" || top.ops[0]->regions.size() != 1)
      return ErrorAt(file_, in_.ir.offset(), "the file does not hold one module");
    program_.attributes = std::move(top.ops[0]->attributes);
    if (auto it = program_.attributes.find("sym_name"); it != program_.attributes.end()) {
      program_.name = it->second.size() >= 2 ? it->second.substr(1, it->second.size() - 2) : "";
      program_.attributes.erase(it);
    }
    program_.operand_types_stated = false;
    for (auto& op : top.ops[0]->regions[0].ops) RETURN_IF_ERROR(mlir::AddTopLevel(std::move(op), file_, &program_));
    return std::move(program_);
  }

 private:
  absl::Status Fail(const Cursor& c, absl::string_view why) const { return ErrorAt(file_, c.offset(), why); }
  absl::Status Check(const Cursor& c) const {
    return c.ok() ? absl::OkStatus() : Fail(c, "the operations end too early");
  }

  // Numbers of values count from zero in each function; those inside a region follow those around it.
  absl::Status Define(Cursor& c, std::vector<std::string>* values, uint64_t* next, const std::string& name) {
    if (*next >= values->size()) return Fail(c, "more values than the region declares");
    (*values)[(*next)++] = name;
    return absl::OkStatus();
  }

  absl::Status ReadRegion(Cursor& c, std::vector<std::string>* values, Region* r) {
    const uint64_t blocks = c.Varint();
    if (blocks == 0) return Check(c);
    const uint64_t declared = c.Varint();
    RETURN_IF_ERROR(Check(c));
    if (blocks != 1) return Fail(c, "a region of several blocks");
    if (declared > in_.ir.left()) return Fail(c, "a region of more values than bytes");
    const uint64_t first = values->size();
    values->resize(first + declared);
    RETURN_IF_ERROR(ReadBlock(c, values, first, r));
    values->resize(first);
    return absl::OkStatus();
  }

  absl::Status ReadBlock(Cursor& c, std::vector<std::string>* values, uint64_t next, Region* r) {
    if (++depth_ > kMaxDepth) return Fail(c, "regions nest too deep");
    const uint64_t encoding = c.Varint();
    if (encoding & 1) {
      const uint64_t n = c.Count();
      for (uint64_t k = 0; k < n; ++k) {
        uint64_t type = c.Varint();
        bool located = true;
        if (in_.version >= 4) {
          located = type & 1;
          type >>= 1;
        }
        mlir::BlockArgument a;
        if (located) a.origin = locations_.At(c.Varint()).ToString();
        RETURN_IF_ERROR(Check(c));
        ASSIGN_OR_RETURN(a.type, tables_.TypeAt(type));
        a.name = depth_ == 3 ? absl::StrCat("arg", k) : absl::StrCat("v", next_name_++);
        RETURN_IF_ERROR(Define(c, values, &next, a.name));
        r->arguments.push_back(std::move(a));
      }
      if (in_.version >= 3 && c.Byte() != 0) SkipUseOrders(c, n);
    }
    if ((encoding >> 1) > c.left()) return Fail(c, "a block of more operations than bytes");
    for (uint64_t k = 0; k < encoding >> 1; ++k) RETURN_IF_ERROR(ReadOp(c, values, &next, r));
    --depth_;
    return Check(c);
  }

  absl::Status ReadOp(Cursor& c, std::vector<std::string>* values, uint64_t* next, Region* into) {
    auto op = std::make_unique<Op>();
    op->pos = c.offset();
    op->loc = {1, static_cast<int>(c.offset()) + 1};
    const Cursor start = c;
    const uint64_t name = c.Varint();
    const uint8_t mask = c.Byte();
    op->origin = locations_.At(c.Varint()).ToString();
    RETURN_IF_ERROR(Check(c));
    if (name >= in_.op_names.size()) return Fail(start, absl::StrCat("there is no operation name ", name));
    const std::string& full = in_.op_names[name];
    absl::string_view versioned = full, bare;
    const bool vhlo = absl::ConsumePrefix(&versioned, "vhlo.");
    if (vhlo) {
      bare = versioned.substr(0, versioned.rfind("_v"));
      op->name = absl::StrCat(bare == "call" || bare == "func" ? "func." : "stablehlo.", bare);
    } else if (full == "builtin.module" || full == kCast || SdyAttributesOf(full)) {
      op->name = full;
    } else {
      return Fail(start, absl::StrCat("operation '", full,
                                      "'; kiln reads portable artifacts, whose operations are of the vhlo dialect"));
    }
    uint64_t function_type = ~uint64_t{0}, argument_attributes = function_type, result_attributes = function_type;
    if (mask & kHasAttributes) {
      const uint64_t index = c.Varint();
      RETURN_IF_ERROR(Check(c));
      ASSIGN_OR_RETURN(Cursor d, Dict(index));
      const uint64_t n = d.Count();
      for (uint64_t k = 0; k < n; ++k) {
        const uint64_t key = d.Varint(), value = d.Varint();
        if (!d.ok()) return Fail(d, "a dictionary ends too early");
        ASSIGN_OR_RETURN(std::string text, tables_.String(key));
        RETURN_IF_ERROR(
            Keep(op.get(), text, value, bare == "func", &function_type, &argument_attributes, &result_attributes));
      }
    }
    if (mask & kHasProperties) {
      const uint64_t index = c.Varint();
      RETURN_IF_ERROR(Check(c));
      if (index >= in_.properties.size()) return Fail(start, absl::StrCat("there are no properties ", index));
      Cursor p = in_.properties[index];
      if (full == kCast) return Fail(start, "a cast with properties");
      if (full != "builtin.module") {
        const std::vector<std::string>* names = vhlo ? AttributesOf(versioned) : SdyAttributesOf(full);
        if (!names)
          return Fail(start, absl::StrCat("operation '", full, "' is newer than this version of kiln, or unknown"));
        for (const std::string& key : *names) {
          const uint64_t value = p.Varint();
          if (!p.ok()) return Fail(p, absl::StrCat("the properties of '", full, "' end before ", key));
          RETURN_IF_ERROR(
              Keep(op.get(), key, value, bare == "func", &function_type, &argument_attributes, &result_attributes));
        }
        if (!p.AtEnd()) return Fail(p, absl::StrCat("'", full, "' has more properties than its ", names->size()));
      } else if (const uint64_t symbol = p.Varint(); symbol & 1) {  // a module's name, where it has one
        ASSIGN_OR_RETURN(op->attributes["sym_name"], tables_.Attribute(symbol >> 1));
      }
    }
    const uint64_t first_result = *next;
    if (mask & kHasResults) {
      const uint64_t n = c.Count();
      const std::string result = absl::StrCat("v", next_name_++);
      for (uint64_t k = 0; k < n; ++k) {
        const uint64_t type = c.Varint();
        RETURN_IF_ERROR(Check(c));
        ASSIGN_OR_RETURN(mlir::Type t, tables_.TypeAt(type));
        op->result_types.push_back(std::move(t));
        RETURN_IF_ERROR(Define(c, values, next, n == 1 ? result : absl::StrCat(result, "#", k)));
      }
      op->results = {{result, static_cast<int>(n)}};
    }
    if (mask & kHasOperands) {
      const uint64_t n = c.Count();
      for (uint64_t k = 0; k < n; ++k) {
        const uint64_t v = c.Varint();
        RETURN_IF_ERROR(Check(c));
        if (v >= values->size() || (*values)[v].empty())
          return Fail(start, absl::StrCat("'", full, "' uses value ", v, ", which is not defined"));
        op->operands.push_back((*values)[v]);
      }
    }
    if (mask & kHasSuccessors) return Fail(start, "control flow between blocks");
    if (mask & kHasUseOrders) SkipUseOrders(c, op->result_types.size());
    op->has_function_type = true;
    if (vhlo)
      if (absl::Status s = Regroup(bare, &op->attributes); !s.ok())
        return Fail(start, absl::StrCat("'", full, "': ", s.message()));
    if (mask & kHasRegions) RETURN_IF_ERROR(ReadRegions(c, values, op.get()));
    if (full == kCast) {  // other names for the operands
      if (op->operands.size() != op->result_types.size()) return Fail(start, "a cast that joins or divides values");
      std::copy(op->operands.begin(), op->operands.end(), values->begin() + static_cast<std::ptrdiff_t>(first_result));
      return Check(c);
    }
    if (bare == "func") return AddFunction(start, std::move(op), function_type, argument_attributes, result_attributes);
    into->ops.push_back(std::move(op));
    return Check(c);
  }

  // In which order each of `values` is used matters to nobody here.
  void SkipUseOrders(Cursor& c, uint64_t values) {
    const uint64_t listed = values > 1 ? c.Count() : 1;
    for (uint64_t k = 0; k < listed && c.ok(); ++k) {
      if (values > 1) c.Varint();
      const uint64_t entries = c.Varint() >> 1;
      for (uint64_t i = 0; i < entries && c.ok(); ++i) c.Varint();
    }
  }

  absl::StatusOr<Cursor> Dict(uint64_t index) {
    if (index >= in_.attributes.size())
      return ErrorAt(file_, in_.ir.offset(), absl::StrCat("there is no attribute ", index));
    Cursor d = in_.attributes[index].bytes;
    if (in_.attributes[index].dialect != "builtin" || d.Varint() != 1) return Fail(d, "attributes are no dictionary");
    return d;
  }

  absl::Status Keep(Op* op, const std::string& key, uint64_t value, bool function, uint64_t* type, uint64_t* arguments,
                    uint64_t* results) {
    if (function && key == "function_type") {
      *type = value;
    } else if (function && key == "arg_attrs") {
      *arguments = value;
    } else if (function && key == "res_attrs") {
      *results = value;
    } else if (key == "sdy.sharding_rule") {
      // How JAX says that a custom call's arrays may be cut, in a form that only Shardy reads; nothing here reads it.
    } else {
      ASSIGN_OR_RETURN(op->attributes[key], tables_.Attribute(value));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRegions(Cursor& c, std::vector<std::string>* values, Op* op) {
    const uint64_t encoding = c.Varint();
    const bool isolated = encoding & 1;
    if ((encoding >> 1) > c.left()) return Fail(c, "an operation of more regions than bytes");
    op->regions.resize(encoding >> 1);
    if (!isolated || in_.version < 2) {
      std::vector<std::string> own;
      for (Region& r : op->regions) RETURN_IF_ERROR(ReadRegion(c, isolated ? &own : values, &r));
      return Check(c);
    }
    // Regions that use nothing from around them lie in a section of their own.
    const uint8_t id = c.Byte();
    const uint64_t length = c.Varint();
    if (id & 0x80) {
      const uint64_t alignment = c.Varint();
      if (!c.ok() || alignment == 0 || (alignment & (alignment - 1))) return Fail(c, "bad alignment");
      while (c.ok() && c.offset() % alignment) c.Byte();
    }
    const size_t at = c.offset();
    Cursor inner(c.Bytes(length), at);
    if (c.ok() && (id & 0x7f) != kIr) return Fail(c, "a region's section is missing");
    std::vector<std::string> own;
    for (Region& r : op->regions) RETURN_IF_ERROR(ReadRegion(inner, &own, &r));
    return Check(c);
  }

  absl::Status AddFunction(const Cursor& at, std::unique_ptr<Op> op, uint64_t type, uint64_t argument_attributes,
                           uint64_t result_attributes) {
    mlir::Function f;
    f.loc = op->loc;
    const std::string name = Take(&op->attributes, "sym_name"), visibility = Take(&op->attributes, "sym_visibility");
    f.name = name.size() >= 2 ? name.substr(1, name.size() - 2) : "";
    f.is_public = visibility != "\"private\"";
    if (op->regions.size() != 1 || f.name.empty()) return Fail(at, "a function without a name or body");
    f.body = std::move(op->regions[0]);
    ASSIGN_OR_RETURN(FunctionType t, tables_.Function(type));
    if (t.inputs.size() != f.body.arguments.size())
      return Fail(
          at, absl::StrCat("@", f.name, " has ", f.body.arguments.size(), " arguments, its type ", t.inputs.size()));
    f.result_types = std::move(t.results);
    f.result_attributes.resize(f.result_types.size());
    const auto spread = [&](uint64_t index, auto set, size_t size) -> absl::Status {
      if (index == ~uint64_t{0}) return absl::OkStatus();
      ASSIGN_OR_RETURN(std::vector<uint64_t> each, tables_.Elements(index));
      for (size_t k = 0; k < each.size() && k < size; ++k) {
        ASSIGN_OR_RETURN(std::string text, tables_.Attribute(each[k]));
        if (text.size() > 2) set(k, text.substr(1, text.size() - 2));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(spread(
        argument_attributes, [&](size_t k, std::string t) { f.body.arguments[k].attributes = std::move(t); },
        f.body.arguments.size()));
    RETURN_IF_ERROR(spread(
        result_attributes, [&](size_t k, std::string t) { f.result_attributes[k] = std::move(t); },
        f.result_attributes.size()));
    program_.functions.push_back(std::move(f));
    return absl::OkStatus();
  }

  const Container& in_;
  std::string file_;
  Tables tables_;
  Locations locations_;
  mlir::Program program_;
  int depth_ = 0;
  int64_t next_name_ = 0;
};

}  // namespace
}  // namespace kiln::bytecode

namespace kiln {

absl::StatusOr<mlir::Program> ParseBytecode(absl::string_view bytes, const std::string& file) {
  ASSIGN_OR_RETURN(bytecode::Container container, bytecode::ReadContainer(bytes, file));
  return bytecode::Builder(container, file).Build();
}

}  // namespace kiln
