#include "aot/tools/exit.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>

#include "codegen/llvm/out_of_memory.h"

namespace kiln {
namespace {

// Nothing here allocates, and other threads may be anywhere: no destructors, no streams.
[[noreturn]] void End(const char* what, const char* why) {
  for (const char* text : {"error: ", what, why, "\n"})
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  _exit(1);
}

void OutOfMemory() { End("out of memory", ""); }
void Broken(const char* reason) { End("LLVM: ", reason); }

// An exception that nothing here throws: of a thread that the system refuses, above all.
void Terminated() {
  if (const std::exception_ptr e = std::current_exception()) {
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& x) {
      End("cannot go on: ", x.what());
    } catch (...) {
    }
  }
  End("cannot go on: a thread cannot be started", "");
}

}  // namespace

void EndWithErrors() {
  std::set_new_handler(OutOfMemory);
  std::set_terminate(Terminated);
  WhenLlvmFails(OutOfMemory, Broken);
}

int Finished(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  std::fprintf(stderr, "error: cannot write to the standard output: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace kiln
