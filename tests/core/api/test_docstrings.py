"""Every public function of TensorFlow's says what its arguments are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from opdock.mapping import coverage, resolve

LIBRARIES = ("keras", "estimator", "compat")
"""Names that are looked up in libraries, or are there by a second way."""


def functions() -> Iterator[tuple[str, Any]]:
    """Paths and functions, each once, but for those that always refuse."""
    seen = set()
    for entry in coverage.entries():
        top = entry.path.partition(".")[0]
        if entry.kind != "function" or entry.status != "there" or top in LIBRARIES:
            continue
        function = resolve.without_libraries(entry.path)
        inner = inspect.unwrap(function)
        own = (getattr(function, "__module__", "") or "").startswith("opdock.")
        if not own or inner in seen:
            continue
        seen.add(inner)
        if inner.__annotations__.get("return") not in ("NoReturn", NoReturn):
            yield entry.path, function


def test_every_argument_is_named() -> None:
    silent = {}
    count = 0
    for path, function in functions():
        count += 1
        doc = inspect.getdoc(function) or ""
        wanted = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            if p.name != "name" and not p.name.startswith("_")
        ]
        missing = [name for name in wanted if not re.search(rf"\b{re.escape(name)}\b", doc)]
        if missing or not doc:
            silent[path] = missing
    assert count > 1000
    assert not silent


def test_a_docstring_begins_with_a_sentence() -> None:
    odd = {}
    for path, function in functions():
        first = (inspect.getdoc(function) or "").split("\n\n")[0]
        if not first.rstrip().endswith((".", ":")) or re.search("^Args:", first, re.MULTILINE):
            odd[path] = first
    assert not odd


def test_no_section_comes_twice() -> None:
    twice = {}
    for path, function in functions():
        sections = re.findall(
            r"^(Args|Returns|Raises):$", inspect.getdoc(function) or "", re.MULTILINE
        )
        if len(sections) != len(set(sections)) or sections != sorted(
            sections, key=["Args", "Returns", "Raises"].index
        ):
            twice[path] = sections
    assert not twice
