"""Python functions as operations: `tf.py_func` and `tf.numpy_function`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.control.python_functions import find, register
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.registry import Cost, OpSpec, ShapeSig, Traits, define_op, get
from opdock.ops.rewriting.status import ControlStatusCtx, Status
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
eager_py_func_op = define_op(
    "EagerPyFunc", "input: Tin -> output: Tout",
    "token: string, is_async: bool = false, Tin: list(type) >= 0, Tout: list(type) >= 0",
    stateful=True,
)  # fmt: skip
for _op in (py_func_op, py_func_stateless_op, eager_py_func_op):
    _op.declare(Traits(cost=Cost.WAIT, foreign=True))


@py_func_op.shape
@py_func_stateless_op.shape
@eager_py_func_op.shape
def _unknown(sig: ShapeSig) -> list[Shape]:
    return [None] * sig.n_outputs


@eager_py_func_op.gradient
def _eager_py_func_gradient(op: Operation, *grads: Tensor | None) -> list[Tensor | None]:
    """A call of the function's derivative with the inputs and the gradients of the results."""
    function = find(op.attrs["token"])
    if function is None:
        raise LookupError(
            f"The Python function of {op.name} is gone: its gradient is made in the process that "
            "made the node"
        )
    derivative = getattr(function, "derivative", None)
    if derivative is None:
        raise LookupError(f"{op.name} has no gradient: py_function is differentiated once")
    given = [
        get("ZerosLike")(y) if g is None else g for y, g in zip(op.outputs, grads, strict=True)
    ]
    smooth = [x.dtype.is_floating or x.dtype.is_complex for x in op.inputs]
    types = [
        x.dtype.base_dtype for x, is_smooth in zip(op.inputs, smooth, strict=True) if is_smooth
    ]
    # The function's last call, which this node may go back through, is the one of this node.
    with control_dependencies([op]):
        found = _call(eager_py_func_op, derivative(), [*op.inputs, *given], types, None)
    each = iter(found if isinstance(found, list) else [found])
    return [next(each) if is_smooth else None for is_smooth in smooth]


def _call(
    op: OpSpec, func: Callable[..., Any], inputs: Any, types: list[DType], name: str | None
) -> Any:
    token = register(func, get_default_graph())
    return op(list(inputs), token=token, Tout=types, name=name)


def as_it_is(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that nothing is rewritten in while it runs.

    One that stands in a rewritten function, as those of datasets are, would have all that it calls
    looked at for control flow over tensors, of which it has none.
    """

    @functools.wraps(func)
    def called(*args: Any) -> Any:
        with ControlStatusCtx(Status.DISABLED):
            return func(*args)

    return called


def eager_py_func(func: Callable[..., Any], inp: Any, Tout: Any, name: str | None) -> Any:
    """A node that calls `func`, which has a method `derivative` for its gradient."""
    several = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t).base_dtype for t in (Tout if several else [Tout])]
    result = _call(eager_py_func_op, func, inp, types, name)
    return result if several or not isinstance(result, list) else result[0]


@extensible
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
        A tensor, a list of tensors, or the operation when there are no results (an empty list if
        the function is stateless, as nothing then needs to run). Static shapes
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
    op = py_func_op if stateful else py_func_stateless_op
    result = _call(op, as_it_is(func), inp, types, name)
    if not types and not stateful:
        return []
    return result if several or not isinstance(result, list) else result[0]


@extensible
def numpy_function(
    func: Callable[..., Any],
    inp: Any,
    Tout: Any,
    name: str | None = None,
) -> Any:
    """`tf.py_func` with `stateful=True`; see there.

    Args:
        func: the function, of NumPy arrays.
        inp: the tensors that it is called with.
        Tout: the types of its results.
        name: a name for the operation.
    """
    return py_func(func, inp, Tout, stateful=True, name=name)
