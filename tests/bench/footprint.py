"""What models take when they are shipped: footprint.py KILN, in the root of the source tree.

Compiles an MLP (784-512-512-10) and ResNet-50, both for one image, with weights of random numbers as constants and
everything else as it is by default, links each into a C program, and prints the sizes of README's table: the archive,
the stripped program, the libraries that it asks for, what a run allocates, and what the compile took.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from weights import measured

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "m_c.h"
static _Alignas(M_ALIGNMENT) unsigned char arena[M_ARENA_BYTES + 1];
static _Alignas(64) float image[M_ARGUMENT_ARG0_COUNT], scores[M_RESULT_RESULT0_COUNT];
static long allocations;
extern void* __libc_malloc(size_t);
void* malloc(size_t n) { ++allocations; return __libc_malloc(n); }
int main(void) {
  void *arguments[] = {image}, *results[] = {scores};
  const kiln_arena memory = {arena, sizeof arena};
  const int status = m_run(arguments, results, memory, NULL);
  printf("%d %ld\\n", status, allocations);
  return status;
}
"""


def constant(rng: np.random.Generator, shape: str) -> str:
    extents = [int(e) for e in shape.split("x")[:-1]]
    values = rng.uniform(0.25, 1, extents).astype("<f4") / max(1, np.prod(extents[:-1]) ** 0.5)
    return f'stablehlo.constant dense<"0x{values.tobytes().hex()}"> : tensor<{shape}>'


def mlp() -> str:
    lines, width, x = [], 784, "%arg0"
    arguments = ["%arg0: tensor<1x784xf32>"]
    for k, to in enumerate((512, 512, 10)):
        w, b, y = f"tensor<{width}x{to}xf32>", f"tensor<{to}xf32>", f"tensor<1x{to}xf32>"
        arguments += [f"%w{k}: {w}", f"%b{k}: {b}"]
        lines += [
            f"  %d{k} = stablehlo.dot_general {x}, %w{k}, contracting_dims = [1] x [0] : (tensor<1x{width}xf32>, {w}) -> {y}",
            f"  %c{k} = stablehlo.broadcast_in_dim %b{k}, dims = [1] : ({b}) -> {y}",
            f"  %a{k} = stablehlo.add %d{k}, %c{k} : {y}",
            f"  %z{k} = stablehlo.constant dense<0.0> : {y}",
            f"  %x{k} = stablehlo.maximum %a{k}, %z{k} : {y}",
        ]
        width, x = to, f"%x{k}" if to != 10 else f"%a{k}"
    lines.append(f"  return {x} : tensor<1x10xf32>")
    return f"func.func public @main({', '.join(arguments)}) -> (tensor<1x10xf32>) {{\n" + "\n".join(lines) + "\n}\n"


def with_constants(module: str) -> str:
    """The module with all arguments of @main but the first as constants of random numbers."""
    rng = np.random.default_rng(0)
    head = re.search(r"func\.func public @main\((.*?)\) -> .*\{\n", module)
    first, *others = re.findall(r"(%\w+): tensor<([\w]+)>", head.group(1))
    signature = head.group(0).replace(head.group(1), f"{first[0]}: tensor<{first[1]}>")
    constants = "".join(f"  {name} = {constant(rng, shape)}\n" for name, shape in others)
    return module[: head.start()] + signature + constants + module[head.end() :]


def main() -> None:
    kiln = sys.argv[1]
    models = {"MLP": mlp(), "ResNet-50": pathlib.Path("examples/resnet50/resnet50.mlir").read_text()}
    for name, text in models.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "m.mlir").write_text(with_constants(text))
            seconds, most = measured([kiln, "compile", folder / "m.mlir", "--name", "m", "--out", folder])
            (folder / "main.c").write_text(MAIN)
            program = folder / "main"
            link = ["cc", "-std=gnu11", "-O2", f"-I{folder}", folder / "main.c", folder / "libm.a", "-lm", "-lpthread"]
            subprocess.run([*link, "-o", program], check=True)
            subprocess.run(["strip", program], check=True)
            asks = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
            libraries = " ".join(re.findall(r"NEEDED.*\[(.*)\]", asks))
            status, allocations = subprocess.run([program], capture_output=True, text=True).stdout.split()
            print(
                f"{name}: archive {(folder / 'libm.a').stat().st_size / 1e6:.2f} MB, stripped program "
                f"{program.stat().st_size / 1e6:.2f} MB, needs {libraries}; status {status}, allocations of the first "
                f"run {allocations}; compile {seconds:.1f} s, {most / 1e6:.0f} MB"
            )


if __name__ == "__main__":
    main()
