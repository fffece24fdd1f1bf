"""What TensorFlow's kernels say of an argument that has another number of dimensions.

A shape function refuses such an argument too, in its own words; while a step runs, programs and
tests expect the kernel's. They stand in `rank_words.txt`: op types, a colon, arguments, the numbers
of dimensions that are allowed (`1`, `0-1`, `2+`), and the text. In it `{}` is the argument's shape,
`{rank}` its number of dimensions, `{name}` its name, `{nth}` its place in its list and `{at}` that
among all inputs; `{x}` and `{x_rank}` are those of argument `x`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from opdock import shapes
from opdock.graph.nodes.registry import OpSpec
from opdock.kernels.select.arguments import positions
from opdock.shapes import Shape

__all__ = ["Rule", "refusal", "rules"]

_ANY: Final = 1 << 30


class Rule(NamedTuple):
    """What is said of one argument."""

    argument: str
    least: int
    most: int
    text: str


@functools.cache
def rules() -> Mapping[str, Sequence[Rule]]:
    """Op type -> what its kernel looks at, in its order."""
    found: dict[str, list[Rule]] = {}
    text = (resources.files(__package__) / "rank_words.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        ops, _, rest = line.partition(": ")
        names, ranks, said = rest.split(" ", 2)
        least, most = _bounds(ranks)
        for op in ops.split():
            found.setdefault(op, []).extend(Rule(n, least, most, said) for n in names.split(","))
    return found


def _bounds(ranks: str) -> tuple[int, int]:
    if ranks.endswith("+"):
        return int(ranks[:-1]), _ANY
    least, _, most = ranks.partition("-")
    return int(least), int(most or least)


def refusal(spec: OpSpec, inputs: Sequence[Shape], attrs: Mapping[str, Any]) -> str | None:
    """What the kernel says of the first input that has a wrong number of dimensions.

    Args:
        spec: the op.
        inputs: the shapes of its inputs.
        attrs: its attributes.
    """
    own = rules().get(spec.name)
    if own is None:
        return None
    where = positions(spec.definition.inputs, attrs)
    for rule in own:
        for nth, at in enumerate(where[rule.argument]):
            shape = inputs[at]
            if shape is not None and not rule.least <= len(shape) <= rule.most:
                told = {"rank": len(shape), "name": rule.argument, "nth": nth, "at": at}
                return rule.text.format(shapes.text(shape), **dict(_of_all(where, inputs)), **told)
    return None


def _of_all(where: Mapping[str, range], inputs: Sequence[Shape]) -> Iterator[tuple[str, Any]]:
    """What the text may say of other arguments."""
    for name, places in where.items():
        shape = inputs[places[0]] if places else None
        yield name, shapes.text(shape)
        yield f"{name}_rank", "?" if shape is None else len(shape)
