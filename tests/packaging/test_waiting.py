"""No test has a limit of time of its own: on a busy machine everything may take long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ENOUGH = 600
"""Seconds for which nobody waits who is not stuck."""
PAUSE = 1
"""Fewer seconds are how long a thread sleeps before it looks again, or a limit that is to pass."""
WAITS = {"acquire", "communicate", "get", "join", "poll", "result", "run", "wait", "wait_for"}


def _name(call: ast.Call) -> str:
    at = call.func
    return at.attr if isinstance(at, ast.Attribute) else at.id if isinstance(at, ast.Name) else ""


def limits(source: str) -> Iterator[tuple[int, float]]:
    """Lines, and for how many seconds a test waits there."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node)
        given = [word.value for word in node.keywords if word.arg == "timeout"]
        if name in WAITS - {"get", "run", "acquire"} or name == "timeout":  # pytest.mark.timeout
            given += node.args[:1]
        if name not in WAITS | {"timeout", "Barrier"}:
            continue
        for value in given:
            if isinstance(value, ast.Constant) and type(value.value) in (int, float):
                yield node.lineno, value.value


def test_who_waits_waits_for_an_event() -> None:
    wrong = [
        f"{path.relative_to(TESTS)}:{line}: {seconds} s"
        for path in sorted(TESTS.rglob("*.py"))
        for line, seconds in limits(path.read_text(encoding="utf-8"))
        if PAUSE <= seconds < ENOUGH
    ]
    assert not wrong


def test_limits_are_found() -> None:
    found = limits(
        "@pytest.mark.timeout(120)\ndef test():\n    t.join(30)\n    q.get(timeout=50)\n"
        "    threading.Barrier(2, timeout=20)\n    subprocess.run(x, timeout=5.5)\n    t.join()\n"
        "    ','.join(words)\n    d.get('timeout', 3)\n    e.wait(timeout=None)\n"
    )
    assert list(found) == [(1, 120), (3, 30), (4, 50), (5, 20), (6, 5.5)]
