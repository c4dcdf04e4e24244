#include "aot/tools/runner.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "compiler/base/text.h"
#include "compiler/eval/evaluator.h"

namespace kiln {
namespace {

// A temporary directory that goes with the object.
class TempDir {
 public:
  TempDir() {
    std::string t = "/tmp/kiln_run_XXXXXX";
    if (mkdtemp(t.data())) path_ = t;
  }
  ~TempDir() {
    if (path_.empty()) return;
    for (const char* f : {"/m.a", "/m.so"}) unlink((path_ + f).c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

absl::Status Link(const std::string& dir) {
  const pid_t pid = fork();
  if (pid == 0) {
    execlp("cc", "cc", "-shared", "-o", (dir + "/m.so").c_str(), "-Wl,--whole-archive", (dir + "/m.a").c_str(),
           "-Wl,--no-whole-archive", "-lm", "-lpthread", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return InvalidArgument("error: linking the model failed (custom calls need their functions; cc must be installed)");
  return absl::OkStatus();
}

// Memory that the child writes and the parent reads.
struct Shared {
  explicit Shared(size_t n)
      : size(std::max<size_t>(n, 1)),
        data(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Shared() {
    if (data != MAP_FAILED) munmap(data, size);
  }
  char* at(size_t k) const { return static_cast<char*>(data) + k; }
  size_t size;
  void* data;
};

// Elements reordered between row-major (a literal's) and the layout that a port has in memory.
Literal Relaid(const Literal& l, const Shape& port, bool to_memory) {
  if (!port.IsArray() || port.HasDefaultLayout() || l.size() == 0) return l;
  Literal out(l.shape());
  const Ints strides = port.Strides();
  const int64_t w = ByteWidth(port.type());
  Ints index(port.rank(), 0);
  uint8_t* data = out.mutable_data();
  for (int64_t k = 0; k < l.size(); ++k) {
    int64_t at = 0;
    for (int64_t d = 0; d < port.rank(); ++d) at += index[d] * strides[d];
    if (to_memory)
      std::memcpy(data + at * w, l.data() + k * w, w);
    else
      std::memcpy(data + k * w, l.data() + at * w, w);
    for (int64_t d = port.rank() - 1; d >= 0 && ++index[d] == port.dim(d); --d) index[d] = 0;
  }
  return out;
}

using RunFn = int32_t (*)(void* const*, void* const*, void*, const void*);

// The child: loads the library, runs it, leaves results and times in `shared`. Exit code 0 is success.
int Child(const CompiledModel& m, const std::string& so, const std::vector<Literal>& arguments, const RunOptions& o,
          const std::vector<size_t>& offsets, Shared& shared, int repeat) {
  void* lib = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    std::fprintf(stderr, "error: %s\n", dlerror());
    return 3;
  }
  auto run = reinterpret_cast<RunFn>(dlsym(lib, (m.name + "_run").c_str()));
  auto make_pool = reinterpret_cast<void* (*)(int)>(dlsym(lib, (m.name + "_pool_create").c_str()));
  if (!run || !make_pool) return 4;
  void* pool = o.threads > 1 ? make_pool(o.threads) : nullptr;
  auto room = [](size_t n) -> char* {
    const size_t rounded = (std::max<size_t>(n, 1) + 63) / 64 * 64;
    return static_cast<char*>(aligned_alloc(64, rounded));
  };
  std::vector<void*> args, results;
  for (const Literal& l : arguments) {
    char* p = room(l.byte_size());
    if (l.byte_size()) std::memcpy(p, l.data(), l.byte_size());
    args.push_back(p);
  }
  for (const Port& p : m.results) results.push_back(p.alias >= 0 ? args[p.alias] : room(p.shape.ByteSize()));
  char* arena = room(m.temp_bytes);
  std::memset(arena, 0xff, m.temp_bytes);
  double* times = reinterpret_cast<double*>(shared.at(0));
  for (int k = 0; k < repeat; ++k) {
    if (k > 0)
      for (size_t a = 0; a < args.size(); ++a)
        if (m.arguments[a].alias >= 0) std::memcpy(args[a], arguments[a].data(), arguments[a].byte_size());
    const auto start = std::chrono::steady_clock::now();
    const int32_t code = run(args.data(), results.data(), arena, pool);
    times[k] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    if (code != 0) {
      std::fprintf(stderr, "error: the model returned status %d\n", code);
      return 5;
    }
    if (k == 0)
      for (size_t r = 0; r < results.size(); ++r)
        std::memcpy(shared.at(offsets[r]), results[r], m.results[r].shape.ByteSize());
  }
  return 0;
}

void Flatten(const Literal& l, std::vector<Literal>* out) {
  if (l.shape().IsTuple()) {
    for (const Literal& e : l.elements()) Flatten(e, out);
  } else {
    out->push_back(l);
  }
}

Literal Unflatten(const Shape& s, const std::vector<Literal>& leaves, size_t* next) {
  if (!s.IsTuple()) return leaves[(*next)++];
  std::vector<Literal> parts;
  for (const Shape& e : s.tuple()) parts.push_back(Unflatten(e, leaves, next));
  return Literal::Tuple(parts);
}

}  // namespace

std::vector<Literal> SeededArguments(const Module& m, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<Literal> out;
  for (const Instruction* p : m.entry()->parameters()) {
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) {
      Literal l(s);
      for (int64_t k = 0; s.IsArray() && k < l.size(); ++k) {
        Element e;
        const double u = static_cast<double>(rng() >> 11) * 0x1p-53;
        e.re = 2 * u - 1;
        e.im = 2 * (static_cast<double>(rng() >> 11) * 0x1p-53) - 1;
        e.i = s.type() == PrimitiveType::Pred ? static_cast<int64_t>(rng() & 1)
                                              : static_cast<int64_t>(rng() % 9) - (IsSigned(s.type()) ? 4 : 0);
        l.Set(k, e);
      }
      out.push_back(std::move(l));
    });
  }
  return out;
}

absl::StatusOr<RunResult> RunModule(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                    const CompileOptions& compile, const RunOptions& o) {
  RunResult out;
  std::vector<Shape> shapes;
  for (const Instruction* p : module->entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) { shapes.push_back(s); });
  if (arguments.size() != shapes.size())
    return InvalidArgument("error: ", arguments.size(), " inputs given, the module takes ", shapes.size());
  if (o.backend == "reference") {
    std::vector<Literal> args;
    size_t next = 0;
    for (const Instruction* p : module->entry()->parameters()) args.push_back(Unflatten(p->shape(), arguments, &next));
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(Literal r, Evaluate(*module, args));
    out.first_us = out.min_us = out.median_us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    Flatten(r, &out.results);
    return out;
  }
  if (o.backend != "cpu")
    return Unimplemented("error: backend '", o.backend, "' is not supported; there are cpu and reference");
  ASSIGN_OR_RETURN(out.model, Compile(std::move(module), compile));
  TempDir dir;
  if (dir.path().empty()) return InvalidArgument("error: cannot make a temporary directory");
  RETURN_IF_ERROR(WriteFile(dir.path() + "/m.a", out.model.archive));
  RETURN_IF_ERROR(Link(dir.path()));
  const int repeat = std::max(1, o.repeat);
  size_t total = (repeat * sizeof(double) + 63) / 64 * 64;
  std::vector<size_t> offsets;
  for (const Port& p : out.model.results) {
    offsets.push_back(total);
    total += (static_cast<size_t>(p.shape.ByteSize()) + 63) / 64 * 64;
  }
  Shared shared(total);
  if (shared.data == MAP_FAILED) return ResourceExhausted("error: cannot map ", total, " bytes for the results");
  std::fflush(stdout);
  std::vector<Literal> in_memory;
  for (size_t k = 0; k < arguments.size(); ++k)
    in_memory.push_back(Relaid(arguments[k], out.model.arguments[k].shape, true));
  const pid_t pid = fork();
  if (pid == 0) _exit(Child(out.model, dir.path() + "/m.so", in_memory, o, offsets, shared, repeat));
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return Internal("error: the compiled model died with signal ", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return InvalidArgument("error: the compiled model failed");
  for (size_t r = 0; r < out.model.results.size(); ++r) {
    Literal l(out.model.results[r].shape);
    if (l.byte_size()) std::memcpy(l.mutable_data(), shared.at(offsets[r]), l.byte_size());
    out.results.push_back(Relaid(l, out.model.results[r].shape, false));
  }
  std::vector<double> times(reinterpret_cast<double*>(shared.at(0)), reinterpret_cast<double*>(shared.at(0)) + repeat);
  out.first_us = times[0];
  if (times.size() > 1) times.erase(times.begin());
  std::sort(times.begin(), times.end());
  out.min_us = times.front();
  out.median_us = times[times.size() / 2];
  return out;
}

}  // namespace kiln
