"""Portable kernels of arithmetic on variants: lists of tensors and optionals, in each other too."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.kernels.array_api import invalid
from opdock.kernels.expr.elements import element, unwrap, zeros
from opdock.kernels.optionals import Optional
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.tensor_lists import NOTHING, Item, TensorList, list_of

Variant = TensorList | Optional


def _inside(handle: Any) -> Any:
    """What a scalar array of an object has in it."""
    found = unwrap(handle)
    if isinstance(found, np.ndarray) and found.dtype == object and not found.ndim:
        return unwrap(found.item())
    return found


def _variant(handle: Any) -> Variant:
    found = _inside(handle)
    return found if isinstance(found, Optional) else list_of(handle, None)


def _is_variant(component: Any) -> bool:
    return isinstance(_inside(component), Variant)


# ---------------------------------------------------------------- sums
@portable("AddN", T=frozenset({dtypes.variant}), host_inputs=("inputs",), host_outputs=("sum",))
def add(xp: Any, sig: NodeSig) -> Any:
    """The sums element by element from the end; a list that began as zeros lacks what is zero."""
    return lambda *handles: functools.reduce(
        lambda a, b: _sum(xp, sig, a, b), [_variant(h) for h in handles]
    )


def _sum(xp: Any, sig: NodeSig, a: Variant, b: Variant) -> Variant:
    if isinstance(a, Optional) and isinstance(b, Optional):
        return a.plus(b, functools.partial(_component_sum, xp, sig))
    if isinstance(a, TensorList) and isinstance(b, TensorList):
        return _list_sum(xp, sig, a, b)
    raise invalid(f"Cannot add variants of different kinds: {a} and {b}")


def _component_sum(xp: Any, sig: NodeSig, x: Any, y: Any) -> Any:
    if _is_variant(x) and _is_variant(y):
        return _sum(xp, sig, _variant(x), _variant(y))
    if np.shape(x) != np.shape(y):
        raise invalid(f"Cannot add tensors of shapes {np.shape(x)} and {np.shape(y)}")
    return np.add(x, y)


def _list_sum(xp: Any, sig: NodeSig, a: TensorList, b: TensorList) -> TensorList:
    if NOTHING in (a, b):
        return b if a is NOTHING else a
    if a.dtype is not b.dtype and None not in (a.dtype, b.dtype):
        raise invalid(
            "Trying to add two lists of tensors of different dtypes. One is "
            f"{getattr(a.dtype, 'name', None)} and the other is {getattr(b.dtype, 'name', None)}"
        )
    if not shapes.is_compatible(a.known, b.known):
        raise invalid(
            "Trying to add two lists of tensors with incompatible element shapes. One is "
            f"{shapes.text(a.known)} and the other is {shapes.text(b.known)}"
        )
    if a.length != b.length and None not in (a.dtype, b.dtype):
        raise invalid(
            "Trying to add two lists of tensors with different lengths. One is "
            f"{a.length} and the other is {b.length}"
        )
    longer, shorter = (a, b) if a.length >= b.length else (b, a)
    kept = longer.length - shorter.length
    sums = [
        _item_sum(xp, sig, x, y) for x, y in zip(longer.items[kept:], shorter.items, strict=True)
    ]
    return longer.having((*longer.items[:kept], *sums))


def _item_sum(xp: Any, sig: NodeSig, x: Item, y: Item) -> Item:
    if x is None or y is None:
        return y if x is None else x
    if _is_variant(x.value):
        return element(_sum(xp, sig, _variant(x.value), _variant(y.value)), sig)
    return element(xp.add(x.on(sig.device), y.on(sig.device)), sig)


# ---------------------------------------------------------------- zeros
@portable("ZerosLike", T=frozenset({dtypes.variant}), host_inputs=("x",), host_outputs=("y",))
def zeros_like(xp: Any, sig: NodeSig) -> Any:
    """Zeros in place of each element that there is."""

    def zero(value: Variant) -> Variant:
        if isinstance(value, Optional):
            return value.each(lambda c: zero(_variant(c)) if _is_variant(c) else np.zeros_like(c))
        return value.having([_zero(item) for item in value.items])

    def _zero(item: Item) -> Item:
        if item is None:
            return None
        if _is_variant(item.value):
            return element(zero(_variant(item.value)), sig)
        dtype = dtypes.as_dtype(np.dtype(str(item.value.dtype)))
        return element(zeros(sig, tuple(np.shape(item.value)), dtype), sig)

    return lambda handle: zero(_variant(handle))
