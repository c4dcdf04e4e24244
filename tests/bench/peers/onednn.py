"""oneDNN's own primitives for the workloads that are a few of them, called as its C API has it (version 3)."""

import ctypes
import glob
import os
import sys

import numpy as np

from workloads import convolution_weights, mlp_layers

F32, ANY, INFERENCE, CONVOLUTION_AUTO, RELU, SOFTMAX = 3, 1, 96, 0x3, 0x20, 0x30000
SRC, DST, WEIGHTS, BIAS = 1, 17, 33, 41
SRC_MD, WEIGHTS_MD, DST_MD = 129, 131, 133
MOST_DIMENSIONS = 12


class Argument(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("memory", ctypes.c_void_p)]


def dims(values):
    return (ctypes.c_int64 * MOST_DIMENSIONS)(*values)


class OneDnn:
    """A sequence of primitives on one CPU stream. Operands whose order is left to the library are reordered beforehand."""

    def __init__(self):
        self._library = ctypes.CDLL(glob.glob(os.path.join(sys.prefix, "lib", "libdnnl.so.3"))[0])
        self._library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self._library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        self._engine = self._new("dnnl_engine_create", ctypes.c_int(1), ctypes.c_size_t(0))
        self._stream = self._new("dnnl_stream_create", self._engine, ctypes.c_uint(1))
        self._keep, self._steps = [], []

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def _new(self, name, *arguments):
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made), *arguments)
        return made

    def plain(self, shape, strides=None):
        """An array's description; strides are in elements."""
        strides = strides or [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
        make = "dnnl_memory_desc_create_with_strides"
        return self._new(make, ctypes.c_int(len(shape)), dims(shape), ctypes.c_int(F32), dims(strides))

    def any(self, shape):
        make = "dnnl_memory_desc_create_with_tag"
        return self._new(make, ctypes.c_int(len(shape)), dims(shape), ctypes.c_int(F32), ctypes.c_int(ANY))

    def memory(self, description, array):
        self._keep.append(array)
        return self._new("dnnl_memory_create", description, self._engine, ctypes.c_void_p(array.ctypes.data))

    def wanted(self, primitive, what):
        return ctypes.c_void_p(self._library.dnnl_primitive_desc_query_md(primitive, ctypes.c_int(what), ctypes.c_int(0)))

    def _empty(self, description):
        bytes_ = self._library.dnnl_memory_desc_get_size(description)
        return self.memory(description, np.empty(bytes_ + 4096, np.uint8))

    def reordered(self, memory, description, wanted):
        """The weights as the primitive wants them, once and for all."""
        made = self._empty(wanted)
        primitive = self._new(
            "dnnl_reorder_primitive_desc_create", description, self._engine, wanted, self._engine, None
        )
        self._execute(self._primitive(primitive), [(SRC, memory), (DST, made)])
        self._call("dnnl_stream_wait", self._stream)
        return made

    def _primitive(self, description):
        return self._new("dnnl_primitive_create", description)

    def _execute(self, primitive, arguments):
        table = (Argument * len(arguments))(*(Argument(n, m) for n, m in arguments))
        self._call("dnnl_primitive_execute", primitive, self._stream, ctypes.c_int(len(arguments)), table)

    def relu(self):
        attributes, operations = self._new("dnnl_primitive_attr_create"), self._new("dnnl_post_ops_create")
        zero = ctypes.c_float(0)
        self._call("dnnl_post_ops_append_eltwise", operations, ctypes.c_int(RELU), zero, zero)
        self._call("dnnl_primitive_attr_set_post_ops", attributes, operations)
        return attributes

    def matmul(self, x, a, w, out, bias=None, attributes=None, pack=True):
        """Adds out = x @ w (+ bias). `pack`: w is a weight, and lies as the library wants it."""
        given = [self.plain(v.shape) for v in (a, w, out)]
        b = self.plain((1, *bias.shape)) if bias is not None else None
        weights = self.any(w.shape) if pack else given[1]
        make = "dnnl_matmul_primitive_desc_create"
        description = self._new(make, self._engine, given[0], weights, b, given[2], attributes)
        held = self.memory(given[1], w)
        if pack:
            held = self.reordered(held, given[1], self.wanted(description, WEIGHTS_MD))
        result = self.memory(given[2], out)
        arguments = [(SRC, x or self.memory(given[0], a)), (WEIGHTS, held), (DST, result)]
        if bias is not None:
            arguments.append((BIAS, self.memory(b, bias)))
        self.add(description, arguments)
        return result

    def add(self, description, arguments):
        table = (Argument * len(arguments))(*(Argument(n, m) for n, m in arguments))
        self._steps.append((self._primitive(description), len(arguments), table))

    def run(self):
        execute = self._library.dnnl_primitive_execute
        for primitive, count, table in self._steps:
            execute(primitive, self._stream, count, table)
        self._library.dnnl_stream_wait(self._stream)

    def softmax_of(self, x, out):
        description = self.plain(x.shape)
        make = "dnnl_softmax_forward_primitive_desc_create"
        kinds = (ctypes.c_int(INFERENCE), ctypes.c_int(SOFTMAX))
        made = self._new(make, self._engine, *kinds, description, description, ctypes.c_int(1), None)
        self.add(made, [(SRC, self.memory(description, x)), (DST, self.memory(description, out))])

    def convolution_of(self, x, w, out):
        """x and out lie features last, and are described features first; so is w."""

        def last(shape):
            n, c, h, width = shape
            return self.plain(shape, [h * width * c, 1, width * c, c])

        shape = [(a.shape[0], a.shape[3], a.shape[1], a.shape[2]) for a in (x, out)]
        given = [last(s) for s in shape]
        ones, zeros = dims([1, 1]), dims([0, 0])
        kinds = (ctypes.c_int(INFERENCE), ctypes.c_int(CONVOLUTION_AUTO))
        make = "dnnl_convolution_forward_primitive_desc_create"
        description = self._new(
            make, self._engine, *kinds, given[0], self.any(w.shape), None, given[1], ones, zeros, ones, ones, None
        )
        plain = self.plain(w.shape)
        weights = self.reordered(self.memory(plain, w), plain, self.wanted(description, WEIGHTS_MD))
        self.add(description, [(SRC, self.memory(given[0], x)), (WEIGHTS, weights), (DST, self.memory(given[1], out))])


def mlp(library, x):
    held, a = None, x
    layers = mlp_layers()
    for k, (w, b) in enumerate(layers):
        out = np.zeros((x.shape[0], w.shape[1]), np.float32)
        held = library.matmul(held, a, w, out, b, library.relu() if k + 1 < len(layers) else None)
        a = out
    return a


def product(library, a, b):
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    library.matmul(None, a, b, out, pack=False)
    return out


def softmax(library, x):
    out = np.zeros_like(x)
    library.softmax_of(x, out)
    return out


def conv(library, x):
    w = np.ascontiguousarray(convolution_weights().transpose(3, 2, 0, 1))
    out = np.zeros((*x.shape[:3], w.shape[0]), np.float32)
    library.convolution_of(x, w, out)
    return out


def prepared(name, inputs):
    """A function that runs the workload, and the array that it writes."""
    library = OneDnn()
    out = globals()[name](library, *inputs)
    return library.run, out
