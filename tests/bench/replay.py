"""What a change of kiln does to programs: compiles each with two builds and compares archives and figures.

usage: replay.py BASE CHANGED TARGET,... MODULE...
"""

import json
import pathlib
import subprocess
import sys
import tempfile

FIGURES = ["kernels", "thunks", "code_bytes", "temp_bytes", "constant_bytes"]


def compile_with(kiln, module, target):
    """The archive's bytes and the figures of its manifest, or the error."""
    with tempfile.TemporaryDirectory() as out:
        run = subprocess.run(
            [kiln, "compile", module, "--target", target, "--name", "replayed", "--out", out, "--json"],
            capture_output=True, text=True, check=False)
        if run.returncode:
            return None, run.stderr.strip().splitlines()[-1:]
        files = sorted(pathlib.Path(out).iterdir())
        return [f.read_bytes() for f in files], json.loads(run.stdout)


def describe(before, after):
    if isinstance(before, list) or isinstance(after, list):
        return " -> ".join(f[-1] if isinstance(f, list) and f else "compiles" for f in (before, after))
    moved = [f"{k} {before[k]} -> {after[k]}" for k in FIGURES if before.get(k) != after.get(k)]
    return ", ".join(moved) or "other bytes, the same figures"


def main():
    base, changed, targets, modules = sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4:]
    same = different = 0
    for module in modules:
        for target in targets:
            old, old_figures = compile_with(base, module, target)
            new, new_figures = compile_with(changed, module, target)
            if old == new and (old is not None or old_figures == new_figures):
                same += 1
                continue
            different += 1
            print(f"{module} {target}: {describe(old_figures, new_figures)}", flush=True)
    print(f"{same} the same, {different} different")


main()
