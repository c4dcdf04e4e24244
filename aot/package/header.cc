#include "aot/package/header.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "aot/compile.h"
#include "aot/package/names.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

// The C type that holds one element. Narrow floats are their bits; 4-bit integers take a byte.
std::string CType(PrimitiveType t) {
  if (t == PrimitiveType::Pred) return "uint8_t";
  if (t == PrimitiveType::F32) return "float";
  if (t == PrimitiveType::F64) return "double";
  if (t == PrimitiveType::C64) return "float";
  if (t == PrimitiveType::C128) return "double";
  const int bits = static_cast<int>(8 * ByteWidth(t));
  return absl::StrCat(IsSigned(t) ? "int" : "uint", bits, "_t");
}

// Elements of CType: complex numbers are pairs.
int64_t Count(const Shape& s) { return s.IsArray() ? s.ElementCount() * (IsComplex(s.type()) ? 2 : 1) : 0; }

constexpr char kCommDeclaration[] =
    R"(// One device's way to the others and to the host program's queues; functions return 0, or anything else for failure.
typedef struct $NAME_comm {
  void* self;
  int64_t device;  // replica * partitions + partition, of $DEVICES
  // All `members` devices of `group` call it; each gets the blocks of `bytes` bytes of all, in the group's order.
  int (*gather)(void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                int64_t bytes);
  // Queues: a channel of the program, or $UPPER_INFEED or $UPPER_OUTFEED of that device. Receive waits.
  int (*send)(void* self, int64_t device, int64_t channel, const void* data, int64_t bytes);
  int (*receive)(void* self, int64_t device, int64_t channel, void* data, int64_t bytes);
} $NAME_comm;
#define $UPPER_INFEED (-1)
#define $UPPER_OUTFEED (-2)

)";

constexpr char kContextComm[] = R"(    // The device that this context's thread is; needed before the first run.
    void set_comm(const $NAME_comm* comm) { comm_ = comm; }
    const $NAME_comm* comm() const { return comm_; }

   private:
    const $NAME_comm* comm_ = nullptr;
)";

// Which batch sizes there are.
std::string BatchDeclarations(const CompiledModel& m) {
  if (m.batches.empty()) return "";
  std::string sizes, cases;
  for (const BatchPorts& b : m.batches) {
    absl::StrAppend(&sizes, sizes.empty() ? "" : ", ", b.batch);
    absl::StrAppend(&cases, "  if (n <= ", b.batch, ") return ", b.batch, ";\n");
  }
  return absl::StrCat(
      "// The batch sizes that the library holds, ascending: $NAME_run takes one of them.\n#define "
      "$UPPER_BATCHES ",
      m.batches.size(), "\n#define $UPPER_BATCH_SIZES {", sizes,
      "}\n// The smallest of them that holds `n`; 0 if none does. Arrays must have that extent then.\n"
      "static inline int64_t $NAME_batch_for(int64_t n) {\n",
      cases, "  return 0;\n}\n\n");
}

// The port with `batch` where the extent is the batch size.
std::string BatchShapeText(const CompiledModel& m, bool result, size_t k) {
  const auto port = [&](const BatchPorts& b) -> const Shape& { return (result ? b.results : b.arguments)[k].shape; };
  const Shape& last = port(m.batches.back());
  std::string dims;
  for (int64_t d = 0; d < last.rank(); ++d) {
    bool same = true, is_batch = true;
    for (const BatchPorts& b : m.batches) {
      same = same && port(b).dim(d) == last.dim(d);
      is_batch = is_batch && port(b).dim(d) == b.batch;
    }
    absl::StrAppend(&dims, d ? "," : "", is_batch ? "batch" : same ? absl::StrCat(last.dim(d)) : "?");
  }
  return absl::StrCat(TextOf(last.type()), "[", dims, "]");
}

// `return` statements for the elements of a port by batch.
std::string BatchCounts(const CompiledModel& m, bool result, size_t k) {
  std::string out = "  switch (batch) {\n";
  for (const BatchPorts& b : m.batches)
    absl::StrAppend(&out, "    case ", b.batch, ": return ", Count((result ? b.results : b.arguments)[k].shape), ";\n");
  return out + "    default: return 0;\n  }\n";
}

