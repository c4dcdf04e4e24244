#include "compiler/import/import.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "compiler/base/text.h"
#include "compiler/hlo/batching_dims.h"
#include "compiler/hlo/infer.h"
#include "compiler/hlo/inlined_size.h"
#include "compiler/hlo/interface_names.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/verify.h"
#include "compiler/import/bytecode.h"

namespace kiln {

namespace {

// What a file is that no program of kiln's begins like; empty if that is not known either.
std::string LooksLike(absl::string_view bytes) {
  const std::pair<absl::string_view, const char*> kBeginnings[] = {
      {"\x93NUMPY", "an .npy array"},
      {"PK\x03\x04", "a zip archive, as PyTorch and .npz files are"},
      {"\177ELF", "an object file or program"},
      {"\x1f\x8b", "compressed by gzip"},
      {"%PDF", "a PDF document"},
      {"#!", "a script"},
      {"#include", "C or C++"},
      {"import ", "Python"},
      {"from ", "Python"},
      {"def ", "Python"},
      {"\"\"\"", "Python"},
      {"<", "HTML or XML"},
      {"{", "JSON"},
      {"[", "JSON"}};
  for (const auto& [beginning, what] : kBeginnings)
    if (absl::StartsWith(bytes, beginning)) return absl::StrCat("; it looks like ", what);
  return "";
}

absl::Status NotAProgram(absl::string_view bytes, const std::string& file) {
  return InvalidArgument(file,
                         ":1:1: error: this is neither HLO text, nor StableHLO text or bytecode, nor an HLO proto",
                         LooksLike(bytes));
}

// HLO text may leave its header out, but not its instructions.
bool MayBeHloText(absl::string_view bytes) {
  return absl::StrContains(bytes, "HloModule") || absl::StrContains(bytes, "ENTRY") ||
         absl::StrContains(bytes, "ROOT ") || absl::StrContains(bytes, "parameter(") ||
         absl::StrContains(bytes, "constant(");
}

// An alias, as MLIR writes it: #name, !name.
bool BeginsWithAlias(absl::string_view text) {
  return text.size() > 1 && (text[0] == '#' || text[0] == '!') && absl::ascii_isalpha(text[1]) &&
         !absl::StartsWith(text, "#include");
}

absl::StatusOr<std::unique_ptr<Module>> CheckEntry(absl::StatusOr<std::unique_ptr<Module>> module,
                                                   const std::string& file, const ImportOptions& options) {
  if (!module.ok() || options.entry.empty() || options.entry == (*module)->entry()->name()) return module;
  return InvalidArgument(file, ":1:1: error: an HLO module has one entry, '", (*module)->entry()->name(),
                         "'; --entry chooses among the functions of a StableHLO program");
}

// GPU programs are made of the CPU's too: other platforms' may call their libraries.
ImportOptions ForOnePlatform(ImportOptions options, const std::vector<std::string>& platforms) {
  if (platforms.size() < 2) return options;
  const auto cpu = std::find(platforms.begin(), platforms.end(), "cpu");
  options.platform = cpu == platforms.end() ? 0 : cpu - platforms.begin();
  return options;
}

absl::StatusOr<std::unique_ptr<Module>> Import(absl::string_view bytes, const std::string& file,
                                               const ImportOptions& options, bool look) {
  if (bytes.empty()) return InvalidArgument(file, ":1:1: error: the file is empty");
  if (absl::StartsWith(bytes, kBytecodeMagic)) return ImportBytecode(bytes, file, options);
  if (const absl::string_view artifact = ArtifactOfExported(bytes); !artifact.empty())
    return ImportBytecode(artifact, file, ForOnePlatform(options, PlatformsOfExported(bytes)));
  for (unsigned char c : bytes.substr(0, 4096))
    if (c < 9 || (c > 13 && c < 32)) {  // no text holds these
      auto module = ImportHloProto(bytes, file, options.limits);
      const bool other = !module.ok() && !LooksLike(bytes).empty();
      return other ? NotAProgram(bytes, file) : CheckEntry(std::move(module), file, options);
    }
  Scanner s(bytes, file);
  const absl::string_view first = s.PeekWord("_.");
  const auto parse = [&] {
    auto module = look ? ParseHloToLookAt(bytes, file, options.limits) : ParseHlo(bytes, file, options.limits);
    return CheckEntry(std::move(module), file, options);
  };
  if (first == "HloModule") return parse();
  const bool hlo_body = absl::StrContains(bytes, "ROOT ") || absl::StrContains(bytes, "ENTRY ");
  if (first == "module" || first == "func.func" || first == "builtin.module" || absl::StartsWith(first, "stablehlo.") ||
      BeginsWithAlias(bytes.substr(s.pos())) || (s.Peek() == '"' && LooksLike(bytes.substr(s.pos())).empty()) ||
      (s.Peek() == '%' && !hlo_body)) {
    return ImportStableHlo(bytes, file, options);
  }
  // A text proto opens with one of its fields.
  const size_t begin = s.pos();
  s.Word("_");
  if ((s.Peek() == ':' || s.Peek() == '{') &&
      (first == "name" || first == "hlo_module" || first == "hlo" || first == "id" || first == "computations" ||
       first == "entry_computation_name")) {
    return CheckEntry(ImportHloProto(bytes, file, options.limits), file, options);
  }
  if (!MayBeHloText(bytes)) return NotAProgram(bytes.substr(begin), file);
  return parse();  // HLO text may leave its header out
}

bool HoldsBuffer(const Shape& s) {
  return s.type() == PrimitiveType::Buffer || std::any_of(s.tuple().begin(), s.tuple().end(), HoldsBuffer);
}

// Of a bitcast-convert: a truth value is taken for a byte, not for a bit.
bool PredIsAByte(const Instruction& i) {
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  if ((from.type() == PrimitiveType::Pred) == (to.type() == PrimitiveType::Pred)) return false;
  const Shape &pred = from.type() == PrimitiveType::Pred ? from : to, &other = &pred == &from ? to : from;
  return pred.rank() != other.rank() + 1 || pred.dims().back() != InfoOf(other.type()).bits;
}

bool ReducesScalars(const Instruction& i) {
  const Computation& c = **i.attrs().to_apply;
  return c.parameters().size() == 2 && c.root()->shape().IsScalar() && c.parameter(0)->shape().IsScalar() &&
         c.parameter(1)->shape().IsScalar();
}

// What is legal HLO and has no code here.
absl::Status CheckCompilable(const Module& m) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (HasUnbounded(i->shape()))
        return ErrorAt(i.get(),
                       absl::StrCat("shape ", i->shape().ToString(false),
                                    " has a dimension without a bound; HLO is compiled for the extents that it "
                                    "states (--dim settles those of StableHLO programs)"),
                       absl::StatusCode::kUnimplemented);
      if ((i->Is(Opcode::AllReduce) || i->Is(Opcode::AllReduceStart) || i->Is(Opcode::ReduceScatter)) &&
          !ReducesScalars(*i))
        return ErrorAt(i.get(), "to_apply takes and gives more than scalars", absl::StatusCode::kUnimplemented);
      if (i->Is(Opcode::BitcastConvert) && PredIsAByte(*i))
        return ErrorAt(i.get(), "reinterprets the bytes of truth values, which has no code",
                       absl::StatusCode::kUnimplemented);
      if ((i->Is(Opcode::Gather) || i->Is(Opcode::Scatter)) && IndexesBatchingDims(*i))
        return ErrorAt(i.get(), "a dimension is indexed and is a batching dimension", absl::StatusCode::kUnimplemented);
      if (HoldsBuffer(i->shape()))
        return ErrorAt(i.get(),
                       absl::StrCat("shape ", i->shape().ToString(false), " holds a buffer, which has no code"),
                       absl::StatusCode::kUnimplemented);
    }
  return absl::OkStatus();
}

