"""`tf.raw_ops`: every op by its type, called with keyword arguments alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.graph.nodes import registry


def _caller(spec: registry.OpSpec) -> Callable[..., Any]:
    inputs = [arg.name for arg in spec.definition.inputs]
    keys = [*inputs, *(a for a in spec.definition.attrs if a not in spec.definition.inferred)]

    def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        if args:
            raise TypeError(
                f"{spec.name} only takes keyword args (possible keys: {[*keys, 'name']}). Please "
                "pass these args as kwargs instead."
            )
        missing = [key for key in inputs if key not in kwargs]
        if missing:
            raise TypeError(f"{spec.name}() missing required arguments: {', '.join(missing)}")
        values = [kwargs.pop(key) for key in inputs]
        return spec(*values, name=name, **kwargs)

    call.__name__ = call.__qualname__ = spec.name
    call.__doc__ = f"The op {spec!r}, with keyword arguments {', '.join(keys)} and name."
    return call


def __getattr__(name: str) -> Callable[..., Any]:
    spec = None if name.startswith("_") else registry.find(name)
    if spec is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: no such op")
    found = globals()[name] = _caller(spec)
    return found


def __dir__() -> list[str]:
    return [spec.name for spec in registry.all_ops(probes=True) if not spec.name.startswith("_")]
