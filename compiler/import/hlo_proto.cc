#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "compiler/import/hlo_proto_reader.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace kiln {

using proto::HloInstructionProto;

absl::Status ProtoReader::ReadComputation(const proto::HloComputationProto& c, Computation* out) {
  absl::flat_hash_map<int64_t, Instruction*>& values = values_[out];
  std::vector<std::pair<Instruction*, const HloInstructionProto*>> later;
  for (const HloInstructionProto& p : c.instructions()) {
    auto op = OpcodeFromText(p.opcode());
    if (!op) return Fail(p.name(), absl::StrCat("unknown opcode '", p.opcode(), "'"));
    ASSIGN_OR_RETURN(Shape shape, ToShape(p.shape()));
    std::vector<Instruction*> operands;
    for (int64_t id : p.operand_ids()) {
      auto it = values.find(id);
      if (it == values.end()) return Fail(p.name(), absl::StrCat("operand ", id, " is not defined before it"));
      operands.push_back(it->second);
    }
    const OpcodeInfo& info = InfoOf(*op);
    if (info.arity >= 0 && static_cast<int>(operands.size()) != info.arity)
      return Fail(p.name(), absl::StrCat(p.opcode(), " takes ", info.arity, " operands, not ", operands.size()));
    Instruction* i;
    if (*op == Opcode::Parameter) {
      const int64_t n = p.parameter_number();
      if (n < 0 || n >= c.instructions_size() ||
          (n < static_cast<int64_t>(out->parameters().size()) && out->parameters()[n]))
        return Fail(p.name(), "bad parameter number");
      i = out->AddParameter(n, shape, p.name());
    } else {
      i = out->Add(*op, shape, operands, p.name());
    }
    if (*op == Opcode::Constant) {
      ASSIGN_OR_RETURN(Literal l, ToLiteral(p.literal()));
      if (!l.shape().Compatible(shape)) return Fail(p.name(), "literal and shape differ");
      i->set_literal(std::move(l));
    }
    RETURN_IF_ERROR(ReadAttributes(p, i));
    if (!values.insert({p.id(), i}).second) return Fail(p.name(), absl::StrCat("id ", p.id(), " is used twice"));
    later.push_back({i, &p});
  }
  for (auto& [i, p] : later)
    for (int64_t id : p->control_predecessor_ids()) {
      auto it = values.find(id);
      if (it == values.end()) return Fail(p->name(), "control predecessor is not defined");
      it->second->AddControlDependencyTo(i);
    }
  for (Instruction* p : out->parameters())
    if (!p) return Fail(c.name(), "parameters are not contiguous");
  auto root = values.find(c.root_id());
  if (root == values.end()) return Fail(c.name(), "root is not defined");
  out->set_root(root->second);
  out->set_execution_thread(c.execution_thread() == "main" ? "" : c.execution_thread());
  return absl::OkStatus();
}

