// Arguments and results in the C++ header: their types, and the structs in which they nest.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aot/package/header_text.h"
#include "aot/package/nested_ports.h"

namespace kiln {
namespace {

bool Has(const CompiledModel& m, bool (*property)(PrimitiveType)) {
  for (const CompiledModel* program : ProgramsOf(m))
    for (const auto* ports : {&program->ports.arguments, &program->ports.results})
      for (const Port& p : *ports)
        if (property(p.shape.type())) return true;
  return false;
}

NestedPorts Nested(const CompiledModel& m, bool results) {
  const std::vector<Port>& ports = results ? m.ports.results : m.ports.arguments;
  return NestPorts(ports, [&](size_t k) { return results && ports[k].alias >= 0 ? "" : CppPort(m, results, k); });
}

}  // namespace

std::string CppType(PrimitiveType t) {
  if (t == PrimitiveType::Pred) return "bool";
  if (IsComplex(t)) return absl::StrCat("::std::complex<", t == PrimitiveType::C64 ? "float>" : "double>");
  if (IsFloat(t) && ByteWidth(t) <= 2) return absl::StrCat("::kiln::", TextOf(t));
  if (IsFloat(t)) return CType(t);
  return absl::StrCat("::std::", CType(t));
}

namespace {

std::string ArrayOf(const std::string& type, const Shape& s, bool constant) {
  const std::string element = absl::StrCat("::kiln::", type, "<", constant ? "const " : "", CppType(s.type()));
  if (s.HasDefaultLayout())
    return absl::StrCat(element, s.dims().empty() ? "" : ", ", absl::StrJoin(s.dims(), ", "), ">");
  return absl::StrCat(element, ", ", s.ElementCount(), ">");
}

}  // namespace

std::string CppArray(const Shape& s, bool constant) { return ArrayOf("Array", s, constant); }
std::string CppDeviceArray(const Shape& s, bool constant) { return ArrayOf("DeviceArray", s, constant); }

// One that has another shape for another batch.
bool Varies(const CompiledModel& m, bool result, size_t k) {
  for (const BatchPorts& b : m.ports.batches)
    if ((result ? b.results : b.arguments)[k].shape.dims() !=
        (result ? m.ports.results : m.ports.arguments)[k].shape.dims())
      return true;
  return false;
}

std::string CppPort(const CompiledModel& m, bool result, size_t k) {
  const Port& p = (result ? m.ports.results : m.ports.arguments)[k];
  const bool constant = !result && p.alias < 0;
  if (!Varies(m, result, k)) return CppArray(p.shape, constant);
  return absl::StrCat("::kiln::AnyCount<", constant ? "const " : "", CppType(p.shape.type()), ">");
}

std::string CppIncludes(const CompiledModel& m) {
  return absl::StrCat(Has(m, IsComplex) ? "#include <complex>\n" : "",
                      "#include <cstddef>\n#include <cstdint>\n#include <cstdlib>\n#include <type_traits>\n");
}

std::string ArrayParameters(const CompiledModel& m, Taken taken) {
  return TypedParameters(
      m, ",\n                    ",
      [](const Port& p, bool result) { return absl::StrCat(result ? "Result_" : "Argument_", p.name); }, taken);
}

std::string DataOf(const std::string& name) { return name + ".data()"; }

std::string PointerTables(const CompiledModel& m, const std::function<std::string(const std::string&)>& address,
                          Taken taken) {
  std::string arguments, results;
  for (const Port& p : m.ports.arguments)
    if (taken == Taken::kAll || !p.weight)
      absl::StrAppend(&arguments, "\n        const_cast<", CppType(p.shape.type()), "*>(", address("in_" + p.name),
                      "),");
  for (const Port& p : m.ports.results)
    absl::StrAppend(&results, "\n        ",
                    address(p.alias < 0 ? "out_" + p.name : "in_" + m.ports.arguments[p.alias].name), ",");
  return absl::StrCat("    void* const arguments[] = {", arguments, arguments.empty() ? "nullptr};\n" : "};\n",
                      "    void* const results[] = {", results, results.empty() ? "nullptr};\n" : "};\n");
}

std::string FitChecks(const CompiledModel& m, Taken taken) {
  std::string fit, out;
  if (!m.ports.batches.empty()) out += "    if (BatchFor(batch) != batch) return {$LIBUPPER_BATCH_SIZE};\n";
  for (const bool result : {false, true}) {
    const std::vector<Port>& ports = result ? m.ports.results : m.ports.arguments;
    for (size_t k = 0; k < ports.size(); ++k) {
      const Port& p = ports[k];
      if (result ? p.alias >= 0 : p.weight && taken == Taken::kNoWeights) continue;
      const std::string variable = (result ? "out_" : "in_") + p.name;
      if (!Varies(m, result, k))
        absl::StrAppend(&fit, fit.empty() ? "" : " &&\n        ", variable, ".fits()");
      else
        absl::StrAppend(&out, "    if (", variable, ".size() != $NAME_", result ? "result" : "argument", "_", p.name,
                        "_count(batch)) return {$LIBUPPER_EXTENT};\n");
    }
  }
  return fit.empty() ? out : absl::StrCat(out, "    if (!(", fit, ")) return {$LIBUPPER_EXTENT};\n");
}

std::string NestedStructs(const CompiledModel& m) {
  return absl::StrCat("\n  // The same as the program nests them: for run(context, arguments, results).\n",
                      "  struct Arguments {\n", Nested(m, false).members, "  };\n  struct Results {\n",
                      Nested(m, true).members, "  };\n");
}

std::string NestedResults(const CompiledModel& m) {
  std::string out;
  for (const std::string& e : Nested(m, true).expressions)
    if (!e.empty()) absl::StrAppend(&out, ",\n               results.", e);
  return out;
}

std::string NestedRun(const CompiledModel& m) {
  std::string arguments;
  const std::string results = NestedResults(m);
  for (const std::string& e : Nested(m, false).expressions)
    absl::StrAppend(&arguments, ",\n               arguments.", e);
  if (arguments.empty() && results.empty()) return "";
  return absl::StrCat("  static Status run(const Context& context$BATCHTAKEN, const Arguments&",
                      arguments.empty() ? "" : " arguments", ", const Results&", results.empty() ? "" : " results",
                      ") {\n    return run(context$BATCHGIVEN", arguments, results, ");\n  }\n");
}

}  // namespace kiln
