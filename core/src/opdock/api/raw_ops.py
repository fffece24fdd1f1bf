"""`tf.raw_ops`: every op by its type, called with keyword arguments alone.

`generated` gives the same op as the function that TF's generator writes for it in the `gen_*_ops`
modules of its internal tree, which takes its arguments by position too.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Final

from opdock.graph.nodes import registry
from opdock.ops.support.op_docs import docstring

# Arguments that TF's Python functions call otherwise than the op's definition does.
_REDUCTIONS: Final = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
_RENAMED: Final[dict[str, dict[str, str]]] = {
    **{op: {"reduction_indices": "axis"} for op in _REDUCTIONS},
    "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"},
    "ExpandDims": {"dim": "axis"},
    "Select": {"t": "x", "e": "y"},
    "Squeeze": {"squeeze_dims": "axis"},
    "Where": {"input": "condition"},
}


class _Call:
    """An op as a function of TF's: its arguments in TF's order, and what they are in the op."""

    def __init__(self, spec: registry.OpSpec) -> None:
        definition = spec.definition
        self.spec = spec
        self.renamed = _RENAMED.get(spec.name, {})
        self.inputs = [arg.name for arg in definition.inputs]
        attrs = [a for n, a in definition.attrs.items() if n not in definition.inferred]
        self.needed = [*self.inputs, *(a.name for a in attrs if not a.has_default)]
        self.order = [*self.needed, *(a.name for a in attrs if a.has_default)]

    @property
    def keys(self) -> list[str]:
        """The names of the arguments as TF's functions have them."""
        return [*(self.renamed.get(n, n) for n in self.order), "name"]

    def __call__(self, given: dict[str, typing.Any], name: str | None) -> typing.Any:
        back = {public: inner for inner, public in self.renamed.items()}
        values = {back.get(key, key): value for key, value in given.items()}
        missing = [self.renamed.get(n, n) for n in self.needed if n not in values]
        if missing:
            raise TypeError(f"{self.spec.name}() missing required arguments: {', '.join(missing)}")
        inputs = [values.pop(key) for key in self.inputs]
        attrs = {key: v for key, v in values.items() if v is not None or key not in self.order}
        return self.spec(*inputs, name=name, **attrs)


def _caller(spec: registry.OpSpec) -> Callable[..., typing.Any]:
    made = _Call(spec)

    def call(*args: typing.Any, name: str | None = None, **kwargs: typing.Any) -> typing.Any:
        if args:
            raise TypeError(
                f"{spec.name} only takes keyword args (possible keys: {made.keys}). Please pass "
                "these args as kwargs instead."
            )
        return made(kwargs, name)

    call.__name__ = call.__qualname__ = spec.name
    call.__doc__ = docstring(spec, made.renamed)
    return call


@functools.cache
def generated(op_type: str) -> Callable[..., typing.Any]:
    """The function that TF's generator writes for an op: inputs, attributes, name, by position.

    Raises:
        NotFoundError: there is no such op.
    """
    spec = registry.get(op_type)
    made = _Call(spec)

    def call(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        keys = made.keys
        if len(args) > len(keys):
            raise TypeError(
                f"{op_type} takes at most {len(keys)} positional arguments ({', '.join(keys)}), "
                f"got {len(args)}"
            )
        given = dict(zip(keys, args))
        twice = given.keys() & kwargs.keys()
        if twice:
            raise TypeError(f"{op_type} got several values for {', '.join(sorted(twice))}")
        given |= kwargs
        return made(given, given.pop("name", None))

    call.__name__ = call.__qualname__ = op_type
    call.__doc__ = docstring(spec, made.renamed)
    return call


def __getattr__(name: str) -> Callable[..., typing.Any]:
    spec = None if name.startswith("_") else registry.find(name)
    if spec is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: no such op")
    found = globals()[name] = _caller(spec)
    return found


def __dir__() -> list[str]:
    return [spec.name for spec in registry.all_ops(probes=True) if not spec.name.startswith("_")]
