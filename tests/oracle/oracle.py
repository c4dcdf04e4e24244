"""Compares kiln with XLA:CPU on random modules and on files.

usage: oracle.py CASES seeds FIRST COUNT | oracle.py CASES files FILE...

CASES is kiln's half (cases.cc). Every case that differs is printed; exit code 1 if one has no entry in explained.txt.
"""
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import checks

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 50


def tolerance(dtype):
    """(relative, absolute against the array's largest magnitude) of a floating type."""
    name = dtype.name
    if name in ("float64", "complex128"):
        return 1e-9, 1e-12
    if name in ("float32", "complex64"):
        return 2e-4, 2e-5
    if name == "float16":
        return 4e-3, 4e-3
    if name == "bfloat16":
        return 3e-2, 3e-2
    return 0.3, 0.13  # 8 bits and less: a unit in the last place


def difference(got, want, exact):
    """Why two arrays differ, or None."""
    if got.dtype != want.dtype:
        return f"type {got.dtype}, XLA has {want.dtype}"
    if got.shape != want.shape:
        return f"extents {list(got.shape)}, XLA has {list(want.shape)}"
    if got.size == 0:
        return None
    if got.dtype.kind in "biu" or "int" in got.dtype.name:
        differs = got.astype(np.int64 if got.dtype.name != "uint64" else np.uint64) != want.astype(
            np.int64 if got.dtype.name != "uint64" else np.uint64)
    else:
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        g, w = got.astype(wide), want.astype(wide)
        with np.errstate(all="ignore"):
            finite = np.abs(w[np.isfinite(w)])
            relative, absolute = (0, 0) if exact else tolerance(got.dtype)
            limit = relative * np.abs(w) + absolute * (finite.max() if finite.size else 0) + (0 if exact else 1e-37)
            same = (g == w) | (np.isnan(g) & np.isnan(w))
            near = np.isfinite(g) & np.isfinite(w) & (np.abs(g - w) <= limit)
        differs = ~(same | near)
    if not differs.any():
        return None
    at = tuple(int(k) for k in np.argwhere(differs)[0]) if got.ndim else ()
    return f"{int(differs.sum())} of {differs.size} elements, at {list(at)} {got[at]}, XLA has {want[at]}"


def load(directory, name, backend):
    """What kiln said of a case: the JSON with its arrays read in."""
    stem = os.path.join(directory, name + "." + backend)
    said = json.load(open(stem + ".json"))
    if "arguments" in said:
        import xla
        data = open(stem + ".bin", "rb").read()
        for key in ("arguments", "results"):
            said[key] = [[np.frombuffer(data, xla.dtype_of(a["type"]), int(np.prod(a["dims"], dtype=np.int64)), a["at"])
                          .reshape(a["dims"]) for a in row] for row in said.get(key, [])]
    return said


def examine(directory, name, path, exact):
    """(kind, text) of a case; kinds: same, refused, xla, differs, died."""
    import xla
    text = open(path, errors="replace").read()
    answers = {}
    try:
        said = {b: load(directory, name, b) for b in ("cpu", "reference")}
    except xla.Refused as e:
        return "xla", str(e)
    for backend, s in said.items():
        if "died" in s:
            answers[backend] = ("died", s["died"])
        elif "refused" in s or "error" in s:
            answers[backend] = ("refused", s.get("refused") or s.get("error"))
    given = [s for s in said.values() if "arguments" in s]
    dynamic = text.split("ENTRY")[-1].split("parameter(")[:-1]
    if given and any("[" in p and "<=" in p.rsplit("=", 1)[-1].rsplit("\n", 1)[-1] for p in dynamic):
        return "xla", "arguments of dynamic dimensions cannot be given to this runtime"
    try:
        # Where the module does not say, devices that meet by a channel are partitions.
        devices = len(given[0]["arguments"]) if given else 1
        channels = "channel_id" in text
        program = xla.Program(text, path.endswith(".mlir"), 1 if channels else devices, devices if channels else 1)
        if not given:
            return next(iter(answers.values()))[0], "; ".join(f"{b}: {a[1]}" for b, a in answers.items()) + " (XLA compiles it)"
        want = program.run(given[0]["arguments"])
    except xla.Refused as e:
        kind = "xla" if len(answers) < 2 else "both"
        return kind, str(e).split("\n")[0]
    for backend, s in said.items():
        if backend in answers:
            continue
        for d, (got_row, want_row) in enumerate(zip(s["results"], want)):
            if len(got_row) != len(want_row):
                answers[backend] = ("differs", f"{len(got_row)} results, XLA has {len(want_row)}")
            for k, (g, w) in enumerate(zip(got_row, want_row)):
                why = difference(g, w, exact)
                if why:
                    answers[backend] = ("differs", f"device {d} result {k}: {why}")
                    break
    if not answers:
        return "same", ""
    kinds = [a[0] for a in answers.values()]
    kind = next(k for k in ("differs", "died", "refused") if k in kinds)
    return kind, "; ".join(f"{b}: {a[1]}" for b, a in answers.items())


