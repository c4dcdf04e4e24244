// Weights that come from files, in the generated headers.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "aot/package/header_text.h"
#include "aot/package/nested_ports.h"
#include "aot/package/weights_table.h"

namespace kiln {
namespace {

// runtime_min/weights/weights.h, which headers with weights hold.
constexpr char kTypes[] =
#include "aot/package/weights.inc"
    ;

constexpr char kFunctions[] = R"(
// Arguments that come from a safetensors file:
$WEIGHTLIST
// Opens the file and finds them. Errors are $UPPER_WEIGHTS; `error`, if given, then says what is wrong (up to 1024 bytes).
int32_t $NAME_weights_open(kiln_weights** weights, const char* path, char* error, size_t error_bytes)
    $[weights_open$];
// The same of a file's image in memory, which stays as it is until the last run with it has ended, and of the host's own.
int32_t $NAME_weights_open_memory(kiln_weights** weights, const void* image, size_t bytes, char* error,
                                  size_t error_bytes) $[weights_open_memory$];
int32_t $NAME_weights_open_source(kiln_weights** weights, const kiln_weights_source* source, char* error,
                                  size_t error_bytes) $[weights_open_source$];
// Reads all arrays that were constants of the program, and compares them with these.
int32_t $NAME_weights_verify(kiln_weights* weights, char* error, size_t error_bytes) $[weights_verify$];
// Puts those of `fresh`, which goes, in the place of those of `weights`. Runs under way end with what they began with.
void $NAME_weights_swap(kiln_weights* weights, kiln_weights* fresh) $[weights_swap$];
// No run may use it any more.
void $NAME_weights_close(kiln_weights* weights) $[weights_close$];
)";
constexpr char kRun[] = R"(
// A run whose arguments are the others alone, in their order.
int32_t $NAME_run_weights_call(const kiln_call* call, kiln_weights* weights) $[run_weights$];
static inline int32_t $NAME_run_weights($BATCHPARAMkiln_weights* weights, void* const* arguments, void* const* results, kiln_arena arena, $SLOWPARAMconst kiln_pool* pool$COMMPARAM) {
  const kiln_call call = {$BATCHVALUE, arguments, results, arena, $SLOWVALUE, pool, $COMMVALUE};
  return $NAME_run_weights_call(&call, weights);
}
)";

constexpr char kClass[] = R"(
  // Arguments that come from a safetensors file ($NAME_c.h lists them). Any number of threads may run with one.
  class Weights {
   public:
    explicit Weights(const char* path) { code_ = $NAME_weights_open(&weights_, path, error_, sizeof error_); }
    // Of a file's image in memory, and of what the host has in another form.
    Weights(const void* image, std::size_t bytes) {
      code_ = $NAME_weights_open_memory(&weights_, image, bytes, error_, sizeof error_);
    }
    explicit Weights(const kiln_weights_source& source) {
      code_ = $NAME_weights_open_source(&weights_, &source, error_, sizeof error_);
    }
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;
    ~Weights() { $NAME_weights_close(weights_); }
    bool ok() const { return weights_ != nullptr; }
    // What is wrong; empty if nothing is.
    const char* error() const { return error_; }
    Status status() const { return {code_}; }
    // Compares what were constants with these; reads all of them.
    Status Verify() { return {weights_ ? $NAME_weights_verify(weights_, error_, sizeof error_) : code_}; }
    // Takes those of `fresh` while others run, which end with what they began with. False, and nothing changes, if either
    // is not ok().
    bool Swap(Weights&& fresh) {
      if (!weights_ || !fresh.weights_) return false;
      $NAME_weights_swap(weights_, fresh.weights_);
      fresh.weights_ = nullptr;
      return true;
    }
    kiln_weights* get() const { return weights_; }

   private:
    kiln_weights* weights_ = nullptr;
    std::int32_t code_ = 0;
    char error_[1024] = "";
  };
)";

// ", of prefill, decode"
std::string TakersOf(const Port& weight, const CompiledModel& library) {
  std::string out;
  for (const CompiledModel& e : library.entries)
    if (std::any_of(e.ports.arguments.begin(), e.ports.arguments.end(),
                    [&](const Port& p) { return p.path == weight.path; }))
      absl::StrAppend(&out, out.empty() ? ", of " : ", ", e.entry);
  return out;
}

std::string List(const CompiledModel& m) {
  std::string out;
  absl::flat_hash_set<std::string> listed;
  for (const CompiledModel* program : ProgramsOf(m))
    for (size_t k = 0; k < program->ports.arguments.size(); ++k) {
      const Port& p = program->ports.arguments[k];
      if (!p.weight || (!m.entries.empty() && !listed.insert(p.path).second)) continue;
      absl::StrAppend(&out, "//   ", p.name, PathText(p), " ", PortText(*program, false, k), TakersOf(p, m), "\n");
    }
  return out;
}

}  // namespace

std::string WeightsDeclarations(const CompiledModel& m) {
  if (!HasWeights(m)) return "";
  std::string out = kFunctions;
  out.replace(out.find("$WEIGHTLIST\n"), sizeof "$WEIGHTLIST\n" - 1, List(m));
  return absl::StrCat(kTypes, out);
}

std::string WeightsRunDeclarations(const CompiledModel& m) { return HasWeights(m) && m.on_cpu ? kRun : ""; }

std::string WeightsClass(const CompiledModel& m) { return HasWeights(m) ? kClass : ""; }

std::string WeightsRuns(const CompiledModel& m) {
  if (!HasWeights(m) || !m.on_cpu) return "";
  const auto inputs =
      NestPorts(m.ports.arguments, [&](size_t k) { return m.ports.arguments[k].weight ? "" : CppPort(m, false, k); });
  std::string passed;
  for (const std::string& e : inputs.expressions)
    if (!e.empty()) absl::StrAppend(&passed, ",\n               inputs.", e);
  const bool any_inputs = !passed.empty();
  const std::string outputs = NestedResults(m);
  return absl::StrCat(
      "  static Status run(const Context& context$BATCHTAKEN, const Weights& weights",
      ArrayParameters(m, Taken::kNoWeights), ") {\n", FitChecks(m, Taken::kNoWeights),
      "    if (!weights.ok()) return weights.status();\n", PointerTables(m, DataOf, Taken::kNoWeights),
      "    return {$NAME_run_weights($BATCHDOCweights.get(), arguments, results, context.arena(), "
      "$CTXSLOWcontext.pool()$CTXCOMM)};\n  }\n",
      "  // The arguments that are no weights, as the program nests them.\n  struct Inputs {\n", inputs.members,
      "  };\n  static Status run(const Context& context$BATCHTAKEN, const Weights& weights, const Inputs&",
      any_inputs ? " inputs" : "", ", const Results&", outputs.empty() ? "" : " results",
      ") {\n    return run(context$BATCHGIVEN, weights", passed, outputs, ");\n  }\n");
}

}  // namespace kiln