// What the host program's own functions must look like.
std::string CustomCallDeclarations(const CompiledModel& m) {
  if (m.custom_calls.empty()) return "";
  std::string out = R"(
// Functions that the program must provide; a missing one is a link error that names it. They run on the thread that
// runs the model; arrays are row major.
)";
  bool status = false, typed = false;
  for (const CustomCallSignature& c : m.custom_calls) {
    status = status || c.api == CallApi::kStatus || c.api == CallApi::kUnified;
    typed = typed || c.api == CallApi::kTyped;
  }
  if (status)
    out += R"(// Zero at the call; a code other than 0 ends the run with $UPPER_CUSTOM_CALL.
typedef struct $NAME_call_status {
  int32_t code;
  const char* message;
  size_t message_size;
} $NAME_call_status;
)";
  if (typed) {
    out += R"(// An array that a function reads or writes. `type` is one of the numbers below.
typedef struct $NAME_buffer {
  void* data;
  const int64_t* dims;
  int32_t rank;
  int32_t type;
} $NAME_buffer;
enum {
)";
#define TYPE(e, text, bits, proto, cls, ...) \
  if (IsArrayType(PrimitiveType::e))         \
    absl::StrAppend(&out, "  $UPPER_TYPE_", absl::AsciiStrToUpper(text), " = ", proto, ",\n");
#include "compiler/hlo/types.def"
    out += "};\n";
  }
  const std::vector<std::string> functions = NameCallTargets(m.custom_calls, m.name);
  for (size_t k = 0; k < m.custom_calls.size(); ++k) {
    const CustomCallSignature& c = m.custom_calls[k];
    const std::string& id = functions[k];
    absl::StrAppend(&out, "\n// Custom call \"", c.target, "\".\n");
    std::string parameters;
    switch (c.api) {
      case CallApi::kOriginal:
        parameters = "void* out, const void** in";
        break;
      case CallApi::kStatus:
        parameters = "void* out, const void** in, $NAME_call_status* status";
        break;
      case CallApi::kUnified:
        parameters = "void* out, const void** in, const char* opaque, size_t opaque_size, $NAME_call_status* status";
        break;
      case CallApi::kTyped: {
        const std::string type = absl::StrCat("$NAME_", id, "_attributes");
        absl::StrAppend(&out, "typedef struct ", type);
        if (!c.attributes.empty()) {
          out += " {\n";
          const std::vector<std::string> fields = NameAttributes(c, m.name);
          for (size_t f = 0; f < fields.size(); ++f) {
            const CallAttributeValue& a = c.attributes[f];
            const std::string& field = fields[f];
            if (a.text)
              absl::StrAppend(&out, "  const char* ", field, ";\n  size_t ", field, "_size;\n");
            else if (a.list)
              absl::StrAppend(&out, "  const ", CType(a.type), "* ", field, ";\n  size_t ", field, "_size;\n");
            else
              absl::StrAppend(&out, "  ", CType(a.type), " ", field, ";\n");
          }
          out += "}";
        }
        absl::StrAppend(&out, " ", type, ";\n");
        if (c.attributes.empty())
          out += "// It has no attributes: the pointer is NULL. ";
        else
          out += "// ";
        out += "Returns 0, or anything else to end the run with $UPPER_CUSTOM_CALL.\n";
        parameters =
            absl::StrCat("const $NAME_buffer* operands, const $NAME_buffer* results, const ", type, "* attributes");
        break;
      }
    }
    absl::StrAppend(&out, c.api == CallApi::kTyped ? "int32_t " : "void ", id, "(", parameters, ")");
    if (id != c.target) absl::StrAppend(&out, " __asm__(\"", c.target, "\")");
    out += ";\n";
  }
  return out;
}

constexpr char kGpuComm[] =
    R"(// The device that this program is, the caller's; needed before the first run. What devices exchange passes through
// page-locked memory of the host, and a run waits for it.
void $NAME_gpu_set_comm($NAME_gpu* gpu, const $NAME_comm* comm);
)";

constexpr char kGpuClassComm[] = R"(    // The device that this program is; needed before the first run.
    void set_comm(const $NAME_comm* comm) {
      if (gpu_) $NAME_gpu_set_comm(gpu_, comm);
    }
)";

