"""Compiles a file of HLO text by XLA:CPU, as it is by default, and prints the seconds and the peak memory in MB.

usage: compile.py FILE
"""
import resource
import sys
import time

import xla


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main():
    text = open(sys.argv[1]).read()
    start = time.monotonic()
    try:
        xla.Program(text, False)
    except xla.Refused as e:
        sys.exit(str(e).split("\n")[0])
    print(f"{time.monotonic() - start:.1f} {peak()}")


if __name__ == "__main__":
    main()
