"""Compiler and runtime know ops by their traits: names stand in rewrite rules and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

from opdock.graph.nodes import registry

SRC = Path(__file__).resolve().parents[2] / "core/src/opdock"
# File or folder: why it names ops.
MAY_NAME: dict[str, str] = {
    "compiler/clean/calls.py": "an argument that a function returns becomes a value of the call",
    "compiler/rules/": "a rewrite rule is about certain ops",
    "compiler/tasks/bodies.py": "makes sends and receives, branches and loops, and numbers turns",
    "compiler/tasks/split.py": "makes sends and receives, and placeholders for what is fed",
    "compiler/fuse/cluster_line.py": "the lines of ops whose expression depends on attributes",
    "compiler/emit/turn_views.py": "what ops that read, move, place and add elements do with these",
    "compiler/place/layout.py": "makes and joins transposes between data formats",
    "compiler/place/formats.py": "makes transposes between data formats",
    "compiler/place/agnostic.py": "makes a reshape between data formats",
    "runtime/program/builtin.py": "the runtime's own implementations, a table by op",
    "runtime/inspect/bisect.py": "makes a graph of one op: placeholders, assignments and reads",
}


def named(path: Path, ops: set[str]) -> list[str]:
    """The op types that stand as strings in a file, but for what it exports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = {
        id(inner)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for inner in ast.walk(node)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in ops and id(node) not in exported
    ]


def test_passes_ask_traits() -> None:
    ops = {spec.name for spec in registry.all_ops()} | {"_Arg", "Const"}
    wrong = {}
    idle = set(MAY_NAME)
    for layer in ("compiler", "runtime"):
        for path in sorted((SRC / layer).rglob("*.py")):
            place = path.relative_to(SRC).as_posix()
            found = named(path, ops)
            allowed = {rule for rule in MAY_NAME if place.startswith(rule)}
            if found:
                idle -= allowed
            if found and not allowed:
                wrong[place] = found
    assert not wrong, f"declare a trait on the op instead: {wrong}"
    assert not idle, f"allowed to name ops, but does not: {idle}"


def test_declared_traits_fit_the_signature() -> None:
    """Traits speak of arguments by name and of inputs by index: both exist."""
    wrong = []
    for spec in registry.all_ops():
        traits, definition = spec.traits, spec.definition
        inputs = {a.name for a in definition.inputs}
        outputs = {a.name for a in definition.outputs}
        if not set(traits.reads) <= inputs:
            wrong.append(f"{spec.name} reads {traits.reads}")
        if not set(traits.keeps or ()) <= inputs | outputs:
            wrong.append(f"{spec.name} keeps {traits.keeps}")
        if traits.forwards and len(definition.inputs) != len(definition.outputs):
            wrong.append(f"{spec.name} forwards {len(inputs)} inputs to {len(outputs)} outputs")
        if traits.repeats is not None and traits.repeats >= len(definition.inputs):
            wrong.append(f"{spec.name} repeats input {traits.repeats}")
        if traits.reshapes and traits.repeats is None:
            wrong.append(f"{spec.name} reshapes, but repeats no input")
    assert not wrong, wrong
