// A program for several devices on the fake driver, connected by the NCCL that tests have (fake_nccl.cc): a thread
// each.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/eval/world.h"
#include "tests/gpu/fake_nccl.h"
#include "tests/gpu/gpu_program.h"

namespace kiln {

template <typename F>
F* Nccl(const char* name) {
  void* nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  void* f = nccl ? dlsym(nccl, name) : nullptr;
  EXPECT_NE(f, nullptr) << name;
  return reinterpret_cast<F*>(f);
}
#define NCCL(f) Nccl<decltype(f)>(#f)

// A device's comm that counts what passes through it.
struct CountingComm {
  CountingComm(const kiln_comm& comm, std::atomic<int64_t>* count) : real(comm), gathers(count), face(comm) {
    face.self = this;
    face.gather = [](void* self, int64_t device, const int64_t* group, int64_t members, const void* mine, void* all,
                     int64_t bytes) {
      auto* c = static_cast<CountingComm*>(self);
      ++*c->gathers;
      return c->real.gather(c->real.self, device, group, members, mine, all, bytes);
    };
    face.fail = [](void* self, int64_t device, int32_t status) {
      auto* c = static_cast<CountingComm*>(self);
      c->real.fail(c->real.self, device, status);
    };
    face.send = nullptr;
    face.receive = nullptr;
    face.exchange = nullptr;
    face.offer = nullptr;
    face.take = nullptr;
  }
  const kiln_comm real;
  std::atomic<int64_t>* const gathers;
  kiln_comm face;
};

class NcclDevices {
 public:
  explicit NcclDevices(const std::string& text, CompileOptions o = GpuOptions({"sm_90"}))
      : program_(text, o),
        module_(std::move(*ParseHlo(text, "m.hlo"))),
        count_(static_cast<int>(module_->replica_count * module_->partition_count)),
        together_(count_) {
    device_ = std::make_unique<EmulatedDevice>(program_.library());
    device_->fake.devices = count_;
    NCCL(fake_nccl_reset)();
    world_ = Find<kiln_world*(int64_t)>("world_create")(count_);
  }
  ~NcclDevices() { Find<void(kiln_world*)>("world_destroy")(world_); }

  int count() const { return count_; }
  FakeCuda& fake() { return device_->fake; }
  const GpuProgram& program() const { return program_; }
  std::atomic<int64_t>& gathers() { return gathers_; }
  kiln_comm* comm(int d) { return Find<kiln_comm*(kiln_world*, int64_t)>("world_comm")(world_, d); }
  // The world may be used again; all devices call it.
  void ResetTogether(int d) {
    together_.arrive_and_wait();
    if (d == 0) Reset();
    together_.arrive_and_wait();
  }
  void Reset() { Find<void(kiln_world*)>("world_reset")(world_); }
  void SetTimeout(int64_t ms) { Find<void(kiln_world*, int64_t)>("world_set_timeout")(world_, ms); }
  template <typename F>
  F* Find(const std::string& name) const {
    return reinterpret_cast<F*>(program_.Of(name));
  }

  // Different on each device, and small whole numbers.
  std::vector<Literal> Arguments(int d) const {
    std::vector<Literal> out;
    for (const Instruction* p : module_->entry()->parameters()) {
      Literal l(p->shape());
      for (int64_t k = 0; k < l.size(); ++k) {
        Element e;
        const int64_t v = (k * 7 + d * 5 + static_cast<int64_t>(out.size()) * 3) % 11 - 4;
        e.i = IsFloat(l.shape().type()) || IsComplex(l.shape().type()) ? 0
              : l.shape().type() == PrimitiveType::Pred                ? v & 1
                                                                       : v;
        e.re = static_cast<double>(v);
        e.im = static_cast<double>(v % 3);
        l.Set(k, e);
      }
      out.push_back(std::move(l));
    }
    return out;
  }

  // What the evaluator makes of them, by device: leaves.
  std::vector<std::vector<Literal>> Expected() const {
    World world(module_->replica_count, module_->partition_count);
    std::vector<std::vector<Literal>> arguments;
    for (int d = 0; d < count_; ++d) arguments.push_back(Arguments(d));
    auto whole =
        EvaluateOnDevices(std::vector<const Module*>(static_cast<size_t>(count_), module_.get()), arguments, &world);
    EXPECT_TRUE(whole.ok()) << whole.status();
    std::vector<std::vector<Literal>> out;
    for (const Literal& l : *whole) out.push_back(l.shape().IsTuple() ? l.elements() : std::vector<Literal>{l});
    return out;
  }

  // A thread for each device, in which it creates its program, connects by the world's comm, and does `what`.
  struct Device {
    int number;
    Gpu& gpu;
    std::vector<Literal> arguments, results;
    std::vector<const void*> in;
    std::vector<void*> out;
    int32_t Run() { return gpu.run_host(in, out); }
  };
  void OnEach(const std::function<void(Device&)>& what, bool connect = true) {
    std::vector<std::thread> threads;
    for (int d = 0; d < count_; ++d)
      threads.emplace_back([&, d] {
        CountingComm counting(*comm(d), &gathers_);
        Gpu gpu(program_, KILN_GPU_OWN_STREAM, d);
        if (connect) ASSERT_EQ(gpu.status(), 0) << gpu.problem();
        if (connect) gpu.set_comm(&counting.face);
        Device self = {d, gpu, Arguments(d), {}, {}, {}};
        const Shape& result = module_->entry()->root()->shape();
        for (const Shape& s : result.IsTuple() ? result.tuple() : std::vector<Shape>{result})
          self.results.emplace_back(s);
        for (const Literal& l : self.arguments) self.in.push_back(l.data());
        for (Literal& l : self.results) self.out.push_back(l.mutable_data());
        what(self);
      });
    for (std::thread& t : threads) t.join();
  }

  // Runs of every device give what the evaluator says.
  void ExpectRight(int runs) {
    const auto want = Expected();
    OnEach([&](Device& d) {
      for (int k = 0; k < runs; ++k) {
        ASSERT_EQ(d.Run(), 0) << "device " << d.number << ", run " << k << ": " << d.gpu.error();
        const auto& mine = want[static_cast<size_t>(d.number)];
        ASSERT_EQ(mine.size(), d.results.size());
        for (size_t r = 0; r < mine.size(); ++r)
          for (int64_t e = 0; e < mine[r].size(); ++e) {
            const Element a = mine[r].Get(e), b = d.results[r].Get(e);
            ASSERT_TRUE((a.i == b.i && a.re == b.re && a.im == b.im) || (std::isnan(a.re) && std::isnan(b.re)))
                << "device " << d.number << ", run " << k << ", result " << r << ", element " << e << ": " << a.re
                << " " << a.i << ", got " << b.re << " " << b.i;
          }
      }
    });
  }

 private:
  const GpuProgram program_;
  const std::unique_ptr<Module> module_;
  const int count_;
  std::barrier<> together_;
  std::unique_ptr<EmulatedDevice> device_;
  kiln_world* world_ = nullptr;
  std::atomic<int64_t> gathers_{0};
};

}  // namespace kiln
