// `kiln rank DIR`: one device of a program that RunRanks started.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "aot/tools/mpi_launcher.h"
#include "compiler/base/text.h"
#include "runtime_min/kiln.h"

namespace kiln {
namespace {

int Fail(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  return 1;
}

// The model of a shared object that shows all symbols.
const kiln_model* Load(const std::string& path, const std::string& symbols) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  const auto model = reinterpret_cast<const kiln_model* (*)()>(dlsym(library, (symbols + "_model").c_str()));
  return model ? model() : nullptr;
}

// Memory that goes with the object. Aborts where there is none, as `new` does.
class Room {
 public:
  explicit Room(int64_t bytes) {
    constexpr size_t kAlignment = 4096;
    data_ = static_cast<char*>(
        std::aligned_alloc(kAlignment, (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment));
    if (!data_) std::abort();
    std::memset(data_, 0xff, static_cast<size_t>(bytes));
  }
  Room(Room&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  ~Room() { std::free(data_); }
  char* data() const { return data_; }

 private:
  char* data_;
};

int32_t Run(const kiln_model& m, const kiln_comm* comm, const std::string& arguments, std::string* out) {
  const kiln_variant* v = kiln_variant_at(&m, 0);
  std::vector<Room> rooms;
  std::vector<void*> args, results;
  size_t at = 0;
  for (int64_t k = 0; k < m.arguments; ++k) {
    const auto bytes = static_cast<size_t>(kiln_argument(&m, v, k)->bytes);
    if (arguments.size() - at < bytes) return KILN_EXTENT;
    rooms.emplace_back(static_cast<int64_t>(bytes));
    args.push_back(rooms.back().data());
    std::memcpy(args.back(), arguments.data() + at, bytes);
    at += bytes;
  }
  for (int64_t k = 0; k < m.results; ++k) {
    const kiln_array* r = kiln_result(&m, v, k);
    if (r->alias < 0) rooms.emplace_back(r->bytes);
    results.push_back(r->alias >= 0 ? args[static_cast<size_t>(r->alias)] : rooms.back().data());
  }
  const Room arena(v->arena_bytes), slow(m.slow_arena_bytes);
  const kiln_call call = {0,
                          args.data(),
                          results.data(),
                          {arena.data(), static_cast<size_t>(v->arena_bytes)},
                          {slow.data(), static_cast<size_t>(m.slow_arena_bytes)},
                          nullptr,
                          comm};
  const int32_t status = m.run(&call);
  for (int64_t k = 0; k < m.results && status == KILN_OK; ++k)
    out->append(static_cast<const char*>(results[static_cast<size_t>(k)]),
                static_cast<size_t>(kiln_result(&m, v, k)->bytes));
  return status;
}

}  // namespace

int RankCommand(const std::string& dir) {
  const auto job = ReadFile(dir + "/job");
  if (!job.ok()) return Fail(absl::StrCat("kiln rank: ", job.status().message()));
  const std::vector<std::string> words = absl::StrSplit(*job, '\n');
  if (words.size() < 2) return Fail("kiln rank: the job is not one that kiln run wrote");
  const kiln_model* m = Load(words[1], words[0]);
  if (!m) return Fail(absl::StrCat("kiln rank: ", words[1], " cannot be loaded"));
  if (!KILN_HAS(kiln_model, mpi, m->struct_bytes)) return Fail("the program does not communicate");
  struct kiln_mpi* mpi = nullptr;
  char error[512] = "";
  if (m->mpi->open(&mpi, nullptr, error, sizeof error) != KILN_OK) return Fail(error);
  const kiln_comm* comm = m->mpi->comm(mpi);
  const int64_t rank = comm->device;
  const auto arguments = ReadFile(absl::StrCat(dir, "/arguments.", rank));
  if (!arguments.ok()) return Fail(std::string(arguments.status().message()));
  std::string results;
  const int32_t status = Run(*m, comm, *arguments, &results);
  if (status != KILN_OK)
    return Fail(absl::StrCat("rank ", rank, ": ", m->status_text(status), " (", m->mpi->error(mpi), ")"));
  const absl::Status written = WriteFile(absl::StrCat(dir, "/results.", rank), results);
  if (!written.ok()) return Fail(std::string(written.message()));
  m->mpi->close(mpi);
  return 0;
}

}  // namespace kiln
