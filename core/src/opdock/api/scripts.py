"""`tf.py_function`: Python code over values that know `.numpy()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.ops.script import py_func
from opdock.runtime.session import Session

__all__ = ["py_function"]


class _Value(np.ndarray[Any, Any]):
    """An array that answers as an eager tensor does."""

    def numpy(self) -> Any:
        """The array; a scalar as NumPy's scalar, a string as bytes."""
        plain = self.view(np.ndarray)
        return plain[()] if plain.ndim == 0 else plain


def _value(given: Any) -> _Value:
    array = given if isinstance(given, np.ndarray) else np.array(
        given, object if isinstance(given, (bytes, str)) else None
    )  # fmt: skip
    return array.view(_Value)


def py_function(func: Callable[..., Any], inp: Any, Tout: Any, name: str | None = None) -> Any:
    """Calls a Python function when the graph runs, with values that have `.numpy()`.

    Args:
        func: takes a value per input: a NumPy array with the method `numpy`. What it computes
            with `tf` is computed in a session of its own.
        inp: a list of tensors.
        Tout: the type of the result, or a list of types; an empty one for none.
        name: a name for the operation.

    Returns:
        A tensor, a list of tensors, or the operation when there are no results. No gradient flows
        through: there is no eager tape.

    Raises:
        TypeError: `func` is not callable.
        tf.errors.InvalidArgumentError: at run time, when the results are not as promised.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got {func!r}")

    def run(*arrays: Any) -> Any:
        with Graph().as_default() as graph:
            result = func(*map(_value, arrays))
            several = isinstance(result, (list, tuple))
            flat = list(result) if several else [result]
            tensors = [r for r in flat if isinstance(r, Tensor)]
            if tensors:
                with Session(graph=graph) as session:
                    values = iter(session.run(tensors))
                flat = [next(values) if isinstance(r, Tensor) else r for r in flat]
        flat = [r.numpy() if isinstance(r, _Value) else r for r in flat]
        return flat if several else flat[0]

    return py_func(run, inp, Tout, stateful=True, name=name)
