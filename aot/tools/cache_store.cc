#include "aot/tools/cache_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "codegen/llvm/sha256.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

constexpr absl::string_view kMagic = "kiln cache 1\n", kSuffix = ".kiln", kUnfinished = ".kiln.tmp";
constexpr size_t kDigits = 64;  // of a key, and of the checksum that ends an entry

// Numbers are eight bytes, lists and texts begin with their size.
class Writer {
 public:
  explicit Writer(FILE* file) : file_(file) {}
  void Put(absl::string_view bytes) {
    hash_.Add(bytes);
    Write(bytes);
  }
  void Number(size_t n) {
    const uint64_t word = n;
    Put({reinterpret_cast<const char*>(&word), sizeof word});
  }
  void Text(absl::string_view text) {
    Number(text.size());
    Put(text);
  }
  // The errno of the first write that failed, or 0.
  int End() {
    Write(hash_.Hex());
    return error_;
  }

 private:
  void Write(absl::string_view bytes) {
    if (!error_ && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) error_ = errno ? errno : EIO;
  }

  FILE* file_;
  Sha256 hash_;
  int error_ = 0;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}
  absl::string_view Take(size_t n) {
    failed_ = failed_ || n > left_.size();
    if (failed_) return {};
    const absl::string_view out = left_.substr(0, n);
    left_.remove_prefix(n);
    return out;
  }
  size_t Number() {
    uint64_t word = 0;
    const absl::string_view bytes = Take(sizeof word);
    if (!failed_) std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }
  absl::string_view Text() { return Take(Number()); }
  bool failed() const { return failed_; }
  bool AtEnd() const { return !failed_ && left_.empty(); }

 private:
  absl::string_view left_;
  bool failed_ = false;
};

void WriteProduct(const std::string& key, const CachedProduct& p, Writer* out) {
  out->Put(kMagic);
  out->Put(key);
  out->Number(p.files.size());
  for (const CachedProduct::File& f : p.files) {
    out->Text(f.name);
    size_t bytes = 0;
    for (absl::string_view piece : f.pieces) bytes += piece.size();
    out->Number(bytes);
    for (absl::string_view piece : f.pieces) out->Put(piece);
  }
  out->Number(p.notes.size());
  for (const std::string& n : p.notes) out->Text(n);
  out->Text(p.summary);
  out->Text(p.json);
}

// Whether the entry is whole.
bool ReadProduct(const std::string& key, CachedProduct* p) {
  absl::string_view bytes = *p->bytes;
  if (bytes.size() < kDigits) return false;
  Sha256 hash;
  hash.Add(bytes.substr(0, bytes.size() - kDigits));
  if (hash.Hex() != bytes.substr(bytes.size() - kDigits)) return false;
  bytes.remove_suffix(kDigits);
  Reader in(bytes);
  if (in.Take(kMagic.size()) != kMagic || in.Take(kDigits) != key) return false;
  for (size_t left = in.Number(); left > 0 && !in.failed(); --left) {
    const std::string name(in.Text());
    if (name.empty() || absl::StrContains(name, '/')) return false;
    p->files.push_back({name, {in.Text()}});
  }
  for (size_t left = in.Number(); left > 0 && !in.failed(); --left) p->notes.emplace_back(in.Text());
  p->summary = std::string(in.Text());
  p->json = std::string(in.Text());
  return in.AtEnd();
}

int64_t SizeOf(const CachedProduct& p) {
  int64_t out = 0;
  for (const CachedProduct::File& f : p.files)
    for (absl::string_view piece : f.pieces) out += static_cast<int64_t>(piece.size());
  return out;
}

bool IsEntry(absl::string_view name) {
  return absl::ConsumeSuffix(&name, kSuffix) && name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == name.npos;
}

}  // namespace

absl::StatusOr<CachedProduct> CacheStore::Find(const std::string& key) const {
  const std::string path = absl::StrCat(folder_, "/", key, kSuffix);
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return access(path.c_str(), F_OK) == 0 ? bytes.status() : absl::NotFoundError(path);
  CachedProduct out;
  out.bytes = std::make_shared<const std::string>(*std::move(bytes));
  if (!ReadProduct(key, &out)) {
    unlink(path.c_str());
    return absl::DataLossError(path);
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return out;
}

absl::Status CacheStore::Keep(const std::string& key, const CachedProduct& product) const {
  const std::string path = absl::StrCat(folder_, "/", key, kSuffix);
  if (limit_ > 0 && SizeOf(product) > limit_)
    return ResourceExhausted("the product has ", SizeOf(product), " bytes, and the limit is ", limit_);
  RETURN_IF_ERROR(MakeFolderOf(path));
  // Machines that share a folder have processes of equal numbers.
  const int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string temporary = absl::StrCat(folder_, "/", key, kUnfinished, static_cast<int>(getpid()), "_", now);
  const auto failed = [&](int error) {
    return InvalidArgument(temporary, ": error: cannot write: ", std::strerror(error));
  };
  FILE* f = std::fopen(temporary.c_str(), "wbx");
  if (!f) return failed(errno);
  Writer out(f);
  WriteProduct(key, product, &out);
  int error = out.End();
  if (std::fclose(f) != 0 && !error) error = errno;
  if (!error && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error) {
    unlink(temporary.c_str());
    return failed(error);
  }
  if (limit_ > 0) RemoveOldest();
  return absl::OkStatus();
}

// Others may remove the same entries, or use them: a file that is open stays readable.
void CacheStore::RemoveOldest() const {
  namespace fs = std::filesystem;
  struct Entry {
    fs::file_time_type time;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t all = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const std::string name = it->path().filename().string();
    Entry e{fs::last_write_time(it->path(), gone), 0, it->path()};
    if (gone) continue;
    // Of a process that was ended while it wrote.
    if (absl::StrContains(name, kUnfinished) && now - e.time > std::chrono::hours(24)) fs::remove(e.path, gone);
    if (!IsEntry(name)) continue;
    e.bytes = static_cast<int64_t>(fs::file_size(e.path, gone));
    if (gone) continue;
    all += e.bytes;
    entries.push_back(std::move(e));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& e : entries) {
    if (all <= limit_) break;
    fs::remove(e.path, error);
    all -= e.bytes;
  }
}

}  // namespace kiln
