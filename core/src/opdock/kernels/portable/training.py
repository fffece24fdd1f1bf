"""Optimizer updates on any array namespace: the rules of `util.update_rules` between two reads
and writes of variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.dtypes import FLOATS
from opdock.kernels.array_api import dtype_of
from opdock.kernels.portable import portable
from opdock.util.update_rules import BY_OP, Update


def update_on(xp: Any, sig: Any) -> Callable[..., Any]:
    """The update of a node's op as a function of its cells and inputs, on an array namespace."""
    return _binder(BY_OP[sig.op])(xp, sig)


def _binder(update: Update) -> Callable[[Any, Any], Callable[..., Any]]:
    count = len(update.state) + 1

    def bind(xp: Any, sig: Any) -> Callable[..., Any]:
        flags = {name: sig.attrs[name] for name, _ in update.flags}
        element = dtype_of(xp, sig.attrs["T"])
        integers = [update.inputs.index(n) for n in sorted(update.integers)]
        resource = sig.op.startswith("Resource")
        rule, names = update.rule, update.inputs

        def apply(*inputs: Any) -> Any:
            cells, rest = inputs[:count], list(inputs[count:])
            for i in integers:
                rest[i] = xp.astype(xp.asarray(rest[i]), element)
            with cells[0].lock:
                state = [c.read() for c in cells]
                fresh = rule(xp, flags, state, **dict(zip(names, rest, strict=True)))
                for cell, value in zip(cells, fresh, strict=True):
                    # Namespaces without the standard's scalar rules widen 0-d and bfloat16 results.
                    same = getattr(value, "dtype", None) == element
                    cell.write(value if same else xp.astype(xp.asarray(value), element))
            return None if resource else cells[0]

        return apply

    return bind


for _op, _update in BY_OP.items():
    if "Sparse" not in _op:
        portable(_op, T=FLOATS, keeps=())(_binder(_update))