// What a library with a slow arena has besides.
constexpr char kSlowDoc[] =
    "//   arguments[$UPPER_ARGUMENTS]  the slow arena: $UPPER_SLOW_ARENA_BYTES bytes aligned to $UPPER_ALIGNMENT, "
    "contents as the arena's\n";
constexpr char kSlowDefinition[] = "#define $UPPER_SLOW_ARENA_BYTES ((size_t)$SLOWBYTES)\n";
constexpr char kSlowConstant[] = "  static constexpr std::size_t kSlowArenaBytes = $UPPER_SLOW_ARENA_BYTES;\n";
constexpr char kSlowMake[] =
    "      if (owned_) slow_arena_ = std::aligned_alloc(kAlignment, (kSlowArenaBytes + kAlignment - 1) / kAlignment * "
    "kAlignment);\n";
constexpr char kSlowFree[] = "      if (owned_) std::free(slow_arena_);\n";
constexpr char kSlowGet[] = "    void* slow_arena() const { return slow_arena_; }\n";
constexpr char kSlowMember[] = "    void* slow_arena_ = nullptr;\n";

std::string Fill(std::string text, const CompiledModel& m) {
  text = absl::StrReplaceAll(text, {{"$BATCHDECL", BatchDeclarations(m)}});
  const bool slow = m.slow_bytes > 0;
  text = absl::StrReplaceAll(text, {{"$SLOWDOC", slow ? kSlowDoc : ""},
                                    {"$SLOWDEF", slow ? kSlowDefinition : ""},
                                    {"$SLOWCONST", slow ? kSlowConstant : ""},
                                    {"$SLOWPARAM", slow ? "void* slow_arena, " : ""},
                                    {"$SLOWINIT", slow ? ", slow_arena_(slow_arena)" : ""},
                                    {"$SLOWMAKE", slow ? kSlowMake : ""},
                                    {"$SLOWFREE", slow ? kSlowFree : ""},
                                    {"$SLOWGET", slow ? kSlowGet : ""},
                                    {"$SLOWMEMBER", slow ? kSlowMember : ""},
                                    {"$SLOWCHECK", slow ? " || !context.slow_arena()" : ""}});
  text = absl::StrReplaceAll(text, {{"$COMMDECL", m.communicates ? kCommDeclaration : ""},
                                    {"$CONTEXTCOMM", m.communicates ? kContextComm : ""},
                                    {"$GPUCOMM", m.communicates ? kGpuComm : ""},
                                    {"$GPUCLASSCOMM", m.communicates ? kGpuClassComm : ""}});
  return absl::StrReplaceAll(text,
                             {{"$NAME", m.name},
                              {"$DEVICES", absl::StrCat(m.devices)},
                              {"$BATCHPARAM", m.batches.empty() ? "" : "int64_t batch, "},
                              {"$BATCHDOC", m.batches.empty() ? "" : "batch, "},
                              {"$COMMPARAM", m.communicates ? absl::StrCat(", const ", m.name, "_comm* comm") : ""},
                              {"$CTXCOMM", m.communicates ? ", context.comm()" : ""},
                              {"$UPPER", absl::AsciiStrToUpper(m.name)},
                              {"$ARCHS", absl::StrJoin(m.gpu_targets, ", ")},
                              {"$GPUARENA", absl::StrCat(m.gpu_temp_bytes)},
                              {"$ARENA", absl::StrCat(m.temp_bytes)},
                              {"$SLOWBYTES", absl::StrCat(m.slow_bytes)},
                              {"$NARGS", absl::StrCat(m.arguments.size())},
                              {"$NRESULTS", absl::StrCat(m.results.size())},
                              {"$POOLDOC", m.threads == 1 ? "ignored: the library was built for one thread"
                                                          : "NULL for the calling thread alone, a pool made "
                                                            "here, or the host's own, as three functions"}});
}

