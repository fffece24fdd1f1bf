"""Runs a notebook cell by cell in IPython, and prints what each shows, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


def run(path: Path) -> list[dict[str, Any]]:
    """What the cells of code show: by MIME type, and as text; an error ends it."""
    shown: list[dict[str, Any]] = []
    shell = InteractiveShell.instance()
    shell.display_formatter.active_types = ["text/plain", "text/html"]
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            result = shell.run_cell("".join(cell["source"]), store_history=True)
            result.raise_error()
            # What a magic ran shows itself; the last value is kept either way.
            value = result.result
            shown.append({} if value is None else shell.display_formatter.format(value)[0])
    shown.append({"text/plain": repr(shell.user_ns.get("result"))})
    return shown


if __name__ == "__main__":
    told = run(Path(sys.argv[1]))
    Path(sys.argv[2]).write_text(json.dumps(told), encoding="utf-8")
