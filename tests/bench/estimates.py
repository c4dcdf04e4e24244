"""What `kiln explain` estimates for one core beside what a run takes: a table, and how alike the two order programs.

usage: estimates.py KILN TABLE MODULE...

The figure is Spearman's rank correlation. Times are medians of 9 runs, on one thread of whatever machine this is.
"""

import pathlib
import re
import subprocess
import sys

LINE = re.compile(r"estimated ([\d.]+) us on one core, measured ([\d.]+) us")


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0] * len(values)
    for rank, k in enumerate(order):
        out[k] = rank
    return out


def correlation(xs, ys):
    a, b = ranks(xs), ranks(ys)
    mean = sum(a) / len(a)
    return sum((x - mean) * (y - mean) for x, y in zip(a, b)) / sum((x - mean) ** 2 for x in a)


def main():
    kiln, table, modules = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    rows = []
    for module in modules:
        path = pathlib.Path(module)
        name = path.parent.name if path.stem == "module" else path.stem
        run = subprocess.run([kiln, "explain", module, "--run"], capture_output=True, text=True, check=False)
        found = LINE.search(run.stdout)
        if found:  # programs of several devices do not run here
            rows.append((name, float(found[1]), float(found[2])))
            print(f"{name}: {found[1]} us estimated, {found[2]} us measured", flush=True)
    rho = correlation([r[1] for r in rows], [r[2] for r in rows])
    summary = f"{len(rows)} programs, rank correlation {rho:.3f}"
    lines = ["# Estimated and measured times", "",
             "Made by `./dev estimates`: what `kiln explain --run` says of each program, on one core. Estimates are for a",
             "server's core whatever the machine; loops whose iterations are not known count one.", "",
             f"{summary}.", "", "| program | estimated us | measured us | ratio |", "|---|---|---|---|"]
    lines += [f"| {n} | {e:.1f} | {m:.1f} | {e / max(m, 0.1):.2f} |" for n, e, m in rows]
    table.write_text("\n".join(lines) + "\n")
    print(summary)


main()
