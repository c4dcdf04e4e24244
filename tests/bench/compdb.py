"""compile_commands.json for editors, from what bazel would run.

usage: bazel aquery --output=jsonproto QUERY | compdb.py EXECUTION_ROOT
"""

import json
import os
import sys


def main():
    graph, root, execution_root = json.load(sys.stdin), os.getcwd(), sys.argv[1]
    commands = {}
    for action in graph["actions"]:
        arguments = action["arguments"]
        if "-c" not in arguments:
            continue
        source = arguments[arguments.index("-c") + 1]
        # Repositories lie beside the sources only where bazel runs a command.
        arguments = [os.path.join(execution_root, a) if a.startswith("external/") else a for a in arguments]
        commands[source] = {"directory": root, "file": source, "arguments": arguments}
    with open("compile_commands.json", "w", encoding="utf-8") as out:
        json.dump([commands[s] for s in sorted(commands)], out, indent=1)
    print(f"compile_commands.json: {len(commands)} files")


main()
