#include "tests/fuzz/mutate/inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "compiler/import/hlo.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace kiln::mutate {
namespace {

constexpr uintmax_t kLargest = 64 << 10;

const std::map<std::string, Kind>& Extensions() {
  static const auto* out = new std::map<std::string, Kind>{{".hlo", Kind::kHlo},         {".mlir", Kind::kStableHlo},
                                                           {".mlirbc", Kind::kBytecode}, {".bc", Kind::kBytecode},
                                                           {".pb", Kind::kProto},        {".pbtxt", Kind::kProto},
                                                           {".config", Kind::kConfig},   {".tuning", Kind::kTuning},
                                                           {".denylist", Kind::kTuning}, {".npy", Kind::kNpy}};
  return *out;
}

void AddFile(const std::filesystem::path& path, std::vector<Input>* out) {
  const auto kind = Extensions().find(path.extension().string());
  if (kind == Extensions().end() || std::filesystem::file_size(path) > kLargest) return;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  constexpr char kCase[] = "// CASE";
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find(kCase, begin + 1), bytes.size());
    out->push_back({kind->second, path.string(), bytes.substr(begin, end - begin)});
    begin = end;
  }
  if (path.extension() != ".pbtxt") return;
  if (const std::string binary = BinaryProto(bytes); !binary.empty())
    out->push_back({Kind::kProto, path.string(), binary});
}

}  // namespace

const char* Name(Kind kind) {
  static const char* const kNames[] = {"hlo", "stablehlo", "bytecode", "proto", "config", "tuning", "npy"};
  return kNames[static_cast<int>(kind)];
}

std::string BinaryProto(const std::string& text) {
  struct Silent : google::protobuf::io::ErrorCollector {
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  } silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  proto::HloModuleProto proto;
  return parser.ParseFromString(text, &proto) ? proto.SerializeAsString() : "";
}

std::vector<Input> ReadInputs(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& p : paths) {
    if (!std::filesystem::is_directory(p)) {
      files.emplace_back(p);
      continue;
    }
    for (const auto& f : std::filesystem::recursive_directory_iterator(p))
      if (f.is_regular_file()) files.push_back(f.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> out;
  for (const auto& f : files) AddFile(f, &out);
  return out;
}

}  // namespace kiln::mutate
