#include "aot/tools/gpu_runner.h"

#include <dlfcn.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>

#include "aot/tools/gpu_machine.h"
#include "aot/tools/span.h"
#include "runtime_min/kiln.h"

namespace kiln {
namespace {

// A program on a device, with the memory of one run.
class GpuInstance {
 public:
  GpuInstance(const CompiledModel& m, const kiln_gpu_functions& f, const std::vector<Literal>& arguments)
      : m_(m), f_(f), arguments_(arguments) {}
  GpuInstance(const GpuInstance&) = delete;
  GpuInstance& operator=(const GpuInstance&) = delete;

  ~GpuInstance() {
    if (!gpu_) return;
    for (size_t r = 0; r < results_.size(); ++r)
      if (m_.ports.results[r].alias < 0) f_.free(gpu_, results_[r]);
    for (void* a : args_) f_.free(gpu_, a);
    f_.destroy(gpu_);
  }

  absl::Status Create(int device, const kiln_comm* comm) {
    char error[1024] = "";
    void* const own_stream = reinterpret_cast<void*>(intptr_t{-1});
    if (f_.create(&gpu_, device, own_stream, error, sizeof error)) return Internal("error: ", error);
    if (comm) f_.set_comm(gpu_, comm);
    const auto room = [&](int64_t bytes) { return f_.malloc(gpu_, static_cast<size_t>(std::max<int64_t>(bytes, 1))); };
    for (const Port& p : m_.ports.arguments) {
      args_.push_back(room(p.shape.ByteSize()));
      if (!args_.back()) return Failed();
    }
    for (const Port& p : m_.ports.results) {
      results_.push_back(p.alias >= 0 ? args_[static_cast<size_t>(p.alias)] : room(p.shape.ByteSize()));
      if (!results_.back()) return Failed();
    }
    for (size_t a = 0; a < args_.size(); ++a) RETURN_IF_ERROR(Upload(a));
    return Wait();
  }

  // Donated arguments as they were, after a run has overwritten them.
  absl::Status Restore() {
    for (size_t a = 0; a < args_.size(); ++a)
      if (m_.ports.arguments[a].alias >= 0) RETURN_IF_ERROR(Upload(a));
    return Wait();
  }

  absl::Status Start() { return Checked(f_.run(gpu_, args_.data(), results_.data(), nullptr)); }
  absl::Status Wait() { return Checked(f_.wait(gpu_)); }

  absl::Status KeepResults(const std::vector<size_t>& offsets, const Shared& shared) {
    for (size_t r = 0; r < results_.size(); ++r)
      RETURN_IF_ERROR(Checked(f_.to_host(gpu_, shared.at(offsets[r]), results_[r],
                                         static_cast<size_t>(m_.ports.results[r].shape.ByteSize()))));
    return Wait();
  }

 private:
  absl::Status Upload(size_t a) {
    return Checked(f_.to_device(gpu_, args_[a], arguments_[a].data(), arguments_[a].byte_size()));
  }
  absl::Status Checked(int32_t code) { return code ? Failed() : absl::OkStatus(); }
  absl::Status Failed() { return Internal("error: ", f_.error(gpu_)); }

  const CompiledModel& m_;
  const kiln_gpu_functions& f_;
  const std::vector<Literal>& arguments_;
  kiln_gpu* gpu_ = nullptr;
  std::vector<void*> args_, results_;
};

// The devices of one RunOnGpus.
class Devices {
 public:
  Devices(const std::vector<GpuRun>& runs, int gpus) : runs_(runs), gpus_(gpus), statuses_(runs.size()) {}
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  ~Devices() {
    instances_.clear();
    if (world_) world_functions_->destroy(world_);
    for (void* lib : libraries_) dlclose(lib);
  }

