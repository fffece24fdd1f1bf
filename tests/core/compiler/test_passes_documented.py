"""docs/passes.md lists every pass that can be switched off, in the order in which they run."""

from __future__ import annotations

import re
from pathlib import Path

import opdock.compiler
from opdock.compiler.pipeline import _TOGGLES, OPTIONAL

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/passes.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| `(\w+/\w+\.py)` \| .+ \| (\w+) \|$", PAGE, re.MULTILINE)


def test_every_pass_has_its_row_in_order():
    assert tuple(name for name, _, _ in ROWS) == OPTIONAL


def test_files_and_kinds():
    folder = Path(opdock.compiler.__file__).parent
    for _, file, kind in ROWS:
        assert (folder / file).is_file()
        assert kind in ("exact", "rounding", "relaxed")
    assert [name for name, _, kind in ROWS if kind == "relaxed"] == ["relaxed"]


def test_every_toggle_is_on_the_page():
    for toggle in _TOGGLES:
        assert f"`rewrite_options.{toggle} = OFF" in PAGE
