"""An HLO module for N devices with every exchange of every type, among all devices and among two halves of them."""
import sys

FLOATS = ["f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64", "c64", "c128"]
INTEGERS = ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]


def main(devices):
    every = list(range(devices))
    groups = {"all": [every], "halves": [every[0::2], every[1::2]]}
    types = ["pred"] + INTEGERS + FLOATS
    out = [f"HloModule every_type, replica_count={devices}", ""]
    for t in types:
        operation = "or" if t == "pred" else "add"
        out += [f"combine_{t} {{", f"  a = {t}[] parameter(0)", f"  b = {t}[] parameter(1)",
                f"  ROOT c = {t}[] {operation}(a, b)", "}", ""]
    body, results = [], []

    def result(name, shape, text):
        body.append(f"  {name} = {shape} {text}")
        results.append((name, shape))

    for k, t in enumerate(types):
        elements = 24 * devices
        x = f"x_{t}"
        body.append(f"  {x} = {t}[{elements}] parameter({k})")
        for name, lists in groups.items():
            n = len(lists[0])
            if n == 1:
                continue
            where = "replica_groups={" + ",".join("{" + ",".join(map(str, g)) + "}" for g in lists) + "}"
            pairs = ",".join("{%d,%d}" % (g[i], g[(i + 1) % n]) for g in lists for i in range(n))
            result(f"reduced_{t}_{name}", f"{t}[{elements}]", f"all-reduce({x}), {where}, to_apply=combine_{t}")
            result(f"scattered_{t}_{name}", f"{t}[{elements // n}]",
                   f"reduce-scatter({x}), {where}, dimensions={{0}}, to_apply=combine_{t}")
            result(f"gathered_{t}_{name}", f"{t}[{elements * n}]", f"all-gather({x}), {where}, dimensions={{0}}")
            result(f"turned_{t}_{name}", f"{t}[{elements}]", f"all-to-all({x}), {where}, dimensions={{0}}")
            result(f"passed_{t}_{name}", f"{t}[{elements}]", f"collective-permute({x}), source_target_pairs={{{pairs}}}")
    body.append("  ROOT r = (" + ", ".join(s for _, s in results) + ") tuple(" + ", ".join(n for n, _ in results) + ")")
    print("\n".join(out + ["ENTRY e {"] + body + ["}"]))


main(int(sys.argv[1]))
