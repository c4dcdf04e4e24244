#include "compiler/hlo/printer.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {
namespace {

std::string CompText(const Computation* c) { return absl::StrCat("%", c->name()); }
std::string ValueText(attr::Comp c) { return CompText(c); }
std::string ValueText(const attr::Comps& v) {
  return absl::StrCat("{", absl::StrJoin(v, ", ", [](std::string* o, const Computation* c) { *o += CompText(c); }),
                      "}");
}
template <typename T>
std::string ValueText(const T& v) {
  return AttrText(v);
}

std::string LayoutEntryText(const EntryLayout& l) {
  std::string out = "{(";
  for (size_t i = 0; i < l.parameters.size(); ++i) {
    if (i) out += ", ";
    if (i && i % 5 == 0) absl::StrAppend(&out, "/*index=", i, "*/");
    out += l.parameters[i].ToString();
  }
  return absl::StrCat(out, ")->", l.result.ToString(), "}");
}

// The list order where it is a topological one (a schedule, a parsed text), else the post-order.
std::vector<const Instruction*> PrintOrder(const Computation& c) {
  std::vector<const Instruction*> order;
  absl::flat_hash_set<const Instruction*> seen;
  for (const auto& i : c.instructions()) {
    for (const auto* list : {&i->operands(), &i->control_predecessors()})
      for (const Instruction* o : *list)
        if (!seen.contains(o)) {
          order.clear();
          for (const Instruction* p : c.PostOrder()) order.push_back(p);
          return order;
        }
    seen.insert(i.get());
    order.push_back(i.get());
  }
  return order;
}

}  // namespace

std::string ToText(const Instruction& i, const PrintOptions& o) {
  std::string out = absl::StrCat("%", i.name(), " = ", i.shape().ToString(o.layouts), " ", TextOf(i.opcode()), "(");
  if (i.Is(Opcode::Constant)) {
    if (i.attrs().custom_call_literal)  // its elements were elided when the text was printed
      out += i.attrs().custom_call_literal->text;
    else if (o.max_constant_elements >= 0 && i.shape().ElementCount() > o.max_constant_elements)
      out += "{...}";
    else
      out += i.literal().ToString();
  } else if (i.Is(Opcode::Parameter)) {
    absl::StrAppend(&out, *i.attrs().parameter_number);
  } else {
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      if (k) out += ", ";
      if (k && k % 5 == 0) absl::StrAppend(&out, "/*index=", k, "*/");
      absl::StrAppend(&out, "%", i.operand(k)->name());
    }
  }
  out += ")";
  const Attributes& a = i.attrs();
  if (a.scan_dimension) absl::StrAppend(&out, ", dimensions={", *a.scan_dimension, "}");
  const auto shown = [&](absl::string_view row) {
    return row != "scan_dimension" && (o.metadata || row != "metadata") &&
           (row != "custom_call_literal" || !i.Is(Opcode::Constant));
  };
#define ATTR(field, kind, text)            \
  if (text[0] && a.field && shown(#field)) \
    absl::StrAppend(&out, ", ", absl::string_view(text), "=", ValueText(*a.field));
#include "compiler/hlo/attributes.def"
  if (!i.control_predecessors().empty()) {
    absl::StrAppend(&out, ", control-predecessors={",
                    absl::StrJoin(i.control_predecessors(), ", ",
                                  [](std::string* s, const Instruction* p) { absl::StrAppend(s, "%", p->name()); }),
                    "}");
  }
  return out;
}

std::string ToText(const Computation& c, const PrintOptions& o) {
  std::string out = absl::StrCat("%", c.name(), " (");
  for (size_t i = 0; i < c.parameters().size(); ++i) {
    if (i) out += ", ";
    absl::StrAppend(&out, c.parameters()[i]->name(), ": ", c.parameters()[i]->shape().ToString(false));
  }
  absl::StrAppend(&out, ") -> ", c.root()->shape().ToString(false), " {\n");
  for (const Instruction* i : PrintOrder(c))
    absl::StrAppend(&out, i == c.root() ? "  ROOT " : "  ", ToText(*i, o), "\n");
  out += "}";
  if (!c.execution_thread().empty()) absl::StrAppend(&out, ", execution_thread=", QuoteHlo(c.execution_thread()));
  return out + "\n";
}

namespace {

// XLA's reader knows a computation only behind its text. In list order where calls leave a choice; unreachable ones
// too.
std::vector<const Computation*> CalleesFirst(const Module& m) {
  std::vector<const Computation*> out;
  absl::flat_hash_set<const Computation*> seen;
  for (const auto& root : m.computations()) {
    std::vector<std::pair<const Computation*, bool>> stack = {{root.get(), false}};
    while (!stack.empty()) {
      const auto [c, called_first] = stack.back();
      stack.pop_back();
      if (called_first) {
        out.push_back(c);
        continue;
      }
      if (!seen.insert(c).second) continue;
      stack.push_back({c, true});
      std::vector<const Computation*> callees;
      for (const Instruction* i : c->PostOrder())
        for (const Computation* callee : i->called()) callees.push_back(callee);
      for (size_t k = callees.size(); k-- > 0;) stack.push_back({callees[k], false});
    }
  }
  return out;
}

}  // namespace

std::string ToText(const Module& m, const PrintOptions& o) {
  std::string out = absl::StrCat("HloModule ", m.name());
  if (m.is_scheduled) out += ", is_scheduled=true";
  if (!m.aliases.empty()) {
    out += ", input_output_alias={";
    for (size_t i = 0; i < m.aliases.size(); ++i) {
      const AliasEntry& e = m.aliases[i];
      absl::StrAppend(&out, i ? ", " : " ", AttrText(e.output), ": (", e.parameter, ", ", AttrText(e.parameter_index),
                      e.must ? ", must-alias)" : ", may-alias)");
    }
    out += " }";
  }
  if (!m.buffer_donors.empty()) {
    out += ", buffer_donor={";
    for (size_t i = 0; i < m.buffer_donors.size(); ++i)
      absl::StrAppend(&out, i ? ", (" : " (", m.buffer_donors[i].first, ", ", AttrText(m.buffer_donors[i].second), ")");
    out += " }";
  }
  if (m.entry_layout) absl::StrAppend(&out, ", entry_computation_layout=", LayoutEntryText(*m.entry_layout));
  if (m.replica_count != 1) absl::StrAppend(&out, ", replica_count=", m.replica_count);
  if (m.partition_count != 1) absl::StrAppend(&out, ", num_partitions=", m.partition_count);
  for (const auto& [k, v] : m.extra_header) absl::StrAppend(&out, ", ", k, "=", v);
  out += "\n\n";
  out += m.preamble;
  for (const Computation* c : CalleesFirst(m))
    if (c != m.entry()) absl::StrAppend(&out, ToText(*c, o), "\n");
  return absl::StrCat(out, "ENTRY ", ToText(*m.entry(), o));
}

}  // namespace kiln
