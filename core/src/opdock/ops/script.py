"""Python functions as operations: `tf.py_func` and `tf.numpy_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.control.python_functions import register
from opdock.graph.nodes.graph import get_default_graph
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__ = ["numpy_function", "py_func"]

py_func_op = define_op(
    "PyFunc", "input: Tin -> output: Tout",
    "token: string, Tin: list(type) >= 0, Tout: list(type) >= 0",
    stateful=True,
).not_differentiable()  # fmt: skip
py_func_stateless_op = define_op(
    "PyFuncStateless", "input: Tin -> output: Tout",
    "token: string, Tin: list(type) >= 0, Tout: list(type) >= 0",
).not_differentiable()  # fmt: skip
for _op in (py_func_op, py_func_stateless_op):
    _op.declare(Traits(cost=Cost.WAIT, foreign=True))


@py_func_op.shape
@py_func_stateless_op.shape
def _unknown(sig: ShapeSig) -> list[Shape]:
    return [None] * sig.n_outputs


def py_func(
    func: Callable[..., Any],
    inp: Any,
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a Python function on NumPy arrays when the graph runs.

    Args:
        func: takes one array (a NumPy scalar for a 0-D tensor) per input and returns arrays of
            exactly the types `Tout`.
        inp: a list of tensors.
        Tout: the type of the result, or a list of types for several results; [] for none.
        stateful: whether equal inputs may give unequal results, or the function has effects.
        name: a name for the operation.

    Returns:
        A tensor, a list of tensors, or the operation when there are no results. Static shapes
        are unknown; the function runs in this process and is not saved with the graph.

    Raises:
        ValueError: `func` is not callable.
        tf.errors.InvalidArgumentError: at run time, when the results are not as promised, or the
            function raises ValueError or TypeError; other exceptions have other classes.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")
    several = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t).base_dtype for t in (Tout if several else [Tout])]
    token = register(func, get_default_graph())
    op = py_func_op if stateful else py_func_stateless_op
    result = op(list(inp), token=token, Tout=types, name=name)
    return result if several or not isinstance(result, list) else result[0]


def numpy_function(
    func: Callable[..., Any],
    inp: Any,
    Tout: Any,
    name: str | None = None,
) -> Any:
    """`tf.py_func` with `stateful=True`; see there."""
    return py_func(func, inp, Tout, stateful=True, name=name)
