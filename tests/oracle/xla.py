"""XLA:CPU as the wheel of jaxlib has it: runs HLO text or StableHLO on arrays.

Of the module that HLO text parses to, the runtime takes StableHLO, so the text goes through hlo_to_stablehlo; programs
that it cannot express are refused, not run as something else.
"""
import ctypes
import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Every rounding that the program states takes place; what constants say is computed by code, not by the compiler.
os.environ["XLA_FLAGS"] = " ".join([
    os.environ.get("XLA_FLAGS", ""), "--xla_allow_excess_precision=false", "--xla_cpu_enable_fast_math=false",
    "--xla_force_host_platform_device_count=8", "--xla_disable_hlo_passes=constant_folding"])

os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import ml_dtypes
import numpy as np
from jaxlib import xla_client as xc

_DTYPES = {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128, "bf16": ml_dtypes.bfloat16,
}
for _kiln, _name in (("s1", "int1"), ("u1", "uint1"), ("s2", "int2"), ("u2", "uint2"), ("s4", "int4"), ("u4", "uint4"),
                     ("f4e2m1fn", "float4_e2m1fn"), ("f6e2m3fn", "float6_e2m3fn"), ("f6e3m2fn", "float6_e3m2fn"),
                     ("f8e5m2", "float8_e5m2"), ("f8e4m3", "float8_e4m3"), ("f8e4m3fn", "float8_e4m3fn"),
                     ("f8e4m3b11fnuz", "float8_e4m3b11fnuz"), ("f8e5m2fnuz", "float8_e5m2fnuz"),
                     ("f8e4m3fnuz", "float8_e4m3fnuz"), ("f8e3m4", "float8_e3m4"), ("f8e8m0fnu", "float8_e8m0fnu")):
    if hasattr(ml_dtypes, _name):
        _DTYPES[_kiln] = getattr(ml_dtypes, _name)


def dtype_of(name):
    """The numpy type of an HLO element type."""
    if name not in _DTYPES:
        raise Refused("no numpy type for " + name)
    return np.dtype(_DTYPES[name])


def name_of(dtype):
    """The HLO element type of a numpy type."""
    for name, t in _DTYPES.items():
        if np.dtype(t) == dtype:
            return name
    raise Refused("no element type for " + str(dtype))


def _of_size(array, shape):
    """A result with the extents that it has: one of dynamic dimensions is packed, with its sizes behind the bound."""
    dims, dynamic = shape
    value = np.asarray(array)
    if not any(dynamic):
        return value
    count = int(np.prod(dims, dtype=np.int64))
    sizes = np.ctypeslib.as_array(
        ctypes.cast(array.unsafe_buffer_pointer() + count * value.dtype.itemsize, ctypes.POINTER(ctypes.c_int32)),
        (len(dims),)).tolist()
    return value.reshape(-1)[:int(np.prod(sizes, dtype=np.int64))].reshape(sizes)


class Refused(Exception):
    """XLA does not take the program, or this way of running it does not."""


class Program:
    """A program compiled by XLA:CPU for its number of devices."""

    def __init__(self, text, is_mlir, replicas=1, partitions=1):
        if is_mlir and re.search(r"\binterpreter\.|\bcheck\.", text):
            raise Refused("StableHLO's interpreter dialect")
        if not is_mlir:
            header = text[text.find("HloModule"):].split("\n", 1)[0]
            found = re.search(r"\breplica_count=(\d+)", header)
            replicas = int(found.group(1)) if found else replicas
            found = re.search(r"\b(?:num_partitions|partition_count)=(\d+)", header)
            partitions = int(found.group(1)) if found else partitions
        all_devices = jax.local_devices(backend="cpu")
        self.devices = replicas * partitions
        if self.devices > len(all_devices):
            raise Refused("more devices than the client has")
        self._devices = all_devices[:self.devices]
        try:
            program = text
            if not is_mlir:
                module = xc.hlo.hlo_module_from_text(text)
                program = xc._xla.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
            options = xc.CompileOptions()
            options.num_replicas = replicas
            options.num_partitions = partitions
            options.executable_build_options.num_replicas = replicas
            options.executable_build_options.num_partitions = partitions
            options.executable_build_options.use_spmd_partitioning = partitions > 1
            grid = np.arange(self.devices, dtype=np.int32).reshape(replicas, partitions)
            options.device_assignment = xc.DeviceAssignment.create(grid)
            self._executable = all_devices[0].client.compile_and_load(program, xc.DeviceList(tuple(self._devices)),
                                                                      options)
        except (xc.XlaRuntimeError, ValueError) as e:
            raise Refused(str(e)) from e

    def run(self, arguments):
        """`arguments`: the arrays of each device. The result arrays of each device."""
        mesh = jax.sharding.Mesh(np.array(self._devices), ("d",))
        # Every device holds an array of the whole shape; that their values differ is nobody's business.
        same = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        given = []
        for k in range(len(arguments[0])):
            parts = [jax.device_put(a[k], d) for a, d in zip(arguments, self._devices)]
            given.append(jax.make_array_from_single_device_arrays(parts[0].shape, same, parts))
        try:
            results = self._executable.execute_sharded(given).disassemble_into_single_device_arrays()
            shapes = self.result_shapes()
            return [[_of_size(r[d], s) for r, s in zip(results, shapes)] for d in range(self.devices)]
        except (xc.XlaRuntimeError, ValueError) as e:
            raise Refused(str(e)) from e

    def result_shapes(self):
        """(extents or bounds, whether each is dynamic) of each result."""
        layout = self._executable.hlo_modules()[0].to_string().split("entry_computation_layout={", 1)[1].split("\n")[0]
        result = layout[layout.index(")->") + 3:]
        shapes = re.findall(r"(\w+)\[([\d,<=]*)\]", result.split("}, ", 1)[0] if not result.startswith("(") else result)
        out = []
        for _, dims in shapes:
            words = [w for w in dims.split(",") if w]
            out.append(([int(w.removeprefix("<=")) for w in words], [w.startswith("<=") for w in words]))
        return out
