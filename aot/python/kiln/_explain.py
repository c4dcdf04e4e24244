"""kiln.explain: what the compiler decided, as text and as a page."""

from __future__ import annotations

import dataclasses
import html
import os
import pathlib
import tempfile
from typing import Any, Mapping, Optional

from kiln import _tool
from kiln._compile import Compiled, config_text
from kiln._frontends import program_of


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What ``kiln explain`` says. ``print`` shows the text; a notebook shows the page.

    Attributes:
      text: for a terminal.
      page: one HTML page that needs nothing else.
    """

    text: str
    page: str = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # In a frame, so that the page's styles and the notebook's do not meet.
        return (
            f'<iframe srcdoc="{html.escape(self.page, quote=True)}" style="width:100%;height:640px;border:0" '
            'sandbox="allow-scripts"></iframe>'
        )


def explain(
    program: Any,
    *args: Any,
    kwargs: Optional[Mapping[str, Any]] = None,
    config: str | os.PathLike | None = None,
    run: bool = False,
) -> Explanation:
    """Says what kiln does with a program and why: memory and who owns its peak, kernels, what each pass did.

    Args:
      program, *args, kwargs, config: as for ``compile``; or a ``Compiled``.
      run: also measures a run on random inputs.
    """
    made = program._program if isinstance(program, Compiled) else program_of(program, args, kwargs or {})
    with tempfile.TemporaryDirectory(prefix="kiln_explain_") as scratch:
        module = pathlib.Path(scratch) / f"{made.name}.mlir"
        page = pathlib.Path(scratch) / "page.html"
        module.write_bytes(made.module)
        options = ["explain", str(module), "--html", str(page)]
        text = config_text(config, made)
        if text:
            config_file = pathlib.Path(scratch) / "config"
            config_file.write_text(text)
            options += ["--config", str(config_file)]
        said, _ = _tool.run_tool(options + (["--run"] if run else []))
        return Explanation(said, page.read_text())
