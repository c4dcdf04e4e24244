"""The operations of workloads.py as an ONNX graph. Images lie features first, as ONNX's operators want them."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}


class Value(str):
    """A name in the graph, with the extents of what it names."""

    shape: tuple

    def __new__(cls, name, shape):
        value = super().__new__(cls, name)
        value.shape = tuple(shape)
        return value


class Onnx:
    def __init__(self):
        self._nodes, self._initializers = [], []

    def _make(self, op, inputs, shape, **attributes):
        return self._make_all(op, inputs, [shape], **attributes)[0]

    def _make_all(self, op, inputs, shapes, **attributes):
        outputs = [Value(f"v{len(self._nodes)}_{k}", shape) for k, shape in enumerate(shapes)]
        self._nodes.append(helper.make_node(op, list(inputs), list(outputs), **attributes))
        return outputs

    def weight(self, array):
        array = np.array(array, order="C")  # of no dimensions too
        name = f"w{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(array, name))
        return Value(name, array.shape)

    def transposed_weight(self, weight):
        return self.transpose(weight, (1, 0))

    def shape(self, x):
        return x.shape

    def add(self, a, b):
        return self._make("Add", [a, b], a.shape)

    def scale(self, x, factor):
        return self._make("Mul", [x, self.weight(np.float32(factor))], x.shape)

    def matmul(self, a, b):
        return self._make("MatMul", [a, b], (*a.shape[:-1], b.shape[-1]))

    def relu(self, x):
        return self._make("Relu", [x], x.shape)

    def gelu(self, x):
        return self._make("Gelu", [x], x.shape)

    def softmax(self, x):
        return self._make("Softmax", [x], x.shape, axis=-1)

    def layer_norm(self, x, scale, offset):
        return self._make("LayerNormalization", [x, scale, offset], x.shape, axis=-1, epsilon=1e-5)

    def batch_norm(self, x, scale, offset, mean, variance):
        return self._make("BatchNormalization", [x, scale, offset, mean, variance], x.shape, epsilon=1e-5)

    def conv(self, x, w, stride, pad):
        # The weight that was just made, in the operator's order.
        array = np.ascontiguousarray(numpy_helper.to_array(self._initializers[-1]).transpose(3, 2, 0, 1))
        self._initializers[-1] = numpy_helper.from_array(array, w)
        size = [(e + 2 * pad - array.shape[2]) // stride + 1 for e in x.shape[2:]]
        shape = (x.shape[0], array.shape[0], *size)
        return self._make("Conv", [x, w], shape, strides=[stride] * 2, pads=[pad] * 4)

    def max_pool(self, x, size, stride, pad):
        shape = (*x.shape[:2], *((e + 2 * pad - size) // stride + 1 for e in x.shape[2:]))
        return self._make("MaxPool", [x], shape, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def image_mean(self, x):
        axes = self.weight(np.array([2, 3], np.int64))
        return self._make("ReduceMean", [x, axes], x.shape[:2], keepdims=0)

    def reshape(self, x, shape):
        return self._make("Reshape", [x, self.weight(np.array(shape, np.int64))], shape)

    def transpose(self, x, order):
        return self._make("Transpose", [x], [x.shape[k] for k in order], perm=list(order))

    def split(self, x, parts):
        shape = (*x.shape[:-1], x.shape[-1] // parts)
        return self._make_all("Split", [x], [shape] * parts, axis=-1, num_outputs=parts)

    def concat(self, parts, axis):
        shape = list(parts[0].shape)
        shape[axis] = sum(p.shape[axis] for p in parts)
        return self._make("Concat", parts, shape, axis=axis)

    def part(self, x, k):
        return self._make("Gather", [x, self.weight(np.array(k, np.int64))], x.shape[1:], axis=0)

    def rows(self, table, ids):
        return self._make("Gather", [table, ids], (*ids.shape, *table.shape[1:]), axis=0)

    def lstm(self, x, wx, wh, bias):
        # The operator's gates are input, output, forget, cell, each a row of the transposed weights.
        def rows(w):
            i, f, g, o = np.split(w, 4, axis=-1)
            return np.concatenate([i, o, f, g], axis=-1).T[None]

        length, batch, state = x.shape[0], x.shape[1], wh.shape[0]
        both = np.concatenate([rows(bias), np.zeros_like(rows(bias))], axis=-1)
        inputs = [x, self.weight(rows(wx)), self.weight(rows(wh)), self.weight(both)]
        y = self._make("LSTM", inputs, (length, 1, batch, state), hidden_size=state)
        return self.reshape(y, (length, batch, state))

    def model(self, inputs, types, results):
        def infos(values, types):
            return [helper.make_tensor_value_info(v, TYPES[t], v.shape) for v, t in zip(values, types)]

        graph = helper.make_graph(
            self._nodes,
            "workload",
            infos(inputs, types),
            infos(results, ["float32"] * len(results)),
            self._initializers,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def features_first(array):
    return np.ascontiguousarray(array.transpose(0, 3, 1, 2))


def write_model(workload, inputs, path):
    """Writes the workload for inputs of these shapes, images features first."""
    o = Onnx()
    values = [Value(f"x{k}", x.shape) for k, x in enumerate(inputs)]
    onnx.save(o.model(values, [str(x.dtype) for x in inputs], workload.build(o, *values)), path)
