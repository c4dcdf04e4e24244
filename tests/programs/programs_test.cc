// Runs every program of this folder on every backend and compares with what its header says (README.md).
#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "compiler/base/text.h"
#include "gtest/gtest.h"
#include "tests/programs/header.h"

namespace kiln {
namespace {

absl::StatusOr<std::vector<Values>> RunFile(const std::string& file, const Header& header, const std::string& backend) {
  ASSIGN_OR_RETURN(auto module, LoadProgram(file, header));
  CompileOptions compile;
  compile.cpu.levels = {"native"};
  compile.debug.poison_freed = true;
  RunOptions run;
  run.backend = backend;
  run.check_accesses = true;
  return RunProgram(*module, InputsOf(header, *module), compile, run);
}

std::vector<std::string> Programs() {
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator("tests/programs"))
    if (f.path().extension() == ".hlo" || f.path().extension() == ".mlir") files.push_back(f.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

class ProgramTest : public testing::TestWithParam<std::string> {};

TEST_P(ProgramTest, ComputesWhatItsHeaderSays) {
  const std::string file = GetParam();
  const std::string text = ReadFile(file).value_or("");
  const auto header = ReadHeader(text);
  ASSERT_TRUE(header.ok()) << file << ": " << header.status();
  ASSERT_TRUE(header->unknown.empty()) << file << ": the header has a line '" << header->unknown[0] << "'";
  ASSERT_NE(header->results.empty(), header->errors.empty()) << file << " has neither RESULT nor ERROR, or both";
  for (const char* backend : {"reference", "cpu", "gpu-emulated"}) {
    if (header->skipped.count(backend)) continue;
    const auto got = RunFile(file, *header, backend);
    if (!header->errors.empty()) {
      EXPECT_FALSE(got.ok()) << file << " on " << backend << " is accepted";
      for (const std::string& e : header->errors)
        EXPECT_TRUE(absl::StrContains(got.status().message(), e)) << file << " on " << backend << ": " << got.status();
      EXPECT_FALSE(absl::IsInternal(got.status())) << file << " on " << backend << ": " << got.status();
      continue;
    }
    if (!got.ok()) {
      ADD_FAILURE() << file << " on " << backend << ": " << got.status();
      continue;
    }
    for (size_t d = 0; d < got->size(); ++d) {
      const Values& want = header->results[header->results.size() == 1 ? 0 : d];
      const absl::Status same = SameValues((*got)[d], want, header->tolerance);
      EXPECT_TRUE(same.ok()) << file << " on " << backend << ", device " << d << ": " << same.message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProgramTest, testing::ValuesIn(Programs()), [](const auto& info) {
  return CIdentifier(std::filesystem::path(info.param).stem().string() + "_" +
                     std::filesystem::path(info.param).extension().string().substr(1));
});

}  // namespace
}  // namespace kiln
