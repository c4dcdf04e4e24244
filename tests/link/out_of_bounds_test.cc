// Libraries with bounds_check run clean, and the check itself stops a program: an overrun planted in emitted code.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "codegen/llvm/object.h"
#include "codegen/llvm/runtime_object.h"
#include "compiler/base/text.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

TEST(OutOfBounds, NamesArrayAndElement) {
  auto level = FindCpuLevel("v2");
  ASSERT_TRUE(level.ok());
  llvm::LLVMContext ctx;
  llvm::Module m("planted", ctx);
  Ir ir(ctx, m, *level);
  ir.on_overrun = "planted_out_of_bounds";
  auto* f =
      llvm::Function::Create(llvm::FunctionType::get(ir.b.getFloatTy(), {ir.b.getPtrTy(), ir.b.getInt64Ty()}, false),
                             llvm::Function::ExternalLinkage, "planted", m);
  ir.b.SetInsertPoint(llvm::BasicBlock::Create(ctx, "entry", f));
  ir.bounds[f->getArg(0)] = {4, "fusion.1: operand 0 (x) f32[4]"};
  ir.b.CreateRet(ir.Load(PrimitiveType::F32, f->getArg(0), f->getArg(1)).re);
  int64_t text = 0;
  auto object = CompileToObject(m, *level, Sanitizer::kNone, &text);
  ASSERT_TRUE(object.ok()) << object.status();
  auto runtime = RuntimeObject("planted", "planted", RuntimePart::Bounds, Sanitizer::kNone);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  auto archive = WriteArchive({{"a.o", *object}, {"b.o", *runtime}});
  ASSERT_TRUE(archive.ok());
  const std::string dir = testing::TempDir();
  ASSERT_TRUE(WriteFile(dir + "/libplanted.a", *archive).ok());
  ASSERT_TRUE(WriteFile(dir + "/main.c", R"(float planted(const float*, long);
int main(int n, char** v) {
  float x[4] = {0, 1, 2, 3};
  return planted(x, n > 1 ? 5 : 3) == 3 ? 0 : 1;
})")
                  .ok());
  const std::string program = dir + "/planted",
                    build = "gcc -o " + program + " " + dir + "/main.c " + dir + "/libplanted.a";
  ASSERT_EQ(std::system(build.c_str()), 0);
  EXPECT_EQ(std::system(program.c_str()), 0);
  EXPECT_NE(std::system((program + " over 2> " + program + ".err").c_str()), 0);
  auto said = ReadFile(program + ".err");
  ASSERT_TRUE(said.ok());
  EXPECT_NE(said->find("fusion.1: operand 0 (x) f32[4]: element 5 of 4"), std::string::npos) << *said;
}

}  // namespace
}  // namespace kiln
