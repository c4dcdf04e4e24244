#include "tests/fuzz/mutate/check.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "aot/planning.h"
#include "aot/tools/npy.h"
#include "aot/tuning/results.h"
#include "compiler/base/text.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"

namespace kiln::mutate {
namespace {

absl::Status Plan(const Module& module, CompileOptions o, ProgramTarget target) {
  o.pipeline.verify_each = true;
  o.pipeline.dump_dir.clear();
  return PlanProgram(module.Clone(), "m", o, target, [](const std::string&) {}).status();
}

absl::Status PlanBoth(const Module& module, CompileOptions o) {
  RETURN_IF_ERROR(Plan(module, o, ProgramTarget::kCpu));
  if (o.gpu.targets.empty()) o.gpu.targets = {"sm_90"};
  return Plan(module, std::move(o), ProgramTarget::kGpu);
}

absl::Status CheckPrinted(const Module& module) {
  const std::string text = ToText(module);
  const auto again = ParseHlo(text, "printed");
  if (!again.ok()) return Internal("what is printed is not read: ", again.status().message());
  if (ToText(**again) != text) return Internal("what is printed is read as another module");
  return absl::OkStatus();
}

absl::Status CheckModule(const std::string& path, int64_t dim) {
  ImportOptions import;
  import.dim = dim;
  ASSIGN_OR_RETURN(const auto module, LoadModule(path, import));
  RETURN_IF_ERROR(CheckPrinted(*module));
  return PlanBoth(*module, {});
}

// With what is in it for configurations and tuning results to speak of.
constexpr char kProgram[] = R"(
HloModule m

ENTRY e {
  x = f32[64,128] parameter(0)
  y = f32[128,256] parameter(1)
  d = f32[64,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[64,256] tanh(d)
})";

absl::Status CheckConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(CompileOptions o, ParseConfig(text, path));
  ASSIGN_OR_RETURN(const auto module, ParseHlo(kProgram, "program"));
  // What a configuration asks for may be too much for the program; that it is readable is enough.
  const absl::Status planned = PlanBoth(*module, std::move(o));
  return absl::IsInternal(planned) || planned.message().empty() ? planned : absl::OkStatus();
}

absl::Status CheckTuning(const std::string& path) {
  CompileOptions o;
  if (absl::EndsWith(path, ".denylist")) {
    ASSIGN_OR_RETURN(o.gpu.tuning.results, LoadTuning({}, path, nullptr, &o.gpu.tuning.algorithms));
  } else {
    ASSIGN_OR_RETURN(o.gpu.tuning.results, LoadTuning({path}, "", nullptr, &o.gpu.tuning.algorithms));
  }
  o.gpu.targets = {"sm_90"};
  ASSIGN_OR_RETURN(const auto module, ParseHlo(kProgram, "program"));
  return Plan(*module, std::move(o), ProgramTarget::kGpu);
}

absl::Status CheckNpy(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  ASSIGN_OR_RETURN(const NpyArray array, ParseNpy(bytes, path));
  absl::Status refused;
  for (PrimitiveType t : {PrimitiveType::F32, PrimitiveType::BF16, PrimitiveType::S4, PrimitiveType::U16}) {
    refused = NpyLiteral(array, path, Shape::Array(t, {2, 3})).status();
    if (refused.ok()) return refused;
  }
  return refused;
}

}  // namespace

absl::Status Check(Kind kind, const std::string& path, uint64_t number) {
  switch (kind) {
    case Kind::kConfig:
      return CheckConfig(path);
    case Kind::kTuning:
      return CheckTuning(path);
    case Kind::kNpy:
      return CheckNpy(path);
    default:
      return CheckModule(path, number % 2 ? 3 : -1);
  }
}

bool HasPlace(Kind kind, absl::string_view message, const std::string& path) {
  const auto number = [&] {
    size_t digits = 0;
    while (digits < message.size() && absl::ascii_isdigit(message[digits])) ++digits;
    const bool any = digits > 0 && message[0] != '0';
    message.remove_prefix(digits);
    return any && absl::ConsumePrefix(&message, ":");
  };
  if (!absl::ConsumePrefix(&message, path) || !absl::ConsumePrefix(&message, ":")) return false;
  return kind == Kind::kProto || (number() && number() && absl::StartsWith(message, " error: "));
}

}  // namespace kiln::mutate
