"""A model with GiBs of weights in a file: weights.py KILN [--gib N] [--folder DIR], in the root of the source tree.

Generates a module and two safetensors files of N GiB each (default 8), compiles the module, and runs a program with it:
what the compile takes, how soon the file is open, what runs take, what two processes that run the same file hold
together, and whether a run under 8 threads ever sees parts of two files while they are swapped. Prints a table, and
fails where the compile takes 2 GB or 30 s, where processes hold more than one copy, or where a read is torn. The folder
needs twice the size; it is removed.
"""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROWS, COLUMNS = 8192, 4096  # of a layer, 128 MiB


def module(layers: int) -> str:
    """y[k] = x w[k]: every run reads all weights."""
    w, y = f"tensor<{ROWS}x{COLUMNS}xf32>", f"tensor<1x{COLUMNS}xf32>"
    x, all_y = f"tensor<1x{ROWS}xf32>", f"tensor<{layers}x{COLUMNS}xf32>"
    arguments = [f"%w{k}: {w} loc(\"params['layers'][{k}]['w']\")" for k in range(layers)] + [f'%x: {x} loc("x")']
    lines = [
        f"  %y{k} = stablehlo.dot_general %x, %w{k}, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}"
        for k in range(layers)
    ]
    names, types = (", ".join(t(k) for k in range(layers)) for t in (lambda k: f"%y{k}", lambda k: y))
    return "\n".join(
        [f'func.func @main({", ".join(arguments)}) -> ({all_y} {{jax.result_info = "result[\'y\']"}}) {{']
        + lines
        + [f"  %y = stablehlo.concatenate {names}, dim = 0 : ({types}) -> {all_y}", f"  return %y : {all_y}", "}"]
    )


def write_weights(path: pathlib.Path, layers: int, value: float) -> None:
    size = 4 * ROWS * COLUMNS
    header = {
        f"params.layers.{k}.w": {"dtype": "F32", "shape": [ROWS, COLUMNS], "data_offsets": [k * size, (k + 1) * size]}
        for k in range(layers)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    layer = struct.pack("<f", value) * (ROWS * COLUMNS)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _ in range(layers):
            f.write(layer)


def measured(command: list) -> tuple[float, int]:
    """Seconds and the peak of resident memory in bytes."""
    start = time.monotonic()
    pid = os.posix_spawn(str(command[0]), [str(c) for c in command], os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"FAILED: {command[0]} {command[1]}")
    return time.monotonic() - start, 1024 * usage.ru_maxrss


def words(text: str) -> dict[str, float]:
    """The numbers of a line `name 1 name 2`."""
    fields = text.split()
    return {name: float(value) for name, value in zip(fields[::2], fields[1::2])}


def memory_of(pid: int) -> dict[str, int]:
    """Rss and Pss, in bytes: Pss counts a page that n processes share as one n-th."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}


def gib(count: float) -> str:
    return f"{count / 2**30:.2f} GiB"


def two_processes(main: pathlib.Path, file: pathlib.Path) -> tuple[list[int], list[int]]:
    processes = [
        subprocess.Popen([main, "hold", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for p in processes:
            if p.stdout.readline() != "ready\n":
                sys.exit("FAILED: a process does not run the model")
        memory = [memory_of(p.pid) for p in processes]
    finally:
        for p in processes:
            p.stdin.close()
            p.wait()
    return [m["Rss"] for m in memory], [m["Pss"] for m in memory]


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kiln")
    parser.add_argument("--gib", type=int, default=8)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--swaps", type=int, default=20)
    options = parser.parse_args()
    layers = options.gib * 2**30 // (4 * ROWS * COLUMNS)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln_weights_", dir=options.folder))
    try:
        run(options, layers, folder)
    finally:
        shutil.rmtree(folder)


def run(options: argparse.Namespace, layers: int, folder: pathlib.Path) -> None:
    (folder / "large.mlir").write_text(module(layers))
    (folder / "large.config").write_text('weights { arguments: "params.*" }\n')
    # First, since a child's peak begins with what this process had.
    compile_s, compile_bytes = measured(
        [options.kiln, "compile", folder / "large.mlir", "--name", "large", "--out", folder, "--config", folder / "large.config"]
    )
    files = [folder / "first.safetensors", folder / "second.safetensors"]
    for k, file in enumerate(files):
        write_weights(file, layers, 0.5 * (k + 1))

    program = folder / "weights_main"
    flags = ["-std=c++17", "-O2", f"-I{folder}", "tests/bench/weights_main.cc", f"{folder}/liblarge.a", "-lm", "-lpthread"]
    subprocess.run(["c++", *flags, "-o", program], check=True)
    sizes = [(folder / "liblarge.a").stat().st_size, program.stat().st_size]

    def says(*arguments) -> dict[str, float]:
        done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"FAILED: {arguments[0]}: {done.stdout}")
        return words(done.stdout)

    runs = says("run", files[0])
    rss, pss = two_processes(program, files[0])
    swap = says("swap", *files, str(options.swaps))

    size = gib(files[0].stat().st_size)
    rows = [
        (f"compile of a model with {size} of weights, three CPU levels", f"{compile_s:.1f} s, {compile_bytes / 1e6:.0f} MB"),
        ("archive, linked program", f"{sizes[0] / 1e3:.0f} kB, {sizes[1] / 1e3:.0f} kB"),
        ("opening the file", f"{1e3 * runs['opening']:.2f} ms"),
        ("a run on two threads that reads all of it: the first, a later one", f"{runs['first']:.2f} s, {runs['later']:.2f} s"),
        ("two processes that have run it: resident, each", f"{gib(rss[0])}, {gib(rss[1])}"),
        ("the same, shared pages counted once: both together", gib(sum(pss))),
        ("swaps of two such files under 8 threads", f"{swap['swaps']:.0f}"),
        ("runs meanwhile: of the first file, of the second", f"{swap['runs_of_first']:.0f}, {swap['runs_of_second']:.0f}"),
        ("runs that saw parts of both", f"{swap['torn']:.0f}"),
    ]
    print("| | |\n|---|---|")
    for row in rows:
        print(f"| {row[0]} | {row[1]} |")
    if compile_s >= 30 or compile_bytes >= 2e9:
        sys.exit("FAILED: the compile takes too much")
    if sum(pss) > 1.1 * files[0].stat().st_size:
        sys.exit("FAILED: the processes hold more than one copy")


if __name__ == "__main__":
    main()
