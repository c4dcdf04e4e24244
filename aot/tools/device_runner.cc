// Programs of several devices: compiled once each, run as threads of a child or as ranks of MPI.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <deque>
#include <map>
#include <span>
#include <thread>

#include "aot/emulator/x86/emulator.h"
#include "aot/tools/evaluate_devices.h"
#include "aot/tools/gpu_machine.h"
#include "aot/tools/gpu_runner.h"
#include "aot/tools/mpi_launcher.h"
#include "aot/tools/partitioned.h"
#include "aot/tools/run_process.h"
#include "aot/tools/span.h"
#include "aot/tools/timed_comm.h"

namespace kiln {
namespace {

// What the devices of several runs spend in exchanges.
class SpentInExchanges {
 public:
  void Add(const std::vector<std::vector<MetExchange>>& devices) {
    const std::vector<double> late = LateUs(devices);
    for (size_t d = 0; d < devices.size(); ++d) {
      double us = 0;
      for (const MetExchange& x : devices[d]) us += x.spent;
      us_.push_back(us);
      late_.push_back(late[d]);
    }
  }

  InExchanges Medians() { return {Median(us_), Median(late_)}; }

 private:
  static double Median(std::vector<double>& all) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }

  std::vector<double> us_, late_;
};

// All devices of a program as threads of the child.
class DevicesChild {
 public:
  DevicesChild(const std::vector<const Linked*>& programs, const std::vector<std::vector<Literal>>& arguments,
               int64_t patience_ms)
      : programs_(programs), arguments_(arguments), codes_(programs.size()), patience_ms_(patience_ms) {}

  // Runs as many times as there are `times`; results are those of the first run. With more than one, as often again to
  // measure exchanges: those that begin as early as they can, and those that do not. Exit code 0 is success.
  int Run(const std::vector<Literal>& infeed, const std::vector<std::vector<size_t>>& offsets, Shared& shared,
          std::span<double> times, ExchangeTimes* exchanges) {
    for (size_t d = 0; d < programs_.size(); ++d)
      if (const int code = LoadDevice(d)) return code;
    for (const Literal& l : infeed)
      if (kiln_comm* c = Comm(0)) c->send(c->self, 0, KILN_INFEED, l.data(), l.byte_size());
    std::vector<const kiln_comm*> comms;
    for (size_t d = 0; d < programs_.size(); ++d) comms.push_back(Comm(d));
    const auto keep = [&](size_t d, size_t k) {
      if (k == 0) instances_[d]->KeepResults(offsets[d], shared);
    };
    if (const int code = Connect(comms)) return code;
    const auto comm = [&](size_t d, size_t) { return comms[d]; };
    if (const int code = RunAll(comm, times, keep)) return code;
    Disconnect();
    if (times.size() < 2 || !world_ || connected_) return 0;
    return MeasureExchanges(times.size(), exchanges);
  }

 private:
  // The devices of an emulated program whose collectives are NCCL's.
  int Connect(const std::vector<const kiln_comm*>& comms) {
    for (const kiln_gpu_groups* g : groups_) connected_ = connected_ || g;
    if (!connected_) return 0;
    OnEach([&](size_t d) { codes_[d] = emulators_[d]->Connect(groups_[d], *comms[d], patience_ms_); });
    return Codes();
  }
  void Disconnect() {
    if (connected_) OnEach([&](size_t d) { emulators_[d]->Disconnect(); });
  }

  template <typename F>
  void OnEach(const F& f) {
    std::vector<std::thread> threads;
    for (size_t d = 0; d < programs_.size(); ++d) threads.emplace_back([&, d] { f(d); });
    for (std::thread& t : threads) t.join();
  }

  // 0, or an exit code where a device failed.
  int Codes() const {
    for (size_t d = 0; d < programs_.size(); ++d)
      if (codes_[d] != 0) {
        const std::string why = emulators_[d] ? emulators_[d]->error() : "";
        std::fprintf(stderr, "error: the model returned status %d on device %zu%s%s\n", codes_[d], d,
                     why.empty() ? "" : ": ", why.c_str());
        return 5;
      }
    return 0;
  }

