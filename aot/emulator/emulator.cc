#include "aot/emulator/emulator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "aot/emulator/connected.h"
#include "aot/emulator/routines.h"
#include "aot/emulator/shadow.h"
#include "runtime_min/abi.h"

// Saves what a call must keep and the stack pointer at *save, and goes on where `to` was saved.
extern "C" void kiln_emulator_switch(void** save, void* to);
asm(R"(.text
.globl kiln_emulator_switch
.type kiln_emulator_switch,@function
kiln_emulator_switch:
 pushq %rbp
 pushq %rbx
 pushq %r12
 pushq %r13
 pushq %r14
 pushq %r15
 movq %rsp,(%rdi)
 movq %rsi,%rsp
 popq %r15
 popq %r14
 popq %r13
 popq %r12
 popq %rbx
 popq %rbp
 ret
.size kiln_emulator_switch,.-kiln_emulator_switch
.section .note.GNU-stack,"",@progbits
.text
)");

namespace kiln {
namespace {

constexpr size_t kStack = 256 << 10;
constexpr int32_t kLanes = 32;

struct Fiber {
  void* sp = nullptr;
  char* stack = nullptr;
  int64_t shuffles = 0;  // that it arrived at
  bool done = false;
};

constexpr int32_t kWords = 6;  // that a lane shows the others at once

struct Warp {
  int32_t slot[2][kLanes][kWords];
};

// The launch in progress. Launches run one at a time, whatever thread asks for them.
struct Running {
  std::mutex one_at_a_time;
  const gpu::EmulatedKernel* kernel = nullptr;
  gpu::EmulatedPlace* where = nullptr;
  void* const* buffers = nullptr;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  int32_t threads = 0, block = 0, current = 0;
  int64_t arrived = 0, released = 0;  // at the barrier; barriers passed
  const void* barrier_site = nullptr;
  int64_t live = 0, progress = 0;
  void* scheduler = nullptr;
  Shadow shadow;
};

Running& Now() {
  static auto* running = new Running;
  return *running;
}

[[noreturn]] void Fault(const std::string& what) {
  const Running& r = Now();
  std::fprintf(stderr, "error: kernel %s, block %d, thread %d: %s\n", r.kernel->name, r.where->block, r.where->thread,
               what.c_str());
  std::fflush(stderr);
  _exit(kEmulatorFault);
}

void Yield() {
  Running& r = Now();
  kiln_emulator_switch(&r.fibers[static_cast<size_t>(r.current)].sp, r.scheduler);
}

void Barrier() {
  Running& r = Now();
  const void* site = __builtin_return_address(0);
  if (r.arrived == 0)
    r.barrier_site = site;
  else if (r.barrier_site != site)
    Fault("waits at another barrier than threads before it: a divergent barrier");
  const int64_t mine = r.released;
  ++r.progress;
  if (++r.arrived == r.live) {
    if (r.live != r.threads) Fault("waits at a barrier that other threads of its block never reach");
    r.arrived = 0;
    ++r.released;
    r.shadow.Barrier();
    return;
  }
  while (r.released == mine) Yield();
}

// Shows `count` words to the other lanes; what all of them showed is returned when all have come.
const int32_t (*Meet(const int32_t* words, int count))[kWords] {
  Running& r = Now();
  const int32_t lane = r.current % kLanes, warp = r.current / kLanes;
  const int64_t mine = ++r.fibers[static_cast<size_t>(r.current)].shuffles;
  auto& slots = r.warps[static_cast<size_t>(warp)].slot[mine & 1];
  std::memcpy(slots[lane], words, static_cast<size_t>(count) * sizeof *words);
  ++r.progress;
  for (int32_t l = 0; l < kLanes; ++l) {
    const int32_t other = warp * kLanes + l;
    if (other >= r.threads) Fault("shuffles in a warp that is not whole");
    while (r.fibers[static_cast<size_t>(other)].shuffles < mine) {
      if (r.fibers[static_cast<size_t>(other)].done) Fault("shuffles with a lane that has ended");
      Yield();
    }
  }
  return slots;
}

int32_t ShuffleXor(int32_t value, int32_t mask) {
  const int32_t lane = Now().current % kLanes;
  return Meet(&value, 1)[lane ^ (mask & (kLanes - 1))][0];
}

// Element `k` of a word, widened.
double Part(int32_t word, int k, int32_t kind) {
  if (kind == gpu::kBytes) return static_cast<int8_t>(word >> (8 * k));
  if (kind == gpu::kTf32) return std::bit_cast<float>(word);
  const auto bits = static_cast<uint16_t>(word >> (16 * k));
  return DecodeFloat(kind == gpu::kHalves ? PrimitiveType::F16 : PrimitiveType::BF16, bits);
}

// mma.sync.m16n8k8, k16 and k32, row.col: lane 4 g + t holds rows g and g + 8 of a, column g of b, and of the result
// columns 2 t and 2 t + 1 of rows g and g + 8; its words are columns (rows of b) t and t + 4, in words.
void Mma(int32_t kind, const int32_t* words, void* sums) {
  const int32_t lane = Now().current % kLanes, g = lane / 4, t = lane % 4;
  const auto* all = Meet(words, kWords);
  const int per_word = kind == gpu::kBytes ? 4 : kind == gpu::kTf32 ? 1 : 2;
  for (int e = 0; e < 4; ++e) {
    const int32_t column = 2 * t + e % 2;
    double sum = 0;
    for (int w = 0; w < 8; ++w)
      for (int k = 0; k < per_word; ++k) {
        const int32_t a = all[4 * g + w % 4][e / 2 + 2 * (w / 4)], b = all[4 * column + w % 4][4 + w / 4];
        sum += Part(a, k, kind) * Part(b, k, kind);
      }
    if (kind == gpu::kBytes) {
      auto* out = static_cast<int32_t*>(sums) + e;
      *out = static_cast<int32_t>(static_cast<uint32_t>(*out) + static_cast<uint32_t>(static_cast<int64_t>(sum)));
    } else {
      auto* out = static_cast<float*>(sums) + e;
      *out = static_cast<float>(*out + sum);
    }
  }
}

void Access(const void* at, int64_t bytes, int32_t kind) {
  Running& r = Now();
  const std::string wrong =
      r.shadow.Access(reinterpret_cast<uintptr_t>(at), bytes, kind, r.where->block, r.where->thread);
  if (!wrong.empty()) Fault(wrong);
}

// Blocks run one after the other: those that this one waits for have ended, or never will.
void Await(const int32_t* counter, int32_t count) {
  if (*counter < count) Fault("waits for blocks that began after it");
  Now().shadow.Await(reinterpret_cast<uintptr_t>(counter));
}

void RunFiber() {
  Running& r = Now();
  r.kernel->thread(r.buffers);
  r.fibers[static_cast<size_t>(r.current)].done = true;
  --r.live;
  ++r.progress;
  if (r.arrived > 0) Fault("ends while other threads of its block wait at a barrier");
  for (;;) Yield();
}

// The threads of one block, in turn, until all have ended.
void RunBlock(Running& r) {
  for (int32_t t = 0; t < r.threads; ++t) {
    Fiber& f = r.fibers[static_cast<size_t>(t)];
    f.done = false;
    f.shuffles = 0;
    constexpr int kSaved = 6;
    void** top = reinterpret_cast<void**>(f.stack + kStack);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(RunFiber);
    for (int k = 0; k < kSaved; ++k) *--top = nullptr;
    f.sp = top;
  }
  r.live = r.threads;
  r.arrived = 0;
  while (r.live > 0) {
    const int64_t before = r.progress;
    for (r.current = 0; r.current < r.threads; ++r.current) {
      Fiber& f = r.fibers[static_cast<size_t>(r.current)];
      if (f.done) continue;
      r.where->thread = r.current;
      kiln_emulator_switch(&r.scheduler, f.sp);
    }
    if (r.progress == before) Fault("all threads wait for each other");
  }
}

}  // namespace

struct Emulator::State {
  const gpu::EmulatedLibrary* library;
  const kiln_gpu* table;
  std::unique_ptr<Devices>* devices;