constexpr char kGpuCDeclaration[] = R"(
// The GPU program: code for $ARCHS. The NVIDIA driver is opened when the first one is created; the
// binary starts without it.
#define $UPPER_GPU_ARENA_BYTES ((size_t)$GPUARENA)
typedef struct $NAME_gpu $NAME_gpu;
// Loads the program on GPU `device`. `stream`: a stream of the device's primary context that the program shall use, or
// NULL for one of its own. $UPPER_NO_DEVICE where there is no driver, no such GPU or no code for it; `error`, if given,
// then says which.
int32_t $NAME_gpu_create($NAME_gpu** gpu, int32_t device, void* stream, char* error, size_t error_bytes);
void $NAME_gpu_destroy($NAME_gpu* gpu);
// Arguments, results and arena (256-byte aligned; NULL: the program's own) on the device. Puts the run on the stream and
// returns; it allocates nothing but its own arena, once, and waits for nothing but values that decide what runs.
int32_t $NAME_gpu_run($NAME_gpu* gpu, void* const* arguments, void* const* results, void* arena);
int32_t $NAME_gpu_wait($NAME_gpu* gpu);
// The same with arrays of the host, all in one: copies in, runs, waits, copies out.
int32_t $NAME_gpu_run_host($NAME_gpu* gpu, const void* const* arguments, void* const* results);
// Arrays on the device, for programs without a CUDA interface of their own. $NAME_gpu_to_host waits for what was started.
void* $NAME_gpu_malloc($NAME_gpu* gpu, size_t bytes);
void $NAME_gpu_free($NAME_gpu* gpu, void* array);
int32_t $NAME_gpu_to_device($NAME_gpu* gpu, void* array, const void* host, size_t bytes);
int32_t $NAME_gpu_to_host($NAME_gpu* gpu, void* host, const void* array, size_t bytes);
// Copies beside runs: an upload is to an array that no run under way uses, and the next run waits for it; a download
// begins when the runs that were started so far have ended, and later ones must not change its array. $NAME_gpu_wait
// waits for both. From and to memory that is not page-locked they are slower, and may wait.
int32_t $NAME_gpu_upload($NAME_gpu* gpu, void* array, const void* host, size_t bytes);
int32_t $NAME_gpu_download($NAME_gpu* gpu, void* host, const void* array, size_t bytes);
// Page-locked memory of the host.
void* $NAME_gpu_malloc_host($NAME_gpu* gpu, size_t bytes);
void $NAME_gpu_free_host($NAME_gpu* gpu, void* memory);
// Whether long runs of kernels are recorded as graphs (they are).
void $NAME_gpu_set_graphs($NAME_gpu* gpu, int32_t on);
// What the last failure was.
const char* $NAME_gpu_error(const $NAME_gpu* gpu);
$GPUCOMM)";

constexpr char kGpuClassBegin[] = R"(
  // The GPU program (code for $ARCHS), for one thread at a time.
  class Gpu {
   public:
    // `stream`: a stream of the device's primary context, or null for one of its own.
    explicit Gpu(int device = 0, void* stream = nullptr) {
      code_ = $NAME_gpu_create(&gpu_, device, stream, problem_, sizeof problem_);
    }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    ~Gpu() { $NAME_gpu_destroy(gpu_); }
    // False where the program cannot run: error() says why.
    bool ok() const { return code_ == 0; }
    const char* error() const { return gpu_ ? $NAME_gpu_error(gpu_) : problem_; }
    $NAME_gpu* get() const { return gpu_; }
    Status wait() { return {gpu_ ? $NAME_gpu_wait(gpu_) : code_}; }
    // Copies beside runs: the next run waits for uploads; downloads wait for the runs started so far. wait() for both.
    Status upload(void* array, const void* host, std::size_t bytes) {
      return {gpu_ ? $NAME_gpu_upload(gpu_, array, host, bytes) : code_};
    }
    Status download(void* host, const void* array, std::size_t bytes) {
      return {gpu_ ? $NAME_gpu_download(gpu_, host, array, bytes) : code_};
    }
$GPUCLASSCOMM)";

constexpr char kGpuClassEnd[] = R"(
   private:
    $NAME_gpu* gpu_ = nullptr;
    std::int32_t code_ = 0;
    char problem_[256] = "";
  };
)";

// What a typed function of the model takes, after its first parameter.
std::string Parameters(const CompiledModel& m) {
  std::string out;
  for (const Port& p : m.arguments) absl::StrAppend(&out, ",\n                    Argument_", p.name, " in_", p.name);
  for (const Port& p : m.results)
    if (p.alias < 0) absl::StrAppend(&out, ",\n                    Result_", p.name, " out_", p.name);
  return out;
}

