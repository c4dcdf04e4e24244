#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler/hlo/hlo_parser.h"

namespace kiln {

absl::Status HloParser::ParseAliases() {
  RETURN_IF_ERROR(s_.Expect("{"));
  while (!s_.Eat("}")) {
    if (!m_->aliases.empty()) RETURN_IF_ERROR(s_.Expect(","));
    AliasEntry e;
    ASSIGN_OR_RETURN(e.output, ParseShapeIndex());
    RETURN_IF_ERROR(s_.Expect(":"));
    if (s_.Eat("(")) {
      ASSIGN_OR_RETURN(e.parameter, s_.Integer());
      RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(e.parameter_index, ParseShapeIndex());
      if (s_.Eat(",")) {
        const absl::string_view kind = s_.Word("-_");
        if (kind == "must-alias")
          e.must = true;
        else if (kind != "may-alias")
          return s_.Error(absl::StrCat("unknown alias kind '", kind, "'"));
      }
      RETURN_IF_ERROR(s_.Expect(")"));
    } else {
      ASSIGN_OR_RETURN(e.parameter, s_.Integer());
    }
    m_->aliases.push_back(std::move(e));
  }
  return absl::OkStatus();
}

absl::Status HloParser::ParseDonors() {
  RETURN_IF_ERROR(s_.Expect("{"));
  while (!s_.Eat("}")) {
    if (!m_->buffer_donors.empty()) RETURN_IF_ERROR(s_.Expect(","));
    RETURN_IF_ERROR(s_.Expect("("));
    ASSIGN_OR_RETURN(int64_t p, s_.Integer());
    RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(ShapeIndex index, ParseShapeIndex());
    RETURN_IF_ERROR(s_.Expect(")"));
    m_->buffer_donors.push_back({p, std::move(index)});
  }
  return absl::OkStatus();
}

absl::Status HloParser::ParseEntryLayout() {
  EntryLayout l;
  RETURN_IF_ERROR(s_.Expect("{"));
  RETURN_IF_ERROR(s_.Expect("("));
  while (!s_.Eat(")")) {
    if (!l.parameters.empty()) RETURN_IF_ERROR(s_.Expect(","));
    ASSIGN_OR_RETURN(Shape p, ParseShape());
    l.parameters.push_back(std::move(p));
  }
  RETURN_IF_ERROR(s_.Expect("->"));
  ASSIGN_OR_RETURN(l.result, ParseShape());
  RETURN_IF_ERROR(s_.Expect("}"));
  m_->entry_layout = std::move(l);
  return absl::OkStatus();
}

namespace {

// The last four are what a partitioned program was before (compiler/sharding/partitioned_entry.h).
bool IsKeptAsWritten(absl::string_view key) {
  constexpr absl::string_view kKeys[] = {"frontend_attributes",
                                         "alias_passthrough_params",
                                         "origin_recovery_table",
                                         "allow_spmd_sharding_propagation_to_output",
                                         "allow_spmd_sharding_propagation_to_parameters",
                                         "spmd_parameters_shardings",
                                         "spmd_parameters_shapes",
                                         "spmd_output_sharding",
                                         "spmd_output_shapes"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

}  // namespace

absl::Status HloParser::ParseHeaderValue(absl::string_view key, size_t at) {
  if (!m_->header_locs.try_emplace(key, s_.Loc(at)).second)
    return s_.ErrorAtPos(at, absl::StrCat("'", key, "' is given twice"));
  if (key == "is_scheduled") {
    std::optional<bool> b;
    RETURN_IF_ERROR(Value(&b, nullptr));
    m_->is_scheduled = *b;
    return absl::OkStatus();
  }
  if (key == "replica_count" || key == "num_partitions") {
    s_.Peek();
    const size_t count_at = s_.pos();
    ASSIGN_OR_RETURN(const int64_t n, s_.Integer());
    if (n < 1 || n > limits_.devices)
      return s_.ErrorAtPos(count_at, absl::StrCat(key, " is ", n, ", not 1 to ", limits_.devices));
    (key == "replica_count" ? m_->replica_count : m_->partition_count) = n;
    return absl::OkStatus();
  }
  if (key == "input_output_alias") return ParseAliases();
  if (key == "buffer_donor") return ParseDonors();
  if (key == "entry_computation_layout") return ParseEntryLayout();
  if (!IsKeptAsWritten(key)) return s_.ErrorAtPos(at, absl::StrCat("unknown attribute '", key, "' of the module"));
  ASSIGN_OR_RETURN(std::string v, s_.Balanced(",\n"));
  m_->extra_header.push_back({std::string(key), std::move(v)});
  return absl::OkStatus();
}

// Kept as written.
absl::Status HloParser::ParseLocationTables() {
  for (;;) {
    const absl::string_view w = s_.PeekWord("_");
    if (w != "FileNames" && w != "FunctionNames" && w != "FileLocations" && w != "StackFrames") return absl::OkStatus();
    absl::StrAppend(&m_->preamble, w, "\n");
    s_.Word("_");
    while (absl::ascii_isdigit(s_.Peek())) {
      ASSIGN_OR_RETURN(std::string row, s_.Balanced("\n"));
      absl::StrAppend(&m_->preamble, row, "\n");
    }
    m_->preamble += "\n";
  }
}

absl::Status HloParser::ParseHeader() {
  std::string name = "module";
  if (s_.Eat("HloModule")) {
    ASSIGN_OR_RETURN(name, Name());
  } else if (s_.AtEnd()) {
    return s_.Error("the text holds no module");
  }
  m_ = std::make_unique<Module>(std::move(name));
  m_->file = s_.file();
  m_->limits = limits_;
  while (s_.Eat(",")) {
    s_.Peek();
    const size_t at = s_.pos();
    const absl::string_view key = s_.Word("_-");
    RETURN_IF_ERROR(s_.Expect("="));
    RETURN_IF_ERROR(ParseHeaderValue(key, at));
  }
  return ParseLocationTables();
}

}  // namespace kiln
