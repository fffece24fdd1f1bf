"""Patterns of ops in GraphDefs, and their replacement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from opdock.graph.serial.import_arguments import parse_input
from opdock.transforms.editor import Editor
from opdock.transforms.order import in_order

__all__ = ["ANY", "Match", "Pattern", "replace"]

Match = dict[str, Any]
"""The NodeDefs of a match by the names in its pattern; the outermost is "" as well."""


@dataclass(frozen=True)
class Pattern:
    """A node of some op whose inputs match patterns.

    Args:
        op: an op type, several with "|" between them, or "*" for all.
        inputs: patterns of all data inputs; none when they do not matter. A node below the
            outermost matches as the first output of its op.
        name: by which a match has the node; `None` when nobody asks.

    Example:
        Pattern("Mul", Pattern("Conv2D|MatMul", ANY, Pattern("Const", name="weights")), ANY)
    """

    op: str
    inputs: tuple[Pattern, ...]
    name: str | None

    def __init__(self, op: str, *inputs: Pattern, name: str | None = None) -> None:
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "name", name)

    def match(self, node: Any, editor: Editor) -> Match | None:
        """The nodes that match, or None."""
        found: Match = {"": node}
        return found if self._match(node, editor, found) else None

    def _match(self, node: Any, editor: Editor, found: Match) -> bool:
        if self.op != "*" and node.op not in self.op.split("|"):
            return False
        if self.name is not None:
            found[self.name] = node
        if not self.inputs:
            return True
        edges = [parse_input(text) for text in node.input if not text.startswith("^")]
        return len(edges) == len(self.inputs) and all(
            pattern is ANY or (index == 0 and pattern._match(editor.nodes[name], editor, found))
            for pattern, (name, index) in zip(self.inputs, edges, strict=True)
        )


ANY: Final = Pattern("*")
"""Any output of any node."""


def replace(editor: Editor, pattern: Pattern, make: Callable[[Match], bool]) -> int:
    """Offers all matches of a pattern to a function that may replace their outermost nodes.

    Nodes are visited after their inputs, so a match finds what was made of those before it. Nodes
    that only a replaced one used go; what it, or a named node of the pattern, waited for, the new
    node waits for.

    Args:
        editor: is changed.
        pattern: what to look for.
        make: puts nodes into the editor, one with the name of the outermost among them, and
            returns True; or changes nothing and returns False.

    Returns:
        How many were replaced.
    """
    count = 0
    for name in in_order(editor, strict=False):
        if name not in editor.nodes:
            continue
        node = editor.nodes[name]
        found = pattern.match(node, editor)
        if found is None:
            continue
        before = list(node.input)
        waits = dict.fromkeys(t for n in found.values() for t in n.input if t.startswith("^"))
        if not make(found):
            continue
        count += 1
        made = editor.nodes[name]
        editor.set_inputs(made, [*made.input, *(t for t in waits if t not in made.input)])
        editor.sweep(parse_input(text)[0] for text in before)
    return count
