// The emulator on kernels with a fault built in: it must find the race, the write out of bounds and the divergent
// barrier, name kernel, block and thread, and let the same kernels without the fault pass.
#include "aot/emulator/emulator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "codegen/gpu/emulated.h"
#include "codegen/llvm/object.h"
#include "compiler/base/text.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr int64_t kThreads = 64;

// A copy of 128 f32 whose kernel a test writes itself, lowered for the host, linked and loaded.
class Planted {
 public:
  using Emit = std::function<absl::Status(gpu::Body&)>;

  explicit Planted(const Emit& emit) {
    auto module = ParseHlo("HloModule m\nENTRY e { p = f32[128] parameter(0) ROOT c = f32[128] copy(p) }", "m.hlo");
    EXPECT_TRUE(module.ok());
    const Instruction* copy = (*module)->entry()->root();
    auto level = FindCpuLevel("native");
    llvm::LLVMContext context;
    llvm::Module m("planted", context);
    Ir ir(context, m, *level);
    const auto target = FindGpuTarget("sm_80");
    auto launch = gpu::EmitFunction(ir, *target, "planted", copy, {}, [&](gpu::Body& body) {
      body.blocks = 2;
      body.threads = kThreads;
      return emit(body);
    });
    EXPECT_TRUE(launch.ok());
    gpu::Program program;
    program.kernels.push_back({"planted", copy, {512, 512, 0}});
    EXPECT_TRUE(gpu::LowerToHost(ir, program, "planted", "", true).ok());
    int64_t bytes = 0;
    auto object = CompileToObject(m, *level, Sanitizer::kNone, &bytes);
    EXPECT_TRUE(object.ok()) << object.status();
    std::string dir = std::string(std::getenv("TEST_TMPDIR") ? std::getenv("TEST_TMPDIR") : "/tmp") + "/planted_XXXXXX";
    EXPECT_NE(mkdtemp(dir.data()), nullptr);
    EXPECT_TRUE(WriteFile(dir + "/k.o", *object).ok());
    EXPECT_EQ(std::system(("cc -shared -o " + dir + "/k.so " + dir + "/k.o").c_str()), 0);
    void* lib = dlopen((dir + "/k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(lib, nullptr) << dlerror();
    library_ = static_cast<const gpu::EmulatedLibrary*>(dlsym(lib, "planted_emulated"));
    EXPECT_NE(library_, nullptr);
  }

  int Run() {
    Emulator emulator(library_);
    std::vector<float> in(128, 1), out(128, 0);
    void* buffers[] = {in.data(), out.data(), nullptr};
    const int64_t grid[] = {2, kThreads};
    const kiln_gpu_launch what = {0, grid, 3};
    return emulator.table()->launch(emulator.table()->self, &what, buffers);
  }

 private:
  const gpu::EmulatedLibrary* library_ = nullptr;
};

llvm::Value* Place(gpu::Body& body) {
  return body.ir.Add(body.ir.Mul(body.grid.Block(), kThreads), body.grid.Thread());
}

// Each thread hands its value to its neighbour through shared memory.
absl::Status Exchange(gpu::Body& body, bool barrier) {
  Ir& ir = body.ir;
  llvm::Type* f32 = ir.b.getFloatTy();
  llvm::Value *shared = body.grid.Shared(f32, kThreads), *t = body.grid.Thread();
  ir.Store(PrimitiveType::F32, ir.Load(PrimitiveType::F32, body.operands[0], Place(body)), shared, t);
  if (barrier) body.grid.Barrier();
  llvm::Value* other = ir.b.CreateXor(t, ir.I64(1));
  ir.Store(PrimitiveType::F32, ir.Load(PrimitiveType::F32, shared, other), body.results[0], Place(body));
  return absl::OkStatus();
}

TEST(Emulator, FindsARaceInSharedMemory) {
  EXPECT_EQ(Planted([](gpu::Body& b) { return Exchange(b, true); }).Run(), 0);
  Planted racy([](gpu::Body& b) { return Exchange(b, false); });
  EXPECT_EXIT(racy.Run(), testing::ExitedWithCode(kEmulatorFault), "kernel planted, block 0, thread .*: a race");
}

TEST(Emulator, FindsARaceBetweenBlocks) {
  Planted racy([](gpu::Body& body) {
    Ir& ir = body.ir;  // both blocks write the same elements
    ir.Store(PrimitiveType::F32, Val{llvm::ConstantFP::get(ir.b.getFloatTy(), 1)}, body.results[0], body.grid.Thread());
    return absl::OkStatus();
  });
  EXPECT_EXIT(racy.Run(), testing::ExitedWithCode(kEmulatorFault), "block 1, thread 0: writes a byte .* a race");
}

// The second block reads what the first wrote, once that has counted in the last element of the result.
absl::Status HandOver(gpu::Body& body, bool signals, bool waits) {
  Ir& ir = body.ir;
  const PrimitiveType f32 = PrimitiveType::F32;
  llvm::Value *t = body.grid.Thread(), *first = ir.b.CreateICmpEQ(t, ir.I64(0)),
              *few = ir.b.CreateICmpULT(t, ir.I64(8)), *begins = ir.b.CreateICmpEQ(body.grid.Block(), ir.I64(0)),
              *counter = ir.b.CreateInBoundsGEP(ir.b.getInt32Ty(), body.results[0], ir.I64(127));
  ir.If(begins, [&] {
    ir.If(few, [&] { ir.Store(f32, ir.Load(f32, body.operands[0], t), body.results[0], t); });
    body.grid.Barrier();
    if (signals) ir.If(first, [&] { body.grid.Signal(counter); });
  });
  ir.If(ir.b.CreateNot(begins), [&] {
    if (waits) ir.If(first, [&] { body.grid.AwaitSignals(counter, 1); });
    body.grid.Barrier();
    ir.If(few, [&] { ir.Store(f32, ir.Load(f32, body.results[0], t), body.results[0], ir.Add(t, ir.I64(8))); });
  });
  return absl::OkStatus();
}

TEST(Emulator, BlocksWaitForEachOther) {
  EXPECT_EQ(Planted([](gpu::Body& b) { return HandOver(b, true, true); }).Run(), 0);
  Planted racy([](gpu::Body& b) { return HandOver(b, true, false); });
  EXPECT_EXIT(racy.Run(), testing::ExitedWithCode(kEmulatorFault), "block 1, thread 0: reads a byte .* a race");
  Planted stuck([](gpu::Body& b) { return HandOver(b, false, true); });
  EXPECT_EXIT(stuck.Run(), testing::ExitedWithCode(kEmulatorFault), "block 1, thread 0: waits for blocks that");
}

absl::Status WriteAt(gpu::Body& body, int64_t shift) {
  Ir& ir = body.ir;
  ir.Store(PrimitiveType::F32, ir.Load(PrimitiveType::F32, body.operands[0], Place(body)), body.results[0],
           ir.Add(Place(body), ir.I64(shift)));
  return absl::OkStatus();
}

TEST(Emulator, FindsAWriteOutOfBounds) {
  EXPECT_EQ(Planted([](gpu::Body& b) { return WriteAt(b, 0); }).Run(), 0);
  Planted beyond([](gpu::Body& b) { return WriteAt(b, 1); });
  EXPECT_EXIT(
      beyond.Run(), testing::ExitedWithCode(kEmulatorFault),
      "block 1, thread 63: writes 4 bytes outside its arrays, 512 bytes from the start of array 1 of 512 bytes");
}

// A barrier for the threads below `limit` only.
absl::Status SomeWait(gpu::Body& body, int64_t limit) {
  Ir& ir = body.ir;
  ir.If(ir.b.CreateICmpULT(body.grid.Thread(), ir.I64(limit)), [&] { body.grid.Barrier(); });
  return WriteAt(body, 0);
}

TEST(Emulator, FindsADivergentBarrier) {
  EXPECT_EQ(Planted([](gpu::Body& b) { return SomeWait(b, kThreads); }).Run(), 0);
  Planted divergent([](gpu::Body& b) { return SomeWait(b, 32); });
  EXPECT_EXIT(divergent.Run(), testing::ExitedWithCode(kEmulatorFault), "kernel planted, block 0, thread .*barrier");
}

TEST(Emulator, FindsTwoBarriersThatShouldBeOne) {
  Planted divergent([](gpu::Body& body) {
    Ir& ir = body.ir;
    llvm::Value* low = ir.b.CreateICmpULT(body.grid.Thread(), ir.I64(32));
    ir.If(low, [&] { body.grid.Barrier(); });
    const absl::Status status = WriteAt(body, 0);
    ir.If(ir.b.CreateNot(low), [&] { body.grid.Barrier(); });
    return status;
  });
  EXPECT_EXIT(divergent.Run(), testing::ExitedWithCode(kEmulatorFault), "a divergent barrier");
}

TEST(Emulator, FindsAShuffleWithoutAllLanes) {
  Planted partial([](gpu::Body& body) {
    Ir& ir = body.ir;
    ir.If(ir.b.CreateICmpULT(body.grid.Thread(), ir.I64(16)), [&] {
      const Val v = body.grid.ShuffleXor(ir.Load(PrimitiveType::F32, body.operands[0], Place(body)), 1);
      ir.Store(PrimitiveType::F32, v, body.results[0], Place(body));
    });
    return absl::OkStatus();
  });
  EXPECT_EXIT(partial.Run(), testing::ExitedWithCode(kEmulatorFault), "shuffles with a lane that has ended");
}

}  // namespace
}  // namespace kiln
