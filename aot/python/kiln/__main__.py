"""``kiln`` and ``python -m kiln``: the tool itself."""

import os
import sys

from kiln._errors import KilnError
from kiln._tool import tool_path


def main() -> None:
    try:
        tool = tool_path()
    except KilnError as error:
        sys.exit(f"kiln: {error}")
    os.execv(tool, ["kiln", *sys.argv[1:]])


if __name__ == "__main__":
    main()
