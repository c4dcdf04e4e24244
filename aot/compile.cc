#include "aot/compile.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "absl/strings/str_join.h"
#include "aot/code_generation.h"
#include "aot/gpu_code_generation.h"
#include "aot/package/fingerprint.h"
#include "aot/package/header.h"
#include "aot/package/manifest.h"
#include "aot/package/names.h"
#include "aot/planning.h"
#include "codegen/host/program_object.h"
#include "codegen/llvm/object.h"
#include "codegen/llvm/runtime_object.h"
#include "compiler/base/text.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/target/gpu_target.h"
#include "runtime_min/abi.h"

namespace kiln {
namespace {

constexpr int64_t kConstantAlignment = 64;

// One program of the library, planned: everything that code generation needs.
struct Planned {
  std::string suffix;  // of its names; empty unless there are batch sizes
  PlannedProgram program;
  std::vector<int64_t> offsets;  // of its constants in the library's weights
  std::vector<Port> arguments, results;
};

// Named as the config has it, as the program has it, or by number.
absl::StatusOr<std::vector<Port>> MakePorts(const std::vector<Shape>& shapes, const std::vector<std::string>& wanted,
                                            const std::vector<std::string>& own, const char* stem) {
  if (!wanted.empty() && wanted.size() != shapes.size())
    return InvalidArgument("error: the config names ", wanted.size(), " ", stem, "s, the module has ", shapes.size());
  std::vector<std::string> names = wanted;
  for (size_t k = names.size(); k < shapes.size(); ++k)
    names.push_back(k < own.size() && !own[k].empty() ? own[k] : absl::StrCat(stem, k));
  ASSIGN_OR_RETURN(names, NamePorts(names, !wanted.empty(), stem));
  std::vector<Port> ports;
  for (size_t k = 0; k < shapes.size(); ++k) ports.push_back({names[k], shapes[k]});
  return ports;
}

// The arrays: tokens have no storage and no place in the interface.
std::vector<Shape> Leaves(const std::vector<Shape>& shapes) {
  std::vector<Shape> out;
  for (const Shape& s : shapes)
    ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) {
      if (leaf.IsArray()) out.push_back(leaf);
    });
  return out;
}

int64_t LeafNumber(const Shape& tuple, const ShapeIndex& index) {
  int64_t n = 0, found = -1;
  ForEachLeaf(tuple, [&](const ShapeIndex& idx, const Shape& leaf) {
    if (idx == index) found = n;
    n += leaf.IsArray();
  });
  return found;
}

// The functions that the host program must provide, by target.
absl::Status CollectCustomCalls(const ThunkSequence& thunks, const std::string& library,
                                std::vector<CustomCallSignature>* out) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) RETURN_IF_ERROR(CollectCustomCalls(n, library, out));
    if (t.kind != ThunkKind::CustomCall) continue;
    ASSIGN_OR_RETURN(CustomCallSignature s, SignatureOf(t.instruction));
    if (const std::string why = WhyNotATarget(s.target, library); !why.empty())
      return ErrorAt(t.instruction, absl::StrCat("calls '", s.target, "', which is ", why));
    auto known = std::find_if(out->begin(), out->end(), [&](const auto& k) { return k.target == s.target; });
    if (known == out->end())
      out->push_back(std::move(s));
    else if (!SamePrototype(*known, s))
      return ErrorAt(t.instruction, absl::StrCat("calls '", s.target,
                                                 "' with another convention, or attributes of "
                                                 "other names or types, than an earlier call"));
  }
  return absl::OkStatus();
}

bool HasProducts(const ThunkSequence& thunks) {
  for (const Thunk& t : thunks) {
    if (t.kind == ThunkKind::LibraryCall && IsGemmCall(t.instruction)) return true;
    for (const ThunkSequence& n : t.nested)
      if (HasProducts(n)) return true;
  }
  return false;
}

