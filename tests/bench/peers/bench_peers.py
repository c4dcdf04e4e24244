"""kiln beside what else runs a model on a CPU: XLA, IREE, onnxruntime, OpenVINO and oneDNN, in one run on this machine.

usage: bench_peers.py KILN [--only REGEX] [--peers A,B] [--threads 1,2] [--rounds N] [--seconds S] [--json FILE]
                      [--config F] [--realtime] [--environment DIR]

The peers are packages of pinned versions in a virtual environment, which is thrown away unless DIR is named. A workload's peers
are loaded side by side, each in a process of its own with its weights as constants, and take turns of SECONDS, ROUNDS times, so
that whatever else the machine does falls on all. A figure is the best median of a turn; the least time of all is in brackets.
Results are compared with XLA's. One thread is one processor.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = (
    "numpy==2.4.6",
    "jax==0.10.2",
    "jaxlib==0.10.2",
    "iree-base-compiler==3.13.0",
    "iree-base-runtime==3.13.0",
    "onnx==1.23.2",
    "onnxruntime==1.32.0",
    "openvino==2026.4.1",
    "onednn-cpu-gomp==2023.2.0",
)
PEERS = ("kiln", "xla", "iree", "ort", "openvino", "onednn")


def environment(folder):
    """The Python of a virtual environment with the peers, made in `folder` if it is not there."""
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing {', '.join(PACKAGES)}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (folder / "complete").touch()
    return str(python)


class Peer:
    """A worker that has the workload loaded and waits for its turns."""

    def __init__(self, python, name, workload, threads, folder, processors, realtime):
        self.name, self.turns, self.problem = name, [], ""
        self._log = open(folder / f"{name}-{threads}.log", "w+")
        command = [python, str(HERE / "worker.py"), name, workload, str(threads), str(folder)]
        command += [",".join(map(str, processors)), "1" if realtime else "0"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        while (line := self._process.stdout.readline()) not in ("READY\n", ""):
            pass
        if not line:
            self._fail()

    def _fail(self):
        self._log.seek(0)
        lines = self._log.read().strip().splitlines() or ["it ended without a word"]
        self.problem = lines[-1]

    def turn(self, seconds):
        if self.problem:
            return
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if line:
            self.turns.append(json.loads(line))
        else:
            self._fail()

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def figures(self, error):
        best = min(t["median_us"] for t in self.turns)
        return {"median_us": best, "least_us": min(t["least_us"] for t in self.turns), "error": error}


def error_of(numpy, folder, name, threads, reference):
    """The largest difference from the reference, relative to its largest number."""
    got = numpy.load(folder / f"{name}-{threads}.npy")
    if got.ndim == 4 and got.shape != reference.shape:
        got = got.transpose(0, 2, 3, 1)
    if got.shape != reference.shape:
        return math.inf
    return float(abs(got - reference).max() / abs(reference).max())


def measure(args, python, workload, threads, folder, numpy):
    """Times of one workload by peer."""
    processors = sorted(os.sched_getaffinity(0))
    names = [p for p in args.peers if p != "onednn" or workload.onednn]
    if "xla" not in names:
        names.append("xla")  # the reference
    peers = [Peer(python, p, workload.name, threads, folder, processors, args.realtime) for p in names]
    for _ in range(args.rounds):
        for p in peers:
            p.turn(args.seconds)
    for p in peers:
        p.close()
    reference = numpy.load(folder / f"xla-{threads}.npy")
    out = {}
    for p in peers:
        if p.problem:
            out[p.name] = {"problem": p.problem}
            continue
        error = error_of(numpy, folder, p.name, threads, reference)
        out[p.name] = p.figures(error)
        if error > workload.largest_error:
            out[p.name] = {"problem": f"its result differs from XLA's by {error:.1e}"}
    return out


def cell(figures):
    if figures is None:
        return "-"
    if "problem" in figures:
        return "failed"
    return f"{figures['median_us'] / 1e3:.3f} ({figures['least_us'] / 1e3:.3f})"


def print_table(rows, peers, threads):
    print(f"\n{threads} thread{'s' if threads > 1 else ''}, ms: best median of a turn (least)\n")
    print("| workload | " + " | ".join(peers) + " | kiln / fastest peer | kiln / XLA |")
    print("|---" * (len(peers) + 3) + "|")
    for name, found in rows.items():
        times = {p: f["median_us"] for p, f in found.items() if "median_us" in f}
        others = [t for p, t in times.items() if p != "kiln"]
        ratios = ["-", "-"]
        if "kiln" in times and others:
            ratios[0] = f"{times['kiln'] / min(others):.2f}"
        if "kiln" in times and "xla" in times:
            ratios[1] = f"{times['kiln'] / times['xla']:.2f}"
        print(f"| {name} | " + " | ".join(cell(found.get(p)) for p in peers) + f" | {ratios[0]} | {ratios[1]} |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--peers", default=",".join(PEERS), type=lambda s: s.split(","))
    parser.add_argument("--threads", default="1,2", type=lambda s: [int(t) for t in s.split(",")])
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--seconds", default=0.5, type=float)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--config", default="", metavar="F", help="what kiln compiles with (config.proto)")
    parser.add_argument("--realtime", action="store_true", help="before all other programs (SCHED_FIFO)")
    parser.add_argument("--environment", metavar="DIR", type=pathlib.Path, help="kept, and used again")
    args = parser.parse_args()
    unknown = set(args.peers) - set(PEERS)
    if unknown:
        parser.error(f"there is no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if max(args.threads) > len(os.sched_getaffinity(0)):
        parser.error(f"there are {len(os.sched_getaffinity(0))} processors")
    return args


def run(args, python, scratch):
    """Again, inside the environment: it has NumPy and the workloads' own needs."""
    import numpy
    from workloads import WORKLOADS

    tables = {t: {} for t in args.threads}
    for workload in WORKLOADS:
        if not re.search(args.only, workload.name):
            continue
        folder = scratch / workload.name
        folder.mkdir()
        subprocess.run([python, str(HERE / "prepare.py"), workload.name, str(folder), args.config, *args.peers], check=True)
        for threads in args.threads:
            found = measure(args, python, workload, threads, folder, numpy)
            tables[threads][workload.name] = found
            for peer, figures in found.items():
                if "problem" in figures:
                    print(f"{workload.name}, {threads}: {peer}: {figures['problem']}", file=sys.stderr)
            print(f"{workload.name}, {threads}: " + ", ".join(f"{p} {cell(f)}" for p, f in found.items()), flush=True)
        shutil.rmtree(folder)
    for threads, rows in tables.items():
        print_table(rows, [p for p in PEERS if p in args.peers or p == "xla"], threads)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({str(t): rows for t, rows in tables.items()}, indent=1) + "\n")
    wrong = [n for rows in tables.values() for n, f in rows.items() if "problem" in f.get("kiln", {})]
    return 1 if wrong else 0


def main():
    args = arguments()
    os.environ["KILN"] = str(pathlib.Path(args.kiln).resolve())
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parents[2] / "aot" / "python")])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="kiln_peers_"))
    try:
        if os.environ.get("KILN_PEERS_PYTHON") == sys.executable:
            return run(args, sys.executable, scratch)
        python = environment(args.environment.resolve() if args.environment else scratch / "environment")
        os.environ["KILN_PEERS_PYTHON"] = python
        return subprocess.run([python, *sys.argv]).returncode
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