  // Medians of what a device spends in exchanges that begin as early as they can, and in those that do not. Runs of
  // both kinds take turns, so that what else the machine does meets both.
  int MeasureExchanges(size_t runs, ExchangeTimes* exchanges) {
    std::deque<TimedComm> timed;
    for (const bool early : {true, false})
      for (size_t d = 0; d < programs_.size(); ++d) timed.emplace_back(*Comm(d), early);
    const size_t devices = programs_.size();
    std::vector<double> times(2 * runs);
    std::array<SpentInExchanges, 2> spent;
    const auto add = [&](size_t k) {
      std::vector<std::vector<MetExchange>> met;
      for (size_t d = 0; d < devices; ++d) met.push_back(timed[k % 2 * devices + d].Take());
      spent[k % 2].Add(met);
    };
    const auto comm = [&](size_t d, size_t k) { return timed[k % 2 * devices + d].face(); };
    // All devices have ended the run before, and none begins the next but one before this function has ended.
    const auto after = [&](size_t d, size_t k) {
      if (d == 0 && k > 0) add(k - 1);
    };
    if (const int code = RunAll(comm, times, after)) return code;
    add(times.size() - 1);
    exchanges->early = spent[0].Medians();
    exchanges->alone = spent[1].Medians();
    return 0;
  }

  template <typename CommOf, typename After>
  int RunAll(const CommOf& comm, std::span<double> times, const After& after) {
    std::vector<Span> spans(times.size());
    std::barrier together(static_cast<std::ptrdiff_t>(programs_.size()));
    OnEach([&](size_t d) {
      for (size_t k = 0; k < times.size() && codes_[d] == 0; ++k) {
        instances_[d]->Restore();
        together.arrive_and_wait();
        RunOnce(d, comm(d, k), spans[k]);
        after(d, k);
      }
      together.arrive_and_drop();
    });
    if (const int code = Codes()) return code;
    std::transform(spans.begin(), spans.end(), times.begin(), [](const Span& s) { return s.length(); });
    return 0;
  }

  int LoadDevice(size_t d) {
    const CompiledModel& m = programs_[d]->model;
    void* lib = Load(m, programs_[d]->so);
    if (!lib) return 3;
    const auto find = [&](const char* function) { return dlsym(lib, SymbolOf(m, function).c_str()); };
    emulators_.push_back(EmulatorOf(lib, m));
    run_.push_back(reinterpret_cast<RunFn>(find("run")));
    emulated_.push_back(reinterpret_cast<EmulatedFn>(find("gpu_entry")));
    const auto* groups = static_cast<const kiln_gpu_groups* const*>(find("emulated_groups"));
    groups_.push_back(groups ? *groups : nullptr);
    if (!world_ && find("world_create")) {
      world_ = reinterpret_cast<kiln_world* (*)(int64_t)>(find("world_create"))(static_cast<int64_t>(programs_.size()));
      comm_of_ = reinterpret_cast<kiln_comm* (*)(kiln_world*, int64_t)>(find("world_comm"));
      abort_world_ = reinterpret_cast<void (*)(kiln_world*)>(find("world_abort"));
    }
    if (emulators_.back() ? !emulated_.back() : !run_.back()) return 4;
    instances_.push_back(std::make_unique<Instance>(m, arguments_[d]));
    return 0;
  }

  kiln_comm* Comm(size_t d) const { return world_ ? comm_of_(world_, static_cast<int64_t>(d)) : nullptr; }

  void RunOnce(size_t d, const kiln_comm* comm, Span& span) {
    const FlushWhileEmulating flush(programs_[d]->model, emulators_[d] != nullptr);
    const double begin = NowUs();
    codes_[d] = instances_[d]->Run(run_[d], emulated_[d], emulators_[d].get(), nullptr, comm);
    span.Add(begin, NowUs());
    if (codes_[d] != 0 && emulators_[d]) emulators_[d]->Fail();
    if (codes_[d] != 0 && world_) abort_world_(world_);
  }

