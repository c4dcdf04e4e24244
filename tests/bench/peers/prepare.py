"""Writes what the peers load for one workload: kiln's shared object, IREE's module, an ONNX model.

usage: prepare.py WORKLOAD FOLDER CONFIG PEER...

CONFIG is what kiln compiles with, a file, or empty.
"""

import os
import pathlib
import sys

import kiln
from jax_ops import exported
from workloads import WORKLOADS


def main():
    name, folder, config, peers = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    workload = next(w for w in WORKLOADS if w.name == name)
    inputs = workload.inputs()
    program = exported(workload, inputs)
    if "kiln" in peers:
        kiln.compile(
            program,
            name=name,
            config=pathlib.Path(config) if config else None,
            targets=["native"],
            out=os.path.join(folder, "kiln"),
        )
    if "iree" in peers:
        import iree.compiler

        iree.compiler.compile_str(
            program.mlir_module_serialized,
            target_backends=["llvm-cpu"],
            input_type="stablehlo",
            output_file=os.path.join(folder, "iree.vmfb"),
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
        )
    if "ort" in peers or "openvino" in peers:
        from onnx_ops import features_first, write_model

        laid = [features_first(x) if k in workload.images else x for k, x in enumerate(inputs)]
        write_model(workload, laid, os.path.join(folder, "model.onnx"))


main()
