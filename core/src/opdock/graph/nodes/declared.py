"""What a plugin declares of its op, held against the op's definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opdock.graph.nodes.opdef import OpDef
from opdock.graph.nodes.traits import (
    AlongAxis,
    Control,
    DropsAxes,
    Elementwise,
    Formatted,
    Layout,
    PerAxis,
    Reduction,
    Traits,
)
from opdock.nearest import meant

__all__ = ["check_declared"]


def check_declared(definition: OpDef, traits: Traits, has_callee: bool) -> None:
    """Looks whether traits can be those of an op that the runtime knows by them alone.

    Args:
        definition: the op's.
        traits: what is declared.
        has_callee: whether the op has said for which function it stands.

    Raises:
        TypeError: they are no traits.
        ValueError: they name what the op does not have, or say that the runtime carries it out.
    """
    if not isinstance(traits, Traits):
        raise TypeError(f"Op '{definition.name}': declare takes Traits, got {traits!r}")
    if traits.control is Control.CALL and not has_callee:
        raise ValueError(
            f"Op '{definition.name}': a call's function is attached first, by `callee`"
        )
    for text in _faults(definition, traits):
        raise ValueError(f"Op '{definition.name}': Traits.{text}")


def _faults(definition: OpDef, traits: Traits) -> Iterator[str]:
    if traits.builtin or traits.holds:
        which = "holds" if traits.holds else "builtin"
        yield f"{which} is for ops that the runtime itself carries out; a kernel needs it not"
    if traits.control not in (Control.NONE, Control.CALL):
        yield f"control: the runtime knows its own ops of {traits.control}, and no others"
    inputs, outputs = definition.inputs, definition.outputs
    taken, given = [a.name for a in inputs], [a.name for a in outputs]
    yield from _unknown("reads", traits.reads, taken, "argument")
    yield from _unknown("own", traits.own, taken, "argument")
    yield from _unknown("keeps", traits.keeps or (), taken + given, "argument or result")
    yield from _unknown("captures", [name for name, _ in traits.captures], taken, "argument")
    attrs = [name for _, name in traits.captures]
    yield from _unknown("captures", attrs, definition.attrs, "attribute")
    validated = [traits.validates] if traits.validates else []
    yield from _unknown("validates", validated, definition.attrs, "attribute")
    if isinstance(traits.layout, DropsAxes):
        yield from _unknown("layout", [traits.layout.attr], definition.attrs, "attribute")
    if any(a.is_list for a in (*inputs, *outputs)):
        return  # how many tensors they are is a matter of each node
    if traits.forwards and len(outputs) > len(inputs):
        yield f"forwards: there are {len(outputs)} results, but {len(inputs)} arguments"
    if traits.repeats is not None:
        yield from _outside("repeats", (traits.repeats,), len(inputs), "argument")
    yield from _outside("layout", _places(traits.layout), len(inputs), "argument")
    if isinstance(traits.layout, Formatted):
        yield from _outside("layout", traits.layout.results, len(outputs), "result")


def _places(layout: Layout | None) -> tuple[int, ...]:
    """The arguments that a layout speaks of."""
    match layout:
        case Formatted():
            return (*layout.data, *layout.vectors)
        case Elementwise():
            return layout.scalar_or_full
        case Reduction():
            return (layout.axes,)
        case PerAxis():
            return layout.vectors
        case AlongAxis():
            return (layout.axis,)
    return ()


def _unknown(trait: str, names: Iterable[str], known: Iterable[str], what: str) -> Iterator[str]:
    known = list(known)
    for name in names:
        if name not in known:
            yield f"{trait}: the op has no {what} {name!r}{meant(name, known)}"


def _outside(trait: str, places: Iterable[int], count: int, what: str) -> Iterator[str]:
    for place in places:
        if not -count <= place < count:
            yield f"{trait}: the op has no {what} {place}, but {count}"
