#include "codegen/llvm/out_of_memory.h"

#include "llvm/Support/ErrorHandling.h"

namespace kiln {
namespace {

void (*g_out_of_memory)() = nullptr;
void (*g_broken)(const char*) = nullptr;

}  // namespace

void WhenLlvmFails(void (*out_of_memory)(), void (*broken)(const char* reason)) {
  g_out_of_memory = out_of_memory;
  g_broken = broken;
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { g_out_of_memory(); });
  llvm::install_fatal_error_handler([](void*, const char* reason, bool) { g_broken(reason); });
}

}  // namespace kiln
