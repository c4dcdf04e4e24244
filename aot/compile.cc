#include "aot/compile.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_join.h"
#include "aot/package/header.h"
#include "aot/package/manifest.h"
#include "codegen/cpu/entry.h"
#include "codegen/llvm/object.h"
#include "compiler/analysis/cost.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/pipeline/registry.h"
#include "compiler/plan/buffer_assignment.h"
#include "compiler/plan/copy_insertion.h"
#include "compiler/thunk/thunk.h"

namespace kiln {
namespace {

constexpr int64_t kConstantAlignment = 64;

absl::StatusOr<std::vector<Port>> MakePorts(const std::vector<Shape>& shapes, const std::vector<std::string>& wanted,
                                            const std::vector<std::string>& own, const char* stem) {
  if (!wanted.empty() && wanted.size() != shapes.size())
    return InvalidArgument("error: the config names ", wanted.size(), " ", stem, "s, the module has ", shapes.size());
  std::vector<Port> ports;
  absl::flat_hash_set<std::string> used;
  for (size_t k = 0; k < shapes.size(); ++k) {
    Port p;
    p.shape = shapes[k];
    std::string name = !wanted.empty() ? wanted[k] : k < own.size() && !own[k].empty() ? own[k] : absl::StrCat(stem, k);
    p.name = CIdentifier(name);
    if (!used.insert(p.name).second) {
      if (!wanted.empty()) return InvalidArgument("error: two ", stem, "s are named '", p.name, "'");
      p.name = absl::StrCat(p.name, "_", k);
      used.insert(p.name);
    }
    ports.push_back(std::move(p));
  }
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
absl::Status CollectCustomCalls(const ThunkSequence& thunks, std::vector<CustomCallSignature>* out) {
  for (const Thunk& t : thunks) {
    for (const ThunkSequence& n : t.nested) RETURN_IF_ERROR(CollectCustomCalls(n, out));
    if (t.kind != ThunkKind::CustomCall) continue;
    ASSIGN_OR_RETURN(CustomCallSignature s, SignatureOf(t.instruction));
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

}  // namespace

absl::StatusOr<CompiledModel> Compile(std::unique_ptr<Module> module, const CompileOptions& o,
                                      const std::function<void(const std::string&)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto say = [&](const std::string& s) {
    if (progress) progress(s);
  };
  RETURN_IF_ERROR(SettleDeviceCounts(module.get()));
  CompiledModel out;
  out.name = CIdentifier(o.name);
  out.threads = o.threads;
  say("passes");
  RETURN_IF_ERROR(CpuPipeline().Run(*module, o.pipeline, &out.passes));
  RETURN_IF_ERROR(CheckFacts(*module, fact::Core | fact::LaidOut | fact::Fused));
  Computation* entry = module->entry();
  const Cost cost = CostOf(*module);
  out.flops = cost.flops;
  out.bytes_accessed = cost.bytes_accessed;

  say("planning memory");
  RETURN_IF_ERROR(InsertCopies(*module));
  PassContext ctx;
  RETURN_IF_ERROR(TupleSimplifier(*module, ctx).status());
  RETURN_IF_ERROR(Dce(*module, ctx).status());
  const Schedule schedule = ScheduleModule(*module);
  ASSIGN_OR_RETURN(BufferAssignment buffers, BufferAssignment::Run(*module, schedule, cpu::ScratchBytes));
  out.temp_bytes = buffers.temp_bytes();
  if (o.max_arena_bytes > 0 && out.temp_bytes > o.max_arena_bytes)
    return ResourceExhausted("error: the arena takes ", out.temp_bytes, " bytes, the config allows ",
                             o.max_arena_bytes);
  ASSIGN_OR_RETURN(ThunkSequence thunks, BuildThunks(*module, schedule, buffers));
  out.thunks = CountThunks(thunks);
  out.devices = module->replica_count * module->partition_count;
  out.communicates = out.devices > 1 || Communicates(thunks);
  RETURN_IF_ERROR(CollectCustomCalls(thunks, &out.custom_calls));
  std::sort(out.custom_calls.begin(), out.custom_calls.end(),
            [](const auto& a, const auto& b) { return a.target < b.target; });
  for (const auto& c : module->computations())
    for (const auto& i : c->instructions()) out.fusions += i->Is(Opcode::Fusion);
  if (!o.pipeline.dump_dir.empty()) {
    RETURN_IF_ERROR(
        WriteFile(absl::StrCat(o.pipeline.dump_dir, "/", out.name, ".cpu_after_optimizations.txt"), ToText(*module)));
    RETURN_IF_ERROR(WriteFile(absl::StrCat(o.pipeline.dump_dir, "/", out.name, ".thunk_sequence.txt"), ToText(thunks)));
  }

  // Ports.
  std::vector<Shape> params;
  for (const Instruction* p : entry->parameters()) params.push_back(p->shape());
  const std::vector<Shape> argument_shapes = Leaves(params), result_shapes = Leaves({entry->root()->shape()});
  std::vector<std::string> own = module->argument_names;
  if (own.empty())
    for (const Instruction* p : entry->parameters()) own.push_back(p->name());
  if (own.size() != argument_shapes.size()) own.clear();
  ASSIGN_OR_RETURN(out.arguments, MakePorts(argument_shapes, o.argument_names, own, "argument"));
  ASSIGN_OR_RETURN(out.results, MakePorts(result_shapes, o.result_names, {}, "result"));
  for (const AliasEntry& a : module->aliases) {
    int64_t base = 0;
    for (int64_t p = 0; p < a.parameter; ++p) base += static_cast<int64_t>(Leaves({params[p]}).size());
    const int64_t arg = base + LeafNumber(params[a.parameter], a.parameter_index),
                  res = LeafNumber(entry->root()->shape(), a.output);
    out.arguments[arg].alias = res;
    out.results[res].alias = arg;
  }
  for (const Port& p : out.arguments) out.argument_bytes += p.shape.ByteSize();
  for (const Port& p : out.results) out.output_bytes += p.shape.ByteSize();

  // Weights: one block, in order of use, unpadded but for alignment.
  std::string weights;
  std::vector<int64_t> offsets;
  for (const Instruction* c : buffers.constants()) {
    weights.resize((weights.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment);
    offsets.push_back(static_cast<int64_t>(weights.size()));
    if (c->literal().byte_size())
      weights.append(reinterpret_cast<const char*>(c->literal().data()), c->literal().byte_size());
  }
  out.constant_bytes = static_cast<int64_t>(weights.size());

  say("generating code");
  struct Part {
    CpuLevel level;
    absl::StatusOr<std::string> object = absl::UnknownError("not run");
    int64_t text = 0, kernels = 0;
    std::string ir;
  };
  std::vector<Part> parts;
  for (const std::string& l : o.cpu_levels) {
    ASSIGN_OR_RETURN(CpuLevel level, FindCpuLevel(l));
    bool have = false;
    for (const Part& p : parts) have = have || p.level.name == level.name;
    if (!have) parts.push_back({level});
  }
  auto build = [&](Part* p) {
    llvm::LLVMContext llvm_ctx;
    llvm::Module m(out.name, llvm_ctx);
    Ir ir(llvm_ctx, m, p->level);
    cpu::EntryStats stats;
    cpu::EntryOptions entry_options;
    entry_options.threads = o.threads;
    entry_options.poison_freed = o.poison_freed;
    entry_options.replicas = module->replica_count;
    entry_options.partitions = module->partition_count;
    if (absl::Status s = cpu::EmitEntry(ir, out.name, thunks, offsets, entry_options, &stats); !s.ok()) {
      p->object = s;
      return;
    }
    p->kernels = stats.kernels;
    p->object = CompileToObject(m, p->level, &p->text, o.pipeline.dump_dir.empty() ? nullptr : &p->ir);
  };
  if (parts.size() == 1) {
    build(&parts[0]);
  } else {
    std::vector<std::thread> threads;
    for (Part& p : parts) threads.emplace_back(build, &p);
    for (std::thread& t : threads) t.join();
  }
  std::vector<std::pair<std::string, std::string>> members;
  std::vector<std::string> levels;
  for (Part& p : parts) {
    if (!p.object.ok()) return p.object.status();
    members.push_back({absl::StrCat(out.name, "_", p.level.name, ".o"), std::move(*p.object)});
    levels.push_back(p.level.name);
    out.code_bytes += p.text;
    out.kernels = p.kernels;
    if (!p.ir.empty())
      RETURN_IF_ERROR(
          WriteFile(absl::StrCat(o.pipeline.dump_dir, "/", out.name, ".", p.level.name, ".ir-with-opt.ll"), p.ir));
  }
  const RuntimeOptions runtime{levels, o.flush_subnormals, out.communicates};
  std::vector<std::pair<RuntimePart, const char*>> runtime_parts = {{RuntimePart::kDispatch, "run"}};
  if (o.threads != 1) {
    runtime_parts.push_back({RuntimePart::kParallel, "parallel"});
    runtime_parts.push_back({RuntimePart::kPool, "pool"});
  }
  if (out.communicates) runtime_parts.push_back({RuntimePart::kWorld, "world"});
  for (const auto& [part, suffix] : runtime_parts) {
    ASSIGN_OR_RETURN(std::string object, CompileRuntime(out.name, part, runtime));
    members.push_back({absl::StrCat(out.name, "_", suffix, ".o"), std::move(object)});
  }
  if (!buffers.constants().empty())
    members.push_back({absl::StrCat(out.name, "_weights.o"), DataObject(absl::StrCat(out.name, "_weights"), weights)});
  ASSIGN_OR_RETURN(out.archive, WriteArchive(members));
  out.c_header = CHeader(out);
  out.header = CppHeader(out);
  out.manifest = Manifest(out, o, levels, StableHash(weights));
  out.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace kiln
