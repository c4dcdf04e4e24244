// What tests of products share: the fake cuBLASLt, and a program whose results the evaluator knows.
#pragma once

#include <cstdlib>
#include <random>

#include "compiler/eval/evaluator.h"
#include "tests/gpu/fake_cublaslt.h"
#include "tests/gpu/gpu_program.h"

namespace kiln {

// An environment variable while this lives. Null: it has none.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Set(value);
  }
  ~ScopedVariable() { Set(old_ ? old_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  void Set(const char* value) {
    if (value)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* const name_;
  std::optional<std::string> old_;
};

// The library that the environment names. A test that changes it gives it back as it was.
inline FakeCublasLt& Library() {
  void* const lib = dlopen(std::getenv("KILN_CUBLASLT"), RTLD_NOW | RTLD_LOCAL);
  const auto get = lib ? reinterpret_cast<FakeCublasLt* (*)()>(dlsym(lib, "fake_cublaslt")) : nullptr;
  EXPECT_NE(get, nullptr) << "this is not the fake library";
  return *get();
}

class Products {
 public:
  Products(const std::string& text, const CompileOptions& o) : program_(text, o), target_(o.gpu.targets[0]) {
    auto module = ParseHlo(text, "m.hlo");
    EXPECT_TRUE(module.ok()) << module.status();
    std::mt19937 random(3);
    for (const Instruction* p : (*module)->entry()->parameters()) {
      Literal v(p->shape());
      for (int64_t k = 0; k < p->shape().ElementCount(); ++k) {
        Element e;
        e.re = static_cast<double>(random() % 7) - 3;
        e.im = static_cast<double>(random() % 5) - 2;
        e.i = static_cast<int64_t>(e.re);
        v.Set(k, e);
      }
      arguments.push_back(std::move(v));
    }
    auto result = Evaluate(**module, arguments);
    EXPECT_TRUE(result.ok()) << result.status();
    want = std::move(*result);
  }

  // Runs the program on a device that has opened nothing yet; its report must begin its second line with `report`.
  void ExpectRight(const std::string& report) const {
    const auto program = program_.Again();
    EmulatedDevice device(program->library());
    device.fake.major = target_ == "sm_80" ? 8 : 9;
    Gpu gpu(*program);
    ASSERT_EQ(gpu.status(), 0) << gpu.problem();
    for (int run = 0; run < 3; ++run) {
      Literal got(Shape::Array(want.type(), want.shape().dims()));
      EXPECT_EQ(gpu.run_host(Addresses(), {got.mutable_data()}), 0) << gpu.error();
      EXPECT_TRUE(got == want) << got.ToString() << " instead of " << want.ToString();
    }
    const std::string said = gpu.report();
    EXPECT_EQ(said.find(report), said.find('\n') + 1) << said;
  }

  std::vector<const void*> Addresses() const {
    std::vector<const void*> out;
    for (const Literal& a : arguments) out.push_back(a.data());
    return out;
  }
  const GpuProgram& program() const { return program_; }

  std::vector<Literal> arguments;
  Literal want;

 private:
  const GpuProgram program_;
  const std::string target_;
};

}  // namespace kiln