// The constants of all programs, each value once, in order of use. Their bytes stay where they are.
class Weights {
 public:
  int64_t Add(const Literal& l) {
    const absl::string_view bytes(reinterpret_cast<const char*>(l.data()), static_cast<size_t>(l.byte_size()));
    const uint64_t hash = StableHash(bytes);
    auto& same = by_hash_[hash];
    for (size_t k : same)
      if (pieces_[k].bytes == bytes) return static_cast<int64_t>(pieces_[k].offset);
    const size_t offset = (size_ + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
    same.push_back(pieces_.size());
    pieces_.push_back({offset, bytes});
    literals_.push_back(l);
    size_ = offset + bytes.size();
    hash_ = StableHash(absl::string_view(reinterpret_cast<const char*>(&hash), sizeof hash), hash_);
    return static_cast<int64_t>(offset);
  }
  const std::vector<DataPiece>& pieces() const { return pieces_; }
  size_t size() const { return size_; }
  uint64_t hash() const { return hash_; }

 private:
  std::vector<DataPiece> pieces_;
  std::vector<Literal> literals_;  // that hold the bytes
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_hash_;
  size_t size_ = 0;
  uint64_t hash_ = StableHash("");
};

// What the code assumes of each array: its elements' alignment and, of a result whose memory serves as arena before,
// that of what lies there.
void Align(const BufferAssignment& buffers, std::vector<Port>* arguments, std::vector<Port>* results) {
  constexpr int64_t kScratchAlignment = 16;
  for (auto* ports : {arguments, results})
    for (Port& p : *ports) p.alignment = ByteWidth(ComponentType(p.shape.type()));
  for (const Allocation& a : buffers.temps()) {
    if (a.slice.kind != Slice::kResult) continue;
    int64_t& alignment = (*results)[a.slice.index].alignment;
    if (a.index == ShapeIndex{BufferAssignment::kScratchIndex}) {
      alignment = std::max(alignment, kScratchAlignment);
      continue;
    }
    const Shape* leaf = &a.value->shape();
    for (int64_t k : a.index) leaf = &leaf->tuple()[k];
    alignment = std::max<int64_t>(alignment, ByteWidth(ComponentType(leaf->type())));
  }
}

// Names and extents of what goes in and comes out, and which argument holds which result. The first `stated` of the
// module's dimension arguments have one value, the others are sizes within a bound.
absl::Status DescribePorts(const Module& module, const CompileOptions& o, size_t stated, std::vector<Port>* arguments,
                           std::vector<Port>* results) {
  const Computation* entry = module.entry();
  std::vector<Shape> params;
  for (const Instruction* p : entry->parameters()) params.push_back(p->shape());
  const std::vector<Shape> argument_shapes = Leaves(params), result_shapes = Leaves({entry->root()->shape()});
  std::vector<std::string> own = module.argument_names;
  if (own.empty())
    for (const Instruction* p : entry->parameters()) own.push_back(p->name());
  if (own.size() != argument_shapes.size()) own.clear();
  ASSIGN_OR_RETURN(*arguments, MakePorts(argument_shapes, o.argument_names, own, "argument"));
  ASSIGN_OR_RETURN(*results, MakePorts(result_shapes, o.result_names, {}, "result"));
  for (const AliasEntry& a : module.aliases) {
    int64_t base = 0;
    for (int64_t p = 0; p < a.parameter; ++p) base += static_cast<int64_t>(Leaves({params[p]}).size());
    const int64_t arg = base + LeafNumber(params[a.parameter], a.parameter_index),
                  res = LeafNumber(entry->root()->shape(), a.output);
    (*arguments)[arg].alias = res;
    (*results)[res].alias = arg;
  }
  for (size_t k = 0; k < module.dimension_arguments.size(); ++k) {
    const auto& [parameter, value] = module.dimension_arguments[k];
    Port& p = (*arguments)[Leaves({params.begin(), params.begin() + static_cast<ptrdiff_t>(parameter)}).size()];
    p.low = k < stated ? value : 0;
    p.high = value;
  }
  return absl::OkStatus();
}

// Plans one program and adds its figures to the model's.
absl::StatusOr<Planned> Plan(std::unique_ptr<Module> module, const std::string& suffix, const CompileOptions& o,
                             ProgramTarget target, const std::function<void(const std::string&)>& say, Weights* weights,
                             CompiledModel* out) {
  const size_t stated = module->dimension_arguments.size();
  ASSIGN_OR_RETURN(PlannedProgram p, PlanProgram(std::move(module), out->name + suffix, o, target, say));
  const BufferAssignment& buffers = p.plan.buffers;
  out->flops += p.cost.flops;
  out->bytes_accessed += p.cost.bytes_accessed;
  out->temp_bytes = std::max(out->temp_bytes, buffers.temp_bytes());
  out->slow_bytes = std::max(out->slow_bytes, buffers.slow_bytes());
  out->thunks += CountThunks(p.thunks);
  out->devices = p.module->replica_count * p.module->partition_count;
  out->communicates = out->devices > 1 || Communicates(p.thunks);
  RETURN_IF_ERROR(CollectCustomCalls(p.thunks, out->name, &out->custom_calls));
  for (const auto& c : p.module->computations())
    for (const auto& i : c->instructions()) out->fusions += i->Is(Opcode::Fusion);
  out->passes.insert(out->passes.end(), p.passes.begin(), p.passes.end());
  out->rematerialized.insert(out->rematerialized.end(), p.rematerialized.begin(), p.rematerialized.end());
  std::vector<int64_t> offsets;
  for (const Instruction* c : buffers.constants()) offsets.push_back(weights->Add(c->literal()));
  std::vector<Port> arguments, results;
  RETURN_IF_ERROR(DescribePorts(*p.module, o, stated, &arguments, &results));
  Align(buffers, &arguments, &results);
  return Planned{suffix, std::move(p), std::move(offsets), std::move(arguments), std::move(results)};
}

// What has no measured algorithm on one of the targets.
absl::Status ReportUntuned(const Module& m, const std::vector<GpuTarget>& targets, const CompileOptions& o,
                           CompiledModel* out) {
  if (o.tuning_level == 0) return absl::OkStatus();
  const std::vector<Instruction*> tunables = Tunables(m);
  for (const GpuTarget& t : targets) {
    int64_t untuned = 0;
    for (const Instruction* i : tunables) {
      if (ChosenAlgorithm(i, t.name) >= 0) continue;
      if (o.strict_tuning)
        return ErrorAt(i, absl::StrCat("has no tuning result for ", t.name,
                                       ", and strict_tuning asks for one (kiln tune "
                                       "measures it; its key is ",
                                       TuningKey(i), ")"));
      ++untuned;
      out->untuned.push_back({t.name, i->name(), TuningKey(i), TuningText(i)});
    }
    if (untuned > 0)
      out->notes.push_back(absl::StrCat(untuned, " of ", tunables.size(),
                                        " products and convolutions have no tuning "
                                        "result for ",
                                        t.name,
                                        ": heuristics choose (the manifest lists them; kiln tune "
                                        "measures them)"));
  }
  return absl::OkStatus();
}

CallChecks ChecksOf(const Planned& p, const CompileOptions& o, const CompiledModel& m) {
  CallChecks out;
  int64_t written = 2;  // the arenas
  const auto list = [&](const std::vector<Port>& ports, const std::vector<Port>& stated, bool results) {
    std::vector<CallChecks::Port> checks;
    for (size_t k = 0; k < ports.size(); ++k) {
      const Port& port = ports[k];
      written += results == (port.alias < 0);
      checks.push_back({port.shape.ByteSize(), stated[k].alignment, port.alias, port.low, port.high});
    }
    return checks;
  };
  out.arguments = list(p.arguments, m.arguments, false);
  out.results = list(p.results, m.results, true);
  out.arena_bytes = p.program.plan.buffers.temp_bytes();
  out.slow_arena_bytes = p.program.plan.buffers.slow_bytes();
  out.devices = m.communicates ? m.devices : 0;
  out.flush_subnormals = o.flush_subnormals;
  constexpr int64_t kMostPairs = 2048;  // a few microseconds
  out.overlap = written * static_cast<int64_t>(p.arguments.size() + p.results.size() + 2) <= kMostPairs;
  return out;
}

int64_t PortBytes(const std::vector<Port>& ports) {
  int64_t n = 0;
  for (const Port& p : ports) n += p.shape.ByteSize();
  return n;
}

}  // namespace

