#include "compiler/hlo/verify_rules.h"

namespace kiln::verify {

namespace {

absl::Status CheckCounts(const Module& m) {
  const int64_t most = m.limits.devices;
  const auto count = [&](absl::string_view key, int64_t n) -> absl::Status {
    if (n < 1) return HeaderErrorAt(m, key, absl::StrCat(n, " is less than 1"));
    if (n <= most) return absl::OkStatus();
    return HeaderErrorAt(m, key, absl::StrCat(n, " is more than ", most));
  };
  RETURN_IF_ERROR(count("replica_count", m.replica_count));
  RETURN_IF_ERROR(count("num_partitions", m.partition_count));
  if (m.replica_count * m.partition_count <= most) return absl::OkStatus();
  return HeaderErrorAt(m, "replica_count",
                       absl::StrCat(m.replica_count, " replicas of ", m.partition_count, " partitions are more than ",
                                    most, " devices"));
}

absl::Status CheckInterfaceSize(const Module& m) {
  int64_t in = 0, out = 0;
  for (const Instruction* p : m.entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape&) { ++in; });
  ForEachLeaf(m.entry()->root()->shape(), [&](const ShapeIndex&, const Shape&) { ++out; });
  const int64_t most = m.limits.interface_arrays;
  if (in > most)
    return ErrorAt(m.entry()->parameter(0), absl::StrCat("the entry takes ", in, " arrays, more than ", most, ""),
                   absl::StatusCode::kResourceExhausted);
  if (out > most)
    return ErrorAt(m.entry()->root(), absl::StrCat("gives ", out, " arrays, more than ", most, ""),
                   absl::StatusCode::kResourceExhausted);
  return absl::OkStatus();
}

absl::Status CheckEntryLayout(const Module& m) {
  if (!m.entry_layout) return absl::OkStatus();
  const EntryLayout& l = *m.entry_layout;
  const std::vector<Instruction*>& parameters = m.entry()->parameters();
  if (l.parameters.size() != parameters.size())
    return HeaderErrorAt(m, "entry_computation_layout",
                         absl::StrCat("has ", l.parameters.size(), " parameters, the entry ", parameters.size()));
  for (size_t p = 0; p < parameters.size(); ++p)
    if (!l.parameters[p].Compatible(parameters[p]->shape()))
      return ErrorAt(parameters[p], absl::StrCat("shape is ", parameters[p]->shape().ToString(false),
                                                 ", the entry layout says ", l.parameters[p].ToString(false)));
  if (!l.result.Compatible(m.entry()->root()->shape()))
    return ErrorAt(m.entry()->root(), absl::StrCat("shape is ", m.entry()->root()->shape().ToString(false),
                                                   ", the entry layout says ", l.result.ToString(false)));
  return absl::OkStatus();
}

absl::Status CheckAliases(const Module& m) {
  constexpr absl::string_view kAliases = "input_output_alias", kDonors = "buffer_donor";
  const auto parameters = static_cast<int64_t>(m.entry()->parameters().size());
  absl::flat_hash_set<std::string> inputs, outputs, donors;
  for (const AliasEntry& e : m.aliases) {
    if (e.parameter < 0 || e.parameter >= parameters)
      return HeaderErrorAt(m, kAliases, absl::StrCat("names parameter ", e.parameter, " of ", parameters));
    const Shape* in = PartAt(m.entry()->parameter(e.parameter)->shape(), e.parameter_index);
    const Shape* out = PartAt(m.entry()->root()->shape(), e.output);
    if (!in || !out) return HeaderErrorAt(m, kAliases, "names an index that does not exist");
    if (in->ByteSize() != out->ByteSize())
      return HeaderErrorAt(
          m, kAliases,
          absl::StrCat("joins ", in->ToString(false), " and ", out->ToString(false), " of different sizes"));
    if (!inputs.insert(absl::StrCat(e.parameter, AttrText(e.parameter_index))).second)
      return HeaderErrorAt(m, kAliases,
                           absl::StrCat("uses parameter ", e.parameter, AttrText(e.parameter_index), " twice"));
    if (!outputs.insert(AttrText(e.output)).second)
      return HeaderErrorAt(m, kAliases, absl::StrCat("uses result ", AttrText(e.output), " twice"));
  }
  for (const auto& [parameter, index] : m.buffer_donors) {
    if (parameter < 0 || parameter >= parameters)
      return HeaderErrorAt(m, kDonors, absl::StrCat("names parameter ", parameter, " of ", parameters));
    if (!PartAt(m.entry()->parameter(parameter)->shape(), index))
      return HeaderErrorAt(m, kDonors, absl::StrCat("names an index of parameter ", parameter, " that does not exist"));
    const std::string text = absl::StrCat(parameter, AttrText(index));
    if (!donors.insert(text).second) return HeaderErrorAt(m, kDonors, absl::StrCat("names parameter ", text, " twice"));
    if (inputs.contains(text))
      return HeaderErrorAt(m, kDonors, absl::StrCat("parameter ", text, " has an alias already"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckHeader(const Module& m) {
  RETURN_IF_ERROR(CheckCounts(m));
  RETURN_IF_ERROR(CheckInterfaceSize(m));
  RETURN_IF_ERROR(CheckEntryLayout(m));
  return CheckAliases(m);
}

}  // namespace kiln::verify
