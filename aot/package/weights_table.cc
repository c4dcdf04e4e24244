#include "aot/package/weights_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <regex>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/llvm/object.h"
#include "runtime_min/weights/table.h"

namespace kiln {
namespace {

std::string WhyNoWeight(const Port& p) {
  if (p.alias >= 0) return "is donated: runs write to it";
  if (p.tiling && p.tiling->IsCut()) return "is a part of a partitioned array, and files hold whole ones";
  if (p.low <= p.high) return "states a size";
  if (!p.shape.HasDefaultLayout()) return "is not row major";
  if (SafetensorsType(p.shape.type()).empty())
    return absl::StrCat("has type ", TextOf(p.shape.type()), ", which safetensors files do not have");
  return "";
}

std::string Dotted(const PortPath& path, size_t from) {
  std::string out;
  for (size_t k = from; k < path.size(); ++k)
    absl::StrAppend(&out, k > from ? "." : "", path[k].index < 0 ? path[k].name : absl::StrCat(path[k].index));
  return out;
}

// What each weight may be called in a file, what messages call it first. A name without its root is one's if it is no
// other's.
std::vector<std::vector<std::string>> Names(const std::vector<const Port*>& weights) {
  absl::flat_hash_map<std::string, int> uses;
  std::vector<std::vector<std::string>> out;
  for (const Port* p : weights) {
    std::vector<std::string> names;
    for (const std::string& n : {Dotted(p->steps, 0), p->path, p->name})
      if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
    for (const std::string& n : names) ++uses[n];
    if (p->steps.size() > 1) ++uses[Dotted(p->steps, 1)];
    out.push_back(std::move(names));
  }
  for (size_t k = 0; k < weights.size(); ++k)
    if (const std::string tail = Dotted(weights[k]->steps, 1); weights[k]->steps.size() > 1 && uses[tail] == 1)
      out[k].push_back(tail);
  return out;
}

int64_t Append(absl::string_view bytes, std::string* blob) {
  blob->resize((blob->size() + 7) / 8 * 8, '\0');
  const int64_t place = static_cast<int64_t>(blob->size());
  absl::StrAppend(blob, bytes);
  return place;
}

const WeightConstant* ConstantOf(const std::vector<WeightConstant>& constants, const Port& p) {
  const auto at =
      std::find_if(constants.begin(), constants.end(), [&](const WeightConstant& c) { return c.name == p.path; });
  return at == constants.end() ? nullptr : &*at;
}

bool Matches(const Port& p, const std::regex& expression) {
  return std::regex_match(p.path, expression) || std::regex_match(p.name, expression);
}

// Of the weight that is called as `p` is; `weights.size()` if there is none.
size_t PlaceOf(const Port& p, const std::vector<Port>& weights) {
  const auto same = [&](const Port& w) { return w.path == p.path; };
  return static_cast<size_t>(std::find_if(weights.begin(), weights.end(), same) - weights.begin());
}

}  // namespace

std::string SafetensorsType(PrimitiveType t) {
  switch (t) {
    case PrimitiveType::Pred:
      return "BOOL";
    case PrimitiveType::F8E4M3FN:
      return "F8_E4M3";
    case PrimitiveType::F8E5M2:
      return "F8_E5M2";
    case PrimitiveType::F8E8M0FNU:
      return "F8_E8M0";
    case PrimitiveType::BF16:
      return "BF16";
    case PrimitiveType::C64:
      return "C64";
    default:
      break;
  }
  const int bits = InfoOf(t).bits;
  if (bits < 8 || IsComplex(t) || (IsFloat(t) && bits < 16)) return "";
  return absl::StrCat(IsFloat(t) ? "F" : IsSigned(t) ? "I" : "U", bits);
}

absl::Status MarkWeights(const CompileOptions& o, const std::vector<WeightConstant>& constants,
                         std::vector<Port>* arguments) {
  for (Port& p : *arguments) p.weight = ConstantOf(constants, p) != nullptr;
  for (const std::string& text : o.model.weight_arguments) {
    const std::regex expression(text, std::regex::ECMAScript);
    for (Port& p : *arguments) p.weight = p.weight || Matches(p, expression);
  }
  for (const Port& p : *arguments)
    if (const std::string why = p.weight ? WhyNoWeight(p) : ""; !why.empty())
      return InvalidArgument("error: weights: argument ", p.path, " cannot come from a file: it ", why);
  return absl::OkStatus();
}

absl::Status JoinWeights(const CompileOptions& o, CompiledModel* library) {
  for (const std::string& text : o.model.weight_arguments) {
    const std::regex expression(text, std::regex::ECMAScript);
    bool any = false;
    for (const CompiledModel* m : ProgramsOf(*library))
      for (const Port& p : m->ports.arguments) any = any || Matches(p, expression);
    if (!any) return InvalidArgument("error: weights.arguments: no argument's path or name matches '", text, "'");
  }
  std::vector<Port>& weights = library->ports.weights;
  for (const CompiledModel* m : ProgramsOf(*library))
    for (const Port& p : m->ports.arguments) {
      if (!p.weight) continue;
      const size_t place = library->entries.empty() ? weights.size() : PlaceOf(p, weights);
      if (place == weights.size()) {
        weights.push_back(p);
        continue;
      }
      Port& known = weights[place];
      if (known.shape != p.shape)
        return InvalidArgument("error: weights: argument ", p.path, " is ", p.shape.ToString(false), " in entry ",
                               m->entry, " and ", known.shape.ToString(false),
                               " in another; a file has one array of that name");
      known.alignment = std::max(known.alignment, p.alignment);
    }
  return absl::OkStatus();
}

bool HasWeights(const CompiledModel& m) {
  for (const CompiledModel* program : ProgramsOf(m))
    for (const Port& p : program->ports.arguments)
      if (p.weight) return true;
  return false;
}

std::string WeightArgumentsObject(const CompiledModel& m, const std::vector<Port>& weights) {
  std::vector<int64_t> table = {static_cast<int64_t>(m.ports.arguments.size()), 0};
  size_t next = 0;
  for (const Port& p : m.ports.arguments) {
    // An only program has its weights in their order.
    const size_t place = !p.weight ? 0 : m.library.empty() ? next++ : PlaceOf(p, weights);
    table.push_back(p.weight ? static_cast<int64_t>(place) : -1);
    table[1] += !p.weight;
  }
  const absl::string_view bytes(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(int64_t));
  return DataObject(SymbolOf(m, "weight_arguments"), {{0, bytes}}, false);
}

std::string WeightsTableObject(const CompiledModel& m) {
  std::vector<const Port*> ports;
  for (const Port& p : m.ports.weights) ports.push_back(&p);
  std::vector<kiln_weight> weights(ports.size());
  const kiln_weights_table head = {static_cast<int64_t>(weights.size())};
  std::string blob(offsetof(kiln_weights_table, weight) + weights.size() * sizeof(kiln_weight), '\0');
  const auto names = Names(ports);
  for (size_t k = 0; k < weights.size(); ++k) {
    const Port& p = *ports[k];
    kiln_weight& w = weights[k];
    w.bytes = p.shape.ByteSize();
    w.alignment = p.alignment;
    w.rank = p.shape.rank();
    w.extents =
        Append({reinterpret_cast<const char*>(p.shape.dims().data()), p.shape.dims().size() * sizeof(int64_t)}, &blob);
    w.names = Append(absl::StrJoin(names[k], absl::string_view("\0", 1)) + '\0', &blob);
    w.name_count = static_cast<int64_t>(names[k].size());
    std::strncpy(w.dtype, SafetensorsType(p.shape.type()).c_str(), sizeof w.dtype - 1);
    if (const WeightConstant* c = ConstantOf(m.code.weight_constants, p)) {
      w.hash = kiln_weights_hash(c->value.data(), c->value.byte_size());
      w.hashed = 1;
    }
  }
  std::memcpy(blob.data(), &head, offsetof(kiln_weights_table, weight));
  std::memcpy(blob.data() + offsetof(kiln_weights_table, weight), weights.data(), weights.size() * sizeof(kiln_weight));
  return DataObject(SymbolOf(m, "weights_table"), {{0, blob}}, false);
}

}  // namespace kiln
