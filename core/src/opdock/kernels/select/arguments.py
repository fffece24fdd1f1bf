"""What an op's definition tells kernels: where its named arguments stand, and output shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opdock.graph.nodes import registry
from opdock.graph.nodes.opdef import ArgDef
from opdock.kernels.select.signature import NodeSig
from opdock.shapes import Shape


def input_positions(op: str, attrs: Mapping[str, Any]) -> dict[str, range]:
    """Argument name -> positions among the inputs; empty for an op that is not registered."""
    spec = registry.find(op)
    return {} if spec is None else positions(spec.definition.inputs, attrs)


def output_positions(op: str, attrs: Mapping[str, Any]) -> dict[str, range]:
    """Result name -> positions among the outputs; empty for an op that is not registered."""
    spec = registry.find(op)
    return {} if spec is None else positions(spec.definition.outputs, attrs)


def flat_inputs(op: str, names: Iterable[str], attrs: Mapping[str, Any]) -> frozenset[int]:
    """The positions of the named input arguments, e.g. of a kernel's `host_inputs`."""
    where = input_positions(op, attrs) if names else {}
    return frozenset(i for name in names for i in where.get(name, ()))


def flat_outputs(op: str, names: Iterable[str], attrs: Mapping[str, Any]) -> frozenset[int]:
    """The positions of the named results, e.g. of a kernel's `host_outputs`."""
    where = output_positions(op, attrs) if names else {}
    return frozenset(i for name in names for i in where.get(name, ()))


def infer_shapes(
    sig: NodeSig, shapes: Sequence[Shape], const: Callable[[int], Any] | None = None
) -> list[Shape]:
    """The shapes of a node's outputs, by the op's shape function, for given shapes of its inputs.

    Args:
        sig: the node.
        shapes: the shapes of its inputs.
        const: gives the value of input i as a NumPy array, or None where it is not known; what
            was known at compile time by default.

    Raises:
        ValueError: the shapes do not fit the op.
    """
    spec = registry.get(sig.op)
    shape_sig = registry.ShapeSig(
        spec, sig.name, list(shapes), list(sig.in_dtypes), dict(sig.attrs), len(sig.out_dtypes),
        const or sig.const,
    )  # fmt: skip
    return spec.infer(shape_sig)


@functools.cache
def _fixed(args: tuple[ArgDef, ...]) -> dict[str, range] | None:
    if any(a.is_list for a in args):
        return None
    return {a.name: range(i, i + 1) for i, a in enumerate(args)}


def positions(args: tuple[ArgDef, ...], attrs: Mapping[str, Any]) -> dict[str, range]:
    """Argument name -> the positions of its tensors among all, for the attributes of a node."""
    fixed = _fixed(args)
    if fixed is not None:
        return fixed
    found, start = {}, 0
    for arg in args:
        if arg.number_attr:
            length = int(attrs[arg.number_attr])
        elif arg.type_list_attr:
            length = len(attrs[arg.type_list_attr])
        else:
            length = 1
        found[arg.name] = range(start, start + length)
        start += length
    return found