  int32_t Launch(const kiln_gpu_launch& what, void* const* buffers) {
    Running& r = Now();
    std::lock_guard<std::mutex> lock(r.one_at_a_time);
    r.kernel = &library->kernel[what.kernel];
    r.where = library->where;
    r.buffers = buffers;
    const int64_t blocks = what.grid[0];
    r.threads = static_cast<int32_t>(what.grid[1]);
    const gpu::EmulatedKernel& k = *r.kernel;
    std::vector<Shadow::Range> ranges;
    for (int64_t b = 0; b < k.buffers; ++b) {
      const auto at = reinterpret_cast<uintptr_t>(buffers[b]);
      ranges.push_back({at, at + static_cast<uintptr_t>(k.buffer_bytes[b]), false});
    }
    for (int64_t s = 0; s < k.shared_arrays; ++s) {
      const auto at = reinterpret_cast<uintptr_t>(k.shared[2 * s]);
      ranges.push_back({at, at + reinterpret_cast<uintptr_t>(k.shared[2 * s + 1]), true});
    }
    r.shadow.Begin(ranges);
    if (k.grid) {
      k.grid(buffers, blocks, r.threads);
      return 0;
    }
    while (r.fibers.size() < static_cast<size_t>(r.threads)) {
      void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (stack == MAP_FAILED) Fault("no memory for the stacks of its threads");
      r.fibers.push_back({nullptr, static_cast<char*>(stack)});
    }
    r.warps.resize(static_cast<size_t>(r.threads + kLanes - 1) / kLanes);
    for (r.block = 0; r.block < blocks; ++r.block) {
      r.where->block = r.block;
      r.shadow.NewBlock();
      for (int64_t s = 0; s < k.shared_arrays; ++s)  // whatever was there before
        std::memset(k.shared[2 * s], 0xff, reinterpret_cast<size_t>(k.shared[2 * s + 1]));
      RunBlock(r);
    }
    return 0;
  }
};

Emulator::Devices* Emulator::OfTable(void* self) { return static_cast<State*>(self)->devices->get(); }

Emulator::Emulator(const gpu::EmulatedLibrary* library) : state_(new State{library, &table_, &devices_}), table_() {
  *library->hooks = {Barrier, ShuffleXor, Access, Mma, Await};
  table_.self = state_.get();
  table_.weights = library->weights;
  table_.launch = [](void* self, const kiln_gpu_launch* what, void* const* buffers) {
    return static_cast<State*>(self)->Launch(*what, buffers);
  };
  table_.call = [](void*, const kiln_gpu_call* what, void* const* buffers) { return EmulateRoutine(*what, buffers); };
  table_.copy = [](void*, void* to, const void* from, int64_t bytes) {
    std::memmove(to, from, static_cast<size_t>(bytes));
    return 0;
  };
  table_.fill = [](void*, void* to, int32_t byte, int64_t bytes) {
    std::memset(to, byte, static_cast<size_t>(bytes));
    return 0;
  };
  table_.read = [](void*, void* host, const void* device, int64_t bytes) {
    std::memcpy(host, device, static_cast<size_t>(bytes));
    return 0;
  };
  table_.write = [](void*, void* device, const void* host, int64_t bytes) {
    std::memcpy(device, host, static_cast<size_t>(bytes));
    return 0;
  };
  table_.record = [](void* self, int64_t, kiln_gpu_region region, void* const* arguments, void* const* results,
                     void* arena, const void* comm) {
    return region(arguments, results, arena, static_cast<State*>(self)->table, comm);
  };
  table_.loop = [](void* self, kiln_gpu_region condition, kiln_gpu_region body, void* const* arguments,
                   void* const* results, void* arena, const void* comm, const void* predicate) -> int32_t {
    const kiln_gpu* table = static_cast<State*>(self)->table;
    int32_t status = condition(arguments, results, arena, table, comm);
    while (!status && *static_cast<const uint8_t*>(predicate)) {
      status = body(arguments, results, arena, table, comm);
      if (!status) status = condition(arguments, results, arena, table, comm);
    }
    return status;
  };
  table_.choose = [](void* self, int64_t count, const kiln_gpu_region* branches, void* const* arguments,
                     void* const* results, void* arena, const void* comm, const void* index,
                     int32_t is_predicate) -> int32_t {
    int64_t at = count - 1;
    int32_t wanted = 0;
    if (!is_predicate) std::memcpy(&wanted, index, sizeof wanted);
    if (is_predicate && *static_cast<const uint8_t*>(index)) at = 0;
    if (!is_predicate && wanted >= 0 && wanted < count) at = wanted;
    return branches[at](arguments, results, arena, static_cast<State*>(self)->table, comm);
  };
  table_.gather = [](void*, const void* comm, const int64_t* group, int64_t members, const void* mine, void* all,
                     int64_t bytes) -> int32_t {
    const auto* c = static_cast<const kiln_comm*>(comm);
    return c->gather(c->self, c->device, group, members, mine, all, bytes);
  };
  table_.send = [](void*, const void* comm, int64_t channel, const void* data, int64_t bytes) -> int32_t {
    const auto* c = static_cast<const kiln_comm*>(comm);
    return c->send(c->self, c->device, channel, data, bytes);
  };
  table_.receive = [](void*, const void* comm, int64_t channel, void* data, int64_t bytes) -> int32_t {
    const auto* c = static_cast<const kiln_comm*>(comm);
    return c->receive(c->self, c->device, channel, data, bytes);
  };
}

Emulator::~Emulator() = default;

}  // namespace kiln
