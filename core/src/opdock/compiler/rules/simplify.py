"""Simplify: nodes that return one of their inputs, bit for bit, go."""

from __future__ import annotations

from typing import Final

import numpy as np

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import FORWARDS, Rule, Rules, Site, constant, keeps, known
from opdock.dtypes import DType


def _pass_through(node: Node, site: Site) -> Value | None:
    return node.inputs[0]


def _is_number(value: Value, number: int, negative: bool = False) -> bool:
    """Whether a value is `number` all over; complex and the other zero are not neutral to the bit.

    Large constants are left to be spread when they run, such as the ones that the gradient of a sum
    begins with.
    """
    while (source := value.node.traits.repeats) is not None and known(value.shape) is not None:
        value = value.node.inputs[source]
    array = constant(value)
    return (
        array is not None
        and array.size > 0
        and array.dtype.kind in "iuf"
        and bool(array.flat[0] == number)  # most are not, and the rest need not be looked at
        and bool(np.all(array == number))
        and bool(np.all(np.signbit(array) == negative))
    )


def _neutral(number: int, left: bool, negative: bool = False) -> Rule:
    def rule(node: Node, site: Site) -> Value | None:
        a, b = node.inputs
        if _is_number(b, number, negative) and keeps(node, a):
            return a
        if left and _is_number(a, number, negative) and keeps(node, b):
            return b
        return None

    return rule


_ADD_ZERO: Final = _neutral(0, True)
# x + -0.0 is x, whatever x is; x + 0.0 is not: it makes 0.0 of -0.0.
_ADD_MINUS_ZERO: Final = _neutral(0, True, negative=True)


def _zero(node: Node, site: Site) -> Value | None:
    return (_ADD_ZERO if node.out_dtypes[0].is_integer else _ADD_MINUS_ZERO)(node, site)


def _same_shape(node: Node, site: Site) -> Value | None:
    """An op that keeps every element, or makes more of them: with no more, it did nothing."""
    return node.inputs[0] if keeps(node, node.inputs[0]) else None


def _known_same_shape(node: Node, site: Site) -> Value | None:
    """The same of an op whose second input, while it is unknown, may turn out not to fit."""
    return None if constant(node.inputs[1]) is None else _same_shape(node, site)


def _no_axes(node: Node, site: Site) -> Value | None:
    axes = constant(node.inputs[1])
    return node.inputs[0] if axes is not None and axes.size == 0 else None


def _single_axes(node: Node, site: Site) -> Value | None:
    """Reversing an axis with one element."""
    source, axes = node.inputs[0], constant(node.inputs[1])
    if axes is None or source.shape is None or not keeps(node, source):
        return None
    return source if all(source.shape[int(a)] == 1 for a in axes) else None


def _sole(node: Node, site: Site) -> Value | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _split(node: Node, site: Site) -> Value | None:
    """Cut into one piece."""
    source = node.inputs[1 if node.op == "Split" else 0]
    return source if len(node.out_dtypes) == 1 and keeps(node, source) else None


def _concat(node: Node, site: Site) -> Value | None:
    """Only one of the pieces has elements, or there is only one."""
    pieces = node.inputs[1:] if node.op == "Concat" else node.inputs[:-1]
    full = [v for v in pieces if 0 not in (known(v.shape) or ()) or _of_variable(v)]
    return full[0] if len(full) == 1 and keeps(node, full[0]) else None


def _of_variable(value: Value) -> bool:
    """Whether this is a variable, which an assignment that looks at no shape may give another."""
    while value.node.op == "Identity":
        value = value.node.inputs[0]
    return value.dtype._is_ref_dtype


def _select(node: Node, site: Site) -> Value | None:
    """The condition is the same everywhere, and known."""
    condition = constant(node.inputs[0])
    if condition is None or condition.size == 0 or condition.any() != condition.all():
        return None
    chosen = node.inputs[1 if condition.any() else 2]
    return chosen if keeps(node, chosen) else None


