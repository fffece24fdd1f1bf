"""`tf.py_function`: Python code over tensors that know their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.autodiff.gradients import UnconnectedGradients
from opdock.autodiff.tape import GradientTape
from opdock.dtypes import DType
from opdock.eager.modes import eager_mode
from opdock.eager.tensor import EagerTensor
from opdock.eager.values import values_of
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable import Variable
from opdock.ops.script import as_it_is, eager_py_func

__all__ = ["py_function"]


class _Call:
    """One call: what went in, what came out, and the tape between them.

    Args:
        function: takes a tensor per array.
        arrays: the values of the tensors.
        types: those promised for the results.
    """

    def __init__(
        self, function: Callable[..., Any], arrays: tuple[Any, ...], types: list[DType]
    ) -> None:
        self.arrays = arrays
        with eager_mode(), GradientTape() as self.tape:
            self.inputs = [_input(array) for array in arrays]
            self.tape.watch([x for x in self.inputs if _differentiable(x)])
            result = function(*self.inputs)
            several = isinstance(result, (list, tuple))
            flat = list(result) if several else [] if result is None else [result]
            if len(flat) == len(types):
                flat = [_checked(r, t) for r, t in zip(flat, types, strict=True)]
            # Another number of them is an error where they are handed out.
            self.outputs = flat

    def results(self) -> list[Any]:
        """The values that came out."""
        return [r.numpy() if isinstance(r, EagerTensor) else r for r in self.outputs]

    def gradients(self, grads: tuple[Any, ...]) -> list[Any]:
        """The gradients for the inputs that have one, of those for the outputs."""
        with eager_mode():
            pairs = zip(self.outputs, grads, strict=True)
            ys = [(y, convert_to_tensor(g, y.dtype)) for y, g in pairs if isinstance(y, Tensor)]
            found = self.tape.gradient(
                [y for y, _ in ys], [x for x in self.inputs if _differentiable(x)],
                [g for _, g in ys], UnconnectedGradients.ZERO,
            )  # fmt: skip
            return [values_of(convert_to_tensor(g)) for g in found]

    def is_of(self, arrays: tuple[Any, ...]) -> bool:
        """Whether these were the arrays that went in."""
        pairs = zip(self.arrays, arrays, strict=True)
        return all(a is b or np.array_equal(a, b, equal_nan=False) for a, b in pairs)


def _input(array: Any) -> Tensor:
    kind = np.asarray(array).dtype
    return constant(array, dtypes.string if kind.kind in "SUO" else dtypes.as_dtype(kind))


def _differentiable(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _checked(result: Any, dtype: DType) -> Any:
    if isinstance(result, Variable):
        raise RuntimeError(
            "Attempting to return a variable from an eagerly executed py_func. Only numeric data "
            "structures like Tensors or NumPy arrays should be returned; to return the value of a "
            "variable, make sure to obtain the Tensor backing it by calling `.read_value()` on "
            f"the variable in question: {result}"
        )
    if isinstance(result, (Tensor, str, bytes)):
        return result
    if isinstance(result, (np.ndarray, np.generic)) and not _holds(dtype, result.dtype):
        return result  # an error where it is handed out
    return convert_to_tensor(result, dtype)


def _holds(wanted: DType, kind: np.dtype[Any]) -> bool:
    """Whether numbers of a kind may become those of a type: none loses its fraction."""
    if kind.kind not in "biufc":
        return False
    given = dtypes.as_dtype(kind)
    integer = given.is_integer
    return (
        given is wanted
        or (wanted.is_integer and integer)
        or (wanted.is_floating and (integer or given.is_floating))
        or (wanted.is_complex and given is not dtypes.bool)
    )


class _Function:
    """A Python function that a graph calls, and its derivative.

    Args:
        function: the user's.
        types: those promised for its results.
    """

    def __init__(self, function: Callable[..., Any], types: list[DType]) -> None:
        self._function, self._types = as_it_is(function), types
        self._differentiated = False
        self._last: _Call | None = None

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results."""
        call = _Call(self._function, arrays, self._types)
        results = call.results()
        if self._differentiated:
            self._last = call
        return results

    def derivative(self) -> Callable[..., list[Any]]:
        """What takes the inputs and the gradients of the results, and gives those of the inputs.

        The graph of the last call serves if the inputs are its own; in a loop that goes back
        through many calls the function is called again.
        """
        self._differentiated = True

        def run(*arrays: Any) -> list[Any]:
            count = len(arrays) - len(self._types)
            inputs, grads = arrays[:count], arrays[count:]
            call, self._last = self._last, None
            if call is None or not call.is_of(inputs):
                call = _Call(self._function, inputs, self._types)
            return call.gradients(grads)

        return run


@extensible
def py_function(func: Callable[..., Any], inp: Any, Tout: Any, name: str | None = None) -> Any:
    """Calls a Python function when the graph runs, with tensors that know their values.

    Args:
        func: takes a tensor per input, which has the method `numpy` and serves as an array, a
            number or a condition. What it computes with `tf` is computed at once.
        inp: a list of tensors.
        Tout: the type of the result, or a list of types; an empty one for none.
        name: a name for the operation.

    Returns:
        A tensor, a list of tensors, or the operation when there are no results. Gradients flow
        through what `func` computes with `tf`.

    Raises:
        ValueError: `func` is not callable.
        tf.errors.InvalidArgumentError: at run time, when the results are not as promised.
        tf.errors.UnknownError: at run time, when a result is a variable.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")
    types = [dtypes.as_dtype(t) for t in (Tout if isinstance(Tout, (list, tuple)) else [Tout])]
    return eager_py_func(_Function(func, types), inp, Tout, name)