// The same as what a call passes on.
std::string Passed(const CompiledModel& m) {
  std::string out;
  for (const Port& p : m.arguments) absl::StrAppend(&out, out.empty() ? "" : ", ", "in_", p.name);
  for (const Port& p : m.results)
    if (p.alias < 0) absl::StrAppend(&out, out.empty() ? "" : ", ", "out_", p.name);
  return out;
}

// The tables of pointers of the C interface, checked.
std::string Tables(const CompiledModel& m, bool slow_arena) {
  std::string out;
  auto table = [&](const char* name, const std::vector<Port>& ports, bool is_arg) {
    absl::StrAppend(&out, "    void* const ", name, "[] = {");
    for (const Port& p : ports) {
      if (is_arg)
        absl::StrAppend(&out, "\n        const_cast<", CType(p.shape.type()), "*>(in_", p.name, ".data()),");
      else if (p.alias < 0)
        absl::StrAppend(&out, "\n        out_", p.name, ".data(),");
      else
        absl::StrAppend(&out, "\n        in_", m.arguments[p.alias].name, ".data(),");
    }
    if (is_arg && slow_arena) out += "\n        context.slow_arena(),";
    out += ports.empty() ? "nullptr};\n" : "};\n";
  };
  table("arguments", m.arguments, true);
  table("results", m.results, false);
  if (!m.arguments.empty()) out += "    for (void* p : arguments)\n      if (!p) return {$UPPER_NULL_POINTER};\n";
  if (!m.results.empty()) out += "    for (void* p : results)\n      if (!p) return {$UPPER_NULL_POINTER};\n";
  return out;
}

// Functions of the class Gpu, and the choice between both programs.
std::string GpuClass(const CompiledModel& m) {
  const std::string parameters = Parameters(m), body = Tables(m, false);
  const size_t first =
      parameters.find("Argument_") == parameters.npos ? parameters.find("Result_") : parameters.find("Argument_");
  const std::string own = first == parameters.npos ? "" : parameters.substr(first);
  const std::string begin = absl::StrCat(") {\n    if (!gpu_) return {code_};\n", body);
  std::string out = absl::StrCat(
      kGpuClassBegin,
      "    // Arrays on the device; asynchronous. `arena`: $UPPER_GPU_ARENA_BYTES bytes on the device, or null.\n",
      "    Status run_on_device(void* arena", parameters, begin,
      "    return {$NAME_gpu_run(gpu_, arguments, results, arena)};\n    }\n",
      "    // Arrays of the host: copied in, run, waited for, copied out.\n    Status run(", own, begin,
      "    return {$NAME_gpu_run_host(gpu_, arguments, results)};\n    }\n", kGpuClassEnd);
  if (m.on_cpu)
    absl::StrAppend(&out, "\n  // On the GPU where it can be had, else on the CPU.\n",
                    "  static Status run_anywhere(Gpu& gpu, const Context& context", parameters,
                    ") {\n    return gpu.ok() ? gpu.run(", Passed(m), ") : run(context", Passed(m).empty() ? "" : ", ",
                    Passed(m), ");\n  }\n");
  return out;
}