// A copy of a tuple is one of each of its parts.
Instruction* CopyParts(Computation* c, Instruction* of, const Instruction* copy) {
  Instruction* out;
  if (of->shape().IsTuple()) {
    std::vector<Instruction*> parts;
    for (size_t k = 0; k < of->shape().tuple().size(); ++k) {
      Instruction* part = c->Add(Opcode::GetTupleElement, of->shape().tuple()[k], {of});
      part->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      part->set_loc(copy->loc());
      parts.push_back(CopyParts(c, part, copy));
    }
    out = c->Add(Opcode::Tuple, of->shape(), std::move(parts), copy->name());
  } else if (of->shape().IsArray()) {
    out = c->Add(Opcode::Copy, of->shape(), {of}, copy->name());
  } else {
    return of;  // a token
  }
  out->set_loc(copy->loc());
  return out;
}

void ExpandTupleCopies(Module* m) {
  for (const auto& c : m->computations()) {
    std::vector<Instruction*> copies;
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::Copy) && i->shape().IsTuple()) copies.push_back(i.get());
    for (Instruction* i : copies) {
      Instruction* parts = CopyParts(c.get(), i->operand(0), i);
      i->ReplaceAllUsesWith(parts);
      c->Remove(i);
    }
    if (!copies.empty() && m->is_scheduled) c->Reorder(c->PostOrder());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportModule(absl::string_view bytes, const std::string& file,
                                                     const ImportOptions& options) {
  ASSIGN_OR_RETURN(auto module, Import(bytes, file, options, false));
  if (module->argument_names.empty()) NameArgumentsByMetadata(module.get());
  return module;
}

absl::StatusOr<std::unique_ptr<Module>> LoadModule(const std::string& path, const ImportOptions& options) {
  std::unique_ptr<Module> module;
  {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    ASSIGN_OR_RETURN(module, ImportModule(bytes, path, options));
  }
  RETURN_IF_ERROR(VerifyAsWritten(*module));
  RETURN_IF_ERROR(CheckCompilable(*module));
  RETURN_IF_ERROR(CheckInlinedSize(*module));
  ExpandTupleCopies(module.get());
  return module;
}

absl::StatusOr<std::unique_ptr<Module>> LoadModuleToLookAt(const std::string& path, const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  ASSIGN_OR_RETURN(auto module, Import(bytes, path, options, true));
  RETURN_IF_ERROR(VerifyAsWritten(*module));
  return module;
}

}  // namespace kiln
