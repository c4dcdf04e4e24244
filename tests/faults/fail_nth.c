// A library to preload: the N-th call of a kind fails, once. Kinds: memory (malloc and its family), thread
// (pthread_create), file (opening, writing, flushing, closing and renaming files). Calls count from main() on.
//
//   KILN_FAIL_KIND=file KILN_FAIL_AT=3 KILN_FAIL_LOG=FILE LD_PRELOAD=... program
//
// FILE then says what failed; it stays empty if the program made fewer calls.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { kMemory, kThread, kFile, kNone };

static enum kind chosen = kNone;
static long fail_at;
static const char* log_path;
static long calls;

static int fails(enum kind kind, const char* what, int error) {
  if (kind != chosen || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != fail_at) return 0;
  const int fd = (int)syscall(SYS_open, log_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd >= 0) {
    syscall(SYS_write, fd, what, strlen(what));
    syscall(SYS_write, fd, "\n", 1);
    syscall(SYS_close, fd);
  }
  errno = error;
  return 1;
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) { return fails(kMemory, "malloc", ENOMEM) ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return fails(kMemory, "calloc", ENOMEM) ? NULL : __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return fails(kMemory, "realloc", ENOMEM) ? NULL : __libc_realloc(p, n); }
void* aligned_alloc(size_t a, size_t n) {
  return fails(kMemory, "aligned_alloc", ENOMEM) ? NULL : __libc_memalign(a, n);
}
int posix_memalign(void** p, size_t a, size_t n) {
  if (fails(kMemory, "posix_memalign", ENOMEM)) return ENOMEM;
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}

#define NEXT(f) ((__typeof__(&f))dlsym(RTLD_NEXT, #f))

int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
  return fails(kThread, "pthread_create", EAGAIN) ? EAGAIN : NEXT(pthread_create)(t, a, f, x);
}

FILE* fopen(const char* path, const char* mode) {
  return fails(kFile, "fopen", EMFILE) ? NULL : NEXT(fopen)(path, mode);
}
size_t fwrite(const void* data, size_t size, size_t n, FILE* f) {
  if (!fails(kFile, "fwrite", ENOSPC)) return NEXT(fwrite)(data, size, n, f);
  return NEXT(fwrite)(data, size, n / 2, f);  // half of it
}
int fflush(FILE* f) { return f && fails(kFile, "fflush", ENOSPC) ? EOF : NEXT(fflush)(f); }
int fclose(FILE* f) {
  const int failed = fails(kFile, "fclose", ENOSPC), closed = NEXT(fclose)(f);
  if (failed) errno = ENOSPC;
  return failed ? EOF : closed;
}
int rename(const char* from, const char* to) { return fails(kFile, "rename", EACCES) ? -1 : NEXT(rename)(from, to); }
int mkdir(const char* path, mode_t mode) { return fails(kFile, "mkdir", EACCES) ? -1 : NEXT(mkdir)(path, mode); }
char* mkdtemp(char* path) { return fails(kFile, "mkdtemp", EACCES) ? NULL : NEXT(mkdtemp)(path); }
int close(int fd) {
  const int failed = fails(kFile, "close", EIO), closed = NEXT(close)(fd);
  return failed ? -1 : closed;
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** envp) {
  const char *kind = getenv("KILN_FAIL_KIND"), *at = getenv("KILN_FAIL_AT");
  log_path = getenv("KILN_FAIL_LOG");
  if (kind && at && log_path) {
    fail_at = atol(at);
    chosen = !strcmp(kind, "memory") ? kMemory : !strcmp(kind, "thread") ? kThread : kFile;
  }
  unsetenv("LD_PRELOAD");  // for programs that this one starts
  return real_main(argc, argv, envp);
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  real_main = main;
  int (*next)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void), void*) =
      (__typeof__(next))dlsym(RTLD_NEXT, "__libc_start_main");
  return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