// The C++ run of a library with several batch sizes: arrays say their counts, which are checked.
std::string BatchRun(const CompiledModel& m) {
  std::string sizes;
  for (const BatchPorts& b : m.batches) absl::StrAppend(&sizes, sizes.empty() ? "" : ", ", b.batch);
  std::string out = absl::StrCat("  static constexpr std::int64_t kBatchSizes[] = {", sizes, R"(};
  // The smallest size that holds `n`; 0 if none does.
  static std::int64_t BatchFor(std::int64_t n) { return $NAME_batch_for(n); }

  // Memory of so many elements, as run() checks against the batch.
  template <typename T>
  struct Array {
    T* data = nullptr;
    std::size_t count = 0;
    Array(T* d, std::size_t n) : data(d), count(n) {}
    template <typename Container, typename = decltype(static_cast<T*>(static_cast<Container*>(nullptr)->data()))>
    Array(Container& c) : data(c.data()), count(c.size()) {}
    template <std::size_t N>
    Array(T (&array)[N]) : data(array), count(N) {}
  };

  // `batch`: one of kBatchSizes.
)");
  absl::StrAppend(&out, "  static Status run(const Context& context, std::int64_t batch");
  std::string checks;
  const auto check = [&](const char* what, const std::string& variable, const std::string& port) {
    absl::StrAppend(&checks, "    if (", variable, ".count != $NAME_", what, "_", port,
                    "_count(batch)) return {$UPPER_EXTENT};\n    if (!", variable,
                    ".data) return {$UPPER_NULL_POINTER};\n");
  };
  std::string arguments, results;
  for (size_t k = 0; k < m.arguments.size(); ++k) {
    const Port& p = m.arguments[k];
    absl::StrAppend(&out, ",\n                    Array<", p.alias < 0 ? "const " : "", CType(p.shape.type()), "> in_",
                    p.name, " /* ", BatchShapeText(m, false, k), " */");
    absl::StrAppend(&arguments, "const_cast<", CType(p.shape.type()), "*>(in_", p.name, ".data), ");
    check("argument", "in_" + p.name, p.name);
  }
  for (size_t k = 0; k < m.results.size(); ++k) {
    const Port& p = m.results[k];
    if (p.alias < 0) {
      absl::StrAppend(&out, ",\n                    Array<", CType(p.shape.type()), "> out_", p.name, " /* ",
                      BatchShapeText(m, true, k), " */");
      check("result", "out_" + p.name, p.name);
    }
    absl::StrAppend(&results, p.alias < 0 ? "out_" + p.name : "in_" + m.arguments[p.alias].name, ".data, ");
  }
  if (m.slow_bytes > 0) arguments += "context.slow_arena(), ";
  absl::StrAppend(&out,
                  ") {\n    bool known = false;\n    for (std::int64_t size : kBatchSizes) known = known || size == "
                  "batch;\n    if (!known) return {$UPPER_BATCH_SIZE};\n",
                  checks, "    void* const arguments[] = {", arguments, "nullptr};\n    void* const results[] = {",
                  results, R"(nullptr};
    if ((kArenaBytes && !context.arena())$SLOWCHECK) return {$UPPER_NULL_POINTER};
    return {$NAME_run(batch, arguments, results, context.arena(), context.pool()$CTXCOMM)};
  }
};

#endif  // $UPPER_H_
)");
  return out;
}

}  // namespace

std::string CHeader(const CompiledModel& m) {
  std::string out = R"(// $NAME: C interface. Generated by kiln; do not edit.
//
// $NAME_run($BATCHDOCarguments, results, arena, pool) computes the model. Every buffer is the caller's:
//   arguments[k]  the k-th argument, row major unless its comment names a layout, aligned to 16 bytes
//   results[k]    room for the k-th result; ignored for results that live in a donated argument
$SLOWDOC//   arena         $UPPER_ARENA_BYTES bytes aligned to $UPPER_ALIGNMENT, contents undefined between runs; may be NULL if 0
//   pool          $POOLDOC
// It allocates nothing, may run in many threads at once with one arena each, and uses at most 2 MiB of stack.
#ifndef $UPPER_C_H_
#define $UPPER_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define $UPPER_ARENA_BYTES ((size_t)$ARENA)
$SLOWDEF#define $UPPER_ALIGNMENT ((size_t)64)
#define $UPPER_ARGUMENTS $NARGS
#define $UPPER_RESULTS $NRESULTS

// Status of a run; $NAME_status_text says it in words.
enum {
  $UPPER_OK = 0,
  $UPPER_NULL_POINTER = 1,
  $UPPER_UNSUPPORTED_CPU = 2,
  $UPPER_MISALIGNED = 3,
  $UPPER_COMMUNICATION = 4,
  $UPPER_CUSTOM_CALL = 5,
  $UPPER_BATCH_SIZE = 6,
  $UPPER_EXTENT = 7,
  $UPPER_GPU = 8,
  $UPPER_NO_DEVICE = 9
};

$COMMDECL$BATCHDECL)";
  constexpr char kCpuDeclaration[] = R"(typedef struct $NAME_pool {
  void* self;
  // Threads that work at once, the caller included.
  int (*size)(void* self);
  // Has fn(arg) called once, on any thread and at any time; may call it before returning.
  void (*submit)(void* self, void (*fn)(void* arg), void* arg);
  // Called in a loop by a run that waits for what it submitted: runs something that was submitted, waits a little, or
  // just returns. A pool that never runs models on its own threads may leave it empty.
  void (*help)(void* self);
} $NAME_pool;

