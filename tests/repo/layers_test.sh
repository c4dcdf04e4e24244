#!/bin/sh
# Folders include only what docs/architecture.md lets them include.
set -eu
status=0
check() {
  folder=$1
  shift
  for file in $(find "$folder" -name '*.cc' -o -name '*.h' | sort); do
    for include in $(sed -n 's/^#include "\(.*\)"$/\1/p' "$file"); do
      ok=no
      for allowed in "$folder/" "$@"; do
        case $include in "$allowed"*) ok=yes ;; esac
      done
      if [ $ok = no ]; then
        echo "$file: may not include $include"
        status=1
      fi
    done
  done
}
check compiler/base absl/
check compiler/hlo absl/ compiler/base/
check compiler/import absl/ compiler/base/ compiler/eval/ compiler/hlo/ google/protobuf/
check compiler/eval absl/ compiler/base/ compiler/hlo/
check compiler/sharding absl/ compiler/base/ compiler/hlo/
check compiler/analysis absl/ compiler/hlo/
check compiler/target absl/ compiler/base/
check compiler/pass absl/ compiler/base/ compiler/hlo/
check compiler/passes absl/ compiler/base/ compiler/hlo/ compiler/eval/ compiler/pass/ compiler/analysis/ compiler/plan/ compiler/sharding/ compiler/target/
check compiler/pipeline absl/ compiler/base/ compiler/pass/ compiler/passes/shelf/shelf.def
check compiler/plan absl/ compiler/base/ compiler/hlo/
check compiler/thunk absl/ compiler/hlo/ compiler/plan/
check codegen/llvm runtime_min/abi.h runtime_min/cpu/level.h absl/ compiler/base/ compiler/hlo/ codegen/kernels/ llvm/
check codegen/link absl/ compiler/base/ codegen/llvm/ lld/ llvm/
check codegen/elemental absl/ compiler/hlo/ codegen/kernels/fft_limits.h codegen/llvm/ llvm/
check codegen/host runtime_min/abi.h absl/ compiler/base/ compiler/hlo/ compiler/thunk/ codegen/llvm/ llvm/
check codegen/cpu runtime_min/abi.h absl/ compiler/analysis/ compiler/base/ compiler/hlo/ codegen/llvm/ codegen/elemental/ codegen/host/ llvm/
check codegen/gpu runtime_min/abi.h runtime_min/gpu/abi.h runtime_min/gpu/tune.h runtime_min/gpu/nccl/ compiler/target/ absl/ compiler/base/ compiler/hlo/ codegen/llvm/ codegen/elemental/ codegen/host/ llvm/
for file in $(find compiler aot runtime_min -name '*.cc' -o -name '*.h' -o -name '*.c'); do
  if grep -q '^#include "llvm/' "$file"; then
    echo "$file: LLVM headers belong to codegen"
    status=1
  fi
done
for file in $(find codegen -name '*_plan.cc' -o -name '*_plan.h'); do
  if grep -q -e '^#include "llvm/' -e '^#include "codegen/llvm/ir.h"' "$file"; then
    echo "$file: plans are made without LLVM"
    status=1
  fi
done
[ $status = 0 ] && echo "layers hold"
exit $status
