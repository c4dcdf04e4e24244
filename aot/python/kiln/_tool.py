"""The kiln executable: where it is, and running it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from typing import Sequence

from kiln._errors import CompileError, KilnError


def tool_path() -> str:
    """The path of the kiln executable: the variable KILN, the one in this package, or the one that PATH finds."""
    inside = pathlib.Path(__file__).parent / "bin" / "kiln"
    for candidate in (os.environ.get("KILN"), str(inside), shutil.which("kiln")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise KilnError("there is no kiln executable: neither in this package, nor in PATH, nor named by the variable KILN")


def include_path() -> str:
    """The folder for a C compiler's -I by which ``#include <kiln/kiln.h>`` finds the headers for hosts of any model."""
    return str(pathlib.Path(__file__).parent / "include")


def run_tool(arguments: Sequence[str]) -> tuple[str, str]:
    """Runs the tool; returns what it wrote to stdout and stderr.

    Raises:
      CompileError: the tool's own message, if it failed.
    """
    done = subprocess.run([tool_path(), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        text = done.stderr.strip() or done.stdout.strip()
        raise CompileError(text or f"kiln {arguments[0]} ended with code {done.returncode}")
    return done.stdout, done.stderr