def worker(directory, exact):
    """Examines the cases that standard input names, a JSON line for each."""
    for line in sys.stdin:
        name, path = line.rstrip("\n").split(" ", 1)
        try:
            kind, text = examine(directory, name, path, exact)
        except Exception as e:  # noqa: BLE001: one case must not end the run
            kind, text = "xla", f"{type(e).__name__}: {e}"
        print(json.dumps([name, kind, text]), flush=True)


def explanations():
    out = []
    for line in open(os.path.join(HERE, "explained.txt")):
        if line.strip() and not line.startswith("#"):
            out.append([w.strip() for w in line.split("|", 2)])
    return out


def run_workers(directory, cases, exact):
    """Yields (name, kind, text); XLA runs in a process of its own, which is started again behind a case that ends it."""
    left = list(cases)
    while left:
        process = subprocess.Popen([sys.executable, __file__, "worker", directory, "1" if exact else "0"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            process.stdin.write("".join(f"{n} {p}\n" for n, p in left))
            process.stdin.close()
        except BrokenPipeError:
            pass
        import select
        while left:
            ready, _, _ = select.select([process.stdout], [], [], 120)
            line = process.stdout.readline() if ready else ""
            if not line:
                process.kill()
                yield left[0][0], "xla", "XLA:CPU died" if ready else "XLA:CPU took more than 120 s"
                left.pop(0)
                break
            name, kind, text = json.loads(line)
            assert name == left[0][0]
            left.pop(0)
            yield name, kind, text
        process.wait()


def without_checks(directory, path):
    """The file, or a copy in `directory` that returns what the file checks."""
    if not path.endswith(".mlir"):
        return path
    with open(path, errors="replace") as f:
        text = f.read()
    plain = checks.as_results(text)
    if plain == text:
        return path
    copy = os.path.join(directory, os.path.basename(path))
    with open(copy, "w") as f:
        f.write(plain)
    return copy


def main(argv):
    cases_binary, mode = argv[0], argv[1]
    if mode == "seeds":
        first, count = int(argv[2]), int(argv[3])
        batches = [["seeds", str(s), str(min(BATCH, first + count - s))] for s in range(first, first + count, BATCH)]
    else:
        batches = [["files"] + argv[k:k + BATCH] for k in range(2, len(argv), BATCH)]
    known, counts, failed = explanations(), {}, 0
    for batch in batches:
        with tempfile.TemporaryDirectory() as directory:
            originals = {}
            if mode == "files":
                copies = [without_checks(directory, path) for path in batch[1:]]
                originals = dict(zip(copies, batch[1:]))
                batch[1:] = copies
            listed = subprocess.run([cases_binary, directory] + batch, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True, check=True).stdout
            cases = [line.split(" ", 1) for line in listed.splitlines()]
            paths = dict(cases)
            for name, kind, text in run_workers(directory, cases, mode == "seeds"):
                label = f"seed {name}" if mode == "seeds" else originals.get(paths[name], paths[name])
                if kind in ("differs", "died", "refused"):
                    for pattern, word, reason in known:
                        if mode != "seeds" and fnmatch.fnmatch(os.path.basename(paths[name]), pattern) and word in text:
                            kind, text = "explained", reason
                            break
                if kind in ("differs", "died"):
                    failed += 1
                counts[kind] = counts.get(kind, 0) + 1
                if kind != "same":
                    print(f"{kind.upper()} {label}: {text[:500]}", flush=True)
    titles = {"same": "agree", "differs": "differ", "died": "end kiln", "refused": "kiln refuses", "both": "both refuse",
              "xla": "XLA:CPU cannot run", "explained": "explained"}
    print(", ".join(f"{counts[k]} {t}" for k, t in titles.items() if k in counts))
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker(sys.argv[2], sys.argv[3] == "1")
    else:
        sys.exit(main(sys.argv[1:]))
