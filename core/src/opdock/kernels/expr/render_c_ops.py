"""What code generators render: the typed lines of elementwise nodes and of optimizer updates."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.kernels.expr import tree as ex
from opdock.kernels.expr.lowering import Line, lower
from opdock.kernels.expr.render_c import RENDERED, can_render
from opdock.kernels.portable.elementwise import claims, lower_node
from opdock.kernels.select.signature import NodeSig
from opdock.util.update_rules import BY_OP, Update

__all__ = ["elementwise_claims", "input_names", "node_line", "update_line", "update_of", "updates"]


def input_names(op: str) -> list[str]:
    """The argument names of an op, which are the input names of its line."""
    return [a.name for a in registry.get(op).definition.inputs]


def node_line(sig: NodeSig) -> Line:
    """The typed line of an elementwise node.

    Raises:
        ValueError: the node means more than its op's expression says.
    """
    return lower_node(registry.get(sig.op), sig)


@functools.cache
def elementwise_claims() -> dict[str, Mapping[str, frozenset[DType]]]:
    """Op type -> the element types, by attribute, in which its expression can be rendered."""
    found: dict[str, Mapping[str, frozenset[DType]]] = {}
    for spec in registry.all_ops():
        if spec.expr is None:
            continue
        types = {a: kinds & RENDERED for a, kinds in claims(spec).items()}
        if "nextafter" in ex.functions_used(ex.parse(spec.expr)):
            # The neighbour of a 16-bit float is not that of its wide form.
            types = {a: kinds & {dtypes.float32, dtypes.float64} for a, kinds in types.items()}
        inputs = {a.name: a.dtype or _sample(types, a.type_attr) for a in spec.definition.inputs}
        if None in inputs.values() or not all(types.values()):
            continue
        attrs: dict[str, Any] = {
            n: a.default if a.has_default else 1 for n, a in spec.definition.attrs.items()
        }
        attrs.update({a: _sample(types, a) for a in types})
        out = spec.definition.outputs[0]
        wanted = out.dtype or attrs[out.type_attr]
        try:
            line = lower([ex.parse(spec.expr)], inputs, attrs, [wanted])  # type: ignore[arg-type]
        except ValueError:
            continue
        if can_render(line):
            found[spec.name] = types
    return found


def _sample(types: Mapping[str, frozenset[DType]], attr: str) -> DType | None:
    return min(types.get(attr, ()), key=lambda t: (t is not dtypes.float32, t.name), default=None)


# ---------------------------------------------------------------- optimizer updates
class _Symbol:
    """A scalar expression that behaves as a number, so that a rule run on it writes itself down."""

    __slots__ = ("node",)

    def __init__(self, node: ex.Expr) -> None:
        self.node = node

    def __add__(self, other: Any) -> _Symbol:
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> _Symbol:
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> _Symbol:
        return _apply("sub", self, other)

    def __rsub__(self, other: Any) -> _Symbol:
        return _apply("sub", other, self)

    def __mul__(self, other: Any) -> _Symbol:
        return _apply("mul", self, other)

    def __rmul__(self, other: Any) -> _Symbol:
        return _apply("mul", other, self)

    def __truediv__(self, other: Any) -> _Symbol:
        return _apply("div", self, other)

    def __rtruediv__(self, other: Any) -> _Symbol:
        return _apply("div", other, self)

    def __neg__(self) -> _Symbol:
        return _apply("neg", self)

    def __gt__(self, other: Any) -> _Symbol:
        return _apply("gt", self, other)

    def __lt__(self, other: Any) -> _Symbol:
        return _apply("lt", self, other)


def _apply(function: str, *args: Any) -> _Symbol:
    nodes = [a.node if isinstance(a, _Symbol) else ex.number(a) for a in args]
    return _Symbol(ex.apply(function, *nodes))


class _Namespace:
    """The functions that update rules take from an array namespace, on symbols."""

    sqrt = staticmethod(functools.partial(_apply, "sqrt"))
    abs = staticmethod(functools.partial(_apply, "abs"))
    exp = staticmethod(functools.partial(_apply, "exp"))
    sign = staticmethod(functools.partial(_apply, "sign"))
    maximum = staticmethod(functools.partial(_apply, "max"))
    pow = staticmethod(functools.partial(_apply, "pow"))
    where = staticmethod(functools.partial(_apply, "where"))


def updates(sparse: bool = False) -> list[str]:
    """The op types of optimizer updates, of whole variables or of some of their rows."""
    return [op for op in BY_OP if ("SparseApply" in op) is sparse]


def update_of(op: str) -> Update:
    """The rule behind an update op, with the names of its state and inputs."""
    return BY_OP[op]


@functools.cache
def update_line(
    op: str, dtype: DType, flags: tuple[tuple[str, bool], ...] = (),
    known: tuple[tuple[str, float], ...] = (),
) -> Line:  # fmt: skip
    """An update as a line: one result per reference, in order.

    Its inputs are "var", the names of the state, and the op's other inputs, all of type `dtype`.

    Args:
        op: the op type.
        dtype: the type of all of them.
        flags: the values of the op's flags.
        known: the values of inputs for which alone the line is.
    """
    update = BY_OP[op]
    state = [_Symbol(ex.name(n)) for n in ("var", *update.state)]
    others = {n: _Symbol(ex.name(n)) for n in update.inputs}
    fresh = update.rule(_Namespace, dict(flags), state, **{**others, **dict(known)})
    inputs = dict.fromkeys(("var", *update.state, *update.inputs), dtype)
    return lower([s.node for s in fresh], inputs, {}, [dtype] * len(fresh))