std::string SymbolOf(const CompiledModel& m, absl::string_view function) {
  return absl::StrCat(m.symbols, "_", function);
}

absl::StatusOr<CompiledModel> Compile(std::unique_ptr<Module> module, const CompileOptions& o,
                                      const std::function<void(const std::string&)>& progress) {
  std::vector<BatchVariant> one;
  one.push_back({0, std::move(module)});
  return Compile(std::move(one), o, progress);
}

absl::StatusOr<CompiledModel> Compile(std::vector<BatchVariant> variants, const CompileOptions& o,
                                      const std::function<void(const std::string&)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  const auto say = [&](const std::string& s) {
    if (progress) progress(s);
  };
  CompiledModel out;
  out.name = CIdentifier(o.name);
  out.threads = o.threads;
  out.flush_subnormals = o.flush_subnormals;
  const bool emulated = o.emulation != CompileOptions::Emulation::kNone;
  const bool on_cpu = !o.cpu_levels.empty() && !emulated, on_gpu = !o.gpu_targets.empty() || emulated;
  if (!on_cpu && !on_gpu) return InvalidArgument("error: the config names no target");
  out.on_cpu = on_cpu;
  std::vector<Planned> programs, gpu_programs;
  Weights weights;
  std::vector<int64_t> batches;
  for (BatchVariant& v : variants) {
    const std::string suffix = v.batch ? absl::StrCat("_b", v.batch) : "";
    int64_t temp_bytes = 0;
    if (on_gpu) {
      ASSIGN_OR_RETURN(Planned p, Plan(on_cpu ? v.module->Clone() : std::move(v.module), suffix, o, ProgramTarget::kGpu,
                                       say, &weights, &out));
      std::tie(out.arguments, out.results) = std::pair(p.arguments, p.results);
      out.gpu_temp_bytes = std::max(out.gpu_temp_bytes, p.program.plan.buffers.temp_bytes());
      temp_bytes = p.program.plan.buffers.temp_bytes();
      gpu_programs.push_back(std::move(p));
    }
    if (on_cpu) {
      ASSIGN_OR_RETURN(Planned p, Plan(std::move(v.module), suffix, o, ProgramTarget::kCpu, say, &weights, &out));
      std::tie(out.arguments, out.results) = std::pair(p.arguments, p.results);
      temp_bytes = p.program.plan.buffers.temp_bytes();
      programs.push_back(std::move(p));
    }
    if (v.batch) {
      batches.push_back(v.batch);
      out.batches.push_back({v.batch, out.arguments, out.results, temp_bytes});
    }
  }
  for (size_t k = 1; k < out.batches.size(); ++k) {
    bool differ = false;
    for (size_t a = 0; a < out.arguments.size(); ++a)
      differ = differ || out.batches[k].arguments[a].shape != out.batches[0].arguments[a].shape;
    if (!differ)
      return InvalidArgument(
          "error: batch_sizes: the program has no unbounded dimension that a batch size could settle");
  }
  std::sort(out.custom_calls.begin(), out.custom_calls.end(),
            [](const auto& a, const auto& b) { return a.target < b.target; });
  out.argument_bytes = PortBytes(out.arguments);
  out.output_bytes = PortBytes(out.results);
  out.constant_bytes = static_cast<int64_t>(weights.size());

  // One alignment for all variants, as the header states it.
  for (size_t k = 0; k < out.results.size(); ++k)
    for (const BatchPorts& b : out.batches)
      out.results[k].alignment = std::max(out.results[k].alignment, b.results[k].alignment);
  const bool large_weights = out.constant_bytes > o.large_weights_bytes;
  Fingerprint fingerprint(o, weights.hash());
  fingerprint.AddNumbers({large_weights});
  for (const auto* list : {&programs, &gpu_programs})
    for (const Planned& p : *list) {
      fingerprint.AddThunks(p.program.thunks);
      fingerprint.AddPorts(p.arguments);
      fingerprint.AddPorts(p.results);
      fingerprint.AddNumbers(p.offsets);
      fingerprint.AddNumbers({p.program.plan.buffers.temp_bytes(), p.program.plan.buffers.slow_bytes(),
                              p.program.module->replica_count, p.program.module->partition_count});
    }
  out.symbols = absl::StrCat(out.name, "_", fingerprint.Text());

  say("generating code");
  std::vector<CpuLevel> levels;
  std::vector<std::string> level_names;
  for (const std::string& l : o.cpu_levels) {
    ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel(l));
    if (std::find(level_names.begin(), level_names.end(), level.name) != level_names.end()) continue;
    level_names.push_back(level.name);
    levels.push_back(std::move(level));
  }
  const auto describe = [&](const Planned& p) {
    return ProgramToGenerate{out.symbols + p.suffix,
                             &p.program.thunks,
                             &p.offsets,
                             p.program.module->replica_count,
                             p.program.module->partition_count,
                             large_weights};
  };
  std::vector<std::pair<std::string, std::string>> members;
  if (on_cpu) {
    std::vector<ProgramToGenerate> to_generate;
    for (const Planned& p : programs) to_generate.push_back(describe(p));
    ASSIGN_OR_RETURN(GeneratedCode code, GenerateCode(out.symbols, to_generate, levels, o));
    out.code_bytes += code.code_bytes;
    out.kernels += code.kernels;
    members = std::move(code.members);
  }
  if (on_gpu && gpu_programs.size() != 1) return Unimplemented("error: batch_sizes: a GPU program has one size");
  if (emulated) {
    ASSIGN_OR_RETURN(GeneratedCode code, GenerateEmulatedCode(out.symbols, describe(gpu_programs[0]),
                                                              o.emulation == CompileOptions::Emulation::kChecked, o));
    out.kernels += code.kernels;
    members = std::move(code.members);
  } else if (on_gpu) {
    GpuPorts ports;
    for (const Port& p : out.arguments) ports.argument_bytes.push_back(p.shape.ByteSize());
    for (const Port& p : out.results) {
      ports.result_bytes.push_back(p.shape.ByteSize());
      ports.result_in_argument.push_back(p.alias);
    }
    ports.arena_bytes = gpu_programs[0].program.plan.buffers.temp_bytes();
    ports.weights_bytes = out.constant_bytes;
    ports.communicates = out.communicates;
    ports.exchange_bytes = LargestExchange(gpu_programs[0].program.thunks);
    std::vector<GpuTarget> targets;
    for (const std::string& name : o.gpu_targets) {
      ASSIGN_OR_RETURN(GpuTarget target, FindGpuTarget(name));
      const auto same = [&](const GpuTarget& t) { return t.name == target.name; };
      if (std::none_of(targets.begin(), targets.end(), same)) targets.push_back(std::move(target));
    }
    std::sort(targets.begin(), targets.end(), [](const GpuTarget& a, const GpuTarget& b) {
      return std::pair(a.major, a.minor) < std::pair(b.major, b.minor);
    });
    for (const GpuTarget& t : targets) out.gpu_targets.push_back(t.name);
    RETURN_IF_ERROR(ReportUntuned(*gpu_programs[0].program.module, targets, o, &out));
    ASSIGN_OR_RETURN(GeneratedCode code, GenerateGpuCode(out.symbols, describe(gpu_programs[0]), targets, ports, o,
                                                         [&](const std::string& s) { out.notes.push_back(s); }));
    out.code_bytes += code.code_bytes;
    out.kernels += code.kernels;
    for (auto& member : code.members) members.push_back(std::move(member));
  }
  for (const Planned& program : programs) {
    const std::string symbols = out.symbols + program.suffix, stem = out.name + program.suffix;
    for (const RuntimeMember& m : RuntimeMembers(RuntimeNeed::Calls)) {
      ASSIGN_OR_RETURN(std::string object, RuntimeObject(symbols, m.part, o.sanitizer));
      members.push_back({absl::StrCat(stem, "_", m.member, ".o"), std::move(object)});
    }
    std::vector<std::string> entries;  // as dispatch.c numbers the levels
    for (const char* level : {"v2", "v3", "v4", "amx"}) {
      const bool held = std::find(level_names.begin(), level_names.end(), level) != level_names.end();
      entries.push_back(held ? absl::StrCat(symbols, "_entry_", level) : "");
    }
    ASSIGN_OR_RETURN(std::string addresses, AddressObject(symbols + "_entries", entries));
    members.push_back({stem + "_entries.o", std::move(addresses)});
    members.push_back({stem + "_program.o", ProgramObject(symbols, ChecksOf(program, o, out))});
  }
  if (!batches.empty() && on_cpu) {
    ASSIGN_OR_RETURN(std::string object, BatchDispatchObject(out.symbols, batches, KILN_BATCH_SIZE));
    members.push_back({out.name + "_batches.o", std::move(object)});
  }
  unsigned needs = 0;
  if (o.threads != 1 && on_cpu) needs |= RuntimeNeed::Threads;
  if (on_gpu && !emulated) needs |= RuntimeNeed::Gpu;
  if (on_gpu && !emulated && HasProducts(gpu_programs[0].program.thunks)) needs |= RuntimeNeed::GpuLibraries;
  if (o.bounds_check) needs |= RuntimeNeed::BoundsCheck;
  if (out.communicates) needs |= RuntimeNeed::Devices;
  for (const RuntimeMember& m : RuntimeMembers(needs)) {
    ASSIGN_OR_RETURN(std::string object, RuntimeObject(out.symbols, m.part, o.sanitizer));
    members.push_back({absl::StrCat(out.name, "_", m.member, ".o"), std::move(object)});
  }
  if (out.communicates)
    members.push_back({out.name + "_device_timeout.o", DeviceTimeoutObject(out.symbols, o.device_timeout_ms)});
  bool has_constants = false;  // they may all be empty
  for (const auto* list : {&programs, &gpu_programs})
    for (const Planned& program : *list) has_constants = has_constants || !program.offsets.empty();
  if (has_constants) {
    const std::string symbol = SymbolOf(out, "weights");
    if (large_weights) {
      ASSIGN_OR_RETURN(std::string object, AddressObject(symbol + "_at", {symbol}));
      members.push_back({absl::StrCat(out.name, "_weights_at.o"), std::move(object)});
    }
    members.push_back({absl::StrCat(out.name, "_weights.o"), DataObject(symbol, weights.pieces(), large_weights)});
  }
  const uint64_t weights_hash = weights.hash();
  // The archive takes as much memory again: what was copied into its members goes first.
  programs.clear();
  gpu_programs.clear();
  weights = Weights();
  ASSIGN_OR_RETURN(out.archive, WriteArchive(members));
  out.c_header = CHeader(out);
  out.header = CppHeader(out);
  out.manifest = Manifest(out, o, level_names, weights_hash);
  out.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace kiln