  const std::vector<const Linked*>& programs_;
  const std::vector<std::vector<Literal>>& arguments_;
  std::vector<int32_t> codes_;
  std::vector<RunFn> run_;
  std::vector<EmulatedFn> emulated_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::vector<std::unique_ptr<Emulator>> emulators_;
  std::vector<const kiln_gpu_groups*> groups_;
  const int64_t patience_ms_;
  bool connected_ = false;  // by NCCL
  kiln_world* world_ = nullptr;
  kiln_comm* (*comm_of_)(kiln_world*, int64_t) = nullptr;
  void (*abort_world_)(kiln_world*) = nullptr;
};

// NCCL takes no two devices on one GPU.
bool FewerGpusThan(size_t devices, const RunOptions& o) {
  if (o.backend != "gpu") return false;
  const auto machine = GpuMachine::Get();
  return machine.ok() && static_cast<size_t>((*machine)->count()) < devices;
}

// Of programs that were partitioned, every device answers with whole results.
void JoinPartitions(const std::vector<DeviceProgram>& devices,
                    const std::map<const Module*, std::unique_ptr<Module>>& partitioned, int64_t partitions,
                    std::vector<std::vector<Literal>>* results) {
  for (size_t first = 0; first < devices.size(); first += static_cast<size_t>(partitions)) {
    const auto entry = ReadPartitionedEntry(*partitioned.at(devices[first].module));
    if (!entry) continue;
    const auto begin = results->begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(partitions);
    std::vector<std::vector<Literal>> parts(begin, end);
    JoinResults(*entry, &parts);
    std::move(parts.begin(), parts.end(), begin);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::vector<Literal>>> RunDevices(const std::vector<DeviceProgram>& devices,
                                                             int64_t replicas, int64_t partitions,
                                                             const std::vector<Literal>& infeed,
                                                             const CompileOptions& compile, const RunOptions& o,
                                                             RunResult* about) {
  RETURN_IF_ERROR(CheckBackend(o, compile));
  if (o.backend == "reference") return EvaluateDevices(devices, replicas, partitions, infeed);
  TempFolder dir;
  std::map<const Module*, Linked> linked;
  std::vector<const Linked*> programs;
  std::vector<std::vector<Literal>> arguments;
  std::vector<std::vector<size_t>> offsets;
  std::map<const Module*, std::unique_ptr<Module>> partitioned;
  // An emulated device, or one on a busy machine, computes for long between exchanges.
  constexpr int64_t kPatience = 600000;
  const int64_t patience = std::max(compile.model.device_timeout_ms, kPatience);
  const int repeat = infeed.empty() ? std::max(1, o.repeat) : 1;
  size_t total = 0;
  const bool different = std::any_of(devices.begin(), devices.end(),
                                     [&](const DeviceProgram& d) { return d.module != devices[0].module; });
  for (const DeviceProgram& d : devices) {
    std::unique_ptr<Module>& program = partitioned[d.module];
    if (!program) {
      program = d.module->Clone();
      RETURN_IF_ERROR(PartitionProgram(program.get()));
      CompileOptions options = For(o, compile);
      // Communicators of NCCL belong to the groups of one program, which all devices run.
      if (different || FewerGpusThan(devices.size(), o)) options.gpu.transport = GpuOptions::Transport::kHost;
      options.model.name = absl::StrCat(compile.model.name, "_", linked.size());
      options.model.device_timeout_ms = patience;
      ASSIGN_OR_RETURN(linked[d.module], CompileAndLink(program->Clone(), options, &dir, options.model.name));
    }
    programs.push_back(&linked[d.module]);
    const auto entry = ReadPartitionedEntry(*program);
    const auto partition = static_cast<int64_t>(arguments.size()) % partitions;
    arguments.push_back(InMemory(programs.back()->model,
                                 entry ? PartsOfArguments(*entry, *program, d.arguments, partition) : d.arguments));
    offsets.push_back(ResultOffsets(programs.back()->model, &total));
  }
  const size_t times_at = total;
  Shared shared(times_at + static_cast<size_t>(repeat) * sizeof(double) + sizeof(ExchangeTimes));
  RETURN_IF_ERROR(shared.Mapped());
  auto* times = reinterpret_cast<double*>(shared.at(times_at));
  auto* exchanges = reinterpret_cast<ExchangeTimes*>(times + repeat);
  if (o.backend == "gpu") {
    std::vector<GpuRun> runs;
    for (size_t d = 0; d < programs.size(); ++d) runs.push_back({&programs[d]->model, programs[d]->so, &arguments[d]});
    GpuTimes of_gpus;
    RETURN_IF_ERROR(RunOnGpus(runs, infeed, repeat, offsets, shared, &of_gpus));
    if (about) {
      SetTimes(of_gpus.us, about);
      about->queued_us = of_gpus.queued_us;
    }
  } else if (o.launcher == "mpi") {
    const auto place = [&](size_t d, size_t k) { return shared.at(offsets[d][k]); };
    RETURN_IF_ERROR(RunRanks(programs[0]->model, programs[0]->so, arguments, place, &dir));
  } else {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      if (o.backend == "cpu-emulated") x86::EmulateMissingInstructions();
      const std::span<double> each(times, static_cast<size_t>(repeat));
      _exit(DevicesChild(programs, arguments, patience).Run(infeed, offsets, shared, each, exchanges));
    }
    RETURN_IF_ERROR(WaitFor(pid));
    if (about) {
      SetTimes({times, times + repeat}, about);
      about->exchanges = *exchanges;
    }
  }
  std::vector<std::vector<Literal>> out;
  for (size_t d = 0; d < devices.size(); ++d) out.push_back(ReadResults(programs[d]->model, offsets[d], shared));
  JoinPartitions(devices, partitioned, partitions, &out);
  if (about) about->model = programs[0]->model;
  return out;
}

}  // namespace kiln