  absl::Status Create(const std::vector<Literal>& infeed) {
    for (size_t d = 0; d < runs_.size(); ++d) {
      const CompiledModel& m = *runs_[d].model;
      void* lib = Load(m, runs_[d].so);
      if (!lib) return InvalidArgument("error: the compiled program cannot be loaded");
      libraries_.push_back(lib);
      const auto model_of = reinterpret_cast<const kiln_model* (*)()>(dlsym(lib, SymbolOf(m, "model").c_str()));
      const kiln_model* model = model_of ? model_of() : nullptr;
      if (!model || !model->gpu) return Internal("error: the library has no GPU program");
      if (!world_ && model->world) {
        world_functions_ = model->world;
        world_ = world_functions_->create(static_cast<int64_t>(runs_.size()));
      }
      instances_.push_back(std::make_unique<GpuInstance>(m, *model->gpu, *runs_[d].arguments));
      const bool each_its_own = static_cast<size_t>(gpus_) >= runs_.size();
      const kiln_comm* comm = world_ ? world_functions_->comm(world_, static_cast<int64_t>(d)) : nullptr;
      RETURN_IF_ERROR(instances_.back()->Create(each_its_own ? static_cast<int>(d) : 0, comm));
    }
    for (const Literal& l : infeed) {
      if (!world_) break;
      kiln_comm* c = world_functions_->comm(world_, 0);
      c->send(c->self, 0, KILN_INFEED, l.data(), l.byte_size());
    }
    return absl::OkStatus();
  }

  // `runs` times on every device, each time together.
  absl::Status Run(size_t runs, const std::function<absl::Status(size_t device, size_t run)>& body) {
    std::barrier together(static_cast<std::ptrdiff_t>(runs_.size()));
    std::vector<std::thread> threads;
    for (size_t d = 0; d < runs_.size(); ++d)
      threads.emplace_back([&, d] {
        for (size_t k = 0; k < runs && statuses_[d].ok(); ++k) {
          together.arrive_and_wait();
          statuses_[d] = body(d, k);
          if (!statuses_[d].ok() && world_) world_functions_->abort(world_);
        }
        together.arrive_and_drop();
      });
    for (std::thread& t : threads) t.join();
    for (const absl::Status& s : statuses_) RETURN_IF_ERROR(s);
    return absl::OkStatus();
  }

  GpuInstance& instance(size_t d) { return *instances_[d]; }

 private:
  const std::vector<GpuRun>& runs_;
  const int gpus_;
  std::vector<absl::Status> statuses_;
  std::vector<void*> libraries_;
  std::vector<std::unique_ptr<GpuInstance>> instances_;
  const kiln_world_functions* world_functions_ = nullptr;
  kiln_world* world_ = nullptr;
};

absl::Status RunThem(Devices& devices, int repeat, const std::vector<std::vector<size_t>>& offsets,
                     const Shared& shared, GpuTimes* times) {
  const size_t runs = static_cast<size_t>(repeat);
  std::vector<Span> spans(runs);
  RETURN_IF_ERROR(devices.Run(runs, [&](size_t d, size_t k) -> absl::Status {
    GpuInstance& one = devices.instance(d);
    if (k > 0) RETURN_IF_ERROR(one.Restore());
    const double begin = NowUs();
    RETURN_IF_ERROR(one.Start());
    RETURN_IF_ERROR(one.Wait());
    spans[k].Add(begin, NowUs());
    return k == 0 ? one.KeepResults(offsets[d], shared) : absl::OkStatus();
  }));
  for (const Span& s : spans) times->us.push_back(s.length());
  if (runs < 2) return absl::OkStatus();
  const double start = NowUs();
  RETURN_IF_ERROR(devices.Run(1, [&](size_t d, size_t) -> absl::Status {
    for (size_t k = 0; k < runs; ++k) RETURN_IF_ERROR(devices.instance(d).Start());
    return devices.instance(d).Wait();
  }));
  times->queued_us = (NowUs() - start) / static_cast<double>(runs);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunOnGpus(const std::vector<GpuRun>& runs, const std::vector<Literal>& infeed, int repeat,
                       const std::vector<std::vector<size_t>>& offsets, const Shared& shared, GpuTimes* times) {
  ASSIGN_OR_RETURN(GpuMachine * machine, GpuMachine::Get());
  absl::Status status;
  {
    Devices devices(runs, machine->count());
    status = devices.Create(infeed);
    if (status.ok()) status = RunThem(devices, repeat, offsets, shared, times);
  }
  if (!status.ok())
    for (int d = 0; d < machine->count(); ++d) RETURN_IF_ERROR(machine->Renew(d));
  return status;
}

}  // namespace kiln