def _cast(node: Node, site: Site) -> Value | None:
    source = node.inputs[0]
    if source.dtype.base_dtype is node.out_dtypes[0]:
        return source
    wide = site.source(source, "Cast")
    if wide is None or wide.attrs["Truncate"]:
        return None
    # There and back: nothing was lost on the way.
    first = wide.inputs[0]
    there = holds(source.dtype, first.dtype)
    return first if there and first.dtype is node.out_dtypes[0] else None


def holds(wide: DType, narrow: DType) -> bool:
    """Whether each value of the type `narrow`, NaN and infinities too, has its own in `wide`."""
    if wide is narrow:
        return True
    if not (wide.is_numpy_compatible and narrow.is_numpy_compatible):
        return False
    if narrow.is_bool:
        return wide.is_integer or wide.is_floating
    if narrow.name in ("bfloat16", "float16"):
        return wide.name in ("float32", "float64")
    if wide.name in ("bfloat16", "float16"):
        return narrow.name in ("int8", "uint8")
    if not (_plain(wide) and _plain(narrow)):
        return False
    return bool(np.can_cast(narrow.np, wide.np, "safe")) and not (
        # NumPy calls these safe for want of something wider.
        narrow.name in ("int64", "uint64") and wide.is_floating
    )


def _plain(dtype: DType) -> bool:
    return dtype.np.kind in "iuf"


def _undone() -> Rule:
    """An op that undoes itself."""

    def rule(node: Node, site: Site) -> Value | None:
        inner = site.source(node.inputs[0], node.op)
        return None if inner is None else inner.inputs[0]

    return rule


def _again(node: Node, site: Site) -> Value | None:
    """An op that changes nothing the second time."""
    if node.out_dtypes[0].is_complex or site.source(node.inputs[0], node.op) is None:
        return None
    return node.inputs[0]


def _ensure(node: Node, site: Site) -> Value | None:
    shape = known(node.inputs[0].shape)
    wanted = node.attrs["shape"]
    if shape is None or (wanted is not None and len(wanted) != len(shape)):
        return None
    fits = wanted is None or all(w in (None, d) for w, d in zip(wanted, shape, strict=True))
    return node.inputs[0] if fits else None


_UNDONE: Final = _undone()
RULES: Final[Rules] = {
    FORWARDS: (_pass_through,),
    "EnsureShape": (_ensure,),
    "Mul": (_neutral(1, True),),
    "Div": (_neutral(1, False),),
    "RealDiv": (_neutral(1, False),),
    "Pow": (_neutral(1, False),),
    "Sub": (_neutral(0, False),),
    "Add": (_zero,),
    "AddV2": (_zero,),
    "AddN": (_sole,),
    "Reshape": (_known_same_shape,),
    "Pad": (_same_shape,),
    "PadV2": (_same_shape,),
    "MirrorPad": (_same_shape,),
    "Slice": (_known_same_shape,),
    "Tile": (_same_shape,),
    "BroadcastTo": (_known_same_shape,),
    "ReverseV2": (_no_axes, _single_axes),
    "Split": (_split,),
    "SplitV": (_split,),
    "Concat": (_concat,),
    "ConcatV2": (_concat,),
    "Select": (_select,),
    "SelectV2": (_select,),
    "Cast": (_cast,),
    "Neg": (_UNDONE,),
    "Conj": (_UNDONE,),
    "LogicalNot": (_UNDONE,),
    "Invert": (_UNDONE,),
    **dict.fromkeys(("Abs", "Sign", "Floor", "Ceil", "Rint", "Relu", "Relu6"), (_again,)),
    # What is left of the gradient of a broadcast that repeats nothing.
    **dict.fromkeys(
        ("Sum", "Prod", "Max", "Min", "Mean", "EuclideanNorm", "All", "Any"), (_no_axes,)
    ),
}