int32_t $NAME_run($BATCHPARAMvoid* const* arguments, void* const* results, void* arena, const $NAME_pool* pool$COMMPARAM);
)";
  if (m.on_cpu) out += kCpuDeclaration;
  if (!m.gpu_targets.empty()) out += kGpuCDeclaration;
  if (m.threads != 1 && m.on_cpu)
    out += R"(
// A pool of `threads` threads, the caller's included; NULL if they cannot be had.
$NAME_pool* $NAME_pool_create(int threads);
void $NAME_pool_destroy($NAME_pool* pool);
)";
  if (m.communicates)
    out += R"(
// The devices as threads of this process. A thread runs the model with the comm of its device.
struct $NAME_world* $NAME_world_create(int64_t devices);
$NAME_comm* $NAME_world_comm(struct $NAME_world* world, int64_t device);
// Ends every wait: for a host whose device cannot go on.
void $NAME_world_abort(struct $NAME_world* world);
void $NAME_world_destroy(struct $NAME_world* world);
)";
  out += CustomCallDeclarations(m);
  out += "\n";
  for (const auto& [ports, what] : {std::pair{&m.arguments, "argument"}, std::pair{&m.results, "result"}}) {
    for (size_t k = 0; k < ports->size(); ++k) {
      const Port& p = (*ports)[k];
      const std::string id = absl::StrCat("$UPPER_", absl::AsciiStrToUpper(what), "_", absl::AsciiStrToUpper(p.name));
      const bool result = what[0] == 'r';
      absl::StrAppend(&out, "// ", what, " ", k, ": ", p.name, " ",
                      m.batches.empty() ? p.shape.ToString(!p.shape.HasDefaultLayout()) : BatchShapeText(m, result, k));
      if (p.alias >= 0)
        absl::StrAppend(&out, what[0] == 'a' ? " (donated: overwritten with result " : " (lives in donated argument ",
                        p.alias, ")");
      absl::StrAppend(&out, "\n#define ", id, " ", k, "\n");
      if (m.batches.empty())
        absl::StrAppend(&out, "#define ", id, "_COUNT ((size_t)", Count(p.shape), ")\n");
      else
        absl::StrAppend(&out, "static inline size_t $NAME_", what, "_", p.name, "_count(int64_t batch) {\n",
                        BatchCounts(m, result, k), "}\n");
    }
  }
  out += R"(
static inline const char* $NAME_status_text(int32_t status) {
  switch (status) {
    case $UPPER_OK: return "ok";
    case $UPPER_NULL_POINTER: return "$NAME: a buffer is NULL";
    case $UPPER_UNSUPPORTED_CPU: return "$NAME: this machine's CPU is below every level that the library was built for";
    case $UPPER_MISALIGNED: return "$NAME: a buffer is not aligned";
    case $UPPER_COMMUNICATION: return "$NAME: another device, or a queue of the host program, failed";
    case $UPPER_CUSTOM_CALL: return "$NAME: a function that the program provides reported a failure";
    case $UPPER_BATCH_SIZE: return "$NAME: the library has no variant for this batch size";
    case $UPPER_GPU: return "$NAME: the GPU or one of its libraries failed";
    case $UPPER_NO_DEVICE: return "$NAME: there is no GPU here that the library can run on";
    case $UPPER_EXTENT: return "$NAME: an array has another extent than the batch needs";
    default: return "$NAME: unknown status";
  }
}

#ifdef __cplusplus
}
#endif

#endif  // $UPPER_C_H_
)";
  return Fill(out, m);
}

