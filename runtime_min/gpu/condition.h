// A kernel that decides whether a conditional node of a graph runs. As PTX, since only graphs need it: compiled by the
// driver when the first one with such a node is recorded. The driver itself has cudaGraphSetConditional.
#ifndef KILN_RUNTIME_MIN_GPU_CONDITION_H_
#define KILN_RUNTIME_MIN_GPU_CONDITION_H_

// kiln_condition(handle, at, kind, mine, last). Kind 0: a loop goes on while the byte at `at` is not 0. Kind 1: that
// byte picks branch 0 if it is not 0, else the last. Kind 2: the s32 at `at` picks a branch, the last if there is none
// of that number. A branch runs if it is picked and its number is `mine`.
static const char kiln_condition_ptx[] =
    ".version 7.8\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n"
    ".visible .entry kiln_condition(.param .u64 handle, .param .u64 at, .param .u32 kind, .param .u32 mine,\n"
    "                               .param .u32 last)\n"
    "{\n"
    "  .reg .b64 %h, %a;\n"
    "  .reg .b32 %kind, %mine, %last, %byte, %pick, %value;\n"
    "  .reg .pred %p, %q;\n"
    "  ld.param.u64 %h, [handle];\n"
    "  ld.param.u64 %a, [at];\n"
    "  ld.param.u32 %kind, [kind];\n"
    "  ld.param.u32 %mine, [mine];\n"
    "  ld.param.u32 %last, [last];\n"
    "  setp.eq.u32 %q, %kind, 2;\n"
    "  @%q bra number;\n"
    "  ld.global.u8 %byte, [%a];\n"
    "  setp.ne.u32 %p, %byte, 0;\n"
    "  setp.eq.u32 %q, %kind, 0;\n"
    "  @%q bra decided;\n"
    "  selp.u32 %pick, 0, %last, %p;\n"
    "  bra picked;\n"
    "number:\n"
    "  ld.global.u32 %pick, [%a];\n"
    "  min.u32 %pick, %pick, %last;\n"
    "picked:\n"
    "  setp.eq.u32 %p, %pick, %mine;\n"
    "decided:\n"
    "  selp.u32 %value, 1, 0, %p;\n"
    "  {\n"
    "    .param .b64 one;\n"
    "    .param .b32 two;\n"
    "    st.param.b64 [one], %h;\n"
    "    st.param.b32 [two], %value;\n"
    "    call.uni cudaGraphSetConditional, (one, two);\n"
    "  }\n"
    "  ret;\n"
    "}\n";

#endif  // KILN_RUNTIME_MIN_GPU_CONDITION_H_
