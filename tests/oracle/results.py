"""Prints the RESULT lines of tests/programs that XLA:CPU gives for the INPUT lines of the files named."""
import re
import sys

import numpy as np

import xla


def read_array(text):
    """An array of "f32[2,2] {{1, 2}, {3, 4}}"."""
    name, dims, value = re.match(r"(\w+)\[([\d,]*)\]\s*(.*)", text, re.S).groups()
    dims = [int(d) for d in dims.split(",") if d]
    dtype = xla.dtype_of(name)
    if name.startswith("c"):
        numbers = [complex(float(a), float(b)) for a, b in re.findall(r"\(\s*([^,()]+),\s*([^()]+)\)", value)]
    else:
        words = re.findall(r"[^\s{},]+", value)
        if name == "pred":
            numbers = [w in ("true", "1") for w in words]
        elif dtype.kind in "iu" or "int" in dtype.name:
            numbers = [int(w) for w in words]
        else:
            numbers = [float(w) for w in words]
    return np.array(numbers).astype(dtype).reshape(dims)


def literal(a):
    """HLO text of an array's elements."""
    def one(v):
        if a.dtype == np.bool_:
            return "true" if v else "false"
        if a.dtype.kind in "iu" or "int" in a.dtype.name:
            return str(int(v))
        if a.dtype.kind == "c":
            return "(%s, %s)" % (number(v.real), number(v.imag))
        return number(v)

    def number(v):
        f = float(v)
        if f != f:
            return "nan"
        if f in (float("inf"), float("-inf")):
            return "inf" if f > 0 else "-inf"
        if a.dtype in (np.float32, np.complex64):
            return np.format_float_positional(np.float32(f), trim="-") if 1e-4 <= abs(f) < 1e9 or f == 0 else repr(f)
        return repr(f).removesuffix(".0")

    def nest(x):
        return one(x[()]) if x.ndim == 0 else "{" + ", ".join(nest(y) for y in x) + "}"
    return nest(a)


def header(path):
    """The INPUT arrays by device, and DEVICES."""
    inputs, devices, lines = {}, 1, []
    for line in open(path):
        if line.startswith("//  ") and lines:
            lines[-1] += " " + line[2:].strip()
        elif line.startswith("// "):
            lines.append(line[3:].strip())
    for line in lines:
        key, _, value = line.partition(" ")
        if key == "DEVICES":
            devices = int(value)
        elif key.split("@")[0] == "INPUT":
            inputs.setdefault(int(key.partition("@")[2] or 0), []).append(read_array(value))
    return inputs, devices


def main(files):
    for path in files:
        inputs, devices = header(path)
        try:
            program = xla.Program(open(path).read(), path.endswith(".mlir"), devices)
            arguments = [inputs.get(d, inputs.get(0, [])) for d in range(program.devices)]
            results = program.run(arguments)
        except xla.Refused as e:
            print(f"{path}: XLA:CPU refuses: {e}")
            continue
        print(path)
        bounds = program.result_shapes()
        for d, arrays in enumerate(results):
            for a, (dims, dynamic) in zip(arrays, bounds):
                shape = ",".join(("<=" if y else "") + str(n) for n, y in zip(dims, dynamic))
                sizes = "(" + ",".join(map(str, a.shape)) + ")" if any(dynamic) else ""
                at = f"@{d}" if len(results) > 1 else ""
                print(f"// RESULT{at} {xla.name_of(a.dtype)}[{shape}]{sizes} {literal(a)}")


if __name__ == "__main__":
    main(sys.argv[1:])
