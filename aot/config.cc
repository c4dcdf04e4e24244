// The only reader of config.proto.
#include <algorithm>
#include <functional>
#include <limits>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "aot/compile.h"
#include "aot/config.pb.h"
#include "aot/text_proto.h"
#include "aot/tuning/results.h"
#include "codegen/llvm/ir.h"
#include "compiler/base/text.h"
#include "compiler/pipeline/registry.h"
#include "compiler/target/gpu_target.h"

namespace kiln {
namespace {

struct LimitField {
  const char* name;
  int64_t Limits::*limit;
  int64_t (config::Limits::*stated)() const;
  int64_t most;
};

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
// What recursion passes through has a bound of its own.
constexpr LimitField kLimitFields[] = {
    {"elements", &Limits::elements, &config::Limits::elements, int64_t{1} << 56},
    {"instructions", &Limits::instructions, &config::Limits::instructions, kAny},
    {"inlined_instructions", &Limits::inlined_instructions, &config::Limits::inlined_instructions, kAny},
    {"call_depth", &Limits::call_depth, &config::Limits::call_depth, 16384},
    {"nesting", &Limits::nesting, &config::Limits::nesting, 2048},
    {"interface_arrays", &Limits::interface_arrays, &config::Limits::interface_arrays, kAny},
    {"devices", &Limits::devices, &config::Limits::devices, 1 << 20},
    {"fft_length", &Limits::fft_length, &config::Limits::fft_length, int64_t{1} << 30},
};

struct Tuning {
  std::vector<std::string> results;
  std::string denylist;
};

absl::Status ApplyXlaFlags(const std::string& flags, const std::string& place, CompileOptions* o, Tuning* tuning) {
  for (absl::string_view f : absl::StrSplit(flags, absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
    const std::vector<std::string> kv = absl::StrSplit(f, absl::MaxSplits('=', 1));
    const std::string value = kv.size() > 1 ? kv[1] : "";
    if (kv[0] == "--xla_disable_hlo_passes") {
      for (absl::string_view p : absl::StrSplit(value, ',', absl::SkipEmpty())) o->pipeline.disabled.emplace_back(p);
    } else if (kv[0] == "--xla_dump_to") {
      o->pipeline.dump_dir = value;
    } else if (kv[0] == "--xla_dump_hlo_pass_re") {
      o->pipeline.dump_pass_re = value;
    } else if (kv[0] == "--xla_gpu_autotune_level") {
      if (!absl::SimpleAtoi(value, &o->gpu.tuning.level))
        return InvalidArgument(place, ": error: --xla_gpu_autotune_level takes a number, not '", value, "'");
    } else if (kv[0] == "--xla_gpu_deterministic_ops") {
      o->gpu.deterministic = value != "false" && value != "0";
    } else if (kv[0] == "--xla_gpu_load_autotune_results_from") {
      tuning->results.push_back(value);
    } else if (kv[0] == "--xla_gpu_algorithm_denylist_path") {
      tuning->denylist = value;
    } else if (kv[0] == "--xla_gpu_require_complete_aot_autotune_results") {
      o->gpu.tuning.strict = value != "false" && value != "0";
    } else if (kv[0] == "--xla_cpu_max_isa") {
      if (value == "AVX2")
        o->cpu.levels = {"v3"};
      else if (value == "AVX512")
        o->cpu.levels = {"v4"};
      else if (value == "SSE4_2")
        o->cpu.levels = {"v2"};
      else
        return InvalidArgument(place, ": error: --xla_cpu_max_isa takes SSE4_2, AVX2 or AVX512, not '", value, "'");
    } else if (kv[0] == "--xla_allow_excess_precision") {
      // True admits excess precision and does not ask for it: what the config says stands.
      if (value == "false" || value == "0") o->model.round_every_operation = true;
    } else if (kv[0] == "--xla_cpu_enable_fast_math") {
      if (value != "false" && value != "0")
        return InvalidArgument(
            place, ": error: --xla_cpu_enable_fast_math: kiln's arithmetic is strict; only false is accepted");
    } else {
      return InvalidArgument(place, ": error: xla_flags: '", kv[0], "' has no meaning here");
    }
  }
  return absl::OkStatus();
}

Algebra AlgebraOf(config::Numerics::Algebra a) {
  switch (a) {
    case config::Numerics::EXACT:
      return Algebra::kExact;
    case config::Numerics::FAST:
      return Algebra::kFast;
    default:
      return Algebra::kXla;  // what nobody stated, too
  }
}

bool IsRegularExpression(const std::string& text) {
  try {
    std::regex(text, std::regex::ECMAScript);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

using Places = std::function<std::string(absl::string_view field, int element)>;

absl::Status ReadWeights(const config::Weights& w, const Places& at, CompileOptions* o) {
  o->model.weight_arguments.assign(w.arguments().begin(), w.arguments().end());
  for (size_t k = 0; k < o->model.weight_arguments.size(); ++k)
    if (!IsRegularExpression(o->model.weight_arguments[k]))
      return InvalidArgument(at("weights.arguments", static_cast<int>(k)), ": error: '", o->model.weight_arguments[k],
                             "' is not a regular expression");
  o->model.weight_constant_bytes = w.constants_from_bytes();
  if (o->model.weight_constant_bytes < 0)
    return InvalidArgument(at("weights.constants_from_bytes", -1), ": error: constants_from_bytes is negative");
  return absl::OkStatus();
}

absl::Status ReadCollectives(const config::Collectives& c, const Places& at, CompileOptions* o) {
  struct Field {
    const char* name;
    bool stated;
    int64_t value;
    int64_t* to;
  };
  CombinedExchanges& e = o->pipeline.combined;
  int64_t count = e.all_reduce.count;
  const Field fields[] = {
      {"combine_all_reduce_bytes", c.has_combine_all_reduce_bytes(), c.combine_all_reduce_bytes(), &e.all_reduce.bytes},
      {"combine_all_gather_bytes", c.has_combine_all_gather_bytes(), c.combine_all_gather_bytes(), &e.all_gather.bytes},
      {"combine_reduce_scatter_bytes", c.has_combine_reduce_scatter_bytes(), c.combine_reduce_scatter_bytes(),
       &e.reduce_scatter.bytes},
      {"combine_collective_permute_bytes", c.has_combine_collective_permute_bytes(),
       c.combine_collective_permute_bytes(), &e.permute.bytes},
      {"combine_arrays", c.has_combine_arrays(), c.combine_arrays(), &count},
      {"overlap_arena_percent", c.has_overlap_arena_percent(), c.overlap_arena_percent(),
       &o->model.overlap_arena_percent},
  };
  for (const Field& f : fields) {
    if (!f.stated) continue;
    if (f.value < 0)
      return InvalidArgument(at(absl::StrCat("collectives.", f.name), -1), ": error: ", f.name, " is negative");
    *f.to = f.value;
  }
  for (CombineLimits* l : {&e.all_reduce, &e.all_gather, &e.reduce_scatter, &e.permute}) l->count = count;
  return absl::OkStatus();
}

LineTables LineTablesOf(config::Debug::LineTables t) {
  switch (t) {
    case config::Debug::HLO:
      return LineTables::kHlo;
    case config::Debug::SOURCE:
      return LineTables::kSource;
    default:
      return LineTables::kNone;
  }
}

absl::Status ReadDebugOptions(const config::Debug& d, const Places& at, CompileOptions* o) {
  const std::string& sanitize = d.sanitize();
  if (!sanitize.empty() && sanitize != "address" && sanitize != "thread")
    return InvalidArgument(at("debug.sanitize", -1), ": error: sanitize is 'address' or 'thread', not '", sanitize,
                           "'");
  o->debug.sanitizer = sanitize == "address"  ? Sanitizer::kAddress
                       : sanitize == "thread" ? Sanitizer::kThread
                                              : Sanitizer::kNone;
  o->debug.symbols = d.symbols();
  o->debug.line_tables = LineTablesOf(d.line_tables());
  o->debug.line_directory = d.line_directory();
  o->debug.profile = d.profile();
  o->debug.check_numerics = d.check_numerics();
  o->debug.bounds_check = d.bounds_check();
  if (d.has_large_weights_bytes()) o->model.large_weights_bytes = d.large_weights_bytes();
  if (o->debug.NamesOps() && o->cpu.levels.empty())
    return InvalidArgument(at("debug", -1),
                           ": error: symbols, line_tables, profile and check_numerics are of a CPU program, and the "
                           "config asks for none");
  return absl::OkStatus();
}

// numerics.winograd: a pass that runs besides.
absl::Status ReadWinograd(const config::Config& c, const Places& at, CompileOptions* o) {
  if (!c.numerics().winograd()) return absl::OkStatus();
  const std::string place = at("numerics.winograd", -1);
  if (o->cpu.levels.empty())
    return InvalidArgument(place, ": error: winograd is of a CPU program, and the config asks for none");
  if (o->pipeline.algebra == Algebra::kExact)
    return InvalidArgument(place, ": error: winograd changes rounding, which algebra: EXACT forbids");
  PipelineChange change;
  change.place = place;
  change.pipeline = "cpu";
  change.name = "winograd-convolution";
  change.after = "convolution-to-dot";
  o->pass_changes.push_back(std::move(change));
  return absl::OkStatus();
}

absl::Status ReadPassChanges(const config::Config& c, const Places& at, CompileOptions* o) {
  using Kind = PipelineChange::Kind;
  for (int k = 0; k < c.passes_size(); ++k) {
    const config::PassChange& p = c.passes(k);
    const auto refused = [&](const auto&... words) { return InvalidArgument(at("passes", k), ": error: ", words...); };
    PipelineChange change;
    change.place = at("passes", k);
    change.kind = p.has_enable() ? Kind::kEnable : p.has_repeat() ? Kind::kRepeat : Kind::kReplace;
    change.name = p.has_enable() ? p.enable() : p.has_repeat() ? p.repeat() : p.replace();
    if (change.name.empty()) return refused("a change of passes is enable, repeat or replace");
    change.pipeline = p.pipeline();
    if (!change.pipeline.empty()) RETURN_IF_ERROR(PipelineNamed(change.pipeline).status());
    change.before = p.before();
    change.after = p.after();
    change.stage = p.stage();
    change.rounds = p.rounds();
    change.with.assign(p.with().begin(), p.with().end());
    if (!p.has_enable() && (!p.before().empty() || !p.after().empty()))
      return refused("before and after are of enable");
    if (!p.has_repeat() && p.rounds() != 0) return refused("rounds is of repeat");
    if (!p.has_replace() && p.with_size() > 0) return refused("with is of replace");
    o->pass_changes.push_back(std::move(change));
  }
  std::vector<Pipeline> pipelines;
  if (!o->cpu.levels.empty()) pipelines.push_back(CpuPipeline());
  if (!o->gpu.targets.empty()) pipelines.push_back(GpuPipeline(PipelineOf(o->gpu)));
  return CheckChanges(pipelines, o->pass_changes);
}

absl::Status CheckPassNames(const config::Config& c, const Places& at, const CompileOptions& o) {
  const auto stated = static_cast<size_t>(c.debug().disable_passes_size());
  for (size_t k = 0; k < o.pipeline.disabled.size(); ++k)
    if (const std::string& name = o.pipeline.disabled[k]; !FindPass(name))
      return InvalidArgument(k < stated ? at("debug.disable_passes", static_cast<int>(k)) : at("xla_flags", -1),
                             ": error: no pass is named '", name, "'", SuggestedPass(name));
  const std::string& last = o.pipeline.stop_after;
  if (!last.empty() && !FindPass(last))
    return InvalidArgument(at("debug.stop_after", -1), ": error: no pass is named '", last, "'", SuggestedPass(last));
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> PassChanges(const CompileOptions& o) {
  std::vector<std::string> out;
  for (const std::string& pass : o.pipeline.disabled) out.push_back(absl::StrCat("disables ", pass));
  for (const PipelineChange& c : o.pass_changes) out.push_back(Describe(c));
  return out;
}

absl::StatusOr<CompileOptions> ParseConfig(absl::string_view text, const std::string& file) {
  FieldPlaces places(file);
  ASSIGN_OR_RETURN(const config::Config c, ParseTextProto<config::Config>(text, file, "kiln.config.Config", &places));
  const auto at = [&](absl::string_view field, int element = -1) {
    return places.Of(config::Config::descriptor(), field, element);
  };
  CompileOptions o;
  o.config_text = c.ShortDebugString();
  o.model.argument_names.assign(c.argument_names().begin(), c.argument_names().end());
  o.model.result_names.assign(c.result_names().begin(), c.result_names().end());
  for (const auto& [names, field] :
       {std::pair{&o.model.argument_names, "argument_names"}, {&o.model.result_names, "result_names"}})
    for (size_t k = 0; k < names->size(); ++k)
      if (const std::string& n = (*names)[k]; CIdentifier(n) != n)
        return InvalidArgument(at(field, static_cast<int>(k)), ": error: '", n, "' is not a C identifier");
  o.model.entries.assign(c.entries().begin(), c.entries().end());
  if (c.cpu_levels_size()) o.cpu.levels.assign(c.cpu_levels().begin(), c.cpu_levels().end());
  o.gpu.targets.assign(c.gpu().targets().begin(), c.gpu().targets().end());
  if (!o.gpu.targets.empty() && !c.cpu_levels_size()) o.cpu.levels.clear();
  for (size_t k = 0; k < o.gpu.targets.size(); ++k)
    if (auto target = FindGpuTarget(o.gpu.targets[k]); !target.ok())
      return InvalidArgument(at("gpu.targets", static_cast<int>(k)), ": ", target.status().message());
  o.gpu.ptxas = c.gpu().ptxas();
  o.gpu.libraries = !c.gpu().no_libraries();
  if (c.gpu().has_fallback_kernels()) o.gpu.fallback_kernels = c.gpu().fallback_kernels();
  Tuning tuning{{c.gpu().tuning_results().begin(), c.gpu().tuning_results().end()}, c.gpu().tuning_denylist()};
  tuning.results.insert(tuning.results.end(), c.tuning_results().begin(), c.tuning_results().end());
  if (c.gpu().has_tuning_level()) o.gpu.tuning.level = c.gpu().tuning_level();
  o.gpu.tuning.strict = c.gpu().strict_tuning();
  o.gpu.deterministic = c.gpu().deterministic();
  o.gpu.tf32 = c.gpu().tf32();
  if (c.gpu().transport() == config::Gpu::HOST) o.gpu.transport = GpuOptions::Transport::kHost;
  if (c.max_arena_bytes() < 0) return InvalidArgument(at("max_arena_bytes"), ": error: max_arena_bytes is negative");
  o.model.max_arena_bytes = c.max_arena_bytes();
  if (c.slow_arena_bytes() < 0) return InvalidArgument(at("slow_arena_bytes"), ": error: slow_arena_bytes is negative");
  if (c.slow_arena_bytes() > 0 && c.max_arena_bytes() == 0)
    return InvalidArgument(at("slow_arena_bytes"),
                           ": error: slow_arena_bytes without max_arena_bytes: nothing would be sent there");
  o.model.slow_arena_bytes = c.slow_arena_bytes();
  if (c.keep_schedule() && c.max_arena_bytes() > 0)
    return InvalidArgument(
        at("keep_schedule"),
        ": error: keep_schedule and max_arena_bytes, which looks for an order, contradict each other");
  o.model.keep_schedule = c.keep_schedule();
  RETURN_IF_ERROR(ReadWeights(c.weights(), at, &o));
  if (c.threads() < 0) return InvalidArgument(at("threads"), ": error: threads is negative");
  o.cpu.threads = c.threads();
  if (c.device_timeout_ms() < 0)
    return InvalidArgument(at("device_timeout_ms"), ": error: device_timeout_ms is negative");
  if (c.has_device_timeout_ms()) o.model.device_timeout_ms = c.device_timeout_ms();
  o.model.batch_sizes.assign(c.batch_sizes().begin(), c.batch_sizes().end());
  std::sort(o.model.batch_sizes.begin(), o.model.batch_sizes.end());
  for (size_t k = 0; k < o.model.batch_sizes.size(); ++k) {
    const auto stated = std::find(c.batch_sizes().begin(), c.batch_sizes().end(), o.model.batch_sizes[k]);
    const std::string place = at("batch_sizes", static_cast<int>(stated - c.batch_sizes().begin()));
    if (o.model.batch_sizes[k] < 1) return InvalidArgument(place, ": error: batch size ", o.model.batch_sizes[k]);
    if (k && o.model.batch_sizes[k] == o.model.batch_sizes[k - 1])
      return InvalidArgument(place, ": error: batch size ", o.model.batch_sizes[k], " twice");
  }
  if (o.model.batch_sizes.size() > 64)
    return InvalidArgument(at("batch_sizes", 64), ": error: more than 64 batch sizes");
  for (const LimitField& f : kLimitFields) {
    const int64_t n = (c.limits().*f.stated)();
    if (n < 0 || n > f.most)
      return InvalidArgument(at(absl::StrCat("limits.", f.name)), ": error: ", f.name, " is ", n, ", not 1 to ",
                             f.most);
    if (n > 0) o.limits.*f.limit = n;
  }
  o.cpu.flush_subnormals = !c.keep_subnormals();
  o.pipeline.algebra = AlgebraOf(c.numerics().algebra());
  o.model.round_every_operation = c.numerics().round_every_operation();
  o.cpu.sum_f16_in_f32 = c.numerics().sum_f16_in_f32();
  if (c.folding_steps() < 0) return InvalidArgument(at("folding_steps"), ": error: folding_steps is negative");
  if (c.has_folding_steps()) o.pipeline.folding_steps = c.folding_steps();
  o.cpu.external_lapack = c.lapack();
  RETURN_IF_ERROR(ReadCollectives(c.collectives(), at, &o));
  RETURN_IF_ERROR(ReadDebugOptions(c.debug(), at, &o));
  o.pipeline.dump_dir = c.debug().dump_dir();
  o.pipeline.dump_pass_re = c.debug().dump_pass_re();
  o.pipeline.verify_each = c.debug().verify_each();
  o.pipeline.fuel = c.debug().fuel() > 0 ? c.debug().fuel() : -1;
  o.pipeline.stop_after = c.debug().stop_after();
  o.pipeline.disabled.assign(c.debug().disable_passes().begin(), c.debug().disable_passes().end());
  if (!c.xla_flags().empty() && c.cpu_levels_size() && absl::StrContains(c.xla_flags(), "--xla_cpu_max_isa"))
    return InvalidArgument(at("xla_flags"), ": error: cpu_levels and --xla_cpu_max_isa contradict each other");
  RETURN_IF_ERROR(ApplyXlaFlags(c.xla_flags(), at("xla_flags"), &o, &tuning));
  if (o.gpu.tuning.level < 0 || o.gpu.tuning.level > 4)
    return InvalidArgument(at("gpu.tuning_level"), ": error: the tuning level is 0 to 4, not ", o.gpu.tuning.level);
  if (o.gpu.tuning.strict && o.gpu.tuning.level == 0)
    return InvalidArgument(at("gpu.strict_tuning"), ": error: strict tuning and tuning level 0 contradict each other");
  ASSIGN_OR_RETURN(o.gpu.tuning.results,
                   LoadTuning(tuning.results, tuning.denylist, nullptr, &o.gpu.tuning.algorithms, &o.gpu.tuning.texts));
  for (size_t k = 0; k < o.cpu.levels.size(); ++k)
    if (auto level = FindCpuLevel(o.cpu.levels[k]); !level.ok())
      return InvalidArgument(at("cpu_levels", static_cast<int>(k)), ": ", level.status().message());
  RETURN_IF_ERROR(CheckPassNames(c, at, o));
  RETURN_IF_ERROR(ReadWinograd(c, at, &o));
  RETURN_IF_ERROR(ReadPassChanges(c, at, &o));
  return o;
}

}  // namespace kiln
