"""Programs beside what this machine can do at best: a table with each one's share of the roofline, and a picture.

usage: roofline.py KILN PICTURE.svg [--json FILE] PATH...
       roofline.py --draw FILE.json PICTURE.svg

A PATH is a module or a folder of them (*.mlir, *.hlo, or */module.mlir). Times are medians of runs on one thread, work is what
`kiln explain --json` says, and the roofs, a loop of multiply-adds in registers and a copy beyond every cache, are measured beside
each program. The share is the least time that the roofs allow, of the time it took: above 100 % arrays came from a cache. The
picture depends on these numbers alone; --draw makes it of those that --json kept.
"""

import argparse
import html
import json
import math
import pathlib
import subprocess
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 640, 80, 24, 48, 64


def modules(path):
    path = pathlib.Path(path)
    if not path.is_dir():
        return [path]
    return sorted(path.glob("*/module.mlir")) or sorted([*path.glob("*.mlir"), *path.glob("*.hlo")])


def json_of(kiln, *arguments):
    """What a command prints as JSON; None if it refuses the program."""
    run = subprocess.run([kiln, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def measure(kiln, module):
    """A program's figures; None if it does not run here, as programs of several devices do not."""
    profile, explained = json_of(kiln, "profile", module), json_of(kiln, "explain", module, "--target", "native")
    if not profile or not explained or profile["median_us"] <= 0:
        return None
    name = module.parent.name if module.stem == "module" else module.stem
    work = {kind: sum(s["runs"] * s[kind] for s in explained["steps"]) for kind in ("flops", "bytes")}
    peaks = {"gflops": profile["peak_gflops"], "gbytes": profile["peak_gbytes"]}
    return {"name": name, "us": profile["median_us"], **work}, peaks


def share(program, peaks):
    """The least time that the roofs allow, of the time it took."""
    least = max(program["flops"] / peaks["gflops"], program["bytes"] / peaks["gbytes"]) / 1e3
    return least / program["us"]


class Axis:
    """Decades from `low` to `high` between two places of the picture."""

    def __init__(self, values, begin, end):
        logs = [math.log10(v) for v in values]
        self.low, self.high = math.floor(min(logs)), math.ceil(max(logs))
        self.high = max(self.high, self.low + 1)
        self._begin, self._end = begin, end

    def at(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self._begin + min(max(part, 0), 1) * (self._end - self._begin)

    def decades(self):
        return range(self.low, self.high + 1)


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def text(x, y, words, style=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(words)}</text>'


def grid(x, y):
    out = []
    for k in x.decades():
        at = x.at(10.0**k)
        out.append(line(at, TOP, at, HEIGHT - BOTTOM, 'stroke="#ddd"'))
        out.append(text(at, HEIGHT - BOTTOM + 18, f"{10.0**k:g}", 'text-anchor="middle"'))
    for k in y.decades():
        at = y.at(10.0**k)
        out.append(line(LEFT, at, WIDTH - RIGHT, at, 'stroke="#ddd"'))
        out.append(text(LEFT - 8, at + 4, f"{10.0**k:g}", 'text-anchor="end"'))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, "operations for each byte (flop/B)", 'text-anchor="middle"'))
    turned = f'text-anchor="middle" transform="rotate(-90 22 {middle:.1f})"'
    out.append(text(22, middle, "speed (GFLOP/s)", turned))
    return out


def dot(program, peaks, x, y):
    """A program; one without arithmetic stands hollow at the border, as high as its share of the copy's speed."""
    us, flops, bytes_ = program["us"], program["flops"], max(program["bytes"], 1)
    title = f"{program['name']}: {us:.1f} us, {flops / us / 1e3:.2f} GFLOP/s, {bytes_ / us / 1e3:.2f} GB/s, "
    title = html.escape(title + f"{100 * share(program, peaks):.0f} % of the roofline")
    if flops:
        place = f'cx="{x.at(flops / bytes_):.1f}" cy="{y.at(flops / us / 1e3):.1f}" r="4" fill="#1f6fb4" fill-opacity="0.7"'
    else:
        height = share(program, peaks) * peaks["gbytes"] * 10.0**x.low
        place = f'cx="{LEFT:.1f}" cy="{y.at(height):.1f}" r="4" fill="none" stroke="#1f6fb4"'
    return f"<circle {place}><title>{title}</title></circle>"


def draw(figures):
    programs, peaks = figures["programs"], figures["peaks"]
    ridge = peaks["gflops"] / peaks["gbytes"]
    with_work = [p for p in programs if p["flops"]]
    x = Axis([ridge / 10, ridge * 10, *(p["flops"] / max(p["bytes"], 1) for p in with_work)], LEFT, WIDTH - RIGHT)
    speeds = [p["flops"] / p["us"] / 1e3 for p in with_work]
    y = Axis([peaks["gflops"], peaks["gbytes"] * 10.0**x.low, *speeds], HEIGHT - BOTTOM, TOP)
    roof = 'stroke="#b03a2e" stroke-width="2"'
    # Below the lowest decade the slope begins where it enters the picture.
    enters = max(10.0**x.low, 10.0**y.low / peaks["gbytes"])
    top = y.at(peaks["gflops"])
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, 28, f"{len(programs)} programs on one thread, and this machine's roofline", 'font-size="16"'),
        *grid(x, y),
        line(x.at(enters), y.at(peaks["gbytes"] * enters), x.at(ridge), top, roof),
        line(x.at(ridge), top, WIDTH - RIGHT, top, roof),
        text(WIDTH - RIGHT - 4, top - 6, f"{peaks['gflops']:.0f} GFLOP/s (f32)", 'text-anchor="end" fill="#b03a2e"'),
        text(x.at(ridge) - 10, top - 6, f"copy: {peaks['gbytes']:.1f} GB/s", 'text-anchor="end" fill="#b03a2e"'),
        *(dot(p, peaks, x, y) for p in programs),
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def print_table(figures):
    print("program                                       us   GFLOP/s      GB/s   flop/B  roofline")
    shares = []
    for p in figures["programs"]:
        shares.append(share(p, figures["peaks"]))
        speed = [p[kind] / p["us"] / 1e3 for kind in ("flops", "bytes")]
        intensity = p["flops"] / max(p["bytes"], 1)
        print(f"{p['name']:38s} {p['us']:9.1f} {speed[0]:9.2f} {speed[1]:9.2f} {intensity:8.2f} {100 * shares[-1]:7.0f} %")
    mean = math.exp(sum(math.log(max(s, 1e-6)) for s in shares) / len(shares))
    peaks = figures["peaks"]
    print(f"{len(shares)} programs, geometric mean {100 * mean:.0f} % of the roofline; peaks of one thread: "
          f"{peaks['gflops']:.0f} GFLOP/s (f32), {peaks['gbytes']:.1f} GB/s")


def measure_all(kiln, paths):
    programs, peaks = [], {"gflops": 0.0, "gbytes": 0.0}
    for path in paths:
        for module in modules(path):
            found = measure(kiln, module)
            if not found:
                print(f"{module}: does not run here", file=sys.stderr)
                continue
            programs.append(found[0])
            peaks = {kind: max(best, found[1][kind]) for kind, best in peaks.items()}
    if not programs:
        sys.exit("no program runs here")
    return {"programs": programs, "peaks": peaks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", metavar="FILE", help="a file that --json wrote; nothing is measured")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("arguments", nargs="+", metavar="ARGUMENT")
    args = parser.parse_intermixed_args()
    if args.draw:
        picture, = args.arguments
        figures = json.loads(pathlib.Path(args.draw).read_text())
    else:
        kiln, picture, *paths = args.arguments
        figures = measure_all(kiln, paths)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")
    pathlib.Path(picture).write_text(draw(figures))
    print_table(figures)


main()
