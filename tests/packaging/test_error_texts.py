"""One mistake reads the same on every device: what kernels say of arguments stands in one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = {
    "core": ROOT / "core/src/opdock/kernels",
    **{path.name: path / "src" for path in sorted((ROOT / "backends").iterdir()) if path.is_dir()},
    **{path.name: path / "src" for path in sorted((ROOT / "plugins").iterdir()) if path.is_dir()},
}
RAISED = ("invalid", "InvalidArgumentError")
SHORT = 12
"""Letters below which a text says nothing of its own."""


def _text(node: ast.expr) -> str | None:
    """A text with a mark for each value that is put into it; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    return None


def told(source: str) -> Iterator[str]:
    """The texts of the errors about arguments that a module raises."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name in RAISED:
            for argument in node.args:
                text = _text(argument)
                if text is not None and sum(map(str.isalpha, text)) >= SHORT:
                    yield text


def test_no_two_distributions_say_the_same() -> None:
    where: dict[str, set[str]] = defaultdict(set)
    for name, folder in KERNELS.items():
        for path in folder.rglob("*.py"):
            for text in told(path.read_text(encoding="utf-8")):
                where[text].add(name)
    assert len(where) > 500
    twice = {text: sorted(names) for text, names in where.items() if len(names) > 1}
    assert not twice, f"let `opdock.plugin.checks` say it: {twice}"


def test_texts_are_found_with_what_is_put_into_them() -> None:
    source = (
        'raise checks.invalid(f"x has {n} elements, " "expected two")\nfail("no such argument")'
    )
    assert list(told(source)) == ["x has {} elements, expected two"]
