"""The page: its files and the data in one HTML file, which fetches nothing.

Names in a graph may be anyone's, so nothing of the data becomes markup. It stands in a block that
browsers do not run, with no character that could end it; the page's own code writes it as text
alone; and a policy in its head lets no script and no style run but those that are written here.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from opdock.io.files import write_file
from opdock.view.model import View, as_json

SCRIPTS: Final = (
    "program", "format", "dom", "colors", "tree", "order", "layout", "boxes", "graph", "axis",
    "timeline", "memory", "details", "overview", "table", "compare", "search", "print", "main",
)  # fmt: skip
"""The page's code, in the order in which its files build on each other."""


def page_of(*views: View) -> str:
    """The HTML of a page that shows a program, or two side by side.

    Raises:
        ValueError: there is no view, or there are more than two.
    """
    if not 1 <= len(views) <= 2:
        raise ValueError(f"a page shows one or two programs, not {len(views)}")
    style, script = _asset("page.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy, "title": html.escape(" | ".join(view.title for view in views)),
        "style": style, "script": script, "data": _harmless(as_json(views)),
    }  # fmt: skip
    pieces = _asset("page.html").split("@@")
    # Every second piece is the name of a part: data that holds such a name is not looked at.
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write_page(path: str, views: Sequence[View]) -> None:
    """Writes a page, whole or not at all.

    Raises:
        OpError: the file cannot be written.
        ValueError: as for `page_of`.
    """
    write_file(path, page_of(*views).encode())


@cache
def _asset(name: str) -> str:
    return (files("opdock.view") / "assets" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    code = "".join(_asset(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{code}}})();\n'


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _harmless(json: str) -> str:
    """JSON in ASCII as it may stand in a script block: the same data, without < > and &."""
    for sign in "<>&":
        json = json.replace(sign, f"\\u{ord(sign):04x}")
    return json
