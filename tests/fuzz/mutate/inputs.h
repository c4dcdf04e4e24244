// Valid inputs of every reader, and which reader a file is for.
#pragma once

#include <string>
#include <vector>

namespace kiln::mutate {

enum class Kind { kHlo, kStableHlo, kBytecode, kProto, kConfig, kTuning, kNpy };
constexpr int kKinds = 7;
const char* Name(Kind kind);

struct Input {
  Kind kind;
  std::string path;  // of the file it is from
  std::string bytes;
};

// The files of `paths`, and of the folders among them, that are no larger than 64 KiB, in the order of their paths. A
// file of test cases ("// CASE") gives one input each; a text proto also its binary form.
std::vector<Input> ReadInputs(const std::vector<std::string>& paths);

// The binary form of an HloModuleProto in text; empty if it is none.
std::string BinaryProto(const std::string& text);

}  // namespace kiln::mutate
