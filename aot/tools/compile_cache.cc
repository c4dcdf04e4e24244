#include "aot/tools/compile_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "aot/ptxas.h"
#include "aot/tools/build_identity.h"
#include "codegen/llvm/sha256.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

// Options that a product does not depend on, and those whose files are hashed in their place.
constexpr absl::string_view kOthers[] = {"cache", "cache-limit", "config", "json",
                                         "out",   "shared",      "tuning", "verbose"};

constexpr int64_t kDefaultLimit = int64_t{5} << 30;

// "500M" in bytes.
bool ReadSize(absl::string_view text, int64_t* out) {
  constexpr absl::string_view kUnits = "KMGT";
  size_t unit = 0;
  if (!text.empty()) unit = kUnits.find(absl::ascii_toupper(static_cast<unsigned char>(text.back()))) + 1;
  if (unit) text.remove_suffix(1);
  const int64_t scale = int64_t{1} << (10 * unit);
  if (!absl::SimpleAtoi(text, out) || *out < 0 || *out > std::numeric_limits<int64_t>::max() / scale) return false;
  *out *= scale;
  return true;
}

// What changes when a file is written or replaced; empty if it is no regular file.
std::vector<int64_t> StateOf(const std::string& path) {
  struct stat s;
  if (stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  return {static_cast<int64_t>(s.st_dev),
          static_cast<int64_t>(s.st_ino),
          s.st_size,
          s.st_mtim.tv_sec,
          s.st_mtim.tv_nsec,
          s.st_ctim.tv_sec,
          s.st_ctim.tv_nsec};
}

// Pairs of texts, so that no two lists of pairs look alike.
class Key {
 public:
  void Add(absl::string_view what, absl::string_view value) {
    hash_.Add(absl::StrCat(what.size(), " ", value.size(), " "));
    hash_.Add(what);
    hash_.Add(value);
  }
  // The bytes of a file; false if it cannot be read.
  bool AddFile(absl::string_view what, const std::string& path, std::string* first_bytes = nullptr) {
    FILE* f = std::fopen(path.c_str(), "rb");
    if (!f) return false;
    std::string block(size_t{1} << 20, '\0');
    Sha256 hash;
    size_t n;
    while ((n = std::fread(block.data(), 1, block.size(), f)) > 0) {
      if (first_bytes && first_bytes->empty()) *first_bytes = block.substr(0, std::min<size_t>(n, 4));
      hash.Add({block.data(), n});
    }
    const bool read = !std::ferror(f);
    std::fclose(f);
    Add(what, hash.Hex());
    return read;
  }
  std::string Hex() { return hash_.Hex(); }

 private:
  Sha256 hash_;
};

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

}  // namespace

absl::StatusOr<CompileCache> CompileCache::Open(const Arguments& args, const CompileOptions& options,
                                                const std::string& config) {
  const auto setting = [&](const char* option, const char* variable) {
    if (args.Has(option)) return args.Get(option);
    const char* value = std::getenv(variable);
    return std::string(value ? value : "");
  };
  CompileCache out;
  const std::string folder = setting("cache", "KILN_CACHE"), limit = setting("cache-limit", "KILN_CACHE_LIMIT");
  if (folder.empty() && !args.Has("cache-limit")) return out;
  int64_t bytes = kDefaultLimit;
  if (!limit.empty() && !ReadSize(limit, &bytes))
    return InvalidArgument("error: ", args.Has("cache-limit") ? "--cache-limit" : "KILN_CACHE_LIMIT",
                           " takes a size, as 500M or 5G, not '", limit, "'");
  if (folder.empty()) return out;
  out.store_.emplace(folder, bytes);
  out.name_ = options.model.name;
  out.verbose_ = args.Has("verbose");
  out.SetKey(args, options, config);
  if (!out.why_not_.empty()) {
    out.key_.clear();
    out.Say("not used: " + out.why_not_);
  }
  return out;
}

void CompileCache::SetKey(const Arguments& args, const CompileOptions& o, const std::string& config) {
  Key key;
  const auto add_file = [&](absl::string_view what, const std::string& path, std::string* first_bytes = nullptr) {
    inputs_.push_back({path, StateOf(path)});
    if (inputs_.back().state.empty() || !key.AddFile(what, path, first_bytes))
      why_not_ = path == "-" ? "the program comes from the standard input" : path + " is no file that can be read";
  };
  if (!o.pipeline.dump_dir.empty()) why_not_ = "the config asks for dumps, which only a compile writes";
  const auto identity = BuildIdentity();
  if (!identity.ok()) why_not_ = "this kiln cannot be read: " + std::string(identity.status().message());
  if (!why_not_.empty()) return;
  key.Add("kiln", *identity);
  for (const auto& [name, value] : args.options) {
    const size_t equals = value.find('=');
    if (name == "entry" && equals != std::string::npos) {
      key.Add("entry", absl::StrCat(value.substr(0, equals), "=", BaseName(value.substr(equals + 1))));
      add_file("program", value.substr(equals + 1));
    } else if (std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers)) {
      key.Add(name, value);
    }
  }
  for (const std::string& file : args.positional) {
    key.Add("module", BaseName(file));
    add_file("program", file);
  }
  if (args.Has("config")) key.Add("config", config);
  for (const std::string& text : o.gpu.tuning.texts) key.Add("tuning", text);
  for (const std::string& name : o.cpu.levels)
    if (const auto level = FindCpuLevel(name); level.ok())
      key.Add("level", absl::StrCat(level->name, " ", level->cpu, " ", level->features));
  if (!o.gpu.targets.empty()) {
    const std::string ptxas = FindPtxas(o.gpu.ptxas), libdevice = FindLibdevice(ptxas);
    std::string first_bytes;
    if (!ptxas.empty()) add_file("ptxas", ptxas, &first_bytes);
    if (!libdevice.empty()) add_file("libdevice", libdevice);
    if (absl::StartsWith(first_bytes, "#!")) why_not_ = ptxas + " is a script, and what it runs is not known";
  }
  key_ = key.Hex();
}

std::optional<CachedProduct> CompileCache::Find() const {
  if (key_.empty()) return std::nullopt;
  auto found = store_->Find(key_);
  if (found.ok()) {
    Say("hit " + key_);
    return *std::move(found);
  }
  if (!absl::IsNotFound(found.status()) && !absl::IsDataLoss(found.status()))
    Warn(found.status(), "the program is compiled");
  Say(absl::StrCat(absl::IsDataLoss(found.status()) ? "damaged entry " : "miss ", key_));
  return std::nullopt;
}

void CompileCache::Keep(const CachedProduct& product) const {
  if (key_.empty()) return;
  for (const Input& i : inputs_)
    if (StateOf(i.path) != i.state) return Say("not kept: " + i.path + " changed meanwhile");
  const absl::Status kept = store_->Keep(key_, product);
  if (absl::IsResourceExhausted(kept))
    Say(absl::StrCat("not kept: ", kept.message()));
  else if (!kept.ok())
    Warn(kept, "the product is not kept");
}

void CompileCache::Say(const std::string& what) const {
  if (verbose_) std::fprintf(stderr, "kiln: %s: cache: %s\n", name_.c_str(), what.c_str());
}

void CompileCache::Warn(const absl::Status& why, const char* so) const {
  const std::string text = absl::StrReplaceAll(why.message(), {{": error:", ":"}});
  std::fprintf(stderr, "warning: the cache %s: %s; %s\n", store_->folder().c_str(), text.c_str(), so);
}

}  // namespace kiln