// A list of all instructions for each computation that runs step by step.
absl::Status ProtoReader::ReadSchedule() {
  for (const auto& [id, sequence] : p_.schedule().sequences()) {
    const auto c = by_id_.find(id);
    if (c == by_id_.end()) return Fail("schedule", absl::StrCat("computation ", id, " is not defined"));
    std::vector<Instruction*> order;
    absl::flat_hash_set<const Instruction*> seen;
    for (int64_t at : sequence.instruction_ids()) {
      const auto i = values_[c->second].find(at);
      if (i == values_[c->second].end() || !seen.insert(i->second).second)
        return Fail("schedule",
                    absl::StrCat("instruction ", at, " is not one of ", c->second->name(), ", or listed twice"));
      order.push_back(i->second);
    }
    if (static_cast<int64_t>(order.size()) != c->second->instruction_count())
      return Fail("schedule", absl::StrCat(c->second->name(), " has instructions that are not listed"));
    c->second->Reorder(order);
  }
  m_->is_scheduled = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> ProtoReader::Run() {
  m_ = std::make_unique<Module>(p_.name().empty() ? "module" : NameInText(p_.name()));
  m_->file = file_;
  m_->limits = limits_;
  if (p_.computations_size() == 0) return Fail("module", "has no computation");
  for (const auto& c : p_.computations())
    by_id_[c.id()] = m_->AddComputation(c.name().empty() ? "computation" : c.name());
  if (by_id_.size() != static_cast<size_t>(p_.computations_size())) return Fail("module", "computation ids repeat");
  for (const auto& c : p_.computations()) RETURN_IF_ERROR(ReadComputation(c, by_id_[c.id()]));
  auto entry = by_id_.find(p_.entry_computation_id());
  if (entry == by_id_.end()) return Fail("module", "entry computation is not defined");
  m_->set_entry(entry->second);
  for (const auto& e : p_.input_output_alias().entries()) {
    AliasEntry a;
    a.output = ToInts(e.output_shape_index());
    a.parameter = e.parameter_number();
    a.parameter_index = ToInts(e.parameter_shape_index());
    a.must = e.kind() == 2;
    m_->aliases.push_back(std::move(a));
  }
  for (const auto& e : p_.buffer_donor().entries())
    m_->buffer_donors.push_back({e.parameter_number(), ToInts(e.parameter_shape_index())});
  if (p_.has_schedule() && p_.schedule().sequences_size()) RETURN_IF_ERROR(ReadSchedule());
  if (p_.frontend_attributes().map_size())
    m_->extra_header.push_back({"frontend_attributes", FrontendText(p_.frontend_attributes())});
  if (p_.has_host_program_shape()) {
    EntryLayout l;
    for (const auto& s : p_.host_program_shape().parameters()) {
      ASSIGN_OR_RETURN(Shape x, ToShape(s));
      l.parameters.push_back(std::move(x));
    }
    ASSIGN_OR_RETURN(l.result, ToShape(p_.host_program_shape().result()));
    m_->entry_layout = std::move(l);
  }
  return std::move(m_);
}

namespace {

constexpr int kMaxNesting = 100;  // as protobuf has it for the binary form

class CollectErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text.empty()) text = absl::StrCat(line + 1, ":", column + 1, ": error: ", message);
  }
  std::string text;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportHloProto(absl::string_view bytes, const std::string& file,
                                                       const Limits& limits) {
  using google::protobuf::TextFormat;
  const bool text = std::none_of(bytes.begin(), bytes.begin() + std::min<size_t>(bytes.size(), 4096),
                                 [](unsigned char c) { return c < 9 || (c > 13 && c < 32); });
  proto::HloModuleProto module;
  proto::HloProto hlo;
  proto::HloSnapshot snapshot;
  const std::string s(bytes);
  if (text) {
    TextFormat::Parser parser;
    CollectErrors errors;
    parser.RecordErrorsTo(&errors);
    parser.AllowUnknownField(true);
    parser.SetRecursionLimit(kMaxNesting);
    const bool ok = absl::StrContains(s.substr(0, 4096), "hlo_module")
                        ? (absl::StrContains(s.substr(0, 64), "hlo {") ? parser.ParseFromString(s, &snapshot)
                                                                       : parser.ParseFromString(s, &hlo))
                        : parser.ParseFromString(s, &module);
    if (!ok)
      return InvalidArgument(file, ":",
                             errors.text.empty() ? "1:1: error: not a text proto of an HLO module" : errors.text);
    if (snapshot.has_hlo()) hlo = snapshot.hlo();
    if (hlo.has_hlo_module()) module = hlo.hlo_module();
    return ProtoReader(module, file, limits).Run();
  }
  // Binary: the three messages are told apart by what field 1 parses as.
  auto good = [](const proto::HloModuleProto& m) { return m.computations_size() > 0; };
  if (module.ParseFromString(s) && good(module)) return ProtoReader(module, file, limits).Run();
  if (hlo.ParseFromString(s) && good(hlo.hlo_module())) return ProtoReader(hlo.hlo_module(), file, limits).Run();
  if (snapshot.ParseFromString(s) && good(snapshot.hlo().hlo_module()))
    return ProtoReader(snapshot.hlo().hlo_module(), file, limits).Run();
  return InvalidArgument(file, ":1:1: error: neither HLO text, nor StableHLO, nor an HLO proto");
}

}  // namespace kiln
