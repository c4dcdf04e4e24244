#include "tests/programs/header.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/base/text.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

// "f32[2] {1, 2}", or "f32[<=4](2) {1, 2}": an array of a dynamic dimension that has two elements.
absl::StatusOr<Literal> ReadValue(absl::string_view text) {
  const size_t end = text.find(']');
  if (end == absl::string_view::npos) return InvalidArgument("no shape in '", text, "'");
  ASSIGN_OR_RETURN(Shape shape, ParseShape(text.substr(0, end + 1)));
  absl::string_view rest = text.substr(end + 1);
  Ints dims = shape.dims();
  if (absl::ConsumePrefix(&rest, "(")) {
    const size_t close = rest.find(')');
    const std::vector<absl::string_view> sizes = absl::StrSplit(rest.substr(0, close), ',');
    if (close == absl::string_view::npos || sizes.size() != dims.size())
      return InvalidArgument("sizes of '", text, "'");
    for (size_t d = 0; d < dims.size(); ++d)
      if (!absl::SimpleAtoi(sizes[d], &dims[d])) return InvalidArgument("sizes of '", text, "'");
    rest.remove_prefix(close + 1);
  }
  const std::string program = absl::StrCat(
      "HloModule v\nENTRY e { ROOT v = ", Shape::Array(shape.type(), dims).ToString(false), " constant(", rest, ") }");
  ASSIGN_OR_RETURN(auto module, ParseHlo(program, "value"));
  return module->entry()->root()->literal();
}

absl::Status ReadLine(absl::string_view key, absl::string_view value, Header* out) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '@');
  int64_t device = 0;
  if (parts.size() == 2 && !absl::SimpleAtoi(parts[1], &device)) return InvalidArgument("device in '", key, "'");
  key = parts[0];
  if (key == "INPUT" || key == "RESULT") {
    std::vector<Values>& all = key == "INPUT" ? out->inputs : out->results;
    if (device < 0 || device >= 64) return InvalidArgument("device ", device);
    if (static_cast<int64_t>(all.size()) <= device) all.resize(device + 1);
    ASSIGN_OR_RETURN(Literal l, ReadValue(value));
    all[device].push_back(std::move(l));
  } else if (key == "ERROR") {
    out->errors.emplace_back(value);
  } else if (key == "SKIP") {
    out->skipped.emplace(value.substr(0, value.find(' ')));
  } else if (key == "TOLERANCE") {
    if (!absl::SimpleAtod(value, &out->tolerance.relative)) return InvalidArgument("TOLERANCE ", value);
    out->tolerance.absolute = out->tolerance.relative;
  } else if (key == "DEVICES") {
    if (!absl::SimpleAtoi(value, &out->devices)) return InvalidArgument("DEVICES ", value);
  } else if (key.size() > 1 && std::all_of(key.begin(), key.end(), absl::ascii_isupper)) {
    out->unknown.emplace_back(key);
  }
  return absl::OkStatus();
}

}  // namespace

// "// KEY value" lines, each going on in lines of "//  ".
absl::StatusOr<Header> ReadHeader(const std::string& text) {
  Header out;
  std::istringstream in(text);
  std::string line, key, value;
  auto finish = [&] {
    absl::Status s = key.empty() ? absl::OkStatus() : ReadLine(key, value, &out);
    key.clear();
    return s;
  };
  while (std::getline(in, line)) {
    if (absl::StartsWith(line, "//  ")) {
      value += line.substr(3);
      continue;
    }
    RETURN_IF_ERROR(finish());
    if (!absl::StartsWith(line, "// ")) continue;
    const size_t space = std::min(line.find(' ', 3), line.size());
    key = line.substr(3, space - 3);
    value = std::string(absl::StripAsciiWhitespace(line.substr(space)));
  }
  RETURN_IF_ERROR(finish());
  return out;
}

absl::StatusOr<std::unique_ptr<Module>> LoadProgram(const std::string& file, const Header& header) {
  ImportOptions o;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  // Unbounded dimensions are as long as the inputs'.
  if (absl::StrContains(text, "tensor<?") && !header.inputs.empty())
    for (const Literal& input : header.inputs[0]) o.argument_shapes.push_back(input.shape());
  ASSIGN_OR_RETURN(auto module, LoadModule(file, o));
  RETURN_IF_ERROR(SettleDeviceCounts(module.get()));
  if (header.devices && module->replica_count * module->partition_count == 1) module->replica_count = header.devices;
  return module;
}

std::vector<Values> InputsOf(const Header& header, const Module& module) {
  std::vector<Values> out = header.inputs;
  if (out.size() <= 1)
    out.resize(static_cast<size_t>(module.replica_count * module.partition_count), out.empty() ? Values() : out[0]);
  return out;
}

}  // namespace kiln
