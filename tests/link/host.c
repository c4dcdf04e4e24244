/* A host that knows no model: host LIBRARY.so [MODEL] runs a model of a shared object, all elements of its arguments
   being 1, and prints its results. Compiled with -DMODEL=NAME_model and linked with an archive, it runs that one. */
#include "kiln_host.h"

#ifdef MODEL
const kiln_model* MODEL(void);
static const kiln_model* find(int argc, char** argv) {
  (void)argc;
  (void)argv;
  return MODEL();
}
#else
#include <dlfcn.h>
static const kiln_model* find(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  const kiln_model_list* list = library ? (const kiln_model_list*)dlsym(library, KILN_MODELS_SYMBOL) : NULL;
  if (!list) {
    printf("cannot load: %s\n", dlerror());
    exit(2);
  }
  return kiln_find_model(list, argc > 2 ? argv[2] : NULL);
}
#endif

/* An array of 1s of f32 or s32; other types stay 0. */
static kiln_view make(const kiln_array* a, int ones) {
  kiln_view v = {NULL, a->type, a->rank, a->extents, NULL};
  int64_t k;
  v.data = calloc((size_t)a->bytes / 64 + 1, 64);
  if (a->minor_to_major || !v.data) exit(3);
  for (k = 0; ones && k < a->bytes / a->element_bytes; ++k) {
    if (a->type == KILN_TYPE_F32) ((float*)v.data)[k] = 1;
    if (a->type == KILN_TYPE_S32) ((int32_t*)v.data)[k] = 1;
  }
  return v;
}

static void print(const kiln_array* a, const kiln_view* v) {
  int64_t k;
  printf("%s %s:", a->name, kiln_type_text(a->type));
  for (k = 0; k < a->bytes / a->element_bytes; ++k) {
    if (a->type == KILN_TYPE_F32) printf(" %g", (double)((const float*)v->data)[k]);
    if (a->type == KILN_TYPE_S32) printf(" %d", (int)((const int32_t*)v->data)[k]);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  const kiln_model* m = find(argc, argv);
  const kiln_variant* v;
  kiln_context context;
  kiln_view arguments[16], results[16];
  char why[256];
  int64_t k;
  int32_t status;
  if (kiln_model_problem(m)) {
    printf("%s\n", kiln_model_problem(m));
    return 1;
  }
  v = kiln_variant_at(m, m->variants - 1);
  printf("%s, version %u, ABI %u\n", m->name, (unsigned)m->version, (unsigned)m->abi_version);
  if (kiln_context_create(&context, m, m->pool_create ? m->pool_create(2) : NULL) || m->arguments > 16 ||
      m->results > 16)
    return 1;
  for (k = 0; k < m->arguments; ++k) arguments[k] = make(kiln_argument(m, v, k), 1);
  for (k = 0; k < m->results; ++k) results[k] = make(kiln_result(m, v, k), 0);
  status = kiln_context_run(&context, v->batch, arguments, results, why, sizeof why);
  printf("%s\n", why);
  for (k = 0; k < m->results && !status; ++k) print(kiln_result(m, v, k), &results[k]);
  for (k = 0; k < m->arguments; ++k) free(arguments[k].data);
  for (k = 0; k < m->results; ++k) free(results[k].data);
  if (context.pool) m->pool_destroy((kiln_pool*)context.pool);
  kiln_context_destroy(&context);
  return status;
}
