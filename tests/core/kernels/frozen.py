"""The strictest array namespace, with arrays that cannot be written to.

`Frozen` arrays have no way to change; those of `indexed` have the one that functional libraries
give theirs: `x.at[index].set(values)`, which makes a new array.
"""

from __future__ import annotations

import operator
from types import ModuleType
from typing import Any

import array_api_strict as strict
import numpy as np


class Frozen:
    """An array of the strict namespace behind everything but assignment."""

    def __init__(self, namespace, value):
        self._namespace, self._value = namespace, value

    def __getattr__(self, name):
        if name == "at" or name.startswith("__i"):
            raise AttributeError(name)
        return self._namespace.wrap(getattr(self._value, name))

    def __getitem__(self, index):
        return self._namespace.wrap(self._value[unwrap(index)])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._value, dtype=dtype)

    def __bool__(self):
        return bool(self._value)

    def __int__(self):
        return int(self._value)

    __index__ = __int__

    def __float__(self):
        return float(self._value)


class Indexed(Frozen):
    """`Frozen` with functional updates."""

    @property
    def at(self):
        return At(self)


class At:
    def __init__(self, array, index=None):
        self._array, self._index = array, index

    def __getitem__(self, index):
        return At(self._array, index)

    def _update(self, change):
        new = strict.asarray(self._array._value, copy=True)
        new[self._index] = change(new[self._index])
        return self._array._namespace.wrap(new)

    def set(self, value):
        return self._update(lambda old: unwrap(value))

    def add(self, value):
        return self._update(lambda old: old + unwrap(value))


def _operator(name):
    function = getattr(operator, name.strip("_") + ("_" if name in ("__and__", "__or__") else ""))

    def forward(self, *other):
        return self._namespace.wrap(function(self._value, *map(unwrap, other)))

    def backward(self, other):
        return self._namespace.wrap(function(unwrap(other), self._value))

    return forward, backward


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
              "lshift", "rshift", "matmul"):  # fmt: skip
    _forward, _backward = _operator(f"__{_name}__")
    setattr(Frozen, f"__{_name}__", _forward)
    setattr(Frozen, f"__r{_name}__", _backward)
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Frozen, f"__{_name}__", _operator(f"__{_name}__")[0])
Frozen.__hash__ = None


def unwrap(value: Any) -> Any:
    """Without the wrapping, inside of lists and tuples too."""
    if isinstance(value, Frozen):
        return value._value
    if isinstance(value, (list, tuple)):
        return type(value)(map(unwrap, value))
    return value


class Namespace:
    """The functions of the strict namespace, or of its extensions, over wrapped arrays."""

    def __init__(self, kind, module=strict):
        self._kind, self._module = kind, module

    def wrap(self, value: Any) -> Any:
        """Arrays wrapped, functions made to take and give wrapped ones."""
        if isinstance(value, ModuleType):
            return Namespace(self._kind, value)
        if isinstance(value, type(strict.asarray(0))):
            return self._kind(self, value)
        if isinstance(value, tuple) and any(isinstance(v, type(strict.asarray(0))) for v in value):
            wrapped = map(self.wrap, value)
            return type(value)(*wrapped) if hasattr(value, "_fields") else tuple(wrapped)
        if callable(value) and not isinstance(value, type):
            return lambda *args, **options: self.wrap(
                value(*map(unwrap, args), **{k: unwrap(v) for k, v in options.items()})
            )
        return value

    def __getattr__(self, name):
        return self.wrap(getattr(self._module, name))


frozen = Namespace(Frozen)
indexed = Namespace(Indexed)