std::string CppHeader(const CompiledModel& m) {
  std::string out = R"(// $NAME: a compiled model. Generated by kiln; do not edit. C++17.
//
//   $NAME::Context context;                       // owns the arena; or give it your own memory
//   $NAME::Status status = $NAME::run(context, ...);
//
// run() allocates nothing and is re-entrant: one context for each thread. Extents are checked when spans are made.
#ifndef $UPPER_H_
#define $UPPER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "$NAME_c.h"

class $NAME {
 public:
  static constexpr std::size_t kArenaBytes = $UPPER_ARENA_BYTES;
$SLOWCONST  static constexpr std::size_t kAlignment = $UPPER_ALIGNMENT;

  // Memory of exactly N elements. Arrays of another extent do not convert; Of() checks a run-time count.
  template <typename T, std::size_t N>
  class Span {
   public:
    static constexpr std::size_t kCount = N;
    Span() = default;
    Span(T (&array)[N]) : data_(array) {}
    template <typename U, typename = decltype(static_cast<T*>(static_cast<U*>(nullptr)))>
    Span(Span<U, N> other) : data_(other.data()) {}
    // Empty (data() is null) if `count` is not N.
    static Span Of(T* data, std::size_t count) {
      Span s;
      if (count == N) s.data_ = data;
      return s;
    }
    // The caller vouches for N elements.
    static Span Unchecked(T* data) { return Of(data, N); }
    T* data() const { return data_; }
    static constexpr std::size_t size() { return N; }
    T& operator[](std::size_t i) const { return data_[i]; }
    T* begin() const { return data_; }
    T* end() const { return data_ + N; }

   private:
    T* data_ = nullptr;
  };

  // Errors are values.
  struct Status {
    std::int32_t code = 0;
    bool ok() const { return code == 0; }
    explicit operator bool() const { return ok(); }
    const char* text() const { return $NAME_status_text(code); }
  };

)";
  constexpr char kContext[] =
      R"(  // What one thread needs to run the model: the arena, and a pool if it may use more threads.
  class Context {
   public:
    explicit Context($NAME_pool* pool = nullptr) : pool_(pool), owned_(kArenaBytes != 0) {
      if (owned_) arena_ = std::aligned_alloc(kAlignment, (kArenaBytes + kAlignment - 1) / kAlignment * kAlignment);
$SLOWMAKE    }
    // `arena`: kArenaBytes bytes aligned to kAlignment, the caller's.
    explicit Context(void* arena, $SLOWPARAM$NAME_pool* pool = nullptr)
        : arena_(arena), pool_(pool), owned_(false)$SLOWINIT {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() {
      if (owned_) std::free(arena_);
$SLOWFREE    }
    void* arena() const { return arena_; }
$SLOWGET    const $NAME_pool* pool() const { return pool_; }
$CONTEXTCOMM
   private:
    void* arena_ = nullptr;
    $NAME_pool* pool_ = nullptr;
    bool owned_ = false;
$SLOWMEMBER  };

)";
  if (m.on_cpu) out += kContext;
  if (!m.batches.empty()) return Fill(out + BatchRun(m), m);
  for (const auto& [ports, is_arg] : {std::pair{&m.arguments, true}, std::pair{&m.results, false}}) {
    for (const Port& p : *ports) {
      const bool constant = is_arg && p.alias < 0;
      absl::StrAppend(&out, "  // ", p.name, ": ", p.shape.ToString(false),
                      p.alias >= 0 && is_arg ? ", donated: holds " + m.results[p.alias].name + " afterwards" : "",
                      "\n");
      if (!is_arg && p.alias >= 0) continue;
      absl::StrAppend(&out, "  using ", is_arg ? "Argument_" : "Result_", p.name, " = Span<", constant ? "const " : "",
                      CType(p.shape.type()), ", ", std::max<int64_t>(Count(p.shape), 1), ">;\n");
    }
  }
  if (m.on_cpu)
    absl::StrAppend(&out, "\n  static Status run(const Context& context", Parameters(m), ") {\n",
                    Tables(m, m.slow_bytes > 0),
                    "    if ((kArenaBytes && !context.arena())$SLOWCHECK) return {$UPPER_NULL_POINTER};\n"
                    "    return {$NAME_run(arguments, results, context.arena(), context.pool()$CTXCOMM)};\n  }\n");
  if (!m.gpu_targets.empty()) out += GpuClass(m);
  out += R"(};

#endif  // $UPPER_H_
)";
  return Fill(out, m);
}

}  // namespace kiln
