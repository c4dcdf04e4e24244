// The program's own functions under every calling convention, against the prototypes of the generated header.
#include "custom_calls.h"

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "kiln/kiln.h"
#include "tests/link/expect.h"

namespace {
bool fail_status = false, fail_typed = false;
}  // namespace

extern "C" int32_t typed_call(const custom_calls_buffer* operands, const custom_calls_buffer* results,
                              const custom_calls_typed_call_attributes* attributes) {
  if (fail_typed) return 7;
  Expect(operands[0].rank == 2 && operands[0].dims[0] == 2 && operands[0].dims[1] == 4, "shape of the operand");
  Expect(operands[0].type == CUSTOM_CALLS_TYPE_F32 && results[1].type == CUSTOM_CALLS_TYPE_S32, "types");
  Expect(attributes->axis == 1 && attributes->flag == 1, "integers");
  Expect(attributes->mode_size == 4 && std::memcmp(attributes->mode, "fast", 4) == 0, "string");
  Expect(attributes->weights_size == 2 && attributes->weights[1] == -4, "list");
  for (int k = 0; k < 8; ++k)
    static_cast<float*>(results[0].data)[k] = attributes->scale * static_cast<const float*>(operands[0].data)[k];
  for (int k = 0; k < 2; ++k) static_cast<int32_t*>(results[1].data)[k] = attributes->weights[k];
  return 0;
}

extern "C" void status_call(void* out, const void** in, custom_calls_call_status* status) {
  if (fail_status) status->code = 1;
  for (int k = 0; k < 8; ++k) static_cast<float*>(out)[k] = static_cast<const float*>(in[0])[k] + 1;
}

extern "C" void unified_call(void* out, const void** in, const char* opaque, size_t opaque_size,
                             custom_calls_call_status*) {
  Expect(opaque_size == 6 && std::memcmp(opaque, "opaque", 6) == 0, "opaque");
  for (int k = 0; k < 8; ++k) static_cast<float*>(out)[k] = -static_cast<const float*>(in[0])[k];
}

// A tuple's arrays come as a table.
extern "C" void original_call(void* out, const void** in) {
  std::memcpy(static_cast<void**>(out)[0], in[0], 32);
  std::memcpy(static_cast<void**>(out)[1], in[1], 32);
}

int main() {
  float x[8], y[8], z[8];
  int32_t n[2];
  for (int k = 0; k < 8; ++k) x[k] = static_cast<float>(k);
  custom_calls::Context context;
  Expect(custom_calls::run(context, x, y, n, z).ok(), "run");
  for (int k = 0; k < 8; ++k) Expect(y[k] == -(2.5f * x[k] + 1) && z[k] == x[k], "values");
  Expect(n[0] == 3 && n[1] == -4, "integers out");
  fail_status = true;
  Expect(custom_calls::run(context, x, y, n, z).code == CUSTOM_CALLS_CUSTOM_CALL, "a status ends the run");
  fail_status = false;
  fail_typed = true;
  Expect(custom_calls::run(context, x, y, n, z).code == CUSTOM_CALLS_CUSTOM_CALL, "a code ends the run");
  std::set<std::string> callbacks;
  for (const char* const* name = custom_calls_model()->callbacks; *name; ++name) callbacks.insert(*name);
  Expect(callbacks == std::set<std::string>{"original_call", "status.call", "typed_call", "unified_call"}, "callbacks");
  return failures != 0;
}
